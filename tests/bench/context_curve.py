#!/usr/bin/env python3
"""Draws the time per token over the depth of the context, and the time that its bytes would take.

    context_curve.py OUTPUT.svg -- build/release/cli/cria bench -m MODEL.cria -t 2 …

Runs the command for each KV type with `-p 0 -n 16 -r 5 -d 0,512,…,8192 -o json`. The thin lines are the
time at depth 0, scaled by the bytes that a token reads at each depth. Needs gnuplot.
"""

import argparse
import json
import subprocess

DEPTHS = [0, 512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--kv", default="int8,f16")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    blocks, plots = "", []
    for kv in arguments.kv.split(","):
        command = arguments.command + ["--kv", kv, "-p", "0", "-n", "16", "-r", "5", "-o", "json",
                                       "-d", ",".join(map(str, DEPTHS))]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=True)
        rows = json.loads(result.stdout)
        first = None
        blocks += f"${kv} << END\n"
        for row in rows:
            time_ms = sorted(row["samples_ns"])[len(row["samples_ns"]) // 2] / row["n_gen"] / 1e6
            first = first or (time_ms, row["bytes_per_token"])
            by_bytes = first[0] * row["bytes_per_token"] / first[1]
            print(f"{kv} KV, depth {row['n_depth']}: {time_ms:.2f} ms, by its bytes {by_bytes:.2f} ms",
                  flush=True)
            blocks += f"{row['n_depth']} {time_ms:.3f} {by_bytes:.3f}\n"
        blocks += "END\n"
        color = {"int8": "#1f77b4", "f16": "#d62728"}[kv]
        plots += [f"${kv} using 1:2 with linespoints pt 7 ps 0.5 lw 2 lc '{color}' title '{kv} KV'",
                  f"${kv} using 1:3 with lines dt 2 lw 1 lc '{color}' title '{kv} KV, by bytes'"]
    script = f"""set terminal svg size 720,400 font 'sans-serif,13' background 'white'
set output '{arguments.output}'
set xlabel 'tokens in the context'
set ylabel 'ms per token'
set yrange [0:*]
set key left top
set grid
{blocks}plot {', '.join(plots)}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


if __name__ == "__main__":
    main()
