#!/usr/bin/env python3
"""Hostile requests to every path of the server: it must answer or refuse each, and be well afterwards.

    tests/server/load/hostile.py --cria-serve build/release/cli/cria-serve -m demo.cria -m tiny.cria --seed 1
    tests/server/load/hostile.py … -m demo.cria --seed 1 --only 1234    # one of them again, with its answer

Starts cria-serve with the first model, and then with all of them. Some clients at once send the requests that
hostile_requests.py makes of the seed: fields of wrong types and sizes, what is not JSON or not HTTP, wrong methods,
bodies that do not end. Exits with 1 if the server dies, if an answer has a status of 500, is not HTTP or has no
sentence with an error, if the server takes more memory than its plan or leaks descriptors, or if a good question then
has another answer than before; and if a path has no answer of 200 from either server, because the code behind its
checks was not reached then. The model of hostile_model.py answers on the paths for which a model must have special
tokens, or be a reranker.

Needs Python's standard library alone.
"""

import argparse
import asyncio
import collections
import json
import re
import sys
import tempfile
import time
import urllib.request

from hostile_requests import HostileRequests
from load import Client, Watch, running_server

QUESTION = "Where do you run?"
REQUESTS = 2000  # Enough for a good one of each path.
# By how much the memory of the process may differ from the plan, as in tests/cli/serve/memory_test.cc.
TOLERANCE_BYTES = 256 << 10
# 501: an encoding that HTTP has and the server does not.
EXPECTED = {200, 204, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 417, 429, 431, 501, 503, 505}


def status_of(answer):
    found = re.match(rb"HTTP/1\.[01] (\d{3})[ \r]", answer)
    return int(found[1]) if found else None


def problem_of(request, answer, is_closed):
    """What is wrong with an answer that was read to its end; "" if nothing is."""
    if not answer:
        return "there is no answer" if request.is_whole else ""
    status = status_of(answer)
    if status is None:
        return "the answer is no HTTP"
    if status not in EXPECTED:
        return f"the status is {status}"
    head, _, body = answer.partition(b"\r\n\r\n")
    is_json = b"content-type: application/json" in head.lower()
    if is_json and status >= 400 and body:
        try:
            if not json.loads(body)["error"]:
                return "the error is empty"
        except (ValueError, KeyError, TypeError):
            return "the error is not the JSON of one"
    if is_closed and status == 200 and b"transfer-encoding: chunked" in head.lower() and not body.endswith(b"0\r\n\r\n"):
        return "the answer breaks off"
    return ""


