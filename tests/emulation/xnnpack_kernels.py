#!/usr/bin/env python3
"""Names the XNNPACK kernels that a program built for Arm runs on emulated cores.

    ./dev shell tests/emulation/xnnpack_kernels.py [--core cortex-a76]... [--build build/armhf] PROGRAM [ARGUMENTS]

Debian's library keeps no names of its kernels, but the archive beside it has each with its code. The
emulator lists the code that it translates, which is what the program ran; a kernel is known by its
instructions, without those that the linker completes.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import device_build

ALL_CORES = ["cortex-a53", "cortex-a72", "cortex-a76", "max"]


def run(command, **environment):
    """What a command that must succeed prints."""
    done = subprocess.run(command, env=os.environ | environment, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace")


def archive_kernels(build):
    """{name: [(offset, instruction), ...]} of each kernel of XNNPACK's archive."""
    kernels, code = {}, None
    for line in run([build.objdump, "-dr", build.kernel_archive]).splitlines():
        if match := re.match(r"([0-9a-f]+) <(\w+)>:", line):
            start = int(match[1], 16)
            code = kernels.setdefault(match[2], []) if "ukernel" in match[2] else None
        elif code is None:
            continue
        elif match := re.match(r"\s*([0-9a-f]+):\s([0-9a-f]{8})\s", line):
            code.append((int(match[1], 16) - start, match[2]))
        elif re.search("R_(AARCH64|ARM)_", line):
            code.pop()
    return {name: code for name, code in kernels.items() if code}


def translated(build, program, core):
    """{address: instruction} of all that the emulator translated."""
    with tempfile.NamedTemporaryFile() as log:
        run([*build.emulator, "-d", "in_asm", "-D", log.name, *program], QEMU_CPU=core)
        text = open(log.name).read()
    return {int(match[1], 16): match[2]
            for match in re.finditer(r"^0x([0-9a-f]+):\s+([0-9a-f]{8})\s", text, re.MULTILINE)}


def instructions_seen(code, start, body):
    """How many of a kernel's instructions are where they would be; none if others are."""
    count = 0
    for offset, instruction in body:
        found = code.get(start + offset)
        if found == instruction:
            count += 1
        elif found is not None:
            return 0
    return count


def kernels_run(kernels, code):
    """{address: name} of the kernels that are among what was translated."""
    addresses = collections.defaultdict(list)
    for address, instruction in code.items():
        addresses[instruction].append(address)
    # What was not reached was not translated; a few instructions could be anybody's.
    return {address - body[0][0]: name
            for name, body in kernels.items() for address in addresses[body[0][1]]
            if instructions_seen(code, address - body[0][0], body) > max(8, len(body) // 8)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--core", action="append", help="as QEMU_CPU takes it; default: " + " ".join(ALL_CORES))
    parser.add_argument("--build", type=pathlib.Path, default=device_build.ROOT / "build/aarch64")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    build = device_build.DeviceBuild(arguments.build)
    kernels = archive_kernels(build)
    for core in arguments.core or ALL_CORES:
        for name in sorted(set(kernels_run(kernels, translated(build, arguments.program, core)).values())):
            print(f"{core:10}  {name}")


if __name__ == "__main__":
    sys.exit(main())
