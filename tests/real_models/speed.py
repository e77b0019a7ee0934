"""The speed of codes that are kept, beside that of llama.cpp with the same file."""

import os
import sys

TESTS_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path += [os.path.join(TESTS_FOLDER, "bench", "llama_cpp"), os.path.join(TESTS_FOLDER, "server", "load")]
# pylint: disable=wrong-import-position
from beside_llama_server import compare_servers
from compare import print_comparison, run

# Tokens of the prompt, and of the answer.
TESTS = [(256, 0), (0, 64)]
THREADS = "2"


def check_speed(programs, model, gguf, arguments):
    if not arguments.llama_bench:
        print("speed: not compared, because there is no llama-bench; './dev real-models --llama-cpp' fetches it")
        return
    for prompt, answer in TESTS:
        test = ["-p", str(prompt), "-n", str(answer), "-r", "1", "-t", THREADS, "-o", "json"]
        commands = {"cria": [programs.cria_path, "bench", "-m", model, *test]}
        for flash in ("0", "1"):
            commands[f"llama.cpp -fa {flash}"] = [arguments.llama_bench, "-m", gguf, "-fa", flash, *test]
        speeds = {name: [] for name in commands}
        for _ in range(arguments.pairs):
            for name, command in commands.items():
                speeds[name] += run(command)
        print_comparison(f"prompt of {prompt}" if prompt else f"answer of {answer}", speeds)


def check_load(programs, model, gguf, arguments):
    if not arguments.llama_server:
        print("load: not compared, because there is no llama-server; './dev real-models --llama-cpp' fetches it")
        return
    compare_servers({"cria-serve": (programs.serve_path, model), "llama-server": (arguments.llama_server, gguf)},
                    rounds=arguments.pairs)
