"""Finds and loads the shared library."""

import ctypes
import os
from typing import Tuple

from . import _c_api

NAME = f"libcria.so.{_c_api.SO_VERSION}"


def _candidates() -> Tuple[str, ...]:
    """Where the library may be, first choice first."""
    given = os.environ.get("CRIA_LIBRARY")
    if given:
        return (given,)
    in_wheel = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", NAME)
    # The system's loader looks for a name without a folder.
    return (in_wheel, NAME) if os.path.exists(in_wheel) else (NAME,)


def load() -> ctypes.CDLL:
    """Loads the library that CRIA_LIBRARY names, that of the wheel, or the system's, in this order.

    Raises ImportError if there is none or if it is older than this package.
    """
    reasons = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            _c_api.declare(library)
        except AttributeError as error:
            raise ImportError(
                f"{path} is older than this package, which is for Cria {_c_api.VERSION}: {error}") from None
        return library
    raise ImportError(
        f"there is no {NAME}: install Cria's library (the Debian package is libcria{_c_api.SO_VERSION}), or set "
        f"CRIA_LIBRARY to its path ({'; '.join(reasons)})")


library = load()
