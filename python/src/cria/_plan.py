"""The memory that a model would take."""

import ctypes
from typing import TYPE_CHECKING, Any, Mapping, Optional

from . import _c_api
from ._errors import Error, check
from ._library import library
from ._options import ModelOptions, model_struct
from ._results import Part, Plan, make_info
from ._texts import Kept, StrPath

if TYPE_CHECKING:
    from typing_extensions import Unpack


def plan(path: Optional[StrPath] = None, **options: "Unpack[ModelOptions]") -> Plan:
    """The memory that loading a model would take, from its metadata alone.

    Takes the arguments of Model. Raises an Error if the file is no model; whether the model fits is in the plan, which
    Plan.check() tells.
    """
    return make_plan(path, options)


def make_plan(path: Optional[StrPath], options: Mapping[str, Any]) -> Plan:
    """The plan of a model with these options."""
    kept = Kept()
    struct = model_struct(path, options, None, None, kept)
    address = ctypes.c_void_p()
    check(library.cria_plan_create(ctypes.byref(struct), ctypes.byref(address)))
    try:
        totals, info = _c_api.cria_plan_totals(), _c_api.cria_model_info()
        check(library.cria_plan_get_totals(address, ctypes.byref(totals)))
        check(library.cria_plan_get_info(address, ctypes.byref(info)))
        parts = tuple(_read_part(address, index) for index in range(library.cria_plan_num_parts(address)))
        refusal: Optional[Error] = None
        try:
            check(library.cria_plan_check(address))
        except Error as error:
            refusal = error
        numbers = {name: getattr(totals, name) for name, *_ in totals._fields_ if name != "struct_size"}
        return Plan(parts=parts, info=make_info(info), refusal=refusal, **numbers)
    finally:
        library.cria_plan_free(address)


def _read_part(address: Any, index: int) -> Part:
    size, is_mapped = ctypes.c_uint64(), ctypes.c_int()
    name = library.cria_plan_get_part(address, index, ctypes.byref(size), ctypes.byref(is_mapped))
    return Part(name.decode(), size.value, bool(is_mapped.value))
