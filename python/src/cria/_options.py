"""The options of models and of generating: keywords with the names of the structs' fields in cria.h."""

import json as json_module
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, TypedDict, Union

from . import _c_api
from ._errors import UsageError
from ._texts import Kept, StrPath

# What `schema` may be: a JSON Schema, or a class or object that has one, such as a pydantic model.
Schema = Union[Mapping[str, Any], bool, Any]


class ModelOptions(TypedDict, total=False):
    """How a model is loaded. Options that are not given have the defaults of cria.h."""

    # A folder of the application for packed weights, so that only the first start packs.
    pack_folder: StrPath
    # An open file that is, or contains, the model, if there is no path; it may be closed afterwards.
    descriptor: int
    offset_bytes: int
    length_bytes: int
    # Loading fails above it; 0: only the system's limits hold.
    memory_limit_bytes: int
    ignore_memory_limits: bool
    # For generating, and for reading prompts; 0: one for each fast core, and as many as num_threads.
    num_threads: int
    num_batch_threads: int
    # Size of the KV cache in tokens; 0: 2048, or the model's own if less.
    context_tokens: int
    # Tokens of a prompt that are read at once; 0: 128.
    chunk_tokens: int
    # "f32", "f16", "int8", or "model", the default: int8, or f16 if the model file says so.
    kv_type: str
    # "on_first_use", or "never": fail with NotFoundError if weights are not packed.
    packing: str
    # How many calls run at the same time; 0: one. Others wait for their turn.
    num_sequences: int
    draft_model_path: StrPath
    draft_ngram_tokens: int
    # Drafts of the model's own layer for multi-token prediction, if it has one.
    draft_mtp: bool
    max_draft_tokens: int
    min_draft_tokens: int
    min_draft_probability: float
    # How many calls with a schema, grammar, regex or json may run at the same time; 0: none.
    max_constraints: int
    # Near this temperature of the processor, fewer threads compute, and they pause between tokens; 0: no limit.
    max_temperature_celsius: float


class GenerationOptions(TypedDict, total=False):
    """How tokens are chosen, and where a text ends. Defaults are those of cria.h and llama.cpp."""

    seed: int
    # Maximum for one answer; 0: until the model ends it.
    max_tokens: int
    # What happens when the context is full: "stop", the default, or "shift".
    when_full: str
    # 0: always the most likely token.
    temperature: float
    top_k: int
    typical_p: float
    top_p: float
    min_p: float
    xtc_probability: float
    xtc_threshold: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    repeat_last_n: int
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    # An empty sequence: nothing ends a repetition.
    dry_sequence_breakers: Sequence[str]
    keep_tokens: int
    # Whether complete() reads <|eot_id|> and the like in the prompt as the tokens that they name.
    parse_special: bool
    stop_strings: Sequence[str]
    # For each token, what is added to its logit; minus infinity forbids it.
    logit_bias: Mapping[int, float]
    # At most one of these: a JSON Schema, a grammar in GBNF, a regular expression of JavaScript, "value" or "object".
    schema: Schema
    grammar: str
    regex: str
    json: str


KV_TYPES = {"f32": _c_api.CRIA_KV_F32, "f16": _c_api.CRIA_KV_F16, "int8": _c_api.CRIA_KV_INT8,
            "model": _c_api.CRIA_KV_MODEL}
PACKINGS = {"on_first_use": _c_api.CRIA_PACK_ON_FIRST_USE, "never": _c_api.CRIA_PACK_NEVER}
WHEN_FULL = {"stop": _c_api.CRIA_WHEN_FULL_STOP, "shift": _c_api.CRIA_WHEN_FULL_SHIFT}
JSON_KINDS = {"value": _c_api.CRIA_CONSTRAINT_JSON, "object": _c_api.CRIA_CONSTRAINT_JSON_OBJECT}
CONSTRAINTS = ("schema", "grammar", "regex", "json")


def _choose(name: str, value: Any, choices: Dict[str, int]) -> int:
    if value not in choices:
        raise UsageError(f"{name} is {value!r}, which is none of {', '.join(map(repr, choices))}")
    return choices[value]


def _check_names(options: Mapping[str, Any], known: Any) -> None:
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"there is no option {name!r}: there are {', '.join(sorted(known.__annotations__))}")


