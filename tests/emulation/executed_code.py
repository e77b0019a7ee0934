"""What an emulated program executes, by the emulator's log.

The emulator logs each block of code when it translates it, and each execution of a block.
"""

import bisect
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

import xnnpack_kernels

STEP = "cria::Decoder::Forward("
# The first call is that of the prompt.
FIRST_STEP, TOKENS = 3, 4


class Mapping(typing.NamedTuple):
    """A part of a file that is mapped as code. In the files that are linked here, addresses of code are
    offsets in the file."""
    start: int
    end: int
    file: pathlib.Path
    offset: int


def execute(build, names, command, core, first_step, num_steps, order=None):
    """({address of a block: instructions executed in it}, {address: instruction}, mappings) of steps of the decoder,
    from number `first_step` on; of the whole program if that is 0. Appends to `order`, if it is given, (address of a
    block, instructions in it) for each execution."""
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
                        if order is not None:
                            order.append((block[0], block[1]))
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


def generate(build, names, options, core, order=None, depth=1):
    """What `execute` returns, for TOKENS tokens that `cria run` generates behind a prompt of `depth` words: each from
    one call of the decoder to the next, so with the choice and the printing of the token."""
    with tempfile.TemporaryDirectory() as folder:
        # The whole prompt, with the token before it that some models have, is read by one call.
        command = [str(build.program), "run", *options, "-p", "a" + " a" * (depth - 1), "-b", str(depth + 1), "--temp", "0",
                   "--ignore-eos", "--pack-cache", folder, "-n"]
        # With packed weights, the log is shorter.
        xnnpack_kernels.run([*build.emulator, *command, "1"], QEMU_CPU=core)
        return execute(build, names, [*command, str(FIRST_STEP + TOKENS)], core, FIRST_STEP, TOKENS, order)


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

    def addresses(self, beginning, mappings):
        """The range of addresses where the function whose name begins so is mapped."""
        for mapping in mappings:
            start = self.address(mapping.file, beginning)
            if start is not None:
                end = next(address for address, _ in self.symbols(mapping.file) if address > start)
                return range(mapping.start - mapping.offset + start, mapping.start - mapping.offset + end)
        sys.exit(f"no file has a function {beginning}...)")

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
