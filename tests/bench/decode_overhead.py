#!/usr/bin/env python3
"""Measures the time of a token without its matrix products, from alternating rounds of both.

    decode_overhead.py [--rounds 15] -- build/release/cli/cria bench -m MODEL.cria --kv int8 -t 2 …

Runs the command with `-p 0 -n 64 --products -o json`. Rounds in which two threads read memory less
than 1.5 times as fast as one are dropped and counted, because other programs used the memory then.
Run it in the tree that Cria was built in (./dev shell).
"""

import argparse
import json
import statistics
import subprocess


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    command = arguments.command + ["-p", "0", "-n", "64", "--products", "-o", "json", "-r",
                                   str(arguments.rounds)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    for row in json.loads(result.stdout):
        tokens = row["n_gen"]
        rounds = [
            {"token_us": whole / tokens / 1e3, "products_us": products / tokens / 1e3,
             "read": read, "read_one": read_one}
            for whole, products, read, read_one in zip(
                row["samples_ns"], row["samples_products_ns"], row["samples_read_gb_per_s"],
                row["samples_read_gb_per_s_one_thread"])]
        kept = rounds
        if row["n_threads"] == 2:
            kept = [r for r in rounds if r["read"] >= 1.5 * r["read_one"]]
        print(f"{row['model_filename']}, {row['n_threads']} threads, depth {row['n_depth']}: "
              f"{len(rounds) - len(kept)} of {len(rounds)} rounds dropped")
        if not kept:
            continue
        ratios = sorted(r["token_us"] / r["products_us"] for r in kept)
        beside = [r["token_us"] - r["products_us"] for r in kept]
        token = statistics.median(r["token_us"] for r in kept)
        speed = row["bytes_per_token"] / token / 1e3
        read = statistics.median(r["read"] for r in kept)
        print(f"  {token:.1f} us a token, {statistics.median(beside):.1f} us of it beside the products;"
              f" {100 * (statistics.median(ratios) - 1):.1f}% longer than they alone"
              f" ({100 * (ratios[0] - 1):.1f} to {100 * (ratios[-1] - 1):.1f}%)")
        print(f"  {speed:.1f} GB/s of the {read:.1f} GB/s that reading reaches: {speed / read:.2f}")


if __name__ == "__main__":
    main()
