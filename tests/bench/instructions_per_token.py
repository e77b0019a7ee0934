#!/usr/bin/env python3
"""Counts the instructions that an aarch64 cria executes for one token, by function.

    ./dev shell tests/bench/instructions_per_token.py -m MODEL.cria [--core cortex-a76]... [--kv int8 ...]

The emulator logs each block of code when it translates it, and each execution of a block. For a generated token,
the script counts what one thread of `cria run` executes from one call of the decoder to the next: the step itself,
and choosing and printing its token. With --prefill 64,128, it counts a token of a prompt instead, and with --depth 512
a token that is generated behind so many others: the difference between two runs of `cria bench` of different lengths,
without what bench executes to measure the speed of memory. Unknown options are passed to `cria run` or `cria bench`.

With --llama-cpp TREE --gguf FILE, the same is counted of Debian's arm64 package of llama.cpp in the folder TREE, by the
difference of two runs of its `llama-bench`. docs/notes/benchmarks.md says how to make TREE and FILE.
"""

import argparse
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "emulation"))
import device_build  # noqa: E402
import executed_code  # noqa: E402
import xnnpack_kernels  # noqa: E402

# XNNPACK's, and those of our own.
PRODUCT_LIBRARY = "libXNNPACK"
OWN_PRODUCT = re.compile("TileProduct const&|MultiplyTiled|SpanProduct")
# `cria bench` measures how fast memory is read, which takes time and not a number of instructions.
OTHER_WORK = re.compile("ReadMemory|MeasureBandwidth")
GENERATED = (8, 24)
# `cria bench -r 1` runs each test twice: the first time is not measured.
RUNS_OF_BENCH = 2
# `llama-bench -r 1 --no-warmup` runs each test once.
RUNS_OF_LLAMA_BENCH = 1


def count_difference(build, names, command, option, lengths, core, runs):
    """{(file, function): instructions per token}, by which the longer of two runs of a bench is longer that runs each
    test so many times."""
    short, long = lengths
    counts = [names.of(*executed_code.execute(build, names, [*command, option, str(length)], core, 0, 0))
              for length in (short, long)]
    return {name: (counts[1][name] - counts[0][name]) / (runs * (long - short))
            for name in counts[1] if counts[1][name] != counts[0][name] and not OTHER_WORK.search(name[1])}


def count(build, names, arguments, more, core):
    """{(file, function): instructions per token}."""
    if arguments.prefill is None and arguments.depth is None:
        executed = executed_code.generate(build, names, ["-m", arguments.model, "-t", "1", *more], core)
        return {name: instructions / executed_code.TOKENS for name, instructions in names.of(*executed).items()
                if instructions}
    with tempfile.TemporaryDirectory() as folder:
        bench = [str(build.program), "bench", "-m", arguments.model, "-t", "1", "--pack-cache", folder, *more, "-r", "1"]
        if arguments.depth is not None:
            bench += ["-c", str(arguments.depth + GENERATED[1])]
        xnnpack_kernels.run([*build.emulator, *bench, "-p", "0", "-n", "1"], QEMU_CPU=core)
        return count_difference(build, names, *bench_command(bench, arguments), core, RUNS_OF_BENCH)


def bench_command(bench, arguments):
    """(command, the option that takes the length, two lengths) of `bench`, be it cria's or llama.cpp's."""
    if arguments.prefill is not None:
        return [*bench, "-n", "0"], "-p", arguments.prefill
    return [*bench, "-p", "0", "-d", str(arguments.depth or 0)], "-n", GENERATED


class LlamaCpp(device_build.DeviceBuild):
    """Debian's arm64 package of llama.cpp, with all that it depends on, in a folder."""

    def __init__(self, tree, emulator):
        self.program = tree / "usr/bin/llama-bench"
        self.sysroot = tree
        self.emulator = [emulator, "-L", str(tree)]

    def count(self, names, arguments, core, flash_attention):
        """Instructions per token; Debian's libraries keep no names of the functions that they do not export."""
        bench = [str(self.program), "-m", arguments.gguf, "-t", "1", "-r", "1", "--no-warmup", "-fa", flash_attention]
        return sum(count_difference(self, names, *bench_command(bench, arguments), core, RUNS_OF_LLAMA_BENCH).values())


def is_product(file, function):
    return file == PRODUCT_LIBRARY or OWN_PRODUCT.search(function) is not None


def two_lengths(text):
    short, long = (int(length) for length in text.split(","))
    return short, long


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--core", action="append", help="as QEMU_CPU takes it; default: cortex-a72 cortex-a76")
    parser.add_argument("--prefill", type=two_lengths, metavar="SHORT,LONG", help="lengths of two prompts")
    parser.add_argument("--depth", type=int, help="tokens before those that are generated")
    parser.add_argument("--build", type=pathlib.Path, default=device_build.ROOT / "build/aarch64")
    parser.add_argument("--lines", type=int, default=12, help="how many functions to print")
    parser.add_argument("--llama-cpp", type=pathlib.Path, metavar="TREE", help="Debian's arm64 package llama.cpp")
    parser.add_argument("--gguf", metavar="FILE", help="a model of the same shape")
    parser.add_argument("--flash-attention", choices=["on", "off"], action="append",
                        help="of llama.cpp; default: on and off")
    arguments, more = parser.parse_known_args()
    build = device_build.DeviceBuild(arguments.build)
    names = executed_code.Names(build)
    for core in arguments.core or ["cortex-a72", "cortex-a76"]:
        counts = count(build, names, arguments, more, core)
        total = sum(counts.values())
        products = sum(n for name, n in counts.items() if is_product(*name))
        print(f"{core}: {total:,.0f} instructions a token, {100 * (total - products) / total:.2f}% of them "
              "outside of the matrix products", flush=True)
        for (file, function), instructions in sorted(counts.items(), key=lambda item: -item[1])[:arguments.lines]:
            print(f"  {instructions:14,.0f}  {100 * instructions / total:6.2f}%  {file}: {function[:100]}")
        if arguments.llama_cpp is None:
            continue
        llama_cpp = LlamaCpp(arguments.llama_cpp, build.emulator[0])
        for flash_attention in arguments.flash_attention or ["on", "off"]:
            theirs = llama_cpp.count(names, arguments, core, flash_attention)
            print(f"{core}: llama.cpp, -fa {flash_attention}: {theirs:,.0f} instructions a token; "
                  f"Cria executes {total / theirs:.3f} of them", flush=True)


if __name__ == "__main__":
    sys.exit(main())
