#!/usr/bin/env python3
"""Counts the instructions that an aarch64 cria executes for one generated token, by function.

    ./dev shell tests/bench/instructions_per_token.py -m MODEL.cria [--core cortex-a76]... [--kv int8 ...]

The emulator logs each block of code as it translates it, and each execution of a block. Counted is what one
thread executes from one call of the decoder to the next: the step itself, and choosing and printing its
token. Options that are not known here go to `cria run`.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/emulation"))
import xnnpack_kernels  # noqa: E402

STEP = "cria::Decoder::Forward("
# The first is that of the prompt.
FIRST_STEP, TOKENS = 3, 4
MATRIX_PRODUCTS = "libXNNPACK"


def execute(command, core, step):
    """({address of a block: instructions executed in it}, {address: instruction},
    [(first address, end, file, offset in the file)] of what is mapped to be executed). Counts the steps
    that begin at `step`, an address in the program."""
    # Where the emulator keeps a block's translation: [address, instructions, executions that count].
    blocks = {}
    start = end = steps = 0
    code, files, mappings = {}, {}, []
    translated = []
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        os.mkfifo(log)
        process = subprocess.Popen(
            [*command[:1], "-d", "in_asm,exec,nochain,strace,page", "-D", log, *command[1:]],
            env=os.environ | {"QEMU_CPU": core}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with open(log, errors="replace") as lines:
            for line in lines:
                if line.startswith("Trace"):
                    block = blocks.get(key := line[9:line.index("[")])
                    if translated:
                        block = blocks[key] = [translated[0], len(translated), 0]
                        translated = []
                    if block[0] == start + step:
                        steps += 1
                    if FIRST_STEP <= steps < FIRST_STEP + TOKENS:
                        block[2] += 1
                elif line.startswith("IN:"):
                    translated = []
                elif match := re.match(r"0x([0-9a-f]+):\s+([0-9a-f]{8})\s", line):
                    translated.append(int(match[1], 16))
                    code[translated[-1]] = match[2]
                elif match := re.match(r"start_code\s+(\w+)", line):
                    start = int(match[1], 16)
                elif match := re.match(r"end_code\s+(\w+)", line):
                    end = int(match[1], 16)
                elif match := re.search(r'openat\(\w+,"([^"]*)".* = (\d+)$', line):
                    files[match[2]] = os.path.basename(match[1])
                elif match := re.search(r"mmap\((\w+),(\d+),\w*\|?PROT_EXEC[^,]*,[^,]*,(\d+),(\w+)\)", line):
                    first = int(match[1], 16)
                    mappings.append((first, first + int(match[2]), files[match[3]], int(match[4], 0)))
        error = process.stderr.read().decode()
        if process.wait() != 0:
            sys.exit(error)
    assert steps >= FIRST_STEP + TOKENS, steps
    mappings.append((start, end, "cria", 0))
    counts = collections.Counter()
    for address, instructions, executions in blocks.values():
        counts[address] += instructions * executions
    return counts, code, sorted(mappings)


class Names:
    """Function names by address: a file's own symbols, and for XNNPACK's kernels, whose names Debian's
    library does not keep, those that their code tells."""

    def __init__(self, program, sysroot):
        self.program, self.libraries = program, f"{sysroot}/usr/lib/aarch64-linux-gnu"
        self.kernels = xnnpack_kernels.archive_kernels(f"{self.libraries}/libmicrokernels-prod.a")
        self.symbols = {}

    def of(self, counts, code, mappings):
        """{(file, function): instructions}."""
        starts = [mapping[0] for mapping in mappings]
        kernels = sorted((address, address + self.kernels[name][-1][0] + 4, name) for address, name in
                         xnnpack_kernels.kernels_run(self.kernels, code).items())
        named = collections.Counter()
        for address, instructions in counts.items():
            start, end, file, offset = mappings[max(bisect.bisect(starts, address) - 1, 0)]
            if not start <= address < end:
                named["elsewhere", ""] += instructions
                continue
            index = bisect.bisect(kernels, (address, sys.maxsize, "")) - 1
            if index >= 0 and address < kernels[index][1]:
                function = kernels[index][2]
            else:
                function = self.symbol(file, address - start + offset)
            named[file.split(".")[0], function] += instructions
        return named

    def step(self):
        """The address of the decoder's step in the program."""
        self.symbol("cria", 0)
        return next(address for address, name in self.symbols["cria"] if name.startswith(STEP))

    def symbol(self, file, address):
        if file not in self.symbols:
            own = file == "cria"
            text = subprocess.run(
                ["aarch64-linux-gnu-nm", "-C", "--defined-only", *([] if own else ["-D"]),
                 self.program if own else f"{self.libraries}/{file}"],
                capture_output=True, text=True).stdout
            self.symbols[file] = sorted((int(words[0], 16), words[2]) for words in
                                        (line.split(None, 2) for line in text.splitlines())
                                        if len(words) == 3 and words[1] in "tTwWiu")
        symbols = self.symbols[file]
        index = bisect.bisect(symbols, (address, chr(sys.maxunicode))) - 1
        return symbols[index][1] if index >= 0 else ""


def count(names, command, core):
    """{(file, function): instructions per token}."""
    with tempfile.TemporaryDirectory() as folder:
        # With packed weights there is less to log.
        command = [*command, "--pack-cache", folder, "-n"]
        packing = subprocess.run([*command, "1"], env=os.environ | {"QEMU_CPU": core}, capture_output=True)
        if packing.returncode != 0:
            sys.exit(packing.stderr.decode())
        counts = names.of(*execute([*command, str(FIRST_STEP + TOKENS)], core, names.step()))
    return {name: instructions / TOKENS for name, instructions in counts.items() if instructions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--core", action="append", help="as QEMU_CPU takes it; default: cortex-a72 cortex-a76")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/aarch64")
    parser.add_argument("--lines", type=int, default=12, help="how many functions to print")
    arguments, more = parser.parse_known_args()
    program = str(arguments.build / "cli/cria")
    sysroot = re.search(r"^CRIA_SYSROOT:PATH=(.*)$", (arguments.build / "CMakeCache.txt").read_text(),
                        re.MULTILINE)[1]
    names = Names(program, sysroot)
    command = ["qemu-aarch64", "-L", sysroot, program, "run", "-m", arguments.model, "-p", "", "-t", "1",
               "--temp", "0", "--ignore-eos", *more]
    for core in arguments.core or ["cortex-a72", "cortex-a76"]:
        counts = count(names, command, core)
        total = sum(counts.values())
        products = sum(n for (file, _), n in counts.items() if file == MATRIX_PRODUCTS)
        print(f"{core}: {total:,.0f} instructions a token, {100 * (total - products) / total:.2f}% of them "
              "outside of the matrix products")
        for (file, function), instructions in sorted(counts.items(), key=lambda item: -item[1])[:arguments.lines]:
            print(f"  {instructions:14,.0f}  {100 * instructions / total:6.2f}%  {file}: {function[:100]}")


if __name__ == "__main__":
    sys.exit(main())
