"""Prints some conversations: python3 -m corpus [count] [seed]"""

import sys

from .dialogue import conversations

count, seed = (int(argument) for argument in (sys.argv[1:] + ["10", "1"][len(sys.argv) - 1:])[:2])
for messages in conversations(seed, count):
    for role, content in messages:
        print(f"{role:>9}: {content}")
    print()
