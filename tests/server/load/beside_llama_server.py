"""The tokens a second, and the time to the first token, of cria-serve and llama-server, by turns.

In a turn, one of the servers is started, and clients ask it greedily, each the next question as soon as an answer has
ended. All questions have the same beginning and another rest, so a cache of prompts helps both. After some seconds that
count for neither, the tokens are counted that arrive until the turn ends.
"""

import asyncio
import contextlib
import json
import random
import socket
import statistics
import subprocess
import sys
import time
import types
import urllib.error
import urllib.request

from load import Client

CLIENTS = 8  # Each has a sequence of the server.
CONTEXT = 1024  # Tokens of a sequence.
THREADS = 2
MAX_TOKENS = 64
WARM_UP_SECONDS = 5
SECONDS = 30

SYSTEM = ("You are the assistant of a house with a garden. Answer in whole sentences, be friendly, and say so if you "
          "do not know something. The house has a kitchen, two bedrooms, a workshop and a roof of solar cells.")
THINGS = ["the lamp in the kitchen", "the old pump", "a small board", "the garden gate", "my bicycle", "the oven",
          "a broken radio", "the solar cells", "a new shelf", "the rain barrel", "the fence", "a family of mice"]
WISHES = ["Explain how to mend", "Tell me a story about", "List ten facts about", "Write a letter to my sister about",
          "Compare two ways to clean", "Make a plan for a day with", "Say what can go wrong with"]


def make_question(numbers):
    """About 60 tokens, which no other request has."""
    wish = numbers.choice(WISHES)
    things = numbers.sample(THINGS, 4)
    return (f"It is {numbers.randrange(24)}:{numbers.randrange(60):02} and {numbers.randrange(-20, 40)} degrees outside. "
            f"Yesterday I worked on {things[0]} for {numbers.randrange(2, 600)} minutes, and then on {things[1]} and "
            f"{things[2]}. {wish} {things[3]}.")


class CountingClient(Client):
    """Knows when each piece of an answer arrived, and of how many tokens all of them were."""

    def __init__(self, options):
        super().__init__(options)
        self.arrivals = []
        self.tokens = 0

    def body(self, question):
        return json.dumps({
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}],
            "temperature": 0, "max_tokens": MAX_TOKENS, "stream": True,
            "stream_options": {"include_usage": True},
        }).encode()

    def take_event(self, event):
        if event.get("usage"):
            self.tokens = event["usage"]["completion_tokens"]
        if any(choice["delta"].get("content") for choice in event["choices"]):
            self.arrivals.append(time.monotonic())

    def tokens_between(self, begin, end):
        """Several tokens can arrive in one piece: each piece counts for an equal share of them."""
        pieces = sum(begin <= arrival < end for arrival in self.arrivals)
        return self.tokens * pieces / max(1, len(self.arrivals))


class Turn:
    """The clients of one server for some seconds."""

    def __init__(self, port, seed):
        self.options = types.SimpleNamespace(host="127.0.0.1", port=port, key="")
        self.numbers = random.Random(seed)
        self.first_tokens = []
        self.tokens = 0
        self.begin = time.monotonic() + WARM_UP_SECONDS
        self.end = self.begin + SECONDS

    async def ask(self):
        while (asked := time.monotonic()) < self.end:
            client = CountingClient(self.options)
            await client.ask(make_question(self.numbers))
            self.tokens += client.tokens_between(self.begin, self.end)
            if asked >= self.begin and client.first_token_seconds is not None:
                self.first_tokens.append(client.first_token_seconds)

    async def run(self):
        await asyncio.gather(*(self.ask() for _ in range(CLIENTS)))
        times = sorted(self.first_tokens)
        return {"tokens/s": self.tokens / SECONDS,
                "first token, median": statistics.median(times),
                "first token, p99": times[min(len(times) - 1, len(times) * 99 // 100)]}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(port, server):
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"{server.args[0]} ends at once")
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.1)
    sys.exit(f"{server.args[0]} does not become ready")


def take_turn(command, seed):
    port = free_port()
    with subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        try:
            wait_until_ready(port, server)
            return asyncio.run(Turn(port, seed).run())
        finally:
            server.terminate()


def compare_servers(servers, rounds):
    """Prints medians, and ratios by pairs. `servers`: the program and the model's path for two names; the model file has
    the codes of the GGUF file."""
    our_name, their_name = servers
    # Both divide the context between the sequences.
    options = ["-c", str(CONTEXT * CLIENTS), "-np", str(CLIENTS), "-t", str(THREADS)]
    commands = {name: [program, "-m", model, *options] for name, (program, model) in servers.items()}
    turns = {name: [] for name in commands}
    for seed in range(rounds):
        for name, command in commands.items():
            turns[name].append(take_turn(command, seed))
    print(f"## {CLIENTS} clients, {rounds} turns of {SECONDS} s")
    for figure in turns[our_name][0]:
        values = {name: [turn[figure] for turn in turns[name]] for name in turns}
        ratios = [one / other for one, other in zip(values[our_name], values[their_name])]
        print(f"{figure}: " + ", ".join(f"{name} {statistics.median(values[name]):.3f}" for name in values) +
              f"; ratio {statistics.median(ratios):.2f}, by pairs {min(ratios):.2f} to {max(ratios):.2f}", flush=True)
