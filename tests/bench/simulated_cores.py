#!/usr/bin/env python3
"""Predicts how a generated token is shared between the cores of an Arm board, by a simulated clock.

    ./dev shell tests/bench/simulated_cores.py -m MODEL.cria [--core cortex-a76]... [--speeds 1,1,1,1]... [--kv int8 ...]

The clock counts instructions, so that no other work of this machine disturbs it. An emulated `cria run` divides its
loops between as many threads as `--speeds` has cores, but runs them on a single one, because the emulator may use one
processor only. The script counts the instructions of each task of each loop, and between them. Then it shares the
tasks of each loop as core/thread_pool.cc does: each core begins with as many tasks as the others, and takes those of
others when it has none left. A core of speed 0.4 takes 2.5 times as long for an instruction as one of speed 1.

So the prediction counts waiting for the longest task of a loop and for what only one core does, but not what cores do
to one another: they share a memory, whose bandwidth `cria bench` measures, and a core notices a new loop late, by the
time that `--wake` gives, in instructions. Unknown options are passed to `cria run`.
"""

import argparse
import heapq
import pathlib
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "emulation"))
import device_build  # noqa: E402
import executed_code  # noqa: E402

CREW = "cria::ThreadPool::Crew::"
# Each loop is a call of the first one; the others, which it calls, are the loop's, too.
LOOP, TASKS, TASK = CREW + "Run(", CREW + "RunTasks(", CREW + "RunTask("


class Instructions(typing.NamedTuple):
    outside: int  # Of what only one core does.
    loops: list[list[int]]  # [loop][task]


def read_tokens(build, names, options, core, depth):
    """Those of executed_code.TOKENS tokens behind a prompt of so many words."""
    order = []
    _, _, mappings = executed_code.generate(build, names, options, core, order, depth)
    loop, tasks, task = (names.addresses(name, mappings) for name in (LOOP, TASKS, TASK))
    outside, loops, in_task = 0, [], False
    for address, instructions in order:
        if address in loop or address in tasks:
            in_task = False
            if address == loop.start:
                loops.append([])
        elif address == task.start:
            in_task = True
            loops[-1].append(0)
        if in_task:
            loops[-1][-1] += instructions
        else:
            outside += instructions
    return Instructions(outside, [tasks for tasks in loops if tasks])


def run_loop(tasks, speeds, wake):
    """The time from the beginning of a loop to the end of its last task."""
    num_cores = min(len(speeds), len(tasks))
    if num_cores == 1:
        return sum(tasks) / speeds[0]
    ranges = [[len(tasks) * core // num_cores, len(tasks) * (core + 1) // num_cores] for core in range(num_cores)]
    free = [(0 if core == 0 else wake, core) for core in range(num_cores)]
    end = 0
    while free:
        time, core = heapq.heappop(free)
        own = ranges[core]
        if own[0] < own[1]:
            task, own[0] = own[0], own[0] + 1
        else:
            others = (ranges[(core + step) % num_cores] for step in range(1, num_cores))
            other = next((other for other in others if other[0] < other[1]), None)
            if other is None:
                continue
            other[1] -= 1
            task = other[1]
        time += tasks[task] / speeds[core]
        end = max(end, time)
        heapq.heappush(free, (time, core))
    return end


def describe(tokens, speeds, wake):
    in_loops = sum(map(sum, tokens.loops))
    work = tokens.outside + in_loops
    time_outside = tokens.outside / speeds[0]
    time_in_loops = sum(run_loop(tasks, speeds, wake) for tasks in tokens.loops)
    time = time_outside + time_in_loops

    def percent(part):
        return f"{100 * part / time:.2f}%"

    return "\n".join([
        f"  cores of speeds {', '.join(f'{speed:g}' for speed in speeds)}:",
        f"    {time / executed_code.TOKENS:,.0f} instructions of a core of speed 1 until the end of a token, "
        f"{work / speeds[0] / time:.2f} times fewer than on the first core alone",
        f"    {percent(time - work / sum(speeds))} of the time is lost: in loops, where cores wait for others, "
        f"{percent(time_in_loops - in_loops / sum(speeds))}; outside of them, where the first core works alone, "
        f"{percent(time_outside - tokens.outside / sum(speeds))}"])


def speeds_of(text):
    return [float(speed) for speed in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--core", action="append", help="as QEMU_CPU takes it; default: cortex-a72 cortex-a76")
    parser.add_argument("--speeds", type=speeds_of, action="append", metavar="SPEED,...",
                        help="of each core, the first of which runs what no other can; default: 1,1,1,1")
    parser.add_argument("--wake", type=float, default=0, metavar="INSTRUCTIONS",
                        help="until the other cores notice a loop; default: 0")
    parser.add_argument("--depth", type=int, default=64, help="words of a prompt before the tokens; default: 64")
    parser.add_argument("--build", type=pathlib.Path, default=device_build.ROOT / "build/aarch64")
    arguments, more = parser.parse_known_args()
    build = device_build.DeviceBuild(arguments.build)
    build.emulator = ["taskset", "--cpu-list", "0", *build.emulator]
    names = executed_code.Names(build)
    boards = arguments.speeds or [[1] * 4]
    for core in arguments.core or ["cortex-a72", "cortex-a76"]:
        for num_cores in sorted(set(map(len, boards))):
            options = ["-m", arguments.model, "-t", str(num_cores), *more]
            tokens = read_tokens(build, names, options, core, arguments.depth)
            print(f"{core}: {len(tokens.loops) / executed_code.TOKENS:,.0f} loops of "
                  f"{sum(map(len, tokens.loops)) / executed_code.TOKENS:,.0f} tasks a token")
            for speeds in (board for board in boards if len(board) == num_cores):
                print(describe(tokens, speeds, arguments.wake), flush=True)


if __name__ == "__main__":
    sys.exit(main())
