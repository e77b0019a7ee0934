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
import bisect
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "emulation"))
import device_build  # noqa: E402
import xnnpack_kernels  # noqa: E402

STEP = "cria::Decoder::Forward("
# The first call is that of the prompt.
FIRST_STEP, TOKENS = 3, 4
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


class Mapping(typing.NamedTuple):
    """A part of a file that is mapped as code. In the files that are linked here, addresses of code are
    offsets in the file."""
    start: int
    end: int
    file: pathlib.Path
    offset: int


def execute(build, names, command, core, first_step, num_steps):
    """({address of a block: instructions executed in it}, {address: instruction}, mappings) of steps of the decoder,
    from number `first_step` on; of the whole program if that is 0."""
    # Where the emulator keeps a block's translation: [address, instructions, executions that count].
    blocks = {}
    code, files, mappings = {}, {}, []
    translated = []
    step, steps = None, 0

    def add(mapping):
        nonlocal step
        mappings.append(mapping)
        address = names.address(mapping.file, STEP)
        if address is not None:
            step = mapping.start - mapping.offset + address

    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        os.mkfifo(log)
        process = subprocess.Popen(
            [*build.emulator, "-d", "in_asm,exec,nochain,strace,page", "-D", log, *command],
            env=os.environ | {"QEMU_CPU": core}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with open(log, errors="replace") as lines:
            for line in lines:
                if line.startswith("Trace"):
                    block = blocks.get(key := line[9:line.index("[")])
                    if translated:
                        block = blocks[key] = [translated[0], len(translated), 0]
                        translated = []
                    if block[0] == step:
                        steps += 1
                    if first_step == 0 or first_step <= steps < first_step + num_steps:
                        block[2] += 1
                elif line.startswith("IN:"):
                    translated = []
                elif match := re.match(r"0x([0-9a-f]+):\s+([0-9a-f]{8})\s", line):
                    translated.append(int(match[1], 16))
                    code[translated[-1]] = match[2]
                elif match := re.match(r"end_code\s+(\w+)", line):
                    end = int(match[1], 16)
                elif match := re.match(r"start_code\s+(\w+)", line):
                    add(Mapping(int(match[1], 16), end, build.program, 0))
                elif match := re.search(r'openat\(\w+,"([^"]*)".* = (\d+)$', line):
                    files[match[2]] = build.file(match[1])
                elif match := re.search(r"mmap\((\w+),(\d+),\w*\|?PROT_EXEC[^,]*,[^,]*,(\d+),(\w+)\)", line):
                    start = int(match[1], 16)
                    add(Mapping(start, start + int(match[2]), files[match[3]], int(match[4], 0)))
        error = process.stderr.read().decode()
        if process.wait() != 0:
            sys.exit(error)
    if steps < first_step + num_steps:
        sys.exit(f"{steps} calls of {STEP}...) were seen, not {first_step + num_steps} as expected")
    counts = collections.Counter()
    for address, instructions, executions in blocks.values():
        counts[address] += instructions * executions
    return counts, code, sorted(mappings)


class Names:
    """Function names by address: a file's own symbols, and for XNNPACK's kernels, whose names Debian's
    library does not keep, those that their code tells."""

    def __init__(self, build):
        self.build = build
        self.kernels = xnnpack_kernels.archive_kernels(build)
        self.symbols_of = {}

    def of(self, counts, code, mappings):
        """{(file, function): instructions}."""
        starts = [mapping.start for mapping in mappings]
        kernels = sorted((address, address + self.kernels[name][-1][0] + 4, name) for address, name in
                         xnnpack_kernels.kernels_run(self.kernels, code).items())
        named = collections.Counter()
        for address, instructions in counts.items():
            mapping = mappings[max(bisect.bisect(starts, address) - 1, 0)]
            if not mapping.start <= address < mapping.end:
                named["elsewhere", ""] += instructions
                continue
            index = bisect.bisect(kernels, (address, sys.maxsize, "")) - 1
            if index >= 0 and address < kernels[index][1]:
                function = kernels[index][2]
            else:
                function = self.function(mapping.file, address - mapping.start + mapping.offset)
            named[mapping.file.name.split(".")[0], function] += instructions
        return named

    def address(self, file, beginning):
        """The address of the function whose name begins so; None if the file does not have it."""
        return next((address for address, name in self.symbols(file) if name.startswith(beginning)), None)

    def function(self, file, address):
        symbols = self.symbols(file)
        index = bisect.bisect(symbols, (address, chr(sys.maxunicode))) - 1
        return symbols[index][1] if index >= 0 else ""

    def symbols(self, file):
        """[(address, name)] of all functions of a file, or, if it was stripped, of those that it exports."""
        if file not in self.symbols_of:
            self.symbols_of[file] = self.read(file) or self.read(file, "-D")
        return self.symbols_of[file]

    def read(self, file, *options):
        text = xnnpack_kernels.run([self.build.nm, "-C", "--defined-only", *options, file])
        return sorted((int(words[0], 16), words[2]) for words in
                      (line.split(None, 2) for line in text.splitlines())
                      if len(words) == 3 and words[1] in "tTwWiu")


def count_steps(build, names, command, core):
    """{(file, function): instructions per generated token}."""
    command = [*command, "-n"]
    xnnpack_kernels.run([*build.emulator, *command, "1"], QEMU_CPU=core)
    counts = names.of(*execute(build, names, [*command, str(FIRST_STEP + TOKENS)], core, FIRST_STEP, TOKENS))
    return {name: instructions / TOKENS for name, instructions in counts.items() if instructions}


def count_difference(build, names, command, option, lengths, core, runs):
    """{(file, function): instructions per token}, by which the longer of two runs of a bench is longer that runs each
    test so many times."""
    short, long = lengths
    counts = [names.of(*execute(build, names, [*command, option, str(length)], core, 0, 0))
              for length in (short, long)]
    return {name: (counts[1][name] - counts[0][name]) / (runs * (long - short))
            for name in counts[1] if counts[1][name] != counts[0][name] and not OTHER_WORK.search(name[1])}


def count(build, names, arguments, more, core):
    with tempfile.TemporaryDirectory() as folder:
        # With packed weights, the log is shorter.
        common = ["-m", arguments.model, "-t", "1", "--pack-cache", folder, *more]
        program = str(build.program)
        if arguments.prefill is None and arguments.depth is None:
            return count_steps(build, names, [program, "run", *common, "-p", "", "--temp", "0", "--ignore-eos"], core)
        bench = [program, "bench", *common, "-r", "1"]
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
    names = Names(build)
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
