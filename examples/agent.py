#!/usr/bin/env python3
"""An agent with two harmless tools, the time and a calculator, that asks a server of OpenAI's chat API.

    cria serve -m model.cria &
    examples/agent.py "What is 17 times 23?"

The model may call the tools until it answers in words. The server constrains each call to the tool's schema, so
that the arguments need no checks of their form. Needs nothing but Python's standard library.
"""

import argparse
import datetime
import json
import os
import sys
import urllib.error
import urllib.request

OPERATIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a // b,
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "The date and time now",
            "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "calculate",
            "description": "Compute with two whole numbers",
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": {
                    "operation": {"enum": list(OPERATIONS)},
                    "a": {"type": "integer"},
                    "b": {"type": "integer"},
                },
                "required": ["operation", "a", "b"],
                "additionalProperties": False,
            },
        },
    },
]


def call_tool(name, arguments):
    """What the tool answers: an error is an answer, too, from which the model can learn."""
    if name == "get_time":
        return datetime.datetime.now().isoformat(" ", "seconds")
    if name == "calculate":
        a, b, operation = arguments["a"], arguments["b"], arguments["operation"]
        if operation == "divide" and b == 0:
            return "error: a division by zero"
        return str(OPERATIONS[operation](a, b))
    return f"error: there is no tool {name}"


def ask(url, key, request):
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    message = urllib.request.Request(f"{url}/chat/completions", json.dumps(request).encode(), headers)
    try:
        with urllib.request.urlopen(message, timeout=600) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"agent: the server refuses: {json.load(error)['error']['message']}")
    except urllib.error.URLError as error:
        sys.exit(f"agent: {url} cannot be reached: {error.reason}")


def main():
    parser = argparse.ArgumentParser(description="Answer a question with the help of two tools.")
    parser.add_argument("question")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--max-calls", type=int, default=8, help="rounds of calls before the agent gives up")
    parser.add_argument("--required", action="store_true", help="make the first answer a call")
    options = parser.parse_args()
    messages = [
        {"role": "system", "content": "Use the tools where they help. Answer in one sentence."},
        {"role": "user", "content": options.question},
    ]
    choice = "required" if options.required else "auto"
    for _ in range(options.max_calls + 1):
        request = {"model": "", "messages": messages, "tools": TOOLS, "tool_choice": choice, "max_tokens": 512}
        answer = ask(options.url, os.environ.get("CRIA_API_KEY"), request)
        choice = "auto"
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        for call in message["tool_calls"]:
            function = call["function"]
            result = call_tool(function["name"], json.loads(function["arguments"]))
            print(f"{function['name']} {function['arguments']} = {result}", file=sys.stderr)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    sys.exit("agent: the model calls tools again and again")


if __name__ == "__main__":
    main()
