"""The ctypes declarations of cria.h, which generate_c_api.py wrote: do not change them by hand."""

from ctypes import (CDLL, CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_size_t,
                    c_uint32, c_uint64, c_void_p, sizeof)
from typing import Any, ClassVar, Dict, List, Optional, Tuple

# The version of Cria whose header this is, and the number in the name of its library.
VERSION = "0.1.0"
SO_VERSION = 0

# The constants of the header.
CRIA_OK = 0
CRIA_ERROR_USAGE = 1
CRIA_ERROR_INVALID_FILE = 2
CRIA_ERROR_UNSUPPORTED = 3
CRIA_ERROR_NOT_FOUND = 4
CRIA_ERROR_IO = 5
CRIA_ERROR_OUT_OF_MEMORY = 6
CRIA_ERROR_OUT_OF_RANGE = 7
CRIA_ERROR_CANCELLED = 8
CRIA_ERROR_INTERNAL = 9
CRIA_KV_F32 = 0
CRIA_KV_F16 = 1
CRIA_KV_INT8 = 2
CRIA_KV_MODEL = 3
CRIA_PACK_ON_FIRST_USE = 0
CRIA_PACK_NEVER = 1
CRIA_WHEN_FULL_STOP = 0
CRIA_WHEN_FULL_SHIFT = 1
CRIA_CONSTRAINT_NONE = 0
CRIA_CONSTRAINT_JSON_SCHEMA = 1
CRIA_CONSTRAINT_JSON = 2
CRIA_CONSTRAINT_JSON_OBJECT = 3
CRIA_CONSTRAINT_GRAMMAR = 4
CRIA_CONSTRAINT_REGEX = 5
CRIA_STOP_END = 0
CRIA_STOP_MAX_TOKENS = 1
CRIA_STOP_CONTEXT_FULL = 2
CRIA_STOP_CANCELLED = 3
CRIA_STOP_STRING = 4


class _Versioned(Structure):
    """A struct of the caller's that has its size and the defaults of its ..._INIT."""

    _defaults_: ClassVar[Dict[str, Any]] = {}
    struct_size: int

    def __init__(self) -> None:
        super().__init__()
        self.struct_size = sizeof(self)
        for name, value in self._defaults_.items():
            setattr(self, name, value)


class cria_text(Structure):
    text: Any
    text_bytes: int
    _fields_ = [
        ("text", c_void_p),
        ("text_bytes", c_size_t),
    ]


class cria_message(Structure):
    role: Any
    content: Any
    role_bytes: int
    content_bytes: int
    _fields_ = [
        ("role", c_void_p),
        ("content", c_void_p),
        ("role_bytes", c_size_t),
        ("content_bytes", c_size_t),
    ]


cria_progress_callback = CFUNCTYPE(c_int, c_uint64, c_uint64, c_void_p)


cria_notice_callback = CFUNCTYPE(None, c_void_p, c_void_p)


