"""One call that runs the model: its callbacks, what they were told, and its thread."""

import ctypes
import queue
import threading
from contextlib import ExitStack
from typing import Any, Callable, List, Optional, Sequence

from . import _c_api
from ._errors import check
from ._handle import Handle, Stoppable
from ._results import Result, Tokens, make_result
from ._texts import Array, numbers
from ._tools import Tools

PromptCallback = Callable[[int, int], object]
# Calls a function of the library with the addresses of the handles, the callbacks and where the result goes. Returns
# its status.
Function = Callable[..., int]


class Call(Stoppable):
    """Calls `function` in a thread of its own.

    Signals interrupt Python's main thread, and a KeyboardInterrupt could not leave a callback there. So that thread,
    like any other, waits for what the call's thread says.
    """

    def __init__(self, handles: Sequence[Handle], function: Function, log_probabilities: bool,
                 on_prompt: Optional[PromptCallback], tools: Optional[Tools] = None) -> None:
        self._handles = handles
        self._tools = tools
        self._function = function
        self._on_prompt = on_prompt
        self._log_probabilities = log_probabilities
        self._pieces: List[str] = []
        self._ids: List[int] = []
        self._token_log_probabilities: List[float] = []
        self._token_texts: List[str] = []
        self._failure: Optional[BaseException] = None
        self._stops = False
        self._waits = False
        self._goes_on = threading.Semaphore(0)
        # Pieces, if the call waits after each, and then what its task returned or raised.
        self._said: "queue.SimpleQueue[Any]" = queue.SimpleQueue()

    def stop(self) -> None:
        """Ends the call at its next piece of text or of the prompt."""
        self._stops = True
        self._goes_on.release()

    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def run(self) -> Result:
        """Calls the function and returns its result; raises what it or a callback raised."""
        result = _c_api.cria_result()
        self.invoke(ctypes.byref(result))
        tokens = None
        if self._log_probabilities:
            tokens = Tokens(numbers(self._ids, "i"), numbers(self._token_log_probabilities, "d"),
                            tuple(self._token_texts))
        text = self.text()
        return make_result(result, text, tokens, self._tools.read_calls(text) if self._tools is not None else ())

    def invoke(self, *result: Any) -> None:
        """Calls the function, which writes its result to these arguments."""
        callbacks = _c_api.cria_callbacks()
        callbacks.on_text = _c_api.cria_text_callback(self._take_text)
        callbacks.on_prompt = _c_api.cria_prompt_callback(self._take_progress)
        if self._log_probabilities:
            callbacks.on_token = _c_api.cria_token_callback(self._take_token)
        with ExitStack() as stack:
            addresses = [stack.enter_context(handle.use(self)) for handle in self._handles]
            status = self._function(addresses, ctypes.byref(callbacks), *result)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            check(status)

    def begin(self, task: Callable[[], Any], waits: bool) -> None:
        """Starts a thread that does the task. With `waits`, it waits after each piece until go_on() is called."""
        for handle in self._handles:
            handle.check_no_callback("generate with")
        self._waits = waits

        def say() -> None:
            try:
                self._said.put(task())
            except BaseException as error:
                self._said.put(error)

        # A daemon, because Python would wait for another thread before it stops the calls under way.
        threading.Thread(target=say, name="cria", daemon=True).start()

    def next(self) -> Any:
        """Waits for the next piece, or for what the task returned. Raises what it raised."""
        said = self._said.get()
        if isinstance(said, BaseException):
            raise said
        return said

    def go_on(self, waits: bool) -> None:
        """Lets the call go on after a piece, to the next one or to its end."""
        self._waits = waits
        self._goes_on.release()

    # No exception may pass through the library: run() raises it afterwards.
    def _guard(self, callback: Callable[[], object]) -> int:
        try:
            callback()
        except BaseException as error:
            self._failure = error
            return 1
        return int(self._stops)

    def _take_text(self, text: int, text_bytes: int, _data: Any) -> int:
        def take() -> None:
            piece = ctypes.string_at(text, text_bytes).decode()
            self._pieces.append(piece)
            if self._waits and not self._stops:
                self._said.put(piece)
                self._goes_on.acquire()
        return self._guard(take)

    def _take_token(self, told: Any, _data: Any) -> int:
        def take() -> None:
            token = told.contents
            self._ids.append(token.id)
            self._token_log_probabilities.append(token.log_probability)
            self._token_texts.append(ctypes.string_at(token.text, token.text_bytes).decode())
        return self._guard(take)

    def _take_progress(self, done_tokens: int, total_tokens: int, _data: Any) -> int:
        def take() -> None:
            if self._on_prompt is not None:
                self._on_prompt(done_tokens, total_tokens)
        return self._guard(take)


def read_logits(handles: Sequence[Handle], function: Function, on_prompt: Optional[PromptCallback]) -> Array[float]:
    """The logits that a function writes to an array of its `capacity`, and whose number it tells without one."""
    call = Call(handles, function, False, on_prompt)
    count = ctypes.c_size_t()
    call.invoke(None, 0, ctypes.byref(count))
    logits = (ctypes.c_float * count.value)()
    call.begin(lambda: call.invoke(logits, count.value, ctypes.byref(count)), waits=False)
    try:
        call.next()
    except KeyboardInterrupt:
        call.stop()
        raise
    row: Array[float] = numbers(logits, "f")
    return row
