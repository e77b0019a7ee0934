#!/usr/bin/env python3
"""A server of the API that the page uses, with answers that a test decides.

Run alone, it shows the page with canned answers: fake_server.py [PORT]
"""

import json
import pathlib
import queue
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER.parents[2] / "server" / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
LIMIT_SECONDS = 30  # After which a test that forgot a gate fails.

PROPS = {
    "default_generation_settings": {
        "n_ctx": 4096,
        "params": {
            "temperature": 0.8,
            "top_k": 40,
            "top_p": 0.949999988079071,
            "min_p": 0.05,
            "repeat_penalty": 1.0,
            "n_predict": -1,
        },
    },
    "total_slots": 4,
    "thinking_variable": "enable_thinking",
    "memory": {"private_bytes": 171_000_000, "mapped_bytes": 571_000_000},
    "memory_plan": [
        {"name": "weights of linear layers", "bytes": 561_000_000, "kind": "mapped"},
        {"name": "embedding", "bytes": 132_000_000, "kind": "mapped"},
        {"name": "KV cache, 4 × 1024 tokens", "bytes": 134_200_000, "kind": "private"},
        {"name": "activations", "bytes": 21_300_000, "kind": "private"},
        {"name": "threads", "bytes": 6_100_000, "kind": "private"},
        {"name": "tokenizer", "bytes": 9_800_000, "kind": "private"},
        {"name": "program", "bytes": 11_400_000, "kind": "private"},
        {"name": "rope tables", "bytes": 524_288, "kind": "private"},
        {"name": "norm weights", "bytes": 135_168, "kind": "private"},
        {"name": "connections and queue", "bytes": 4_300_000, "kind": "private"},
    ],
}

METRICS = """# TYPE cria_requests_processing gauge
cria_requests_processing 1
# TYPE cria_requests_waiting gauge
cria_requests_waiting 2
cria_requests_waiting_max 16
"""


def policy():
    """The page's own policy, from its source."""
    source = (PAGE / "page.cc").read_text()
    body = source.split("PageContentSecurityPolicy()", 1)[1].split(";\n}", 1)[0]
    return "".join(re.findall(r'"([^"]*)"', body))


class Gate(threading.Event):
    """An answer waits here until the test opens it."""


class Thought(str):
    """A part of the reasoning."""


class Broken:
    """Ends the connection in the middle of the answer."""


class Refusal:
    """A whole answer with a status of failure."""

    def __init__(self, status, message, headers=None):
        self.status, self.message, self.headers = status, message, headers or {}


