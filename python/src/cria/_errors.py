"""The exceptions, whose messages are the library's sentences."""

from typing import Dict, Type

from . import _c_api
from ._library import library


class Error(Exception):
    """A call of the library failed. `code` is its status, CRIA_ERROR_... of cria.h."""

    code: int = _c_api.CRIA_ERROR_INTERNAL


class UsageError(Error, ValueError):
    """An argument is wrong, or the call is not allowed now."""

    code = _c_api.CRIA_ERROR_USAGE


class InvalidFileError(Error):
    """The file is damaged, truncated or not a model."""

    code = _c_api.CRIA_ERROR_INVALID_FILE


class UnsupportedError(Error):
    """The file or the option is for another version, model or processor."""

    code = _c_api.CRIA_ERROR_UNSUPPORTED


class NotFoundError(Error):
    """The file does not exist."""

    code = _c_api.CRIA_ERROR_NOT_FOUND


class IoError(Error):
    """Reading or writing failed."""

    code = _c_api.CRIA_ERROR_IO


class OutOfMemoryError(Error, MemoryError):
    """There is too little memory, or a limit forbids it."""

    code = _c_api.CRIA_ERROR_OUT_OF_MEMORY


class OutOfRangeError(Error):
    """A text is too long for the context, or there is no such index."""

    code = _c_api.CRIA_ERROR_OUT_OF_RANGE


class CancelledError(Error):
    """The call was stopped while it read its prompt."""

    code = _c_api.CRIA_ERROR_CANCELLED


class InternalError(Error):
    """A bug in Cria or in a library that it uses."""

    code = _c_api.CRIA_ERROR_INTERNAL


CLASSES: Dict[int, Type[Error]] = {
    kind.code: kind
    for kind in (UsageError, InvalidFileError, UnsupportedError, NotFoundError, IoError, OutOfMemoryError,
                 OutOfRangeError, CancelledError, InternalError)
}


def check(status: int) -> None:
    """Raises the error of a call that failed. The library keeps its sentence for each thread."""
    if status == _c_api.CRIA_OK:
        return
    error = CLASSES.get(status, Error)(library.cria_error_message().decode())
    error.code = status
    raise error
