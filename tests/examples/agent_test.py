#!/usr/bin/env python3
"""examples/agent.py against a server whose answers are written down: agent_test.py AGENT"""

import http.server
import json
import subprocess
import sys
import threading


def call(identifier, name, arguments):
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


class FakeServer(http.server.BaseHTTPRequestHandler):
    answers = []
    requests = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        FakeServer.requests.append((self.path, request))
        status, message = FakeServer.answers.pop(0)
        body = {"choices": [{"message": message}]} if status == 200 else {"error": {"message": message}}
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


def run(agent, port, answers, *arguments):
    FakeServer.answers = list(answers)
    FakeServer.requests = []
    command = [sys.executable, agent, "--url", f"http://127.0.0.1:{port}/v1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def main():
    agent = sys.argv[1]
    server = http.server.HTTPServer(("127.0.0.1", 0), FakeServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port

    calls = {"role": "assistant", "content": None, "tool_calls": [
        call("a", "calculate", {"operation": "multiply", "a": 17, "b": 23}),
        call("b", "calculate", {"operation": "divide", "a": 1, "b": 0}),
        call("c", "get_time", {}),
        call("d", "launch", {})]}
    answer = {"role": "assistant", "content": "It is 391."}
    done = run(agent, port, [(200, calls), (200, answer)], "What is 17 times 23?", "--required")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "It is 391.\n", done.stdout
    (path, first), (_, second) = FakeServer.requests
    assert path == "/v1/chat/completions"
    assert first["tool_choice"] == "required" and second["tool_choice"] == "auto"
    results = [message["content"] for message in second["messages"] if message["role"] == "tool"]
    assert results[0] == "391" and "zero" in results[1] and "no tool" in results[3], results
    assert results[2].startswith("20"), results
    assert second["messages"][2] == calls

    endless = run(agent, port, [(200, calls)] * 3, "Again", "--max-calls", "2")
    assert endless.returncode == 1 and "again and again" in endless.stderr, endless.stderr
    refused = run(agent, port, [(400, "tools[0] is wrong")], "Hi")
    assert refused.returncode == 1 and "tools[0] is wrong" in refused.stderr, refused.stderr
    server.shutdown()
    server.server_close()
    gone = run(agent, port, [], "Hi")
    assert gone.returncode == 1 and "cannot be reached" in gone.stderr, gone.stderr


if __name__ == "__main__":
    main()
