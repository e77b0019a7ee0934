#!/usr/bin/env python3
"""Two models under a memory limit that holds one: alternating requests, each answered as by a server of its model alone.

    tests/server/load/switching.py --cria build/release/cli/cria --cria-serve build/release/cli/cria-serve \\
        -m small.cria -m large.cria

First starts a server with each model alone and keeps its answers. Then starts one with both, under the limit that the
plan of the larger one says, and asks for one model after the other. Watches the server's memory in /proc all the time.
Prints the most that it took, and how long loading a model, and a request with it, took. Exits with 1 if the memory
exceeds the limit, if an answer differs, or if a model was not loaded anew for each request.

Needs Python's standard library alone.
"""

import argparse
import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

QUESTIONS = [
    "What is the capital of France?",
    "Write a haiku about rain.",
    "How many legs has a spider?",
    "Name three colors.",
    "Write a function in Python that adds two numbers.",
]


@contextlib.contextmanager
def running_server(options, *flags):
    """Yields the address and the process of a server with these flags."""
    command = [options.cria_serve, "--port", "0", "-c", str(options.context), "-t", str(options.threads), *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            lines = []
            for line in server.stderr:
                lines.append(line)
                if found := re.search(r"at (http://127\.0\.0\.1:\d+)", line):
                    break
            else:
                sys.exit("switching: the server ends at once: " + "".join(lines))
            yield found[1], server.pid
        finally:
            server.terminate()
            server.communicate()


def ask(url, model, question, max_tokens):
    body = {"model": model, "temperature": 0, "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=600) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def metrics(url):
    with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {name: float(value) for name, value in re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE)}


def memory(pid, line):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(rf"^{line}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024


class MemoryWatch(threading.Thread):
    """The most that a process takes while this runs, looked at every few milliseconds."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.resident, self.private, self.samples = pid, 0, 0, 0
        self.is_over = threading.Event()

    def run(self):
        while not self.is_over.wait(0.003):
            self.resident = max(self.resident, memory(self.pid, "VmRSS"))
            self.private = max(self.private, memory(self.pid, "RssAnon"))
            self.samples += 1


def planned_peak(options, model):
    command = [options.cria, "plan", "-m", model, "--serve", "--json", "-c", str(options.context), "-t",
               str(options.threads)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["peak_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cria", required=True, metavar="PROGRAM")
    parser.add_argument("--cria-serve", required=True, metavar="PROGRAM")
    parser.add_argument("-m", "--model", action="append", required=True, help="a model file; two of them")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--max-tokens", type=int, default=16)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if len(options.model) != 2:
        parser.error("two models are needed")
    names = [pathlib.Path(model).stem for model in options.model]

    alone = {}
    for name, model in zip(names, options.model):
        with running_server(options, "-m", model) as (url, _):
            for question in QUESTIONS:
                alone[name, question] = ask(url, name, question, options.max_tokens)

    # What the server measures of itself differs by some pages from what `plan` says, and it has a list of models.
    limit = max(planned_peak(options, model) for model in options.model) + (2 << 20)
    flags = ["--memory-limit", str(limit)]
    for model in options.model:
        flags += ["-m", model]
    failures = []
    seconds = {name: [] for name in names}
    with running_server(options, *flags) as (url, pid):
        watch = MemoryWatch(pid)
        watch.start()
        for i in range(options.requests):
            name, question = names[i % 2], QUESTIONS[i // 2 % len(QUESTIONS)]
            begin = time.monotonic()
            answer = ask(url, name, question, options.max_tokens)
            seconds[name].append(time.monotonic() - begin)
            if answer != alone[name, question]:
                failures.append(f"{name}: {question!r} is answered with {answer!r}, not {alone[name, question]!r}")
        watch.is_over.set()
        watch.join()
        figures = metrics(url)
        peak = memory(pid, "VmHWM")
        if peak > limit:
            failures.append(f"the server took {peak / 1e6:.1f} MB, more than the limit of {limit / 1e6:.1f} MB")
        for name in names:
            loads = figures[f'cria_model_loads_total{{model="{name}"}}']
            each = figures[f'cria_model_load_seconds_total{{model="{name}"}}'] / loads
            print(f"{name}: loaded {loads:.0f} times, {1000 * each:.1f} ms each; a request with it takes "
                  f"{1000 * statistics.median(seconds[name]):.0f} ms (median)")
            if loads != options.requests // 2:
                failures.append(f"{name} was loaded {loads:.0f} times for {options.requests // 2} requests")
        print(f"limit {limit / 1e6:.1f} MB; resident at most {max(watch.resident, peak) / 1e6:.1f} MB, of which private "
              f"at most {watch.private / 1e6:.1f} MB ({watch.samples} samples)")
    for failure in failures:
        print("switching:", failure, file=sys.stderr)
    print(f"{options.requests} requests, {'as alone' if not failures else f'{len(failures)} failures'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
