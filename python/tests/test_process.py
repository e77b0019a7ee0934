"""Memory, signals and the end of a process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable

from conftest import ENDLESS, model_path

import cria

Runner = Callable[..., "subprocess.CompletedProcess[str]"]

MANY_MODELS = """
import sys, cria

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def use_one():
    with cria.Model(sys.argv[1], num_threads=1, pack_folder=sys.argv[2], max_constraints=1) as model:
        next(model.chat([{"role": "user", "content": "Hello!"}]))
        model.complete("Hello", max_tokens=1, log_probabilities=True, schema={"const": 1}).read()
        chat = model.new_chat()
        model.plan
    if len(sys.argv) > 3:
        # Not closed: its objects are freed when nobody refers to them.
        model = cria.Model(sys.argv[1], num_threads=1, pack_folder=sys.argv[2])
        next(model.complete("Hello"))

for _ in range(100):
    use_one()
before = resident()
for _ in range(900):
    use_one()
print(resident() - before)
"""


def test_a_thousand_models_leave_nothing(run_python: Runner, tmp_path: Path) -> None:
    done = run_python(MANY_MODELS, str(tmp_path))
    assert done.returncode == 0, done.stdout
    # A leaked model takes 8 MB.
    assert int(done.stdout) < 1_000_000


def test_a_process_ends_with_what_is_open(run_python: Runner) -> None:
    beginning = "import sys, threading, cria\nmodel = cria.Model(sys.argv[1], num_sequences=3)\n"
    endless = f"model.complete('llama', **{ENDLESS!r})"
    for program in (
            "chat = model.new_chat()",
            f"answer = {endless}; print(next(answer))",
            f"answer = {endless}; next(answer); sys.exit(3)",
            f"answers = [{endless} for _ in range(3)]\nfor answer in answers: next(answer)",
            # A thread for which Python does not wait, in a call.
            "begun = threading.Event()\n"
            f"threading.Thread(target=lambda: {endless[:-1]}, on_prompt=lambda *_: begun.set()).read(), "
            "daemon=True).start()\nbegun.wait()",
            # One that goes on asking.
            "begun = threading.Event()\ndef ask():\n    try:\n"
            "        while True: model.complete('llama', max_tokens=3).read(); begun.set()\n"
            "    except cria.UsageError: pass\n    except cria.CancelledError: pass\n"
            "for _ in range(3): threading.Thread(target=ask, daemon=True).start()\nbegun.wait()",
            # Reference cycles, which are collected last.
            f"answer = {endless}; next(answer); cycle = [model, answer]; cycle.append(cycle); del model, answer"):
        done = run_python(beginning + program)
        assert done.returncode == (3 if "exit" in program else 0), (program, done.stdout)
        assert "Traceback" not in done.stdout and "rror" not in done.stdout, (program, done.stdout)


def test_ctrl_c_ends_a_call() -> None:
    for statement in ("answer.read()", "for piece in answer: pass"):
        # Two threads write, which print() would not keep apart. Between two pieces, only `with` closes the answer.
        program = ("import os, sys, cria\nmodel = cria.Model(sys.argv[1])\n"
                   "def tell(*_): os.write(1, b'ready\\n')\n"
                   f"answer = model.complete('llama', on_prompt=tell, **{ENDLESS!r})\n"
                   f"try:\n    with answer:\n        {statement}\n"
                   "except KeyboardInterrupt:\n    os.write(1, b'interrupted\\n')\n"
                   "print(model.complete('Hello', max_tokens=1).read().generated_tokens)\n")
        command = [sys.executable, "-c", program, model_path()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            try:
                output, _ = child.communicate(timeout=100)
            finally:
                child.kill()
            assert output.replace("ready\n", "") == "interrupted\n1\n" and child.returncode == 0


def test_threads_end_with_their_answers() -> None:
    with cria.Model(model_path(), num_threads=1) as model:
        before = threading.active_count()
        for _ in range(20):
            "".join(model.complete("Hello", max_tokens=3))
            with model.complete("Hello", **ENDLESS) as answer:
                next(answer)
    for thread in threading.enumerate():
        if thread.name == "cria":
            thread.join()
    assert threading.active_count() <= before


def test_the_library_is_found(run_python: Runner, tmp_path: Path) -> None:
    program = "import cria; print(cria.library_version())"
    assert run_python(program).stdout == cria.library_version() + "\n"
    missing = run_python(program, CRIA_LIBRARY="/nowhere/libcria.so")
    assert missing.returncode == 1 and "ImportError: there is no libcria.so.0: install" in missing.stdout
    assert "/nowhere/libcria.so: cannot open" in missing.stdout
    # A library that lacks functions is an older one.
    other = run_python(program, CRIA_LIBRARY="libc.so.6")
    assert "ImportError: libc.so.6 is older than this package" in other.stdout
    # Without the variable, the system's loader looks for it.
    (tmp_path / "libcria.so.0").symlink_to(os.path.realpath(os.environ["CRIA_LIBRARY"]))
    found = run_python(program, CRIA_LIBRARY="", LD_LIBRARY_PATH=str(tmp_path))
    assert found.stdout == cria.library_version() + "\n", found.stdout