class cria_model_options(_Versioned):
    path: Any
    pack_folder: Any
    on_progress: Any
    on_notice: Any
    callback_data: Optional[int]
    offset_bytes: int
    length_bytes: int
    memory_limit_bytes: int
    descriptor: int
    num_threads: int
    num_batch_threads: int
    context_tokens: int
    chunk_tokens: int
    kv_type: int
    packing: int
    ignore_memory_limits: int
    num_sequences: int
    reserved: int
    draft_model_path: Any
    draft_ngram_tokens: int
    max_draft_tokens: int
    min_draft_tokens: int
    min_draft_probability: float
    max_constraints: int
    max_temperature_celsius: float
    draft_mtp: int
    reserved_2: int
    _defaults_ = {
        "descriptor": -1,
        "kv_type": CRIA_KV_MODEL,
        "packing": CRIA_PACK_ON_FIRST_USE,
    }
    _fields_ = [
        ("struct_size", c_size_t),
        ("path", c_void_p),
        ("pack_folder", c_void_p),
        ("on_progress", cria_progress_callback),
        ("on_notice", cria_notice_callback),
        ("callback_data", c_void_p),
        ("offset_bytes", c_uint64),
        ("length_bytes", c_uint64),
        ("memory_limit_bytes", c_uint64),
        ("descriptor", c_int32),
        ("num_threads", c_uint32),
        ("num_batch_threads", c_uint32),
        ("context_tokens", c_uint32),
        ("chunk_tokens", c_uint32),
        ("kv_type", c_int32),
        ("packing", c_int32),
        ("ignore_memory_limits", c_int32),
        ("num_sequences", c_uint32),
        ("reserved", c_uint32),
        ("draft_model_path", c_void_p),
        ("draft_ngram_tokens", c_uint32),
        ("max_draft_tokens", c_uint32),
        ("min_draft_tokens", c_uint32),
        ("min_draft_probability", c_float),
        ("max_constraints", c_uint64),
        ("max_temperature_celsius", c_double),
        ("draft_mtp", c_int32),
        ("reserved_2", c_uint32),
    ]


class cria_model_info(_Versioned):
    name: Any
    num_parameters: int
    file_bytes: int
    vocab_size: int
    max_context_tokens: int
    context_tokens: int
    num_threads: int
    num_batch_threads: int
    has_chat_template: int
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_void_p),
        ("num_parameters", c_uint64),
        ("file_bytes", c_uint64),
        ("vocab_size", c_uint32),
        ("max_context_tokens", c_uint32),
        ("context_tokens", c_uint32),
        ("num_threads", c_uint32),
        ("num_batch_threads", c_uint32),
        ("has_chat_template", c_int32),
    ]


class cria_plan_totals(_Versioned):
    private_bytes: int
    mapped_bytes: int
    peak_bytes: int
    address_space_bytes: int
    _fields_ = [
        ("struct_size", c_size_t),
        ("private_bytes", c_uint64),
        ("mapped_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("address_space_bytes", c_uint64),
    ]


class cria_logit_bias(Structure):
    token: int
    addend: float
    _fields_ = [
        ("token", c_int32),
        ("addend", c_float),
    ]


class cria_generation_options(_Versioned):
    seed: int
    max_tokens: int
    when_full: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    repeat_last_n: int
    keep_tokens: int
    parse_special: int
    stop_strings: Any
    num_stop_strings: int
    logit_bias: Any
    num_logit_bias: int
    constraint_kind: int
    reserved: int
    constraint: Any
    constraint_bytes: int
    presence_penalty: float
    frequency_penalty: float
    typical_p: float
    xtc_probability: float
    xtc_threshold: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_no_sequence_breakers: int
    dry_sequence_breakers: Any
    num_dry_sequence_breakers: int
    _defaults_ = {
        "when_full": CRIA_WHEN_FULL_STOP,
        "temperature": 0.8,
        "top_k": 40,
        "top_p": 0.95,
        "min_p": 0.05,
        "repeat_penalty": 1.0,
        "repeat_last_n": 64,
        "keep_tokens": 4,
        "constraint_kind": CRIA_CONSTRAINT_NONE,
    }
    _fields_ = [
        ("struct_size", c_size_t),
        ("seed", c_uint64),
        ("max_tokens", c_uint32),
        ("when_full", c_int32),
        ("temperature", c_float),
        ("top_k", c_uint32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("repeat_last_n", c_uint32),
        ("keep_tokens", c_uint32),
        ("parse_special", c_int32),
        ("stop_strings", POINTER(cria_text)),
        ("num_stop_strings", c_size_t),
        ("logit_bias", POINTER(cria_logit_bias)),
        ("num_logit_bias", c_size_t),
        ("constraint_kind", c_int32),
        ("reserved", c_int32),
        ("constraint", c_void_p),
        ("constraint_bytes", c_size_t),
        ("presence_penalty", c_float),
        ("frequency_penalty", c_float),
        ("typical_p", c_float),
        ("xtc_probability", c_float),
        ("xtc_threshold", c_float),
        ("dry_multiplier", c_float),
        ("dry_base", c_float),
        ("dry_allowed_length", c_uint32),
        ("dry_penalty_last_n", c_uint32),
        ("dry_no_sequence_breakers", c_int32),
        ("dry_sequence_breakers", POINTER(cria_text)),
        ("num_dry_sequence_breakers", c_size_t),
    ]


cria_text_callback = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)


class cria_token(Structure):
    struct_size: int
    text: Any
    text_bytes: int
    log_probability: float
    id: int
    index: int
    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("log_probability", c_double),
        ("id", c_int32),
        ("index", c_uint32),
    ]