class Ending:
    """The last parts of a stream."""

    def __init__(self, reason="stop"):
        self.reason = reason


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, content_type, body, headers=None):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy())
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, status, value, headers=None):
        self.answer(status, "application/json", json.dumps(value).encode(), headers)

    def answer_error(self, refusal):
        self.answer_json(
            refusal.status, {"error": {"message": refusal.message, "type": "test"}}, refusal.headers
        )

    def answer_file(self, path):
        if path.suffix in TYPES and path.is_file():
            self.answer(200, TYPES[path.suffix], path.read_bytes())
        else:
            self.answer_error(Refusal(404, "there is no such file"))

    def is_allowed(self):
        key = self.server.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.answer_error(Refusal(401, "this needs a key"))
        return False

    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path in self.server.held:
            self.server.held[self.path].wait(LIMIT_SECONDS)
        if self.path == "/":
            self.answer_file(PAGE / "index.html")
        elif self.path.startswith("/page/"):
            self.answer_file(PAGE / self.path.removeprefix("/page/").replace("/", "_"))
        elif self.path.startswith("/tests/"):
            self.answer_file(FOLDER / self.path.removeprefix("/tests/").replace("/", "_"))
        elif not self.is_allowed():
            pass
        elif self.path == "/v1/models":
            self.answer_json(200, {"object": "list", "data": self.server.models})
        elif self.path == "/props" and self.server.props is not None:
            self.answer_json(200, self.server.props)
        elif self.path == "/metrics":
            self.answer(200, "text/plain", METRICS.encode())
        else:
            self.answer_error(Refusal(404, "there is no such path"))

    def do_POST(self):
        self.server.paths.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.is_allowed():
            return
        request = json.loads(body)
        if self.path == "/tokenize" and self.server.tokens_per_word:
            words = request["content"].split()
            self.answer_json(200, {"tokens": [1] * len(words) * self.server.tokens_per_word})
            return
        if self.path != "/v1/chat/completions":
            self.answer_error(Refusal(404, "there is no such path"))
            return
        self.server.requests.append(request)
        steps = self.server.next_answer(request)
        if isinstance(steps[0], Refusal):
            self.answer_error(steps[0])
            return
        try:
            self.stream(steps)
        except (BrokenPipeError, ConnectionResetError):
            self.server.gone.set()
            self.close_connection = True

    def write_chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def write_event(self, value):
        text = value if isinstance(value, str) else json.dumps(value)
        self.write_chunk(f"data: {text}\n\n".encode())

    def write_delta(self, delta, reason=None):
        self.write_event(
            {
                "object": "chat.completion.chunk",
                "model": "cria-demo",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            }
        )

    def stream(self, steps):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.write_delta({"role": "assistant", "content": ""})
        tokens = 0
        reason = "stop"
        for step in steps:
            if isinstance(step, Gate):
                self.wait(step)
            elif isinstance(step, Broken):
                self.close_connection = True
                return
            elif isinstance(step, Refusal):
                self.write_event({"error": {"message": step.message}})
                self.write_chunk(b"")
                return
            elif isinstance(step, Ending):
                reason = step.reason
            elif isinstance(step, float):
                time.sleep(step)  # For looking at the page, not for tests.
            else:
                tokens += 1
                self.write_delta(
                    {"reasoning_content" if isinstance(step, Thought) else "content": step}
                )
        self.write_delta({}, reason)
        self.write_event(
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 21,
                    "completion_tokens": tokens,
                    "total_tokens": 21 + tokens,
                    "prompt_tokens_details": {"cached_tokens": 8},
                },
                "timings": {
                    "prompt_n": 13,
                    "prompt_ms": 130.0,
                    "predicted_n": tokens,
                    "predicted_per_second": 12.5,
                },
            }
        )
        self.write_event("[DONE]")
        self.write_chunk(b"")

    def wait(self, gate):
        """Writes comments meanwhile, which fail when the client has gone away."""
        for _ in range(LIMIT_SECONDS * 20):
            if gate.wait(0.05):
                return
            self.write_chunk(b": waiting\n\n")
        raise TimeoutError("no one opened the gate")


class FakeServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.reset()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)

    def reset(self):
        self.key = None
        self.props = PROPS
        self.models = [{"id": "cria-demo", "object": "model"}]
        self.tokens_per_word = 1  # 0: there is no /tokenize.
        self.requests = []
        self.paths = []
        self.held = {}  # Gates by the path whose answer waits for them.
        self.answers = queue.Queue()
        self.gone = threading.Event()
        self.next_answer = self.scripted_answer

    def handle_error(self, *_):
        # Browsers close connections whenever they like.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*_)

    def scripted_answer(self, request):
        if not self.answers.empty():
            return self.answers.get()
        text = request["messages"][-1]["content"]
        return ["You said: ", text]


def canned_answer(_):
    text = (FOLDER / "sample.md").read_text()
    return [Thought("I shall show what the page can."), 0.3] + [
        step for word in re.findall(r"\s*\S+", text) for step in (word, 0.03)
    ]


if __name__ == "__main__":
    server = FakeServer(int(sys.argv[1]) if len(sys.argv) > 1 else 8090)
    server.next_answer = canned_answer
    print(f"The page is at {server.url}", flush=True)
    server.serve_forever()
