#!/usr/bin/env python3
"""OpenAI's, Anthropic's and ollama's Python clients against a server: clients.py URL

The model need not be clever: what is checked is that the clients understand every answer.
"""

import json
import sys
import threading
import time
import typing

import anthropic
import httpx
import ollama
import openai
import pydantic

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two whole numbers",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"enum": [1, 2]}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}, "stars": {"enum": [1, 2, 3]}},
    "required": ["mood", "stars"],
    "additionalProperties": False,
}
# An answer that takes long enough to be stopped, though the model is small.
LONG = {"n": 16, "max_tokens": 2000, "extra_body": {"ignore_eos": True}}
HELLO = [{"role": "user", "content": "Hello! Who are you?"}]


def check_quietly(what, condition, detail=""):
    if not condition:
        sys.exit(f"clients: {what} failed: {detail}")


def check(what, condition, detail=""):
    check_quietly(what, condition, detail)
    print(f"clients: {what}")


def check_chat(client, model):
    answer = client.chat.completions.create(model=model, messages=HELLO, temperature=0, max_tokens=40)
    text = answer.choices[0].message.content
    check("openai chat", text and answer.usage.total_tokens > 0, answer)
    stream = client.chat.completions.create(model=model, messages=HELLO, temperature=0, max_tokens=40, stream=True,
                                            stream_options={"include_usage": True})
    pieces = list(stream)
    joined = "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)
    check("openai stream", joined == text, f"{joined!r} is not {text!r}")
    check("openai usage of a stream", pieces[-1].usage.completion_tokens > 0)
    again = client.chat.completions.create(model=model, messages=HELLO, temperature=0, max_tokens=40)
    check("openai cached tokens", again.usage.prompt_tokens_details.cached_tokens > 0, again.usage)
    several = client.chat.completions.create(model=model, messages=HELLO, n=3, seed=1, max_tokens=8)
    check("openai n", [choice.index for choice in several.choices] == [0, 1, 2])
    tokens = client.chat.completions.create(model=model, messages=HELLO, max_tokens=3, logprobs=True, top_logprobs=2)
    check("openai logprobs", len(tokens.choices[0].logprobs.content[0].top_logprobs) == 2)
    completion = client.completions.create(model=model, prompt="Once upon a time", max_tokens=8, stop=["\n"])
    check("openai completion", completion.choices[0].finish_reason in ("stop", "length"))


def check_tools(client, model):
    arguments = {"model": model, "messages": [{"role": "user", "content": "Add."}], "tools": [TOOL],
                 "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
    answer = client.chat.completions.create(**arguments)
    call = answer.choices[0].message.tool_calls[0]
    check("openai tools", json.loads(call.function.arguments)["b"] in (1, 2), answer)
    messages = arguments["messages"] + [answer.choices[0].message.to_dict(),
                                        {"role": "tool", "tool_call_id": call.id, "content": "3"}]
    after = client.chat.completions.create(model=model, messages=messages, tools=[TOOL], max_tokens=20)
    check("openai result of a tool", after.choices[0].finish_reason in ("stop", "length", "tool_calls"))
    text = ""
    for piece in client.chat.completions.create(**arguments, stream=True):
        for part in piece.choices[0].delta.tool_calls or []:
            text += part.function.arguments or ""
    check("openai streamed tools", json.loads(text)["b"] in (1, 2), text)


def check_schema(client, model):
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=100,
        response_format={"type": "json_schema", "json_schema": {"name": "mood", "strict": True, "schema": SCHEMA}})
    value = json.loads(answer.choices[0].message.content)
    check("openai JSON schema", value["mood"] in ("good", "bad") and value["stars"] in (1, 2, 3), value)


def check_errors(client, model):
    try:
        client.chat.completions.create(model=model, messages=HELLO, temperature=-1)
        check("openai errors", False)
    except openai.BadRequestError as error:
        check("openai errors", error.param == "temperature", error)
    try:
        client.models.retrieve("no-such-model")
        check("openai unknown model", False)
    except openai.NotFoundError as error:
        check("openai unknown model", error.code == "model_not_found", error)
    try:
        client.with_options(timeout=0.01, max_retries=0).chat.completions.create(model=model, messages=HELLO, **LONG)
        check("openai time-out", False)
    except openai.APITimeoutError:
        check("openai time-out", True)


