"""Whether a model calls the right tools over the server's API of OpenAI, and answers in words behind a result."""

import json

from programs import expect, post


def tool(name, description, **properties):
    return {"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "properties": properties, "required": list(properties),
                       "additionalProperties": False}}}


TOOLS = [
    tool("get_weather", "Get the current weather in a city", city={"type": "string", "description": "Name of the city"}),
    tool("add", "Add two integers", a={"type": "integer"}, b={"type": "integer"}),
    tool("read_file", "Read a text file", path={"type": "string", "description": "Path of the file"}),
]
# A question, the tool that it needs, and the arguments.
QUESTIONS = [
    ("What is the weather in Oslo right now?", "get_weather", {"city": "Oslo"}),
    ("Use the tool to add 1234 and 4321.", "add", {"a": 1234, "b": 4321}),
    ("Read the file notes.txt with the tool.", "read_file", {"path": "notes.txt"}),
]
# More, of which it counts whether a call that a tool can take follows if the model decides.
MORE_QUESTIONS = [
    "How warm is it in Lima today?",
    "Is it raining in Nairobi?",
    "Tell me the current weather in Kyoto.",
    "What is 17 plus 25? Use the tool.",
    "Add 900 and 99 for me with the tool.",
    "Show me what is in the file config.yaml.",
    "Open the file /etc/hostname and tell me what it says.",
]
# Of ten requests that need a tool, so many become a valid call at least.
MIN_VALID = 9


def is_valid(call):
    """Whether a tool can take the call: its name and arguments match a definition."""
    function = next((tool["function"] for tool in TOOLS if tool["function"]["name"] == call["function"]["name"]), None)
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        return False
    if function is None or not isinstance(arguments, dict):
        return False
    properties = function["parameters"]["properties"]
    types = {"string": str, "integer": int}
    return set(arguments) == set(properties) and all(
        isinstance(value, types[properties[name]["type"]]) for name, value in arguments.items())


def ask(url, messages, choice):
    answer = post(url, "/v1/chat/completions", {"messages": messages, "tools": TOOLS, "tool_choice": choice,
                                                "temperature": 0, "max_tokens": 200})
    return answer["choices"][0]


def has_valid_calls(said):
    calls = said["message"].get("tool_calls") or []
    return bool(calls) and all(map(is_valid, calls))


def check_tools(programs, model):
    right = {"required": 0, "auto": 0}
    valid = 0
    with programs.server(model, "-c", "2048", "-np", "1") as url:
        for question, name, arguments in QUESTIONS:
            messages = [{"role": "user", "content": question}]
            for choice in right:
                said = ask(url, messages, choice)
                calls = said["message"].get("tool_calls") or []
                if choice == "required":
                    expect(calls and said["finish_reason"] == "tool_calls", f"'{question}' causes no call", said)
                valid += choice == "auto" and has_valid_calls(said)
                right[choice] += [(call["function"]["name"], json.loads(call["function"]["arguments"]))
                                  for call in calls] == [(name, arguments)]
        expect(right["required"] == len(QUESTIONS), f"only {right['required']} of {len(QUESTIONS)} calls are right")
        for question in MORE_QUESTIONS:
            valid += has_valid_calls(ask(url, [{"role": "user", "content": question}], "auto"))
        asked = len(QUESTIONS) + len(MORE_QUESTIONS)
        expect(valid >= MIN_VALID, f"only {valid} of {asked} requests that need a tool become a valid call")
        question, _, _ = QUESTIONS[0]
        messages = [{"role": "user", "content": question}]
        messages.append(ask(url, messages, "required")["message"])
        call = messages[-1]["tool_calls"][0]["id"]
        messages.append({"role": "tool", "tool_call_id": call, "content": "{\"celsius\": -17, \"sky\": \"clear\"}"})
        said = ask(url, messages, "none")
        expect(said["message"]["content"] and not said["message"].get("tool_calls"),
               "no text follows the result of a tool", said)
    print(f"tools: {right['required']} of {len(QUESTIONS)} calls are right if one is required, {right['auto']} if the "
          f"model decides; {valid} of {asked} requests that need a tool become a valid call then", flush=True)
