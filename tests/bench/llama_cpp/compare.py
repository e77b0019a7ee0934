#!/usr/bin/env python3
"""Runs Cria and llama-bench in turn and prints the ratios of their medians.

    compare.py --cria build/release/cli/cria --model MODEL.cria \\
               --llama-bench FOLDER/build/bin/llama-bench --gguf MODEL.gguf [--threads 2] [--pairs 5]
               [--prompt 512 --answer 64 --depths 0,4096]

Each pair is one run of one test, or of all short prompts, by Cria, then by llama.cpp with each setting of -fa.
They run directly after one another, because the machine's speed changes from minute to minute. Run it in the tree
that Cria was built in: ./dev shell tests/bench/llama_cpp/compare.py …
"""

import argparse
import json
import statistics
import subprocess

SHORT_PROMPTS = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
# Prompts, generated tokens, depths, repetitions within a run.
TESTS = [(SHORT_PROMPTS, 0, 0, 3), ([512], 0, 0, 1), ([512], 0, 2048, 1), ([0], 128, 0, 1),
         ([0], 128, 2048, 1)]


def chosen_tests(prompt, answer, depths):
    """A prompt and an answer of these lengths at each depth, or TESTS if no depths are given."""
    if depths is None:
        return TESTS
    return [test for depth in map(int, depths.split(","))
            for test in (([prompt], 0, depth, 1), ([0], answer, depth, 1))]


def run(command):
    """The tokens per second of each test of a bench program, in the order that it prints."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [row["avg_ts"] for row in json.loads(result.stdout)]


def print_comparison(title, speeds):
    """Prints the medians of all contenders; returns the ratio of Cria's to the best of the others."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    print(f"## {title}")
    for name, values in speeds.items():
        print(f"{name:<16} median {medians[name]:8.2f} tok/s of",
              " ".join(f"{value:.2f}" for value in values))
    best = max(list(medians)[1:], key=medians.get)
    pairs = [ours / theirs for ours, theirs in zip(speeds["cria"], speeds[best])]
    ratio = medians["cria"] / medians[best]
    print(f"ratio to {best}: {ratio:.2f}, by pairs {min(pairs):.2f} to {max(pairs):.2f}", flush=True)
    return ratio


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
    parser.add_argument("--depths", help="Tokens before the test, such as 0,4096; instead of the usual tests")
    parser.add_argument("--prompt", type=int, default=512, help="With --depths: tokens of the prompt")
    parser.add_argument("--answer", type=int, default=128, help="With --depths: tokens of the answer")
    arguments = parser.parse_args()

    tests = chosen_tests(arguments.prompt, arguments.answer, arguments.depths)
    for prompts, generated, depth, repetitions in tests:
        test = ["-p", ",".join(map(str, prompts)), "-n", str(generated), "-d", str(depth),
                "-r", str(repetitions), "-t", str(arguments.threads), "-o", "json"]
        cria = [arguments.cria, "bench", "-m", arguments.model, "--kv", arguments.kv,
                "-b", str(arguments.chunk)] + test
        contenders = {"cria": cria}
        for flash in (0, 1):
            contenders[f"llama.cpp -fa {flash}"] = [
                arguments.llama_bench, "-m", arguments.gguf, "-fa", str(flash)] + test
        rounds = {name: [] for name in contenders}
        for _ in range(arguments.pairs):
            for name, command in contenders.items():
                rounds[name].append(run(command))
        ratios = []
        for index, prompt in enumerate(prompts):
            title = f"pp{prompt}" if prompt else f"tg{generated}"
            speeds = {name: [row[index] for row in rows] for name, rows in rounds.items()}
            ratios.append(
                print_comparison(f"{title} @ d{depth}, {arguments.threads} threads", speeds))
        if len(ratios) > 1:
            print(f"geometric mean of these ratios: {statistics.geometric_mean(ratios):.2f}, "
                  f"the least {min(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
