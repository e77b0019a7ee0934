"""Requests that a server must answer or refuse: each is made from its seed and number alone.

It knows fields of all APIs and the table of paths in server/README.md, which a test compares with the code's. It sends
nothing, and does not know what an answer must be.
"""

import dataclasses
import json
import pathlib
import random
import re

README = pathlib.Path(__file__).parents[3] / "server" / "README.md"
CONTENT_TYPE = "Content-Type: application/json"

TOOL = {"type": "function", "name": "add", "input_schema": {"type": "object"},
        "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
CALL = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
SCHEMA = {"type": "object", "properties": {"a": {"enum": ["b", 1, None]}}, "required": ["a"]}

# A little more than the server takes.
MAX_BODY_BYTES = 1_100_000

# What makes a good request of a path.
CORE = {
    "model": "",  # One of the server's.
    "messages": [{"role": "user", "content": "Who are you?"}],
    "prompt": "Once",
    "input": "Who are you?",
    "content": "a b",
    "tokens": [1, 2, 3],
    "query": "a",
    "documents": ["a", {"text": "b"}],
    "input_prefix": "a",
    "input_suffix": "b",
    "filename": "slot",
    "max_tokens": 4,
    "max_output_tokens": 4,
    "n_predict": 4,
    "options": {"num_predict": 4},
}
# Paths with such a part need these fields of the above and refuse some of the others; a path without needs any of them.
NEEDED = [
    (r"chat|template", ["messages", "max_tokens", "options"]),
    (r"responses", ["input", "max_output_tokens"]),
    (r"embed", ["input", "prompt", "model"]),
    (r"rank", ["query", "documents"]),
    (r"infill", ["prompt", "input_prefix", "input_suffix", "n_predict"]),
    (r"/v1/messages", ["messages", "max_tokens"]),
]
# Good values of other fields.
OPTIONAL = {
    "messages": [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "a"}]}],
        [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
         {"role": "tool", "tool_call_id": "1", "content": "2"}],
        [{"role": "user", "content": "a"},
         {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}},
                                           {"type": "thinking", "thinking": "b"}]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "2"}]}]],
    "input": [["a", "b", "c"], [1, 2], [[1], [2, 3]],
              [{"role": "user", "content": [{"type": "input_text", "text": "a"}]},
               {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "b"}]},
               {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"},
               {"type": "function_call_output", "call_id": "1", "output": "2"}]],
    "prompt": [["a", "b"], [1, 2], [[1], [2]], ""],
    "system": ["Be brief.", [{"type": "text", "text": "a"}]],
    "instructions": ["Be brief."],
    "suffix": ["b"],
    "input_extra": [[{"filename": "a", "text": "b"}]],
    "stream": [True, False],
    "stream_options": [{"include_usage": True}],
    "temperature": [0, 0.5, 2], "top_p": [0, 0.5, 1], "top_k": [0, 1, 40], "min_p": [0.1], "typical_p": [0.5],
    "seed": [1, -1], "n": [1, 3], "best_of": [1], "ignore_eos": [True], "stop": ["a", ["b", "c"]],
    "stop_sequences": [["a"]], "repeat_penalty": [1.1], "presence_penalty": [0.5], "frequency_penalty": [0.5],
    "repeat_last_n": [-1, 64], "dry_multiplier": [0.8], "dry_sequence_breakers": [["\n", "a"]],
    "xtc_probability": [0.5], "logit_bias": [{"1": -100}, [[1, False], [2, 1.5]]],
    "logprobs": [True, 2], "top_logprobs": [2], "n_probs": [3], "echo": [True],
    "tools": [[TOOL]],
    "tool_choice": ["none", "auto", "required", {"type": "function", "function": {"name": "add"}}, {"type": "any"},
                    {"type": "allowed_tools", "mode": "auto", "tools": [TOOL],
                     "allowed_tools": {"mode": "required", "tools": [TOOL]}}],
    "parallel_tool_calls": [False],
    "response_format": [{"type": "json_object"}, {"type": "json_schema", "json_schema": {"schema": SCHEMA}}],
    "json_schema": [SCHEMA], "grammar": ['root ::= "a" | "b" root'], "format": ["json", SCHEMA],
    "text": [{"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}],
    "output_config": [{"format": {"type": "json_schema", "schema": SCHEMA}}],
    "guided_regex": ["a+b"], "guided_choice": [["a", "b"]], "guided_json": [json.dumps(SCHEMA)],
    "structured_outputs": [{"regex": "a*"}],
    "reasoning_effort": ["none", "low"], "reasoning": [{"effort": "none"}], "reasoning_budget": [0, 3],
    "thinking": [{"type": "disabled"}, {"type": "enabled", "budget_tokens": 3}], "think": [False],
    "enable_thinking": [False], "chat_template_kwargs": [{"a": {"b": [1]}}], "continue_final_message": [True],
    "include": [["message.output_text.logprobs"]], "metadata": [{"a": "b"}], "truncation": ["disabled"],
    "encoding_format": ["float", "base64"], "dimensions": [8], "truncate": [True, False],
    "top_n": [1], "return_documents": [True], "keep_alive": [0, "5m", -1], "options": [{"num_ctx": 100, "stop": ["a"]}],
    "add_special": [True], "with_pieces": [True], "parse_special": [False], "cache_prompt": [True],
}

# Texts that take the place of such a string, with its quotes, in the JSON of a body.
RAW = {f"raw text {i}": text for i, text in enumerate([
    b"1e400", b"-1e400", b"1e-400", b"NaN", b"-", b"01", b"1.", b"9" * 1000, b"0." + b"1" * 1000, b"1e99999999",
    b"18446744073709551616", b"-9223372036854775809", b'"\\ud800"', b'"\\u0000"', b'"\\u12"', b'"\xff\xfe"',
    b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc3', b"[" * 100_000, b"[" * 64 + b"]" * 64, b"[" * 63 + b"]" * 63,
    b'{"a":' * 10_000, b"{,}", b"[1,]", b"tru", b'{"a":1,"a":2}', b"/* */ 1", b"'a'",
    b"[" + b"{}," * 100_000 + b"{}]", b"[" + b"1," * 200_000 + b"1]"])}


def wrong_value(rng):
    """A value that few fields take."""
    make = rng.choice([
        lambda: rng.choice([None, True, False, "", [], {}, [None], {"": None}, [[]], -1, 0, 1, 0.5, -0.0]),
        lambda: rng.choice([2**31, -2**31 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -2**63, 1e308, -1e308, 5e-324]),
        lambda: rng.choice(["\0", "\x7f", "\u2028", "\U0001f600", "e\u0301" * 50, "<|im_end|>", "{{ a }}", "../a", "a/b",
                            "%s%n", "</tool_call>", "true", "1", "(" * 1000, "a{1000}{1000}", "[" * 1000]),
        lambda: rng.choice("a \n\"\\é\x01") * rng.choice([100, 5000, 100_000]),
        lambda: [rng.choice([1, -1, "a", None, [], {}, 2**40])] * rng.choice([2, 17, 1025, 4097, 20_000]),
        lambda: {f"k{i}": i for i in range(rng.choice([2, 1024, 1025, 5000]))},
        lambda: rng.choice(list(RAW)),
        lambda: rng.choice([json.loads("[" * depth + "]" * depth) for depth in (10, 60, 66)]),
        lambda: {"$ref": rng.choice(["#", "#/properties/a", "#/$defs/b", "http://a/"])},
    ])
    return make()


def places(value, found=None, depth=0):
    """The lists and objects in a value, each with a key of it."""
    found = [] if found is None else found
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if depth < 12:
        for key, item in list(items)[:40]:
            found.append((value, key))
            places(item, found, depth + 1)
    return found


def mutate(rng, body):
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 4])):
        found = places(body)
        if not found:
            return
        parent, key = rng.choice(found)
        what = rng.randrange(10)
        if what == 0:
            del parent[key]
        elif what == 1:
            parent[key] = [parent[key]]
        elif what == 2 and isinstance(parent, list):
            most = MAX_BODY_BYTES // len(json.dumps(parent[key]))
            parent.extend([parent[key]] * min(most, rng.choice([1, 20, 300, 5000])))
        elif what == 3:
            parent[key] = parent[rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))]
        elif what == 4 and isinstance(parent, dict):
            parent[rng.choice(list(OPTIONAL) + ["a", ""])] = wrong_value(rng)
        else:
            parent[key] = wrong_value(rng)