class Hostile:
    def __init__(self, options):
        self.options = options
        self.models = [model["id"] for model in self.read("/v1/models")["data"]]
        self.requests = HostileRequests(options.seed, f"{options.host}:{options.port}", self.models)
        self.numbers = iter([options.only] if options.only is not None else range(options.requests))
        self.statuses = collections.Counter()
        self.of_paths = collections.defaultdict(collections.Counter)
        self.failures = []
        self.slowest = (0.0, 0)  # Seconds, and the request's number.

    async def send(self, request):
        """The bytes of the answer, and whether the server ended it."""
        reader, writer = await asyncio.open_connection(self.options.host, self.options.port, limit=1 << 20)
        answer = bytearray()
        try:
            writer.write(request.bytes)
            if request.leaves_after is not None:
                if request.leaves_after:
                    answer += await asyncio.wait_for(reader.read(request.leaves_after), 5)
                return bytes(answer), False
            # A request that does not end waits for the server's patience only for some time.
            patience = self.options.patience if request.is_whole else 2
            while True:
                piece = await asyncio.wait_for(reader.read(1 << 16), patience)
                if not piece:
                    return bytes(answer), True
                answer += piece
        except ConnectionError:
            # The server does not read what it refuses.
            return bytes(answer), False
        except asyncio.TimeoutError:
            if request.is_whole and request.leaves_after is None:
                self.failures.append(f"request {request.number}: nothing comes for {self.options.patience} s")
            return bytes(answer), False
        finally:
            writer.close()

    async def run_client(self):
        for number in self.numbers:
            request = self.requests.make(number)
            begin = time.monotonic()
            try:
                answer, is_closed = await self.send(request)
            except OSError as error:
                self.failures.append(f"request {number}: {error!r}")
                await asyncio.sleep(0.1)
                continue
            self.slowest = max(self.slowest, (time.monotonic() - begin, number))
            status = status_of(answer)
            self.statuses[status] += 1
            self.of_paths[request.route][status] += 1
            is_whole = request.is_whole and request.leaves_after is None and is_closed
            problem = problem_of(request, answer, is_closed) if is_whole or len(answer) > len("HTTP/1.1 200") else ""
            if problem:
                self.failures.append(f"request {number}, {request.path[:60]!r}: {problem}")
            if self.options.only is not None:
                sys.stdout.buffer.write(request.bytes[:3000] + b"\n---\n" + answer[:3000] + b"\n")
                sys.stdout.flush()

    def read(self, path):
        with urllib.request.urlopen(f"http://{self.options.host}:{self.options.port}{path}", timeout=60) as answer:
            return json.load(answer)

    async def ask_all(self):
        """The answers to a good question. Afterwards, all models are loaded."""
        answers = []
        for self.options.model in self.models:
            answers.append(await Client(self.options).ask(QUESTION))
        return answers

    def planned_bytes(self):
        memory = self.read("/props")["memory"]
        return memory["planned_private_bytes"], memory["planned_private_bytes"] + memory["planned_mapped_bytes"], \
            memory["peak_bytes"]

    async def run(self):
        good = await self.ask_all()
        private, resident, peak_of_loading = self.planned_bytes()
        watch = Watch(self.options.pid)
        watch.sample()
        watching = asyncio.create_task(watch.run())
        begin = time.monotonic()
        await asyncio.gather(*(self.run_client() for _ in range(self.options.clients)))
        seconds = time.monotonic() - begin
        # Connections that were left are noticed soon.
        await asyncio.sleep(self.options.settle)
        watching.cancel()
        answers = await self.ask_all()
        if answers != good:
            self.failures.append(f"a good question had the answers {good!r} before, and {answers!r} now")
        watch.sample()
        peak = self.planned_bytes()[2]
        if peak > max(resident, peak_of_loading) + TOLERANCE_BYTES:
            self.failures.append(f"{peak} bytes were resident, more than the {resident} of the plan")
        most_private = max(sample[0] for sample in watch.samples) << 10
        if most_private > private + TOLERANCE_BYTES:
            self.failures.append(f"{most_private} bytes were private, more than the {private} of the plan")
        if watch.samples[-1][1] > watch.samples[0][1] + 4:
            self.failures.append(f"the server leaks descriptors: {watch.samples[0][1]}, then {watch.samples[-1][1]}")
        self.print_figures(seconds, peak, resident)

    def print_figures(self, seconds, peak, resident):
        counts = ", ".join(f"{status or 'none'}: {count}" for status, count in
                           sorted(self.statuses.items(), key=lambda item: item[0] or 0))
        print(f"hostile: {', '.join(self.models)}; seed {self.options.seed}, {self.statuses.total()} requests to "
              f"{len(self.of_paths)} paths in {seconds:.0f} s; statuses {counts}")
        print(f"hostile: at most {peak / 1e6:.1f} MB resident of {resident / 1e6:.1f} MB planned; the slowest answer took "
              f"{self.slowest[0]:.1f} s (request {self.slowest[1]})")
        for failure in self.failures[:20]:
            print(f"hostile: {failure}", file=sys.stderr)
        if self.failures:
            print(f"hostile: {len(self.failures)} failures", file=sys.stderr)


def check_paths(runs, num_requests):
    """Whether each path gave an answer of 200 in one of the runs. Fewer requests than usual may not reach all."""
    answered = {path for run in runs for path, statuses in run.of_paths.items() if statuses[200]}
    without = [" ".join(path) for path in runs[0].requests.paths if path not in answered]
    print(f"hostile: no answer of 200 from: {', '.join(without) or 'none'}")
    if not without or num_requests < REQUESTS:
        return True
    print("hostile: the code behind the checks of these paths was not reached: no request got an answer of 200 from "
          f"{', '.join(without)}; a model that can answer there is missing, or CORE and NEEDED in hostile_requests.py "
          "make no good request of the path", file=sys.stderr)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cria-serve", required=True, metavar="PROGRAM")
    parser.add_argument("-m", "--model-file", dest="model_files", required=True, action="append",
                        help="may be given several times")
    parser.add_argument("-np", "--parallel", type=int, default=4, help="its sequences")
    parser.add_argument("-c", "--context", type=int, default=0, help="0: the longest of each model")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="to each of the servers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="NUMBER", help="send this request alone, and print the answer")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--patience", type=float, default=120, help="seconds without a byte of an answer")
    parser.add_argument("--settle", type=float, default=2, help="seconds before descriptors are counted at the end")
    options = parser.parse_args()
    options.host, options.key, options.model, options.max_tokens = "127.0.0.1", "", "", 16
    runs = []
    options.model_file = options.model_files[0]
    others = [flag for path in options.model_files[1:] for flag in ("-m", path)]
    for flags in [[], others] if others else [[]]:
        with tempfile.TemporaryDirectory() as folder:
            with running_server(options, *flags, "-c", str(options.context), "--slot-save-path", folder):
                runs.append(Hostile(options))
                asyncio.run(runs[-1].run())
    are_all_reached = options.only is not None or check_paths(runs, options.requests)
    sys.exit(0 if are_all_reached and not any(run.failures for run in runs) else 1)


if __name__ == "__main__":
    main()
