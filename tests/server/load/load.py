#!/usr/bin/env python3
"""Many clients at once against a server of OpenAI's chat API, some of which behave badly.

    tests/server/load/load.py --cria-serve build/release/cli/cria-serve -m demo.cria --clients 50 --minutes 5
    tests/server/load/load.py --port 8080 --pid $(pidof llama-server) --kinds whole,leaves,slow,half --no-compare

Starts cria-serve with the model, or asks a server that runs already. First, each question is asked alone, greedily. Then clients ask them at random: most read the whole answer, which must
be the same as alone; others leave in the middle, read slowly, send half a request, or send a body that is too large.
Watches the server's memory and descriptors through /proc. Prints percentiles of the time to the first token, counts,
and memory; exits with 1 if an answer differs, a request fails in an unexpected way, or the server grows or leaks.

Needs Python's standard library alone. Works with llama-server, too: with --no-compare, if its answers depend on what is
answered beside them, and without bodies that are too large, for which it waits.
"""

import argparse
import asyncio
import collections
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time

QUESTIONS = [
    "Hello! Who are you?",
    "Where do you run?",
    "What is a llama?",
    "Tell me a story about a small board.",
    "Thank you. Goodbye!",
    "How much memory do you need?",
    "Count to ten.",
    "What can you do for me?",
]
# What clients do, and how often in comparison.
KINDS = {"whole": 60, "leaves": 20, "slow": 8, "half": 6, "large": 6}


class Refused(Exception):
    """An answer with another status than 200."""

    def __init__(self, status, body):
        super().__init__(f"status {status}: {body[:200]!r}")
        self.status = status