def json_body(rng, path, models):
    needed = next((names for part, names in NEEDED if re.search(part, path)), list(CORE))
    # A copy, because it is changed.
    body = json.loads(json.dumps({name: CORE[name] for name in ["model", *needed]}))
    body["model"] = rng.choice(models)
    for name in rng.sample(list(OPTIONAL), rng.choice([0, 1, 2, 5])):
        body[name] = json.loads(json.dumps(rng.choice(OPTIONAL[name])))
    mutate(rng, body)
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5).encode()
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"'.encode(), raw, 2)
    return text[:MAX_BODY_BYTES]


def damage(rng, text):
    """Bytes that differ from the text."""
    what = rng.randrange(5)
    place = rng.randrange(len(text) + 1)
    if what == 0:
        return text[:place]
    if what == 1:
        return text[:place] + rng.randbytes(rng.choice([1, 2, 30])) + text[place:]
    if what == 2:
        return text[:place] + text[min(len(text), place + rng.randrange(1, 20)):]
    if what == 3:
        return text + text
    return rng.randbytes(rng.choice([0, 1, 1000]))


@dataclasses.dataclass
class Request:
    """`bytes` is all that is sent."""

    number: int
    route: tuple[str, str]  # The method and the path of the table.
    path: str
    bytes: bytes
    # It is HTTP of which the server knows where it ends, so that there must be an answer with a status.
    is_whole: bool = True
    leaves_after: int | None = None  # So many bytes of the answer are read.


