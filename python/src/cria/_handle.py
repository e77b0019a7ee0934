"""Objects of the library, which are freed once, after the calls that use them."""

import atexit
import threading
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from ._errors import UsageError


class Stoppable:
    """A call that another thread may stop."""

    def stop(self) -> None:
        """Makes the call end soon. Does not wait for this."""
        raise NotImplementedError


class Handle:
    """The address of an object of the library. `what` is its name in sentences."""

    def __init__(self, address: Any, free: Callable[[Any], Any], what: str) -> None:
        self._address: Optional[Any] = address
        self._free = free
        self._what = what
        self._changed = threading.Condition()
        self._threads: List[int] = []
        self._calls: List[Stoppable] = []
        _open_handles.add(self)

    @contextmanager
    def use(self, call: Optional[Stoppable] = None) -> Iterator[Any]:
        """The address, which stays valid inside a `with`. `call` is what close() stops."""
        me = threading.get_ident()
        with self._changed:
            if self._address is None or _python_ends.is_set():
                raise UsageError(f"the {self._what} is closed")
            address = self._address
            self._threads.append(me)
            if call is not None:
                self._calls.append(call)
        try:
            yield address
        finally:
            with self._changed:
                self._threads.remove(me)
                if call is not None:
                    self._calls.remove(call)
                self._changed.notify_all()

    def check_no_callback(self, act: str) -> None:
        """Raises UsageError in a callback of a call that uses the object: the act would wait for that call."""
        with self._changed:
            if threading.get_ident() in self._threads:
                raise UsageError(f"the {self._what} is in use: a callback must not {act} it")

    def stop_calls(self) -> None:
        """Stops the calls under way and waits until they have ended, but for one of this thread."""
        me = threading.get_ident()
        with self._changed:
            calls = list(self._calls)
        for call in calls:
            call.stop()
        with self._changed:
            self._changed.wait_for(lambda: all(thread == me for thread in self._threads))

    def close(self) -> None:
        """Frees the object after it has stopped the calls that use it. Does nothing the second time.

        Raises UsageError in a callback of such a call.
        """
        self.check_no_callback("close")
        with self._changed:
            address, self._address = self._address, None
        self.stop_calls()
        if address is not None:
            self._free(address)

    def __del__(self) -> None:
        # A call that uses the object has a reference to the handle.
        if getattr(self, "_address", None) is not None:
            self._free(self._address)


_open_handles: "weakref.WeakSet[Handle]" = weakref.WeakSet()
_python_ends = threading.Event()


@atexit.register
def _stop_all_calls() -> None:
    # A thread that came back from the library after the interpreter has ended would be unwound inside the library.
    _python_ends.set()
    for handle in list(_open_handles):
        handle.stop_calls()
