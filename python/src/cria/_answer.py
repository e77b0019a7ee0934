"""An answer that is being generated."""

from typing import Callable, Iterator, Optional, Union

from ._call import Call
from ._errors import CancelledError
from ._results import Result


class Answer(Iterator[str]):
    """The pieces of an answer, and then its result.

    Nothing runs before the first piece is asked for. Iterating generates piece by piece, whole characters each: the
    model waits after each piece until the next one is asked for, so that an answer that is closed ends with the piece
    that was seen last. read() generates the whole answer without waiting.

    An answer that has begun takes one of the model's sequences until it ends or is closed. Only one thread may iterate;
    any thread may call cancel().
    """

    def __init__(self, call: Call, end: Callable[[], None]) -> None:
        self._call = call
        # Called once, at the end.
        self._end = end
        self._has_begun = False
        self._has_ended = False
        self._result: Optional[Result] = None

    @property
    def text(self) -> str:
        """The text so far."""
        return self._call.text()

    @property
    def result(self) -> Optional[Result]:
        """The result, after the last piece; None before it, and if the answer failed."""
        return self._result

    def __iter__(self) -> "Answer":
        return self

    def __next__(self) -> str:
        """The next piece of the text; raises an Error if generating it fails."""
        if self._has_ended:
            raise StopIteration
        said = self._advance(waits=True)
        if said is None:
            raise StopIteration
        return said

    def read(self) -> Result:
        """The result of the whole answer, after what is left of it is generated.

        Raises an Error if generating it fails or has failed.
        """
        if not self._has_ended:
            self._advance(waits=False)
        if self._result is None:
            raise CancelledError("the answer was closed or failed before it had a result")
        return self._result

    def cancel(self) -> None:
        """Ends the answer after its next piece, with finish_reason "cancelled". Any thread may call it.

        If the prompt is still being read, the thread that waits for the answer gets CancelledError.
        """
        self._call.stop()

    def close(self) -> None:
        """Ends the answer with the piece that was seen last, and waits until its sequence is free."""
        if not self._has_begun:
            self._has_begun = True
            self._finish()
        if self._has_ended:
            return
        self._call.stop()
        try:
            while self._receive() is not None:
                pass
        except CancelledError:
            pass
        finally:
            self._finish()

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Does not wait, because the garbage collector may run in any thread.
        if getattr(self, "_has_begun", False) and not self._has_ended:
            self._call.stop()

    def _advance(self, waits: bool) -> Optional[str]:
        """Lets the call run to the next piece or, unless it waits, to its end. Returns the piece; None at the end."""
        # A signal may interrupt each line.
        try:
            if self._has_begun:
                self._call.go_on(waits)
            else:
                self._has_begun = True
                self._call.begin(self._call.run, waits)
            return self._receive()
        except BaseException:
            self._call.stop()
            self._finish()
            raise

    def _receive(self) -> Optional[str]:
        said: Union[str, Result] = self._call.next()
        if isinstance(said, str):
            return said
        self._result = said
        self._finish()
        return None

    def _finish(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._end()
