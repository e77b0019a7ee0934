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


def ask(url, messages, choice):
    answer = post(url, "/v1/chat/completions", {"messages": messages, "tools": TOOLS, "tool_choice": choice,
                                                "temperature": 0, "max_tokens": 200})
    return answer["choices"][0]


def check_tools(programs, model):
    right = {"required": 0, "auto": 0}
    with programs.server(model, "-c", "2048", "-np", "1") as url:
        for question, name, arguments in QUESTIONS:
            messages = [{"role": "user", "content": question}]
            for choice in right:
                said = ask(url, messages, choice)
                calls = said["message"].get("tool_calls") or []
                if choice == "required":
                    expect(calls and said["finish_reason"] == "tool_calls", f"'{question}' causes no call", said)
                right[choice] += [(call["function"]["name"], json.loads(call["function"]["arguments"]))
                                  for call in calls] == [(name, arguments)]
        expect(right["required"] == len(QUESTIONS), f"only {right['required']} of {len(QUESTIONS)} calls are right")
        question, _, _ = QUESTIONS[0]
        messages = [{"role": "user", "content": question}]
        messages.append(ask(url, messages, "required")["message"])
        call = messages[-1]["tool_calls"][0]["id"]
        messages.append({"role": "tool", "tool_call_id": call, "content": "{\"celsius\": -17, \"sky\": \"clear\"}"})
        said = ask(url, messages, "none")
        expect(said["message"]["content"] and not said["message"].get("tool_calls"),
               "no text follows the result of a tool", said)
    print(f"tools: {right['required']} of {len(QUESTIONS)} calls are right if one is required, {right['auto']} if the "
          "model decides", flush=True)
