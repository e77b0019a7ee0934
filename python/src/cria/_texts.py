"""Texts and arrays as the C API takes and returns them."""

import ctypes
import importlib
import os
from array import array
from typing import Any, Callable, Iterator, List, Mapping, Protocol, Sequence, TypeVar, Union

from . import _c_api
from ._errors import UsageError, check

Number = TypeVar("Number", covariant=True)
StrPath = Union[str, "os.PathLike[str]"]


class Array(Protocol[Number]):
    """One row of numbers: a numpy array if numpy is installed, an array.array otherwise."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Number: ...

    def __iter__(self) -> Iterator[Number]: ...


def numbers(values: Any, typecode: str) -> Any:
    """An Array of the values in a ctypes array or a list; `typecode` is that of array.array."""
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return array(typecode, values)
    return numpy.array(values, dtype=typecode)


class Kept:
    """Bytes and arrays that a struct points to, which must live as long as it is used."""

    def __init__(self) -> None:
        self._objects: List[Any] = []

    def text(self, text: bytes) -> Any:
        """The address of the text, which a zero byte follows."""
        pointer = ctypes.c_char_p(text)
        self._objects.append(pointer)
        return ctypes.cast(pointer, ctypes.c_void_p).value

    def path(self, path: StrPath) -> Any:
        """The address of a path; UsageError if it has a zero byte."""
        return self.text(encode_path(path))

    def array(self, element: Any, count: int) -> Any:
        """An array of `count` elements, set to zero."""
        elements = (element * count)()
        self._objects.append(elements)
        return elements

    def keep(self, kept: Any) -> Any:
        """Returns what it is given, after keeping it."""
        self._objects.append(kept)
        return kept


def encode_path(path: StrPath) -> bytes:
    """The bytes of a path; UsageError if one is zero, where the path would end for C."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise UsageError(f"the path {encoded!r} has a zero byte")
    return encoded


def message_array(messages: Sequence[Mapping[str, str]], kept: Kept) -> Any:
    """An array of cria_message; UsageError if a message has anything but `role` and `content`."""
    elements = kept.array(_c_api.cria_message, len(messages))
    for element, message in zip(elements, messages):
        if set(message) != {"role", "content"}:
            raise UsageError(f"a message has the keys {sorted(message)}: it must have role and content alone")
        for name in ("role", "content"):
            text = message[name].encode()
            setattr(element, name, kept.text(text))
            setattr(element, f"{name}_bytes", len(text))
    return elements


def read_text(call: Callable[[Any, int, Any], int]) -> str:
    """The text of a call that takes `text`, `capacity` and `*text_bytes`."""
    size = ctypes.c_size_t()
    check(call(None, 0, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value + 1)
    check(call(buffer, len(buffer), ctypes.byref(size)))
    return buffer.raw[:size.value].decode()
