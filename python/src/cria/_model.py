"""A loaded model."""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence

from . import _c_api
from ._answer import Answer
from ._call import Call, PromptCallback, read_logits
from ._chat import Chat
from ._errors import UnsupportedError, UsageError, check
from ._handle import Handle
from ._library import library
from ._options import (CONSTRAINTS, GenerationOptions, ModelOptions, generation_struct, model_struct,
                       variables_text)
from ._plan import make_plan
from ._results import ModelInfo, Plan, make_info
from ._texts import Array, Kept, StrPath, encode_path, message_array, read_text
from ._tools import Tool, Tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

ProgressCallback = Callable[[int, int], object]
NoticeCallback = Callable[[str], object]


class Model:
    """A model with its context: the KV cache, whose size is fixed at loading.

    Any thread may call its methods. As many calls as num_sequences generate at the same time, without Python's lock;
    others wait for their turn. A callback must not generate with the same model (UsageError).
    """

    def __init__(self, path: Optional[StrPath] = None, *, on_progress: Optional[ProgressCallback] = None,
                 on_notice: Optional[NoticeCallback] = None, **options: "Unpack[ModelOptions]") -> None:
        """Loads a model file, which takes milliseconds if its weights are packed.

        Without a path, `descriptor` is the open file. `on_progress(done_bytes, total_bytes)` is called while weights
        are packed; `on_notice(sentence)` tells what may be worth knowing. What they raise stops the loading.
        Raises NotFoundError, InvalidFileError, UnsupportedError, OutOfMemoryError, IoError, or UsageError.
        """
        self._plan_arguments = (path, dict(options))
        kept = Kept()
        callbacks = _LoadCallbacks(on_progress, on_notice)
        struct = model_struct(path, options, callbacks.on_progress, callbacks.on_notice, kept)
        address = ctypes.c_void_p()
        status = library.cria_model_load(ctypes.byref(struct), ctypes.byref(address))
        if callbacks.failure is not None:
            library.cria_model_free(address)
            raise callbacks.failure
        check(status)
        self._handle = Handle(address, library.cria_model_free, "model")

    def close(self) -> None:
        """Frees the model, after it has stopped the calls under way. Does nothing the second time."""
        self._handle.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def info(self) -> ModelInfo:
        """What the model is, and how it was loaded."""
        info = _c_api.cria_model_info()
        with self._handle.use() as address:
            check(library.cria_model_get_info(address, ctypes.byref(info)))
            return make_info(info)

    @property
    def plan(self) -> Plan:
        """The memory that the model takes, as cria.plan() computes it from the same arguments."""
        path, options = self._plan_arguments
        return make_plan(path, options)

    def cancel(self) -> None:
        """Stops the calls that read prompts or generate with this model. Any thread may call it."""
        with self._handle.use() as address:
            library.cria_model_cancel(address)

    # ---- Generating ----

    def complete(self, prompt: str, *, log_probabilities: bool = False, on_prompt: Optional[PromptCallback] = None,
                 **options: "Unpack[GenerationOptions]") -> Answer:
        """Continues a text: an iterator of pieces, whose read() returns the whole as a Result.

        With log_probabilities, Result.tokens has each token. `on_prompt(done_tokens, total_tokens)` is called while the
        prompt is read; what it raises ends the call. Raises UsageError if an option is wrong, when the answer begins;
        iterating raises OutOfRangeError if the prompt does not fit into the context.
        """
        kept = Kept()
        struct = generation_struct(options, kept)
        text = prompt.encode()

        def function(addresses: Sequence[Any], callbacks: Any, result: Any) -> int:
            # `kept` lives as long as this function.
            status: int = library.cria_complete_text(addresses[0], text, len(text), ctypes.byref(kept.keep(struct)),
                                                     callbacks, result)
            return status

        return Answer(Call([self._handle], function, log_probabilities, on_prompt), lambda: None)

    def chat(self, messages: Sequence[Mapping[str, str]], *, tools: Optional[Sequence[Tool]] = None,
             tool_choice: str = "auto", variables: Optional[Mapping[str, Any]] = None,
             log_probabilities: bool = False, on_prompt: Optional[PromptCallback] = None,
             **options: "Unpack[GenerationOptions]") -> Answer:
        """Answers the last message of a conversation: an iterator of pieces, whose read() returns the whole.

        Each message has a `role` and a `content`. `variables` are those of the chat template, such as
        `enable_thinking`. Other arguments and errors are those of complete(), but wrong options raise at once. What the
        context still holds of earlier calls is not read again.

        `tools` are definitions in OpenAI's form, or functions with type hints, which are not called: Result.calls has
        what the model asks for. With the `tool_choice` "required" or the name of a tool, the answer is one call, which
        needs a model with max_constraints. Raises UnsupportedError if the chat template shows no tools.
        """
        chosen = Tools(tools, tool_choice) if tools else None
        if chosen is not None:
            if variables and "tools" in variables:
                raise UsageError("tools cannot be given as a variable of the template, too")
            variables = {**(variables or {}), "tools": chosen.definitions}
            options = self._with_call(messages, variables, chosen, options)
        chat = self.new_chat(messages, variables=variables, **options)
        return chat._answer_last(log_probabilities, on_prompt, chat.close, chosen)

    def _with_call(self, messages: Sequence[Mapping[str, str]], variables: Mapping[str, Any], tools: Tools,
                   options: "GenerationOptions") -> "GenerationOptions":
        """The options of an answer with tools, after a check that the model sees these."""
        without = {name: value for name, value in variables.items() if name != "tools"}
        if self.render(messages, variables=variables) == self.render(messages, variables=without):
            raise UnsupportedError("the chat template of this model shows no tools: describe them in a message, and "
                                   "give the form of a call as `schema`")
        schema = tools.schema()
        if schema is None:
            return options
        if given := [name for name in CONSTRAINTS if name in options]:
            raise UsageError(f"{given[0]} cannot be given together with a tool_choice that requires a call")
        return {**options, "schema": schema}

    def new_chat(self, messages: Sequence[Mapping[str, str]] = (), *, variables: Optional[Mapping[str, Any]] = None,
                 **options: "Unpack[GenerationOptions]") -> Chat:
        """A conversation that goes on from these messages, of which those of the role system come first.

        Raises UsageError if an option or a variable is wrong.
        """
        kept = Kept()
        array = message_array(messages, kept)
        struct = generation_struct(options, kept)
        chat = ctypes.c_void_p()
        with self._handle.use() as address:
            check(library.cria_chat_create_from_messages(address, array, len(messages), ctypes.byref(struct),
                                                         ctypes.byref(chat)))
        made = Chat(self._handle, chat)
        if variables:
            made.set_variables(variables)
        return made

    def load_chat(self, path: StrPath, **options: "Unpack[GenerationOptions]") -> Chat:
        """A conversation that goes on where Chat.save() wrote it to a file.

        Raises UnsupportedError if the file is of another model, InvalidFileError if it is damaged, NotFoundError if
        there is none.
        """
        kept = Kept()
        struct = generation_struct(options, kept)
        chat, is_restored = ctypes.c_void_p(), ctypes.c_int()
        with self._handle.use() as address:
            check(library.cria_chat_load(address, encode_path(path), ctypes.byref(struct), ctypes.byref(chat),
                                         ctypes.byref(is_restored)))
        return Chat(self._handle, chat, bool(is_restored.value))

    def logits(self, prompt: str, *, parse_special: bool = False,
               on_prompt: Optional[PromptCallback] = None) -> Array[float]:
        """The logits of the token after a prompt: float32 of shape [vocab_size].

        Raises OutOfRangeError if the prompt does not fit into the context.
        """
        text = prompt.encode()

        return read_logits([self._handle], lambda addresses, callbacks, *logits: library.cria_get_logits(
            addresses[0], text, len(text), int(parse_special), callbacks, *logits), on_prompt)

    def embed(self, texts: Sequence[str], *, on_prompt: Optional[PromptCallback] = None) -> List[Array[float]]:
        """The embedding of each text: float32 of shape [hidden_size], with a Euclidean norm of 1.

        Calls of several threads run their texts together. `on_prompt(done_tokens, total_tokens)` is called while a text
        is read; what it raises ends the call. Raises OutOfRangeError if a text does not fit into the context.
        """
        return [self._embed(text.encode(), on_prompt) for text in texts]

    def _embed(self, text: bytes, on_prompt: Optional[PromptCallback]) -> Array[float]:
        return read_logits([self._handle], lambda addresses, callbacks, *embedding: library.cria_embed(
            addresses[0], text, len(text), callbacks, *embedding), on_prompt)

    # ---- Texts and tokens ----

    def render(self, messages: Sequence[Mapping[str, str]], *, variables: Optional[Mapping[str, Any]] = None,
               add_generation_prompt: bool = True) -> str:
        """What the chat template makes of messages, without running the model."""
        kept = Kept()
        array = message_array(messages, kept)
        encoded = variables_text(variables)
        with self._handle.use() as address:
            return read_text(lambda text, capacity, size: library.cria_render_messages(
                address, array, len(messages), encoded, len(encoded), int(add_generation_prompt), text, capacity, size))

    def tokenize(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> List[int]:
        """The tokens of a text.

        With add_special, they begin with the BOS token if the model wants it; with parse_special, <|eot_id|> and the
        like are read as the tokens that they name.
        """
        encoded = text.encode()
        count = ctypes.c_size_t()
        with self._handle.use() as address:
            def call(tokens: Any, capacity: int) -> None:
                check(library.cria_tokenize_text(address, encoded, len(encoded), int(add_special), int(parse_special),
                                                 tokens, capacity, ctypes.byref(count)))

            call(None, 0)
            tokens = (ctypes.c_int32 * count.value)()
            call(tokens, count.value)
        return list(tokens)

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of tokens. Control tokens, and numbers that are no tokens, have none."""
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        with self._handle.use() as address:
            return read_text(lambda text, capacity, size: library.cria_detokenize(
                address, array, len(tokens), text, capacity, size))


class _LoadCallbacks:
    """What is told while a model is loaded. No exception may pass through the library."""

    def __init__(self, on_progress: Optional[ProgressCallback], on_notice: Optional[NoticeCallback]) -> None:
        self.failure: Optional[BaseException] = None

        def progress(done_bytes: int, total_bytes: int, _data: Any) -> int:
            self._call(on_progress, done_bytes, total_bytes)
            return int(self.failure is not None)

        def notice(sentence: int, _data: Any) -> None:
            self._call(on_notice, ctypes.string_at(sentence).decode())

        # Packing takes seconds, which Ctrl-C may interrupt, so that there is always a function.
        self.on_progress = _c_api.cria_progress_callback(progress)
        self.on_notice = _c_api.cria_notice_callback(notice)

    def _call(self, function: Optional[Callable[..., object]], *arguments: Any) -> None:
        try:
            if function is not None and self.failure is None:
                function(*arguments)
        except BaseException as error:
            self.failure = error
