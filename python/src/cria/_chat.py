"""A conversation in the context of a model."""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _c_api
from ._answer import Answer
from ._call import Call, PromptCallback, read_logits
from ._errors import check
from ._handle import Handle
from ._library import library
from ._options import GenerationOptions, generation_struct, variables_text
from ._texts import Array, Kept, StrPath, encode_path, message_array
from ._tools import Tools

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Chat:
    """A conversation, which Model.new_chat() or Model.load_chat() makes.

    It keeps its place in the context of its model until others need the room; then its messages are read again. Only
    one call at a time may use a chat (UsageError), except where a method says that any thread may call it.
    """

    def __init__(self, model: Handle, address: Any, is_context_restored: bool = True) -> None:
        self._model = model
        self._handle = Handle(address, library.cria_chat_free, "chat")
        # False: the keys and values of a saved chat could not be used, and the first answer reads its messages again.
        self.is_context_restored = is_context_restored

    def close(self) -> None:
        """Frees the chat, after it has stopped its answer. Does nothing the second time."""
        self._handle.close()

    def __enter__(self) -> "Chat":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- Answers ----

    def send(self, message: Union[str, Mapping[str, str]], *, log_probabilities: bool = False,
             on_prompt: Optional[PromptCallback] = None) -> Answer:
        """Answers a message and keeps both. A text is a message of the role user.

        Returns an iterator of pieces, as Model.complete() does. If it fails, the chat is as it was before; if it is
        closed, the text so far is kept.
        """
        messages = [{"role": "user", "content": message} if isinstance(message, str) else message]
        kept = Kept()
        array = message_array(messages, kept)

        def function(addresses: Sequence[Any], callbacks: Any, result: Any) -> int:
            # `kept` lives as long as this function.
            status: int = library.cria_chat_answer(addresses[1], kept.keep(array), callbacks, result)
            return status

        return self._answer(function, log_probabilities, on_prompt)

    def answer(self, *, log_probabilities: bool = False, on_prompt: Optional[PromptCallback] = None) -> Answer:
        """Answers the last message, which must not be an answer."""
        return self._answer_last(log_probabilities, on_prompt, lambda: None)

    def _answer_last(self, log_probabilities: bool, on_prompt: Optional[PromptCallback],
                     end: Callable[[], None], tools: Optional[Tools] = None) -> Answer:
        return self._answer(lambda addresses, callbacks, result: library.cria_chat_answer(
            addresses[1], None, callbacks, result), log_probabilities, on_prompt, end, tools)

    def regenerate(self, *, log_probabilities: bool = False, on_prompt: Optional[PromptCallback] = None) -> Answer:
        """Replaces the answer at the end by another one, with the next random numbers."""
        return self._answer(lambda addresses, callbacks, result: library.cria_chat_regenerate(
            addresses[1], callbacks, result), log_probabilities, on_prompt)

    def _answer(self, function: Any, log_probabilities: bool, on_prompt: Optional[PromptCallback],
                end: Callable[[], None] = lambda: None, tools: Optional[Tools] = None) -> Answer:
        return Answer(Call([self._model, self._handle], function, log_probabilities, on_prompt, tools), end)

    def cancel(self) -> None:
        """Stops the answer under way or, if there is none, every following one until clear_cancel(). Any thread."""
        with self._handle.use() as address:
            library.cria_chat_cancel(address)

    def clear_cancel(self) -> None:
        """Lets the next calls run again. Any thread."""
        with self._handle.use() as address:
            library.cria_chat_clear_cancel(address)

    # ---- Options ----

    def set_options(self, **options: "Unpack[GenerationOptions]") -> None:
        """Sets the options from the next message on; those that are not given have their defaults."""
        kept = Kept()
        struct = generation_struct(options, kept)
        with self._handle.use() as address:
            check(library.cria_chat_set_options(address, ctypes.byref(struct)))

    def set_variables(self, variables: Optional[Mapping[str, Any]]) -> None:
        """Sets variables of the chat template from the next message on, such as `tools`; None for none."""
        encoded = variables_text(variables)
        with self._handle.use() as address:
            check(library.cria_chat_set_variables(address, encoded, len(encoded)))

    # ---- Messages ----

    @property
    def messages(self) -> List[Dict[str, str]]:
        """The messages that were not dropped from a full context."""
        found = []
        with self._handle.use() as address:
            for index in range(library.cria_chat_num_messages(address)):
                message = _c_api.cria_message()
                check(library.cria_chat_get_message(address, index, ctypes.byref(message)))
                found.append({"role": ctypes.string_at(message.role, message.role_bytes).decode(),
                              "content": ctypes.string_at(message.content, message.content_bytes).decode()})
        return found

    def reset(self) -> None:
        """Drops everything except the system prompt."""
        with self._handle.use() as address:
            check(library.cria_chat_reset(address))

    def drop_last_turn(self) -> None:
        """Drops the last message of the user, and everything after it."""
        with self._handle.use() as address:
            check(library.cria_chat_drop_last_turn(address))

    def save(self, path: StrPath) -> None:
        """Writes the messages, variables, keys and values to a file, for Model.load_chat().

        Raises IoError if it cannot be written.
        """
        with self._model.use(), self._handle.use() as address:
            check(library.cria_chat_save(address, encode_path(path)))

    # ---- The context ----

    def logits(self, *, on_prompt: Optional[PromptCallback] = None) -> Array[float]:
        """The logits of the token after the messages: float32 of shape [vocab_size].

        Unless the last message is an answer, they are those of the first token of one.
        """
        return read_logits([self._model, self._handle], lambda addresses, callbacks, *logits: (
            library.cria_chat_get_logits(addresses[1], callbacks, *logits)), on_prompt)

    @property
    def context_used(self) -> int:
        """The tokens that the chat takes in the context, as of its last piece of text. Any thread."""
        with self._handle.use() as address:
            used: int = library.cria_chat_context_used(address)
            return used

    @property
    def has_forgotten(self) -> bool:
        """Whether turns were dropped from a full context."""
        with self._handle.use() as address:
            return bool(library.cria_chat_has_forgotten(address))