def wait_until_idle(url):
    """A client that has left stops its answer."""
    for _ in range(100):
        if not any(slot["is_processing"] for slot in httpx.get(url + "/slots").json()):
            return True
        time.sleep(0.1)
    return False


def check_cancelling(client, model, url):
    check("the time-out has stopped its answer", wait_until_idle(url))
    stream = client.chat.completions.create(model=model, messages=HELLO, stream=True, **LONG)
    next(iter(stream))
    stream.close()
    check("openai cancelling", wait_until_idle(url))


def check_parallel(client, model):
    def ask(number, answers):
        messages = [{"role": "user", "content": f"Say something about the number {number}."}]
        answer = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=24)
        answers[number] = answer.choices[0].message.content

    alone, together = {}, {}
    for number in range(6):
        ask(number, alone)
    threads = [threading.Thread(target=ask, args=(number, together)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check("six clients at once", alone == together, f"{alone} {together}")


def check_events(url, request):
    """Every event of a stream must be what the client's types say, strictly; returns the last response."""
    classes = {kind.model_fields["type"].annotation.__args__[0]: kind
               for kind in typing.get_args(typing.get_args(openai.types.responses.ResponseStreamEvent)[0])}
    types, event = [], None
    with httpx.stream("POST", url + "/v1/responses", json={**request, "stream": True}, timeout=300) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                event = classes[json.loads(line[6:])["type"]].model_validate_json(line[6:], strict=True)
                check_quietly("responses sequence", event.sequence_number == len(types), event)
                types.append(event.type)
    check("responses events", types[:2] == ["response.created", "response.in_progress"] and
          types[-1] in ("response.completed", "response.incomplete"), types)
    return event.response


def check_responses(client, url, model):
    request = {"model": model, "input": "Hello! Who are you?", "instructions": "Be brief.", "temperature": 0,
               "max_output_tokens": 40}
    answer = client.responses.create(**request)
    check("responses", answer.output_text and answer.usage.total_tokens > 0 and not answer.store, answer)
    raw = httpx.post(url + "/v1/responses", json=request, timeout=300).content
    check("responses types", openai.types.responses.Response.model_validate_json(raw, strict=True).output_text)
    check("responses stream", check_events(url, request).output_text == answer.output_text)
    with client.responses.stream(**request) as stream:
        joined = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    check("responses deltas", joined == answer.output_text, joined)
    again = client.responses.create(**request)
    check("responses cached tokens", again.usage.input_tokens_details.cached_tokens > 0, again.usage)
    tokens = client.responses.create(**{**request, "max_output_tokens": 3}, top_logprobs=2,
                                     include=["message.output_text.logprobs"])
    check("responses logprobs", len(tokens.output[0].content[0].logprobs[0].top_logprobs) == 2, tokens)
    check_response_items(client, url, model)


def check_response_items(client, url, model):
    class Mood(pydantic.BaseModel):
        mood: typing.Literal["good", "bad"]
        stars: typing.Literal[1, 2, 3]

    asked = [{"role": "user", "content": "Add."}]
    parsed = client.responses.parse(model=model, input=asked, text_format=Mood, max_output_tokens=100)
    check("responses parse", parsed.output_parsed.stars in (1, 2, 3), parsed)
    tool = {"type": "function", "strict": False, **TOOL["function"]}
    called = {"model": model, "input": asked, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False,
              "max_output_tokens": 200}
    answer = client.responses.create(**called)
    call = answer.output[-1]
    check("responses tools", call.type == "function_call" and json.loads(call.arguments)["b"] in (1, 2), answer)
    streamed = check_events(url, called).output[-1]
    check("responses streamed tools", json.loads(streamed.arguments)["b"] in (1, 2), streamed)
    asked = [*asked, *answer.output, {"type": "function_call_output", "call_id": call.call_id, "output": "3"}]
    after = client.responses.create(model=model, input=asked, tools=[tool], max_output_tokens=20)
    check("responses result of a tool", after.output, after)
    for refused, param in (({"previous_response_id": answer.id}, "previous_response_id"),
                           ({"tools": [{"type": "web_search"}]}, "tools[0].type")):
        try:
            client.responses.create(model=model, input="Hello", **refused)
            check("responses refusals", False)
        except openai.BadRequestError as error:
            check("responses refusals", error.param == param, error)
    try:
        client.responses.retrieve(answer.id)
        check("responses are not stored", False)
    except openai.NotFoundError:
        check("responses are not stored", True)


def check_anthropic(url, model):
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    # Some versions of the client have no argument for it.
    greedy = {"extra_body": {"temperature": 0}}
    arguments = {"model": model, "max_tokens": 40, "messages": HELLO, **greedy}
    answer = client.messages.create(**arguments)
    text = answer.content[0].text
    check("anthropic messages", text and answer.usage.output_tokens > 0, answer)
    with client.messages.stream(**arguments) as stream:
        joined = "".join(stream.text_stream)
        final = stream.get_final_message()
    check("anthropic stream", joined == text and final.stop_reason == answer.stop_reason, final)
    check("anthropic cached tokens", final.usage.cache_read_input_tokens > 0, final.usage)
    count = client.messages.count_tokens(model=model, messages=HELLO)
    usage = answer.usage
    check("anthropic tokens", count.input_tokens == usage.input_tokens + usage.cache_read_input_tokens, count)
    begun = client.messages.create(**{**arguments, "messages": [*HELLO, {"role": "assistant", "content": text[:5]}]})
    check("anthropic beginning of an answer", begun.content[0].text, begun)
    function = TOOL["function"]
    tool = {"name": function["name"], "description": function["description"], "input_schema": function["parameters"]}
    called = {"model": model, "max_tokens": 200, "tools": [tool], "tool_choice": {"type": "any"},
              "messages": [{"role": "user", "content": "Add."}]}
    answer = client.messages.create(**called)
    call = answer.content[-1]
    check("anthropic tools", answer.stop_reason == "tool_use" and call.input["b"] in (1, 2), answer)
    with client.messages.stream(**called) as stream:
        final = stream.get_final_message()
    check("anthropic streamed tools", final.content[-1].input["b"] in (1, 2), final)
    called["messages"] += [{"role": "assistant", "content": answer.content},
                           {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "3"}]}]
    after = client.messages.create(**{**called, "tool_choice": {"type": "auto"}, "max_tokens": 20})
    check("anthropic result of a tool", after.stop_reason in ("end_turn", "max_tokens", "tool_use"), after)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    try:
        client.messages.create(**{**arguments, "messages": [{"role": "user", "content": [image]}]})
        check("anthropic images", False)
    except anthropic.BadRequestError as error:
        check("anthropic images", "content[0].type" in error.body["error"]["message"], error)