def _set_number(struct: Any, name: str, value: Any) -> None:
    """Sets a field; TypeError if the value is no number, UsageError if the field cannot hold it."""
    try:
        setattr(struct, name, value)
    except TypeError as error:
        raise TypeError(f"{name} is {value!r}: {error}") from None
    # ctypes leaves out the bits of an integer that a field does not have.
    stored = getattr(struct, name)
    if isinstance(stored, int) and stored != value:
        raise UsageError(f"{name} is {value!r}, which is not between the bounds of its type")


def model_struct(path: Optional[StrPath], options: Mapping[str, Any], on_progress: Any, on_notice: Any,
                 kept: Kept) -> Any:
    """A cria_model_options, whose texts `kept` keeps. The callbacks are None or those of _c_api."""
    _check_names(options, ModelOptions)
    struct = _c_api.cria_model_options()
    if path is not None:
        struct.path = kept.path(path)
    for name, value in options.items():
        if name in ("pack_folder", "draft_model_path"):
            setattr(struct, name, kept.path(value))
        elif name == "kv_type":
            struct.kv_type = _choose(name, value, KV_TYPES)
        elif name == "packing":
            struct.packing = _choose(name, value, PACKINGS)
        else:
            _set_number(struct, name, value)
    if on_progress is not None:
        struct.on_progress = kept.keep(on_progress)
    if on_notice is not None:
        struct.on_notice = kept.keep(on_notice)
    return struct


def _schema_text(schema: Schema) -> str:
    method: Optional[Callable[[], Any]] = getattr(schema, "model_json_schema", None)
    return json_module.dumps(schema if method is None else method(), ensure_ascii=False)


def _set_constraint(struct: Any, options: Mapping[str, Any], kept: Kept) -> None:
    given = [name for name in CONSTRAINTS if name in options]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be given together")
    for name in given:
        value, text = options[name], ""
        if name == "schema":
            struct.constraint_kind, text = _c_api.CRIA_CONSTRAINT_JSON_SCHEMA, _schema_text(value)
        elif name == "grammar":
            struct.constraint_kind, text = _c_api.CRIA_CONSTRAINT_GRAMMAR, value
        elif name == "regex":
            struct.constraint_kind, text = _c_api.CRIA_CONSTRAINT_REGEX, value
        else:
            struct.constraint_kind = _choose(name, value, JSON_KINDS)
        encoded = text.encode()
        struct.constraint, struct.constraint_bytes = kept.text(encoded), len(encoded)


def _texts(name: str, strings: Sequence[str], kept: Kept) -> Any:
    """An array of cria_text."""
    if isinstance(strings, str):
        raise TypeError(f"{name} is {strings!r}: it must be a sequence of strings")
    texts = kept.array(_c_api.cria_text, len(strings))
    for element, string in zip(texts, strings):
        encoded = string.encode()
        element.text, element.text_bytes = kept.text(encoded), len(encoded)
    return texts


def generation_struct(options: Mapping[str, Any], kept: Kept) -> Any:
    """A cria_generation_options, whose texts and arrays `kept` keeps."""
    _check_names(options, GenerationOptions)
    struct = _c_api.cria_generation_options()
    for name, value in options.items():
        if name == "when_full":
            struct.when_full = _choose(name, value, WHEN_FULL)
        elif name == "stop_strings":
            struct.stop_strings, struct.num_stop_strings = _texts(name, value, kept), len(value)
        elif name == "dry_sequence_breakers":
            struct.dry_sequence_breakers, struct.num_dry_sequence_breakers = _texts(name, value, kept), len(value)
            struct.dry_no_sequence_breakers = int(len(value) == 0)
        elif name == "logit_bias":
            biases = kept.array(_c_api.cria_logit_bias, len(value))
            for element, (token, addend) in zip(biases, value.items()):
                _set_number(element, "token", token)
                _set_number(element, "addend", addend)
            struct.logit_bias, struct.num_logit_bias = biases, len(value)
        elif name not in CONSTRAINTS:
            _set_number(struct, name, value)
    _set_constraint(struct, options, kept)
    return struct


def variables_text(variables: Optional[Mapping[str, Any]]) -> bytes:
    """Variables of the chat template as the C API takes them: a JSON object, or nothing."""
    return json_module.dumps(variables, ensure_ascii=False).encode() if variables else b""
