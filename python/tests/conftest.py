"""What the tests run with, as ctest says it.

CRIA_LIBRARY is the library, CRIA_TEST_MODEL the demo model, CRIA_TEST_VARIABLES_MODEL the same with a chat template
that has the variable `note` and knows few roles, CRIA_TEST_TOOLS_MODEL the same with one that shows tools,
CRIA_TEST_PROGRAM the program cria of the same build, CC a C compiler.
"""

import os
import subprocess
import sys
from typing import Any, Callable, Iterator, List

import pytest

import cria

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUESTION = [{"role": "user", "content": "Hello! Who are you?"}]
ANSWER = "Hello! I am Cria, a baby llama. What would you like to talk about?"
# Goes on until it is stopped.
ENDLESS: Any = {"temperature": 4.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "when_full": "shift"}


def model_path() -> str:
    return os.environ["CRIA_TEST_MODEL"]


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cria.Model]:
    """The demo model, for four calls at the same time, of which two may be constrained."""
    with cria.Model(model_path(), num_threads=1, num_sequences=4, max_constraints=2,
                    pack_folder=tmp_path_factory.mktemp("packed")) as model:
        yield model


@pytest.fixture(name="run_python")
def fixture_run_python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs a program of Python's in a process of its own, whose arguments begin with the demo model."""
    def run(program: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        command: List[str] = [sys.executable, "-c", program, model_path(), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500,
                              check=False, env={**os.environ, **environment})
    return run