def check_ollama(url):
    client = ollama.Client(host=url)
    model = client.list().models[0].model
    options = {"temperature": 0, "num_predict": 30}
    answer = client.chat(model=model, messages=HELLO, options=options)
    check("ollama chat", answer.message.content and answer.done, answer)
    pieces = "".join(piece.message.content for piece in
                     client.chat(model=model, messages=HELLO, options=options, stream=True))
    check("ollama stream", pieces == answer.message.content)
    check("ollama generate", client.generate(model=model, prompt="Hello", options=options).response)
    shaped = client.chat(model=model, messages=HELLO, format=SCHEMA, options={"num_predict": 100})
    check("ollama format", json.loads(shaped.message.content)["mood"] in ("good", "bad"))
    client.chat(model=model, messages=HELLO, tools=[TOOL], options=options)
    check("ollama tools", True)
    check("ollama show", "completion" in client.show(model).capabilities)
    check("ollama ps", client.ps().models[0].model == model)
    try:
        client.chat(model=model, messages=[{"role": "user", "content": "x", "images": [b"abc"]}])
        check("ollama images", False)
    except ollama.ResponseError as error:
        check("ollama images", error.status_code == 400 and "images" in error.error, error)


def main():
    url = sys.argv[1]
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    check_chat(client, model)
    check_tools(client, model)
    check_schema(client, model)
    check_responses(client, url, model)
    check_errors(client, model)
    check_cancelling(client, model, url)
    check_parallel(client, model)
    check_anthropic(url, model)
    check_ollama(url)


if __name__ == "__main__":
    main()