class Client:
    """One request on a connection of its own."""

    def __init__(self, options):
        self.options = options
        self.first_token_seconds = None

    def head(self, length, path="/v1/chat/completions"):
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.options.host}:{self.options.port}",
                 "Content-Type: application/json", f"Content-Length: {length}", "Connection: close"]
        if self.options.key:
            lines.append(f"Authorization: Bearer {self.options.key}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def connect(self):
        return await asyncio.open_connection(self.options.host, self.options.port, limit=1 << 20)

    def body(self, question):
        return json.dumps({
            "model": self.options.model,
            "messages": [{"role": "system", "content": "You are helpful and brief."},
                         {"role": "user", "content": question}],
            "temperature": 0, "max_tokens": self.options.max_tokens, "stream": True,
        }).encode()

    async def ask(self, question, leave_after=None, pause=0.0):
        """The text of the answer. Leaves after so many events; waits between them."""
        reader, writer = await self.connect()
        try:
            body = self.body(question)
            begin = time.monotonic()
            writer.write(self.head(len(body)) + body)
            await writer.drain()
            status = int((await reader.readline()).split()[1])
            while (await reader.readline()).strip():
                pass
            if status != 200:
                raise Refused(status, await reader.read(1000))
            return await self.read_events(reader, begin, leave_after, pause)
        finally:
            writer.close()

    async def read_events(self, reader, begin, leave_after, pause):
        text = ""
        events = 0
        is_done = False
        async for line in reader:
            # Lines with the sizes of chunks come between.
            if not line.startswith(b"data: "):
                continue
            data = line[6:].strip()
            if data == b"[DONE]":
                is_done = True
                continue
            event = json.loads(data)
            if "error" in event:
                raise Refused(500, json.dumps(event).encode())
            self.take_event(event)
            for choice in event["choices"]:
                content = choice["delta"].get("content")
                if not content:
                    continue
                if self.first_token_seconds is None:
                    self.first_token_seconds = time.monotonic() - begin
                text += content
            events += 1
            if leave_after is not None and events >= leave_after:
                return None
            if pause:
                await asyncio.sleep(pause)
        if not is_done:
            raise Refused(0, b"the stream ends without [DONE]")
        return text

    def take_event(self, event):
        """Is given each event of an answer when it arrives."""

    async def send_half(self):
        reader, writer = await self.connect()
        try:
            body = self.body(random.choice(QUESTIONS))
            whole = self.head(len(body)) + body
            writer.write(whole[: random.randrange(1, len(whole))])
            await writer.drain()
            await asyncio.sleep(random.uniform(0, 2))
        finally:
            writer.close()

    async def send_too_much(self):
        """A body that no server takes must be refused without being read."""
        reader, writer = await self.connect()
        try:
            writer.write(self.head(1 << 40) + b"{" * 1000)
            await writer.drain()
            line = await asyncio.wait_for(reader.readline(), 60)
            return int(line.split()[1])
        finally:
            writer.close()


class Watch:
    """The server's memory and descriptors."""

    def __init__(self, pid):
        self.pid = pid
        self.samples = []

    def sample(self):
        if self.pid is None:
            return
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        self.samples.append((int(fields["RssAnon"].split()[0]), len(os.listdir(f"/proc/{self.pid}/fd"))))

    async def run(self):
        while True:
            self.sample()
            await asyncio.sleep(1)


class Load:
    def __init__(self, options):
        self.options = options
        self.expected = {}
        self.first_tokens = []
        self.counts = collections.Counter()
        self.failures = []

    async def ask_alone(self):
        for question in QUESTIONS:
            client = Client(self.options)
            self.expected[question] = await client.ask(question)
        print(f"load: {len(QUESTIONS)} questions asked alone")

    async def behave(self):
        question = random.choice(QUESTIONS)
        client = Client(self.options)
        kinds = self.options.kinds
        kind = random.choices(kinds, [KINDS[each] for each in kinds])[0]
        try:
            if kind == "half":
                await client.send_half()
            elif kind == "large":
                status = await client.send_too_much()
                if status != 413:
                    self.failures.append(f"a body of a terabyte was answered with {status}")
            else:
                await self.ask(client, kind, question)
            self.counts[kind] += 1
        except Refused as refusal:
            if refusal.status in (429, 503):
                self.counts["busy"] += 1
                await asyncio.sleep(random.uniform(0.2, 1))
            else:
                self.failures.append(f"{kind}: {refusal}")
        except (ConnectionError, asyncio.IncompleteReadError, OSError) as error:
            # A server may close a connection at once where there are too many.
            self.counts[f"closed ({type(error).__name__})"] += 1
            await asyncio.sleep(random.uniform(0.2, 1))
        except (IndexError, ValueError) as error:
            if kind != "large":
                self.failures.append(f"{kind}: the answer is no HTTP: {error!r}")

    async def ask(self, client, kind, question):
        leave_after = random.randrange(1, 20) if kind == "leaves" else None
        pause = 0.1 if kind == "slow" else 0.0
        text = await client.ask(question, leave_after, pause)
        if client.first_token_seconds is not None:
            self.first_tokens.append(client.first_token_seconds)
        if text is not None and self.options.compare and text != self.expected[question]:
            self.failures.append(f"{question!r}: alone {self.expected[question]!r}, now {text!r}")

    async def run_client(self, end):
        while time.monotonic() < end:
            await self.behave()

    def print_figures(self, seconds, watch):
        whole = sum(self.counts[kind] for kind in ("whole", "slow"))
        print(f"load: {whole} whole answers in {seconds:.0f} s; {dict(self.counts)}")
        times = sorted(self.first_tokens)
        if times:
            print(f"load: time to the first token: p50 {times[len(times) // 2]:.3f} s, "
                  f"p99 {times[min(len(times) - 1, len(times) * 99 // 100)]:.3f} s")
        if len(watch.samples) >= 4:
            # After the first quarter, everything that is made once has been made.
            early = max(sample[0] for sample in watch.samples[: len(watch.samples) // 4])
            late = max(sample[0] for sample in watch.samples[len(watch.samples) // 4 :])
            descriptors = [sample[1] for sample in watch.samples]
            print(f"load: private memory {early} kB in the first quarter, {late} kB later; descriptors "
                  f"{min(descriptors)} to {max(descriptors)}, {descriptors[-1]} at the end")
            if late > early * 1.1 + 4096:
                self.failures.append("the server's memory grows")
            if descriptors[-1] > descriptors[0] + 4:
                self.failures.append("the server leaks descriptors")

    async def run(self):
        watch = Watch(self.options.pid)
        await self.ask_alone()
        watch.sample()
        watching = asyncio.create_task(watch.run())
        begin = time.monotonic()
        end = begin + 60 * self.options.minutes
        await asyncio.gather(*(self.run_client(end) for _ in range(self.options.clients)))
        watching.cancel()
        # Connections that were left are noticed soon.
        await asyncio.sleep(self.options.settle)
        watch.sample()
        self.print_figures(time.monotonic() - begin - self.options.settle, watch)
        for failure in self.failures[:20]:
            print(f"load: {failure}", file=sys.stderr)
        if self.failures:
            print(f"load: {len(self.failures)} failures", file=sys.stderr)
        return 1 if self.failures else 0


@contextlib.contextmanager
def running_server(options, *flags):
    """Starts cria-serve with these flags at a free port, if it is to be started."""
    if not options.cria_serve:
        yield
        return
    command = [options.cria_serve, "-m", options.model_file, "--port", "0", "-np", str(options.parallel),
               *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            lines = []
            for line in server.stderr:
                lines.append(line)
                if found := re.search(r"at http://127\.0\.0\.1:(\d+)", line):
                    options.port, options.pid = int(found[1]), server.pid
                    break
            else:
                sys.exit("load: the server ends at once: " + "".join(lines))
            yield
        finally:
            server.terminate()
            # What it says at the end must not block it.
            server.communicate()


def list_of_kinds(text):
    kinds = text.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(KINDS)}")
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cria-serve", metavar="PROGRAM", help="start this server")
    parser.add_argument("-m", "--model-file", help="the model file of the server that is started")
    parser.add_argument("-np", "--parallel", type=int, default=4, help="its sequences")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--key", default="", help="the server's API key")
    parser.add_argument("--model", default="")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--pid", type=int, help="the server's process, whose memory is watched")
    parser.add_argument("--kinds", type=list_of_kinds, default=list(KINDS), help=f"of {','.join(KINDS)}")
    parser.add_argument("--settle", type=float, default=5, help="seconds before descriptors are counted at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-compare", dest="compare", action="store_false")
    options = parser.parse_args()
    if options.cria_serve and not options.model_file:
        parser.error("--cria-serve needs --model-file")
    random.seed(options.seed)
    with running_server(options):
        sys.exit(asyncio.run(Load(options).run()))


if __name__ == "__main__":
    main()
