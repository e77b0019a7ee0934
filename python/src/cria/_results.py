"""What calls return."""

import ctypes
import json
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from . import _c_api
from ._errors import Error
from ._texts import Array
from ._tools import ToolCall

FINISH_REASONS: Dict[int, str] = {
    _c_api.CRIA_STOP_END: "end",
    _c_api.CRIA_STOP_MAX_TOKENS: "max_tokens",
    _c_api.CRIA_STOP_CONTEXT_FULL: "context_full",
    _c_api.CRIA_STOP_CANCELLED: "cancelled",
    _c_api.CRIA_STOP_STRING: "string",
}


@dataclass(frozen=True)
class Tokens:
    """The tokens of an answer, without the one that ended it; one element of each field for a token."""

    # numpy.int32 if numpy is installed.
    ids: Array[int]
    # Natural logarithms of the probabilities that the model gave the tokens, before temperature and the other steps of
    # sampling; numpy.float64 if numpy is installed.
    log_probabilities: Array[float]
    # The text that is complete with the token: whole characters, perhaps none. Stop strings are not removed.
    texts: Tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """An answer that has ended. str() is its text."""

    text: str
    # "end": the model ended it, or nothing may follow; "max_tokens"; "context_full"; "cancelled"; "string": one of
    # stop_strings follows.
    finish_reason: str
    # Present if the call was given log_probabilities=True.
    tokens: Optional[Tokens]
    # What the model asks for, if the call was given tools; `text` has the calls, too.
    calls: Tuple[ToolCall, ...]
    # From the call to the first text; 0 if there was none.
    first_text_seconds: float
    total_seconds: float
    prompt_tokens_per_second: float
    # The model's speed, without sampling and callbacks.
    generated_tokens_per_second: float
    # Tokens of the prompt that were read, and those that the context already held.
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    # Dropped to make room, with when_full="shift".
    dropped_tokens: int
    # In the KV cache after the call.
    context_used_tokens: int
    # About how many times as fast drafts made generating; 1 without drafts.
    draft_gain: float
    drafted_tokens: int
    accepted_tokens: int

    def __str__(self) -> str:
        return self.text

    def json(self) -> Any:
        """The text read as JSON, as an answer with `schema` or `json` is; ValueError if it is not whole."""
        return json.loads(self.text)


# Fields of cria_result that have another name or form here.
_CONVERTED_FIELDS = ("struct_size", "stop_reason")


def make_result(struct: Any, text: str, tokens: Optional[Tokens], calls: Tuple[ToolCall, ...]) -> Result:
    """The Result of a cria_result."""
    numbers = {name: getattr(struct, name) for name, *_ in struct._fields_ if name not in _CONVERTED_FIELDS}
    return Result(text=text, finish_reason=FINISH_REASONS[struct.stop_reason], tokens=tokens, calls=calls, **numbers)


@dataclass(frozen=True)
class ModelInfo:
    """What a model is."""

    name: str
    # A tied output head is counted once.
    num_parameters: int
    file_bytes: int
    vocab_size: int
    # The context that the model was made for, and the size of the KV cache.
    max_context_tokens: int
    context_tokens: int
    num_threads: int
    num_batch_threads: int
    # False: the model continues a text instead of answering.
    has_chat_template: bool


def make_info(struct: Any) -> ModelInfo:
    """The ModelInfo of a cria_model_info."""
    values = {name: getattr(struct, name) for name, *_ in struct._fields_ if name != "struct_size"}
    values["name"] = ctypes.string_at(struct.name).decode()
    values["has_chat_template"] = bool(struct.has_chat_template)
    return ModelInfo(**values)


@dataclass(frozen=True)
class Part:
    """A part of the memory that a model takes, such as "KV cache"."""

    name: str
    bytes: int
    # Bytes of files: the kernel may drop them and read them again.
    is_mapped: bool


@dataclass(frozen=True)
class Plan:
    """Resident bytes of the whole process after a conversation has filled the context."""

    parts: Tuple[Part, ...]
    # The kernel cannot drop them.
    private_bytes: int
    mapped_bytes: int
    # The maximum, loading included; compared with the limits.
    peak_bytes: int
    address_space_bytes: int
    info: ModelInfo
    # Why the limits forbid the model, as they were when the plan was made; None if it fits.
    refusal: Optional[Error]

    def check(self) -> None:
        """Raises OutOfMemoryError if the limits forbid the model; its message says what would fit."""
        if self.refusal is not None:
            raise self.refusal
