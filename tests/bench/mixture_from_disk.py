#!/usr/bin/env python3
"""Runs a mixture of experts that does not fit into memory, and compares its speed with the plan's.

    mixture_from_disk.py [--memory BYTES] [--disk BYTES_PER_SECOND] [--rounds 3] --model MODEL.cria CRIA

`CRIA run` generates random tokens, first with all memory, then in a control group whose memory is
that of --memory (half of the model file), and whose disk reads are bounded by --disk (450e6, what
`plan` takes for an SSD). The plan foretells the time of a token in memory, which is measured, plus
what it reads from the disk. Prints both speeds, and what the kernel counted as read.

The model is a standalone file of this processor that was made of a checkpoint of
cria-make-checkpoint. Needs root, control groups for memory and block devices, and a file system on a
disk of its own. Run it in the tree that Cria was built in (./dev shell), with nothing else on the
machine.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess

from control_group import control_group


def disk_of(path):
    """The number "major:minor" of the whole disk that a file is on."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    folder = pathlib.Path("/sys/dev/block", number).resolve()
    if (folder / "partition").exists():
        number = (folder.parent / "dev").read_text().strip()
    return number


def drop_cached_pages(path):
    """Pages that were read before the group existed would not count as its own."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--model", required=True)
    parser.add_argument("--memory", type=float, help="of the control group [half of the model file]")
    parser.add_argument("--disk", type=float, default=450e6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=192, help="that each round generates")
    parser.add_argument("-t", "--threads", default="2")
    arguments = parser.parse_args()
    common = ["-m", arguments.model, "-c", "512", "-t", arguments.threads, "--json"]
    memory = int(arguments.memory or os.stat(arguments.model).st_size / 2)

    def run(seed, join=None):
        """Seconds of a token, and the bytes that a token read from the disk."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock
        output = subprocess.run(
            [arguments.program, "run", "-p", "a", "-n", str(arguments.tokens), "--ignore-eos",
             "--seed", str(seed), "--temp", "9", "--top-k", "0", "--top-p", "1", *common],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=join)
        measured = json.loads(output.stdout)
        blocks = resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock - before
        tokens = measured["generated_tokens"]
        return 1 / measured["generated_tokens_per_second"], 512 * blocks / tokens

    # The first round brings into memory what fits.
    run(0)
    seeds = range(1, arguments.rounds + 1)
    in_memory = statistics.median(run(seed)[0] for seed in seeds)
    plan = json.loads(subprocess.run(
        [arguments.program, "plan", *common, "--memory-limit", str(memory)], check=True,
        stdout=subprocess.PIPE).stdout)
    planned = plan["disk_bytes_per_token"]
    foretold = 1 / (in_memory + planned / arguments.disk)
    print(f"in memory: {1 / in_memory:.2f} tokens/s, "
          f"{plan['token_expert_bytes'] / 1e6:.1f} MB of experts a token")
    print(f"plan with {memory / 1e6:.0f} MB: {planned / 1e6:.1f} MB a token from the disk, "
          f"{foretold:.2f} tokens/s")
    drop_cached_pages(arguments.model)
    bound = f"{disk_of(arguments.model)} {{}}{int(arguments.disk)}"
    limits = control_group(
        version_1={"memory": {"memory.limit_in_bytes": str(memory)},
                   "blkio": {"blkio.throttle.read_bps_device": bound.format("")}},
        version_2={"memory.max": str(memory), "io.max": bound.format("rbps=")})
    with limits as join:
        run(0, join)
        for seed in seeds:
            seconds, read = run(seed, join)
            print(f"measured: {read / 1e6:.1f} MB a token from the disk, {1 / seconds:.2f} tokens/s, "
                  f"{1 / seconds / foretold:.2f} of the plan's", flush=True)


if __name__ == "__main__":
    main()
