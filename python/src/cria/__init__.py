"""Cria runs small language models in this process: offline, in memory that is known before a model is loaded.

    with cria.Model("model.cria", context_tokens=2048) as model:
        for piece in model.chat([{"role": "user", "content": "Who are you?"}]):
            print(piece, end="", flush=True)

Options have the names of cria.h, the C API, of which this package calls every function.
"""

from ._answer import Answer
from ._c_api import VERSION as __version__
from ._chat import Chat
from ._errors import (CancelledError, Error, InternalError, InvalidFileError, IoError, NotFoundError, OutOfMemoryError,
                      OutOfRangeError, UnsupportedError, UsageError)
from ._library import library as _loaded
from ._model import Model
from ._options import GenerationOptions, ModelOptions
from ._plan import plan
from ._results import ModelInfo, Part, Plan, Result, Tokens
from ._tools import Tool, ToolCall

__all__ = [
    "Answer", "CancelledError", "Chat", "Error", "GenerationOptions", "InternalError", "InvalidFileError", "IoError",
    "Model", "ModelInfo", "ModelOptions", "NotFoundError", "OutOfMemoryError", "OutOfRangeError", "Part", "Plan",
    "Result", "Tokens", "Tool", "ToolCall", "UnsupportedError", "UsageError", "__version__", "library_version", "plan",
]


def library_version() -> str:
    """The version of the library in use, which may be newer than this package's, __version__."""
    version: bytes = _loaded.cria_version()
    return version.decode()
