#!/usr/bin/env python3
"""Compares the speed of several threads and of one while other processes use the processors.

    busy_core.py [--other OTHER_CRIA] [--rounds 7] [-t 1,2] [--case NAME …] --model MODEL.cria CRIA

Runs `CRIA bench` in turn for each number of threads (0: the default). Prints the medians of tokens
per second of wall-clock time, and the median and range of the ratios to the first number of threads
in the same round. Cases:

    idle       nothing else runs; with --other, also the ratio to another build at the same threads
    spinner    a process that never sleeps is pinned to the last processor
    spinners   one on every processor
    one        `taskset -c` allows the first processor alone
    quota      a control group has the time of one processor (skipped if no group can be made)
    arriving   prints no ratio, but the speed of one long run for each tenth of a second; a spinner
               arrives after a third of the time and leaves after two thirds

Run it in the tree that Cria was built in (./dev shell), with nothing else on the machine.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from control_group import control_group


@contextlib.contextmanager
def spinners(processors):
    """Processes that never sleep, one pinned to each of `processors`."""
    started = [subprocess.Popen(["taskset", "-c", str(processor), sys.executable, "-c",
                                 "while True: pass"]) for processor in processors]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def quota_of_one_processor():
    """A control group whose processes together have one processor's time."""
    return control_group(
        version_1={"cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}},
        version_2={"cpu.max": "100000 100000"})


def bench(arguments, program, threads, wrapper=(), join=None):
    """Tokens per second of prompts and of answers, by the wall-clock time of all repetitions."""
    command = [*wrapper, program, "bench", "-m", arguments.model, "-p", str(arguments.tokens), "-n",
               str(arguments.tokens), "-r", str(arguments.repetitions), "-t", str(threads), "-o",
               "json", *arguments.more]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                            preexec_fn=join)
    speeds = {}
    for row in json.loads(result.stdout):
        tokens = row["n_prompt"] + row["n_gen"]
        seconds = sum(row["samples_ns"]) / 1e9
        speeds["prompt" if row["n_prompt"] else "answer"] = tokens * len(row["samples_ns"]) / seconds
    return speeds


def print_rows(case, rounds, base):
    """`rounds` has, for each round, the speeds by (program, threads)."""
    for key in rounds[0]:
        for kind in rounds[0][key]:
            median = statistics.median(r[key][kind] for r in rounds)
            text = f"{case:9} {kind:6} {key[0]:5} -t {key[1]}  {median:10.1f} tokens/s"
            reference = base(key)
            if reference in rounds[0] and reference != key:
                ratios = sorted(r[key][kind] / r[reference][kind] for r in rounds)
                text += (f"  {statistics.median(ratios):.3f} of {reference[0]} -t {reference[1]}"
                         f" ({ratios[0]:.2f} to {ratios[-1]:.2f})")
            print(text, flush=True)


def run_case(arguments, case):
    processors = sorted(os.sched_getaffinity(0))
    wrapper, join, pinned = (), None, []
    limits = contextlib.ExitStack()
    if case == "spinner":
        pinned = processors[-1:]
    elif case == "spinners":
        pinned = processors
    elif case == "one":
        wrapper = ("taskset", "-c", str(processors[0]))
    elif case == "quota":
        try:
            join = limits.enter_context(quota_of_one_processor())
        except OSError:
            print("quota: skipped, since no control group with a quota can be made here")
            return
    rounds = []
    with limits, spinners(pinned):
        for index in range(arguments.rounds):
            speeds = {}
            # Every second round has the opposite order, so that no number of threads is always first.
            for threads in arguments.threads[::1 if index % 2 == 0 else -1]:
                speeds["this", threads] = bench(arguments, arguments.program, threads, wrapper, join)
                if arguments.other and case == "idle":
                    speeds["other", threads] = bench(arguments, arguments.other, threads, wrapper, join)
            rounds.append(speeds)
    print_rows(case, rounds, lambda key: ("this", arguments.threads[0]))
    if arguments.other and case == "idle":
        print_rows("vs other", rounds, lambda key: ("other", key[1]))


def follow(arguments):
    """The speed of one answer while a spinner comes and leaves."""
    processors = sorted(os.sched_getaffinity(0))
    threads = arguments.threads[-1]
    command = [arguments.program, "bench", "-m", arguments.model, "-p", "0", "-n", "16", "-r",
               str(arguments.follow_repetitions), "-t", str(threads), "-o", "json", *arguments.more]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    third = arguments.follow_seconds / 3
    time.sleep(third)
    arrived = time.monotonic() - begin
    with spinners(processors[-1:]):
        time.sleep(third)
    left = time.monotonic() - begin
    output, _ = process.communicate()
    row = json.loads(output)[0]
    print(f"arriving: a spinner from {arrived:.1f} s to {left:.1f} s of {time.monotonic() - begin:.1f} s")
    elapsed, tokens, since = 0.0, 0, 0.0
    for sample in row["samples_ns"]:
        elapsed += sample / 1e9
        tokens += row["n_gen"]
        if elapsed - since >= 0.1:
            print(f"  {elapsed:5.2f} s of measured time: {tokens / (elapsed - since):10.1f} tokens/s")
            since, tokens = elapsed, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", required=True)
    parser.add_argument("--other", help="another build's cria, for the case idle")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repetitions", type=int, default=1,
                        help="use more for small models, so that a run lasts many periods of the quota")
    parser.add_argument("-t", "--threads", default="1,2",
                        type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--case", action="append", dest="cases",
                        choices=["idle", "spinner", "spinners", "one", "quota", "arriving"])
    parser.add_argument("--follow-seconds", type=float, default=9)
    parser.add_argument("--follow-repetitions", type=int, default=30)
    parser.add_argument("more", nargs="*", help="further flags of bench, after --")
    arguments = parser.parse_args()
    for case in arguments.cases or ["idle", "spinner", "one", "quota"]:
        if case == "arriving":
            follow(arguments)
        else:
            run_case(arguments, case)


if __name__ == "__main__":
    main()
