#!/usr/bin/env python3
"""Measures the speed of models on this machine, and writes the table of this machine in docs/benchmarks.md.

benchmarks.py --cria CRIA --page PAGE [--machine NAME] [--commit COMMIT] [--date DATE] MODEL...

A machine is a chapter of PAGE, named after its processor or by --machine. The chapter of this machine is replaced, or
added at the end; other chapters stay as they are. Nothing else may run meanwhile.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

PROMPTS = "16,128"
ANSWER = "64"
REPETITIONS = "5"


def command_of(model):
    return ["bench", "-m", model, "-p", PROMPTS, "-n", ANSWER, "-r", REPETITIONS]


def measure(cria, model):
    done = subprocess.run([cria, *command_of(model), "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"benchmarks: cria bench exits with {done.returncode} for {model}")
    return json.loads(done.stdout)


def processor_of(result):
    """The name and number of processors. On Arm, the name is that of the cores; --machine can name the board."""
    return f"{result['cpu_info'] or os.uname().machine}, {os.cpu_count()} processors"


def row(result):
    """A test's row: median, least and most tokens/s, and which part of the memory's speed an answer reaches."""
    speeds = result["samples_ts"]
    test = f"answer of {result['n_gen']}" if result["n_gen"] else f"prompt of {result['n_prompt']}"
    bus = result["bus_fraction"]
    threads = result["n_threads"] if result["n_gen"] else result["n_threads_batch"]
    return (f"| {result['model_type']} | {test} | {statistics.median(speeds):,.1f} | {min(speeds):,.1f} to "
            f"{max(speeds):,.1f} | {'' if bus is None else f'{100 * bus:.0f}%'} | {threads} |")


def chapter(title, date, commit, results):
    first = results[0]
    # What follows is a hash of how weights are packed, which says nothing to readers.
    kernels = first["kernels"].partition(", XNNPACK layout ")[0]
    lines = [f"## {title}", "",
             f"{date}, commit {commit}; each model by `cria {' '.join(command_of('MODEL'))}`, medians of {REPETITIONS}. "
             f"Processor: {processor_of(first)}. Instructions: {first['isa']}. Kernels: {kernels}.", "",
             "| model | test | tokens/s | from all runs | of the memory's speed | threads |",
             "| --- | --- | ---: | ---: | ---: | ---: |"]
    return "\n".join(lines + [row(result) for result in results]) + "\n"


def with_chapter(page, title, text):
    """The page with the chapter of this title replaced, or added at the end."""
    parts = page.split("\n## ")
    names = [part.split("\n", 1)[0] for part in parts]
    body = text.removeprefix("## ").rstrip("\n") + "\n"
    if title in names[1:]:
        parts[1 + names[1:].index(title)] = body
    else:
        parts[-1] = parts[-1].rstrip("\n") + "\n"
        parts.append(body)
    return "\n## ".join(parts)


def main():
    parser = argparse.ArgumentParser(description="Writes this machine's table of speeds.")
    parser.add_argument("--cria", required=True)
    parser.add_argument("--page", required=True)
    parser.add_argument("--machine", default=None)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("models", nargs="+")
    arguments = parser.parse_args()
    with open(arguments.page, encoding="utf-8") as file:
        page = file.read()
    results = [result for model in arguments.models for result in measure(arguments.cria, model)]
    title = arguments.machine or processor_of(results[0])
    text = chapter(title, arguments.date, arguments.commit, results)
    with open(arguments.page, "w", encoding="utf-8") as file:
        file.write(with_chapter(page, title, text))
    print(text, end="")


if __name__ == "__main__":
    main()
