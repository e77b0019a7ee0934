#!/usr/bin/env python3
"""Checks Cria with the models of fetch.py: tokens, greedy texts, what each format loses, calls of tools, and the speed
beside llama.cpp, alone and for several clients of a server. Prints tables in Markdown. Exits with 77 if the models are
not there.

With --short, only codes that are kept are compared, in short texts, and nothing is timed.
"""

import argparse
import os
import sys
import tempfile

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from divergence import FORMATS, check_divergence
from fetch import MODELS, SKIPPED
from programs import Failure, Programs, expect
from speed import check_load, check_speed
from tokens import check_greedy, check_tokens
from tools import check_tools

SMOLLM2, QWEN = (model[0] for model in MODELS)
PARTS = ("tokens", "divergence", "tools", "speed", "load")
TIMED_PARTS = ("speed", "load")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cria", required=True, help="the program")
    parser.add_argument("--cria-serve", required=True, help="the program")
    parser.add_argument("--cria-convert", required=True, help="the program")
    parser.add_argument("--models", default=os.environ.get("CRIA_REAL_MODELS", ""),
                        help="the folder that fetch.py has filled [the variable CRIA_REAL_MODELS]")
    parser.add_argument("--data", default=os.environ.get("CRIA_TEST_DATA", ""),
                        help="a folder whose texts are read, too, from its folder 'text' [the variable CRIA_TEST_DATA]")
    parser.add_argument("--short", action="store_true", help="the form for tests")
    parser.add_argument("--only", action="append", choices=PARTS, help="check this alone; may be repeated")
    parser.add_argument("--model", action="append", metavar="BEGINNING",
                        help="check only models whose names begin so; may be repeated")
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="of what formats lose: measure these; "
                        "may be repeated [all for the smaller model, those that take no minutes for the larger one]")
    parser.add_argument("--llama-bench", help="llama.cpp's program, to compare speeds with")
    parser.add_argument("--llama-server", help="llama.cpp's program, to compare answers for several clients with")
    parser.add_argument("--pairs", type=int, default=5, help="how often each speed is measured [%(default)s]")
    arguments = parser.parse_args()
    paths = {name: os.path.join(arguments.models, name) for name in (SMOLLM2, QWEN)}
    if missing := [path for path in paths.values() if not os.path.exists(path)]:
        print(f"skipped: real_models: there is no {missing[0]}; './dev real-models' fetches it")
        return SKIPPED
    parts = arguments.only or [part for part in PARTS if part not in TIMED_PARTS or not arguments.short]
    chosen = [name for name in paths if not arguments.model or name.startswith(tuple(arguments.model))]
    try:
        expect(chosen, "no model has a name that begins so")
        with tempfile.TemporaryDirectory() as folder:
            programs = Programs(arguments.cria, arguments.cria_serve, arguments.cria_convert, folder)
            for name in chosen:
                check(programs, name, paths[name], parts, arguments)
    except Failure as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    return 0


def check(programs, name, gguf, parts, arguments):
    print(f"## {name}", flush=True)
    kept, _ = programs.convert(gguf, "kept.cria")
    if "tokens" in parts:
        check_tokens(programs, kept)
        check_greedy(programs, kept)
    if "divergence" in parts:
        check_divergence(programs, gguf, name == SMOLLM2, arguments)
    if "tools" in parts and name == QWEN:
        check_tools(programs, kept)
    if "speed" in parts:
        check_speed(programs, kept, gguf, arguments)
    if "load" in parts:
        check_load(programs, kept, gguf, arguments)
    os.remove(kept)


if __name__ == "__main__":
    sys.exit(main())