def read_paths():
    """Pairs of a method and a path, which may end with an ellipsis."""
    paths = []
    for row in re.findall(r"^\| (`(?:GET|POST) /.*?) \|", README.read_text(encoding="utf-8"), re.MULTILINE):
        method = ""
        for found in re.finditer(r"`(?:(GET|POST) )?(/[^` ]*)`", row):
            method = found[1] or method
            paths.append((method, found[2]))
    return paths


class HostileRequests:
    def __init__(self, seed, host, models):
        self.seed = seed
        self.host = host
        self.models = models  # Their names.
        self.paths = read_paths()

    def make(self, number):
        rng = random.Random(f"{self.seed}/{number}")
        # Each path in its turn.
        route = self.paths[number % len(self.paths)]
        method, path = route
        path = path.replace("…", rng.choice(["0", "1?action=save", "0?action=restore", "0?action=erase", *self.models, "..",
                                             "%2e%2e", "-1", "999999999999999999999", "a" * 300, "page.css", ""]))
        body = json_body(rng, path, self.models) if method == "POST" or rng.random() < 0.1 else b""
        if body and rng.random() < 0.15:
            body = damage(rng, body)
        if rng.random() < 0.05:
            method = rng.choice(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "A" * 100])
        if rng.random() < 0.05:
            path += rng.choice(["/", "?", "?model=%zz&=&model", "?a=" + "b" * 3000, "#a", "/..", "%00", "\xff", ";a", "//"])
        request = Request(number, route, path, b"")
        if rng.random() < 0.1:
            request.leaves_after = rng.choice([0, 1, 200, 2000])
        if rng.random() < 0.12:
            self.break_http(rng, request, method, body)
        else:
            request.bytes = self.head(method, path, [CONTENT_TYPE, f"Content-Length: {len(body)}"]) + body
        return request

    def head(self, method, path, lines, version="HTTP/1.1"):
        lines = [f"{method} {path} {version}", f"Host: {self.host}", "Connection: close", *lines]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def break_http(self, rng, request, method, body):
        """What a client sends that HTTP does not allow, or that does not end."""
        length = f"Content-Length: {len(body)}"
        what = rng.randrange(10)
        if what == 0:
            # The end of the body does not come.
            request.is_whole = False
            request.bytes = self.head(method, request.path, [f"Content-Length: {len(body) + 100}"]) + body
        elif what == 1:
            request.is_whole = False
            whole = self.head(method, request.path, [length]) + body
            request.bytes = whole[:rng.randrange(len(whole))]
        elif what == 2:
            request.is_whole = False
            request.bytes = self.head(method, request.path, [f"Content-Length: {rng.choice(['-1', 'a', '1e3', '', '9' * 30])}"])
        elif what == 3:
            request.is_whole = False
            request.bytes = self.head(method, request.path, [length, f"Content-Length: {len(body) + 1}"]) + body
        elif what == 4:
            size = rng.choice([f"{len(body):x}", "zz", "-1", "f" * 30, ""])
            request.is_whole = False
            request.bytes = (self.head(method, request.path, ["Transfer-Encoding: chunked"]) + size.encode() + b"\r\n" +
                             body + b"\r\n0\r\n\r\n")
        elif what == 5:
            request.bytes = self.head(method, request.path, [length], rng.choice(["HTTP/1.0", "HTTP/2.0", "HTTP/9", "a"])) + body
            request.is_whole = False
        elif what == 6:
            request.is_whole = False
            request.bytes = self.head(method, request.path, ["X: " + "a" * rng.choice([5000, 20_000, 200_000]), length]) + body
        elif what == 7:
            request.bytes = self.head(method, request.path, ["Host: " + rng.choice(["a", "evil.example", ""]), length]) + body
        elif what == 8:
            request.bytes = self.head(method, request.path,
                                      [rng.choice(["Origin: http://evil.example", "Expect: 100-continue", "Expect: a",
                                                   "Content-Encoding: gzip", "Authorization: a", "Range: bytes=0-0"]),
                                       length]) + body
        else:
            request.is_whole = False
            request.bytes = rng.randbytes(rng.choice([1, 100, 30_000]))
