"""Prints some conversations: python3 -m corpus [count] [seed] [--json]

With --json, each line is one conversation, as cria-convert --calibrate reads it.
"""

import json
import sys

from .dialogue import conversations

arguments = [argument for argument in sys.argv[1:] if argument != "--json"]
count, seed = (int(argument) for argument in (arguments + ["10", "1"][len(arguments):])[:2])
for messages in conversations(seed, count):
    if "--json" in sys.argv:
        print(json.dumps([{"role": role, "content": content} for role, content in messages]))
        continue
    for role, content in messages:
        print(f"{role:>9}: {content}")
    print()
