#!/usr/bin/env python3
"""Whether clients that take nothing of their answers slow the others down.

    tests/server/load/slow_readers.py --cria-serve build/release/cli/cria-serve -m demo.cria

Starts two servers, each with a sequence for every client of its own. Clients of the first read answers for a number of
seconds; then so do as many of the second, beside others that are answered, too, but read nothing, read one byte a
second, or are stopped processes. (In one server, clients alone would use more threads, which get more of a busy
machine.) By turns, in pairs; the machine must be idle. Prints the tokens in a second of each turn, the median of the
pairs' ratios, and the second server's private memory. Exits with 1 if the ratio is below --least, or if the memory
exceeds its plan.

Needs Python's standard library alone.
"""

import argparse
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from load import running_server

# What a bad client does, by its number.
KINDS = ["reads nothing", "reads one byte a second", "is stopped"]
# A window of the kernel's smallest size, so that an answer does not fit into its buffers.
RECEIVE_BYTES = 1024
STOPPED_CLIENT = """
import os, signal, socket, sys
client = socket.socket(fileno=int(sys.argv[1]))
os.kill(os.getpid(), signal.SIGSTOP)
"""


def request(options, question, body):
    data = json.dumps({"messages": [{"role": "user", "content": question}], "stream": True, "ignore_eos": True,
                       **body}).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:{options.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n")
    return head.encode() + data


def connect(options, receive_bytes=None):
    client = socket.socket()
    if receive_bytes:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    client.settimeout(60)
    client.connect((options.host, options.port))
    return client


def metric(options, name):
    url = f"http://{options.host}:{options.port}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return float(re.search(rf"^cria_{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])


class BadClients:
    """Clients whose answers fill all buffers, so that their sequences wait."""

    def __init__(self, options):
        self.options = options
        self.sockets = []
        self.stopped = []
        self.ends = threading.Event()
        self.threads = []

    def __enter__(self):
        for number in range(self.options.bad):
            client = connect(self.options, RECEIVE_BYTES)
            self.sockets.append(client)
            # An event of an answer with log probabilities has about 2 kB.
            client.sendall(request(self.options, f"Tell me story {number}.",
                                   {"logprobs": True, "top_logprobs": 20}))
            kind = KINDS[number % len(KINDS)]
            if kind == "is stopped":
                self.stopped.append(subprocess.Popen([sys.executable, "-c", STOPPED_CLIENT, str(client.fileno())],
                                                     pass_fds=[client.fileno()]))
            elif kind == "reads one byte a second":
                self.threads.append(threading.Thread(target=self.drip, args=[client]))
                self.threads[-1].start()
        self.wait_until_blocked()
        return self

    def drip(self, client):
        while not self.ends.wait(1):
            client.recv(1)

    def wait_until_blocked(self):
        """Until the server computes no more tokens, although all of these are being answered."""
        last = -1
        for _ in range(100):
            figures = (metric(self.options, "kv_cache_tokens"), metric(self.options, "requests_processing"))
            if figures == last and figures[1] == self.options.bad:
                return
            last = figures
            time.sleep(0.1)
        sys.exit("slow_readers: the bad clients' answers go on, or have ended")

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        for process in self.stopped:
            process.send_signal(signal.SIGKILL)
            process.wait()
        for client in self.sockets:
            client.close()
        # Their answers are stopped.
        for _ in range(100):
            if metric(self.options, "requests_processing") == 0:
                return
            time.sleep(0.1)
        sys.exit("slow_readers: the answers of clients that have gone go on")


class GoodClients:
    """Clients that read one answer after the other until the time is over."""

    def __init__(self, options):
        self.options = options
        self.num_tokens = 0
        self.lock = threading.Lock()

    def tokens_per_second(self):
        begin = time.monotonic()
        end = begin + self.options.seconds
        threads = [threading.Thread(target=self.run, args=[i, end]) for i in range(self.options.good)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.num_tokens / (time.monotonic() - begin)

    def run(self, number, end):
        count = 0
        while time.monotonic() < end:
            client = connect(self.options)
            client.sendall(request(self.options, f"Count to {number + 10}.", {"temperature": 0, "max_tokens": 64}))
            with client.makefile("rb") as answer:
                count += sum(line.startswith(b"data: {") for line in answer)
            client.close()
        with self.lock:
            self.num_tokens += count


def measure(alone, options):
    ratios = []
    memory = []
    failures = []
    planned = metric(options, "memory_private_planned_bytes")
    for each in (alone, options):
        GoodClients(each).tokens_per_second()  # Everything that is made once.
    for pair in range(options.pairs):
        speeds = {}
        for is_alone in (True, False) if pair % 2 == 0 else (False, True):
            if is_alone:
                speeds[True] = GoodClients(alone).tokens_per_second()
                continue
            with BadClients(options):
                speeds[False] = GoodClients(options).tokens_per_second()
                memory.append(metric(options, "memory_private_bytes"))
        ratios.append(speeds[False] / speeds[True])
        print(f"slow_readers: {speeds[True]:.0f} tokens/s alone, {speeds[False]:.0f} beside {options.bad} bad clients: "
              f"{ratios[-1]:.3f}")
    ratio = statistics.median(ratios)
    print(f"slow_readers: ratio {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {options.pairs} pairs); private "
          f"memory {min(memory):.0f} to {max(memory):.0f} bytes of {planned:.0f} that are planned")
    if ratio < options.least:
        failures.append(f"the other clients are slower: {ratio:.3f} is below {options.least}")
    if max(memory) > planned or metric(options, "memory_private_planned_bytes") != planned:
        failures.append("the memory is not as planned")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cria-serve", metavar="PROGRAM", required=True, help="the server")
    parser.add_argument("-m", "--model-file", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--good", type=int, default=2, help="clients that read")
    parser.add_argument("--bad", type=int, default=3, help="clients that do not")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3, help="of one turn")
    parser.add_argument("--least", type=float, default=0.95, help="the least ratio")
    options = parser.parse_args()
    # The answers of bad clients need space.
    options.parallel = options.good + options.bad
    alone = argparse.Namespace(**vars(options))
    alone.parallel = options.good

    def server(each):
        return running_server(each, "-c", str(512 * each.parallel))

    with server(alone), server(options):
        failures = measure(alone, options)
    for failure in failures:
        print(f"slow_readers: {failure}", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
