#!/usr/bin/env python3
"""Runs Cria and llama-bench in turn and prints the ratios of their medians.

    compare.py --cria build/release/cli/cria --model MODEL.cria \\
               --llama-bench FOLDER/build/bin/llama-bench --gguf MODEL.gguf [--threads 2] [--pairs 5]

Each pair is one repetition of one test by Cria, then by llama.cpp with each setting of -fa. They run
directly after one another, because the machine's speed changes from minute to minute. Run it in the tree
that Cria was built in: ./dev shell tests/bench/llama_cpp/compare.py …
"""

import argparse
import json
import statistics
import subprocess

# Prompt, generated, depth.
TESTS = [(512, 0, 0), (0, 128, 0), (0, 128, 2048)]


def run(command):
    """The tokens per second that a bench program prints as JSON for its only test."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    rows = json.loads(result.stdout)
    assert len(rows) == 1, rows
    return rows[0]["avg_ts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cria", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--kv", default="int8", help="Cria's KV type; llama.cpp's is f16")
    parser.add_argument("--chunk", type=int, default=128, help="Cria's prefill chunk")
    arguments = parser.parse_args()

    for prompt, generated, depth in TESTS:
        test = ["-p", str(prompt), "-n", str(generated), "-d", str(depth), "-r", "1",
                "-t", str(arguments.threads), "-o", "json"]
        cria = [arguments.cria, "bench", "-m", arguments.model, "--kv", arguments.kv,
                "-b", str(arguments.chunk)] + test
        contenders = {"cria": cria}
        for flash in (0, 1):
            contenders[f"llama.cpp -fa {flash}"] = [
                arguments.llama_bench, "-m", arguments.gguf, "-fa", str(flash)] + test
        speeds = {name: [] for name in contenders}
        for _ in range(arguments.pairs):
            for name, command in contenders.items():
                speeds[name].append(run(command))
        title = f"pp{prompt}" if prompt else f"tg{generated}"
        print(f"## {title} @ d{depth}, {arguments.threads} threads", flush=True)
        medians = {name: statistics.median(values) for name, values in speeds.items()}
        for name, values in speeds.items():
            print(f"{name:<16} median {medians[name]:8.2f} tok/s of",
                  " ".join(f"{value:.2f}" for value in values))
        best = max(list(medians)[1:], key=medians.get)
        pairs = [ours / theirs for ours, theirs in zip(speeds["cria"], speeds[best])]
        print(f"ratio to {best}: {medians['cria'] / medians[best]:.2f}, "
              f"by pairs {min(pairs):.2f} to {max(pairs):.2f}", flush=True)


if __name__ == "__main__":
    main()
