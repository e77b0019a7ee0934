#!/usr/bin/env python3
"""Tests scripts/benchmarks.py with a program in place of cria: benchmarks_test.py SCRIPT."""

import os
import subprocess
import sys
import tempfile

FAKE = """#!/usr/bin/env python3
import json, sys
assert sys.argv[1] == "bench" and sys.argv[-1] == "--json", sys.argv
if "broken" in sys.argv[3]:
    sys.exit(3)
base = {"model_type": "tiny w4g64", "cpu_info": "Made-up CPU", "isa": "avx2 fma",
        "kernels": "AVX2, XNNPACK layout 0123456789abcdef", "n_threads": 2, "n_threads_batch": 3}
print(json.dumps([
    {**base, "n_prompt": 16, "n_gen": 0, "bus_fraction": None, "samples_ts": [100, 5000, 2000, 300, 1000]},
    {**base, "n_prompt": 0, "n_gen": 64, "bus_fraction": 0.913, "samples_ts": [40, 30, 20, 50, 10]}]))
"""
PAGE = "# Benchmarks\n\nText.\n\n## Old machine\n\nIts table.\n\n## New machine\n\nOlder figures.\n\n## Last\n\nEnd.\n"


def expect(condition, *details):
    if not condition:
        sys.exit("\n".join(map(str, details)))


def main():
    script = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        fake, page = os.path.join(folder, "cria"), os.path.join(folder, "page.md")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(FAKE)
        os.chmod(fake, 0o755)

        def run(machine, model="tiny.cria"):
            named = ["--machine", machine] if machine else []
            return subprocess.run([script, "--cria", fake, "--page", page, *named, "--commit", "abc", "--date",
                                   "2026-01-02", model], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False)

        def read():
            with open(page, encoding="utf-8") as file:
                return file.read()

        def start():
            with open(page, "w", encoding="utf-8") as file:
                file.write(PAGE)

        start()
        done = run("New machine")
        text = read()
        expect(done.returncode == 0, done.stderr)
        expect("Older figures." not in text and text.count("## New machine") == 1, text)
        expect(text.startswith("# Benchmarks\n\nText.\n\n## Old machine\n\nIts table.\n\n## New machine\n\n"), text)
        expect(text.endswith("|\n\n## Last\n\nEnd.\n"), text)
        expect("2026-01-02, commit abc; each" in text, text)
        expect("cria bench -m MODEL -p 16,128 -n 64 -r 5" in text, text)
        expect("| tiny w4g64 | prompt of 16 | 1,000.0 | 100.0 to 5,000.0 |  | 3 |" in text, text)
        expect("| tiny w4g64 | answer of 64 | 30.0 | 10.0 to 50.0 | 91% | 2 |" in text, text)

        processor = f"Made-up CPU, {os.cpu_count()} processors"
        expect(f"Processor: {processor}. Instructions: avx2 fma. Kernels: AVX2.\n" in text, text)

        run("New machine")
        expect(read() == text, "a second run changes the page", read())

        start()
        run("Third machine")
        expect(read().startswith(PAGE + "\n## Third machine\n\n"), read())

        start()
        run(None)
        expect(read().startswith(PAGE + f"\n## {processor}\n\n"), read())

        start()
        done = run("New machine", "broken.cria")
        expect(done.returncode != 0 and "exits with 3" in done.stderr, done.stderr)
        expect(read() == PAGE, "a failure changes the page", read())


if __name__ == "__main__":
    main()