cria_token_callback = CFUNCTYPE(c_int, POINTER(cria_token), c_void_p)


cria_prompt_callback = CFUNCTYPE(c_int, c_uint32, c_uint32, c_void_p)


class cria_callbacks(_Versioned):
    on_text: Any
    on_token: Any
    on_prompt: Any
    data: Optional[int]
    _fields_ = [
        ("struct_size", c_size_t),
        ("on_text", cria_text_callback),
        ("on_token", cria_token_callback),
        ("on_prompt", cria_prompt_callback),
        ("data", c_void_p),
    ]


class cria_result(_Versioned):
    first_text_seconds: float
    total_seconds: float
    prompt_tokens_per_second: float
    generated_tokens_per_second: float
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    dropped_tokens: int
    context_used_tokens: int
    stop_reason: int
    draft_gain: float
    drafted_tokens: int
    accepted_tokens: int
    _defaults_ = {
        "stop_reason": CRIA_STOP_END,
    }
    _fields_ = [
        ("struct_size", c_size_t),
        ("first_text_seconds", c_double),
        ("total_seconds", c_double),
        ("prompt_tokens_per_second", c_double),
        ("generated_tokens_per_second", c_double),
        ("prompt_tokens", c_uint32),
        ("reused_tokens", c_uint32),
        ("generated_tokens", c_uint32),
        ("dropped_tokens", c_uint32),
        ("context_used_tokens", c_uint32),
        ("stop_reason", c_int32),
        ("draft_gain", c_double),
        ("drafted_tokens", c_uint32),
        ("accepted_tokens", c_uint32),
    ]


FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "cria_version": (c_char_p, [
    ]),
    "cria_error_message": (c_char_p, [
    ]),
    "cria_model_load": (c_int, [
        POINTER(cria_model_options),
        POINTER(c_void_p),
    ]),
    "cria_model_free": (None, [
        c_void_p,
    ]),
    "cria_model_get_info": (c_int, [
        c_void_p,
        POINTER(cria_model_info),
    ]),
    "cria_model_cancel": (None, [
        c_void_p,
    ]),
    "cria_plan_create": (c_int, [
        POINTER(cria_model_options),
        POINTER(c_void_p),
    ]),
    "cria_plan_free": (None, [
        c_void_p,
    ]),
    "cria_plan_get_totals": (c_int, [
        c_void_p,
        POINTER(cria_plan_totals),
    ]),
    "cria_plan_get_info": (c_int, [
        c_void_p,
        POINTER(cria_model_info),
    ]),
    "cria_plan_num_parts": (c_size_t, [
        c_void_p,
    ]),
    "cria_plan_get_part": (c_char_p, [
        c_void_p,
        c_size_t,
        POINTER(c_uint64),
        POINTER(c_int),
    ]),
    "cria_plan_check": (c_int, [
        c_void_p,
    ]),
    "cria_complete": (c_int, [
        c_void_p,
        c_char_p,
        POINTER(cria_generation_options),
        cria_text_callback,
        c_void_p,
        POINTER(cria_result),
    ]),
    "cria_complete_text": (c_int, [
        c_void_p,
        c_char_p,
        c_size_t,
        POINTER(cria_generation_options),
        POINTER(cria_callbacks),
        POINTER(cria_result),
    ]),
    "cria_get_logits": (c_int, [
        c_void_p,
        c_char_p,
        c_size_t,
        c_int,
        POINTER(cria_callbacks),
        POINTER(c_float),
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_embed": (c_int, [
        c_void_p,
        c_char_p,
        c_size_t,
        POINTER(cria_callbacks),
        POINTER(c_float),
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_chat_create": (c_int, [
        c_void_p,
        c_char_p,
        POINTER(cria_generation_options),
        POINTER(c_void_p),
    ]),
    "cria_chat_create_from_messages": (c_int, [
        c_void_p,
        POINTER(cria_message),
        c_size_t,
        POINTER(cria_generation_options),
        POINTER(c_void_p),
    ]),
    "cria_chat_free": (None, [
        c_void_p,
    ]),
    "cria_chat_set_options": (c_int, [
        c_void_p,
        POINTER(cria_generation_options),
    ]),
    "cria_chat_set_variables": (c_int, [
        c_void_p,
        c_char_p,
        c_size_t,
    ]),
    "cria_chat_send": (c_int, [
        c_void_p,
        c_char_p,
        cria_text_callback,
        c_void_p,
        POINTER(cria_result),
    ]),
    "cria_chat_answer": (c_int, [
        c_void_p,
        POINTER(cria_message),
        POINTER(cria_callbacks),
        POINTER(cria_result),
    ]),
    "cria_chat_regenerate": (c_int, [
        c_void_p,
        POINTER(cria_callbacks),
        POINTER(cria_result),
    ]),
    "cria_chat_save": (c_int, [
        c_void_p,
        c_char_p,
    ]),
    "cria_chat_load": (c_int, [
        c_void_p,
        c_char_p,
        POINTER(cria_generation_options),
        POINTER(c_void_p),
        POINTER(c_int),
    ]),
    "cria_chat_cancel": (None, [
        c_void_p,
    ]),
    "cria_chat_clear_cancel": (None, [
        c_void_p,
    ]),
    "cria_chat_reset": (c_int, [
        c_void_p,
    ]),
    "cria_chat_drop_last_turn": (c_int, [
        c_void_p,
    ]),
    "cria_chat_num_messages": (c_size_t, [
        c_void_p,
    ]),
    "cria_chat_get_message": (c_int, [
        c_void_p,
        c_size_t,
        POINTER(cria_message),
    ]),
    "cria_chat_get_logits": (c_int, [
        c_void_p,
        POINTER(cria_callbacks),
        POINTER(c_float),
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_chat_context_used": (c_uint32, [
        c_void_p,
    ]),
    "cria_chat_has_forgotten": (c_int, [
        c_void_p,
    ]),
    "cria_render_messages": (c_int, [
        c_void_p,
        POINTER(cria_message),
        c_size_t,
        c_char_p,
        c_size_t,
        c_int,
        c_char_p,
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_tokenize": (c_int, [
        c_void_p,
        c_char_p,
        c_int,
        c_int,
        POINTER(c_int32),
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_tokenize_text": (c_int, [
        c_void_p,
        c_char_p,
        c_size_t,
        c_int,
        c_int,
        POINTER(c_int32),
        c_size_t,
        POINTER(c_size_t),
    ]),
    "cria_detokenize": (c_int, [
        c_void_p,
        POINTER(c_int32),
        c_size_t,
        c_char_p,
        c_size_t,
        POINTER(c_size_t),
    ]),
}
STRUCTS: List[Any] = [
    cria_text,
    cria_message,
    cria_model_options,
    cria_model_info,
    cria_plan_totals,
    cria_logit_bias,
    cria_generation_options,
    cria_token,
    cria_callbacks,
    cria_result,
]


def declare(library: CDLL) -> None:
    """Gives the functions of a loaded library their types; AttributeError if it lacks one."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
