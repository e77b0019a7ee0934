"""Tools that a model may call: their definitions, what a required call must match, and the calls in an answer.

Calls are read if they are JSON objects with a name. cria-serve reads the other forms, which the C API does not have.
"""

import inspect
import json
import re
from dataclasses import dataclass
from typing import (Any, Callable, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple, Union,
                    get_args, get_origin, get_type_hints)

from ._errors import UsageError

# A definition in OpenAI's form, {"type": "function", "function": {"name": …}} or its inner object alone; or a function,
# whose type hints and docstring are its definition.
Tool = Union[Mapping[str, Any], Callable[..., Any]]


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for, by the name of a tool that was given."""

    name: str
    # They match the tool's schema if the call was required; otherwise they are what the model wrote.
    arguments: Dict[str, Any]


class Tools:
    """The tools of one call of Model.chat(), and which of them must be called."""

    def __init__(self, tools: Sequence[Tool], choice: str) -> None:
        self.definitions = [_definition(tool) for tool in tools]
        self._functions = {definition["function"]["name"]: definition["function"] for definition in self.definitions}
        if len(self._functions) < len(self.definitions):
            raise UsageError("two tools have the same name")
        self._choice = choice
        if choice not in ("auto", "required", *self._functions):
            raise UsageError(f"tool_choice is {choice!r}, which is not 'auto', 'required' or the name of a tool")

    def schema(self) -> Optional[Dict[str, Any]]:
        """The schema of an answer that must be a call; None if it need not."""
        if self._choice == "auto":
            return None
        functions = [function for name, function in self._functions.items() if self._choice in ("required", name)]
        return {"anyOf": [_call_schema(function) for function in functions]}

    def read_calls(self, text: str) -> Tuple[ToolCall, ...]:
        """The calls in an answer: objects with a name, each behind <tool_call>, or as the whole answer.

        Lists of such objects may stand for them, in a fence of Markdown, too. Objects in other text are no calls.
        """
        marked = re.findall(r"<tool_call>(.*?)(?:</tool_call>|$)", text, re.DOTALL)
        fenced = re.fullmatch(r"\s*```\w*\n(.*?)\n```\s*", text, re.DOTALL)
        parts = marked or [fenced[1] if fenced else text]
        return tuple(call for part in parts for found in _objects(part) for call in self._calls(found))

    def _calls(self, found: Mapping[str, Any]) -> Iterator[ToolCall]:
        name = found.get("name")
        # Llama's word for them is parameters.
        arguments = found.get("arguments", found.get("parameters"))
        if isinstance(name, str) and name in self._functions and isinstance(arguments, dict):
            yield ToolCall(name, arguments)


def _objects(text: str) -> List[Dict[str, Any]]:
    """The objects of a text that is JSON values, one behind the other, also those in lists; none of another text."""
    values: List[Any] = []
    decoder, position = json.JSONDecoder(), 0
    text = text.strip()
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values += value if isinstance(value, list) else [value]
            while text[position:position + 1].isspace():
                position += 1
    except (ValueError, RecursionError):
        return []
    return [value for value in values if isinstance(value, dict)]


def _definition(tool: Tool) -> Dict[str, Any]:
    """The definition as chat templates know it."""
    if not isinstance(tool, Mapping):
        return {"type": "function", "function": _function(tool)}
    function = tool.get("function", tool)
    if tool.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise UsageError("a tool is not of the type function")
    name, parameters = function.get("name"), function.get("parameters", {})
    if not isinstance(name, str) or not name:
        raise UsageError("a tool has no name")
    if not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object":
        raise UsageError(f"parameters of the tool {name!r} are not the JSON Schema of an object")
    return {"type": "function", "function": dict(function)}


def _call_schema(function: Mapping[str, Any]) -> Dict[str, Any]:
    """The schema of a call. With an identifier, references inside the parameters are relative to these."""
    name = function["name"]
    parameters = function.get("parameters") or {"properties": {}, "additionalProperties": False}
    arguments = {"$id": f"tool:{name}", **parameters, "type": "object"}
    return {"type": "object", "properties": {"name": {"const": name}, "arguments": arguments},
            "required": ["name", "arguments"], "additionalProperties": False}


def _function(function: Callable[..., Any]) -> Dict[str, Any]:
    """The definition of a function: its parameters by their type hints, its docstring as the description."""
    name = getattr(function, "__name__", repr(function))
    hints = get_type_hints(function, include_extras=True)
    properties, required = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{name} cannot be a tool: a call has arguments by their names, and {parameter} has none")
        if parameter.name not in hints:
            raise TypeError(f"{name} cannot be a tool: its parameter {parameter.name} has no type hint")
        properties[parameter.name] = _type_schema(hints[parameter.name], f"{name}({parameter.name})")
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"name": name, "description": inspect.getdoc(function) or "",
            "parameters": {"type": "object", "properties": properties, "required": required,
                           "additionalProperties": False}}


_TYPES: Dict[Any, Dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    type(None): {"type": "null"}, list: {"type": "array"}, dict: {"type": "object"}, Any: {},
}


def _type_schema(hint: Any, place: str) -> Dict[str, Any]:
    """The JSON Schema of a type hint; TypeError if JSON has nothing like it."""
    if hint in _TYPES:
        return dict(_TYPES[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    # Annotated[str, "the name of a city"]: a text describes the parameter.
    if hasattr(hint, "__metadata__"):
        texts = [text for text in hint.__metadata__ if isinstance(text, str)]
        return {**_type_schema(hint.__origin__, place), **({"description": " ".join(texts)} if texts else {})}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _type_schema(arguments[0], place)}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], place)}
    # `int | str` has another origin than Union[int, str].
    if origin is Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [_type_schema(argument, place) for argument in arguments]}
    raise TypeError(f"{place} cannot be a parameter of a tool: there is no JSON Schema for {hint}")
