"""Tools: their definitions, required calls, and the calls that are read in an answer."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Callable, Dict, Iterator, List, Literal, Optional, Union

import pytest
from conftest import QUESTION

import cria
from cria._tools import Tools


def get_weather(city: Annotated[str, "the name of a city"], unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city now."""
    return f"warm in {city}: 20 {unit}"


ADD: Dict[str, Any] = {"type": "function", "function": {
    "name": "add", "description": "Add two numbers", "parameters": {
        "type": "object", "properties": {"a": {"$ref": "#/$defs/digit"}, "b": {"$ref": "#/$defs/digit"}},
        "required": ["a", "b"], "additionalProperties": False,
        "$defs": {"digit": {"type": "integer", "minimum": 1, "maximum": 9}}}}}


@pytest.fixture(name="tools_model", scope="module")
def fixture_tools_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cria.Model]:
    """The demo model with a chat template that shows tools."""
    with cria.Model(os.environ["CRIA_TEST_TOOLS_MODEL"], num_threads=1, max_constraints=1,
                    pack_folder=tmp_path_factory.mktemp("packed")) as model:
        yield model


def definition_of(tool: cria.Tool) -> Dict[str, Any]:
    [definition] = Tools([tool], "auto").definitions
    function: Dict[str, Any] = definition["function"]
    return function


def test_a_function_is_its_definition() -> None:
    assert definition_of(get_weather) == {
        "name": "get_weather", "description": "The weather in a city now.", "parameters": {
            "type": "object", "required": ["city"], "additionalProperties": False, "properties": {
                "city": {"type": "string", "description": "the name of a city"}, "unit": {"enum": ["C", "F"]}}}}


def test_type_hints_are_schemas() -> None:
    def tool(number: float, flag: bool, names: List[str], sizes: Dict[str, int], either: Union[int, str],
             anything: Any, items: list, fields: dict,  # type: ignore[type-arg]
             perhaps: Optional[int] = None) -> None:
        pass

    parameters = definition_of(tool)["parameters"]
    assert parameters["properties"] == {
        "number": {"type": "number"}, "flag": {"type": "boolean"},
        "names": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "anything": {}, "items": {"type": "array"},
        "fields": {"type": "object"}, "perhaps": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    assert "perhaps" not in parameters["required"] and len(parameters["required"]) == 8


@pytest.mark.skipif(sys.version_info < (3, 10), reason="X | Y is newer")
def test_a_union_may_have_a_bar() -> None:
    def tool(value: "int | None") -> None:
        pass

    assert definition_of(tool)["parameters"]["properties"] == {
        "value": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}


def test_wrong_functions_are_refused() -> None:
    def untyped(value):  # type: ignore[no-untyped-def]
        return value

    def variadic(*values: int) -> None:
        pass

    def unknown(path: Path) -> None:
        pass

    wrong: List["tuple[Callable[..., Any], str]"] = [
        (untyped, "untyped cannot be a tool: its parameter value has no type hint"),
        (variadic, "a call has arguments by their names, and .*values: int has none"),
        (unknown, r"unknown\(path\) cannot be a parameter of a tool: there is no JSON Schema for .*Path")]
    for function, sentence in wrong:
        with pytest.raises(TypeError, match=sentence):
            Tools([function], "auto")


def test_wrong_definitions_are_refused() -> None:
    for tools, choice, sentence in (
            ([{"type": "web_search"}], "auto", "not of the type function"),
            ([{"type": "function", "function": "add"}], "auto", "not of the type function"),
            ([{"description": "?"}], "auto", "has no name"),
            ([{"name": "add", "parameters": {"type": "array"}}], "auto", "'add' are not the JSON Schema of an object"),
            ([ADD, {"name": "add"}], "auto", "the same name"),
            ([ADD], "none", "'none', which is not 'auto', 'required' or the name of a tool")):
        with pytest.raises(cria.UsageError, match=sentence):
            Tools(tools, choice)


def test_calls_are_read() -> None:
    call = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    one = [cria.ToolCall("add", {"a": 1, "b": 2})]
    tools = Tools([ADD, get_weather], "auto")
    for text, calls in (
            (call, one),
            (call.replace("arguments", "parameters"), one),
            (f"```json\n{call}\n```", one),
            (f"[{call}, {call}]", one * 2),
            (f"{call}\n{call}\n", one * 2),
            (f"I add.\n<tool_call>\n{call}\n</tool_call>\n<tool_call>\n{call}\n</tool_call>", one * 2),
            (f"<tool_call>\n{call}", one),
            (f"<tool_call>\nnone\n</tool_call>\n<tool_call>{call}</tool_call>", one),
            # No calls: text, other names, and what is damaged.
            (f"So it is: {call}", []),
            (call.replace("add", "subtract"), []),
            ('{"name": ["add"], "arguments": {}}', []),
            ('{"name": "add", "arguments": "a=1"}', []),
            ('{"name": "add"}', []),
            (call[:-1], []),
            (f"{call} So it is.", []),
            ("[" * 100000, []),
            ('"add"', []),
            ("", [])):
        assert list(tools.read_calls(text)) == calls, text


def test_a_required_call_matches_its_schema(tools_model: cria.Model) -> None:
    for seed in range(4):
        result = tools_model.chat(QUESTION, tools=[ADD, get_weather], tool_choice="required", seed=seed,
                                  temperature=2.0).read()
        [call] = result.calls
        assert json.loads(result.text) == {"name": call.name, "arguments": call.arguments}
        if call.name == "add":
            assert set(call.arguments) == {"a", "b"} and all(1 <= digit <= 9 for digit in call.arguments.values())
        else:
            assert get_weather(**call.arguments).startswith("warm in ")


def test_a_tool_may_be_named(tools_model: cria.Model) -> None:
    for name in ("add", "get_weather"):
        result = tools_model.chat(QUESTION, tools=[ADD, get_weather], tool_choice=name, temperature=0).read()
        assert [call.name for call in result.calls] == [name]
    # Without parameters, there are no arguments.
    assert tools_model.chat(QUESTION, tools=[{"name": "stop"}], tool_choice="stop").read().calls == (
        cria.ToolCall("stop", {}),)


def test_the_template_shows_tools(tools_model: cria.Model) -> None:
    def rendered(**variables: Any) -> int:
        return len(tools_model.tokenize(tools_model.render(QUESTION, variables=variables), parse_special=True))

    def read(**more: Any) -> int:
        result = tools_model.chat(QUESTION, temperature=0, max_tokens=1, **more).read()
        return result.prompt_tokens + result.reused_tokens

    assert read(tools=[ADD]) - read() == rendered(tools=[ADD]) - rendered() > 100


def test_calls_of_the_models_own_accord(tools_model: cria.Model) -> None:
    call = r'<tool_call>\n\{"name": "add", "arguments": \{"a": 1, "b": 2\}\}\n</tool_call>'
    result = tools_model.chat(QUESTION, tools=[ADD], regex=call).read()
    assert result.calls == (cria.ToolCall("add", {"a": 1, "b": 2}),)
    assert tools_model.chat(QUESTION, regex=call).read().calls == ()
    assert tools_model.chat(QUESTION, tools=[ADD], temperature=0, max_tokens=8).read().calls == ()
    # The result of a call is a message of the role tool.
    messages = [*QUESTION, {"role": "assistant", "content": result.text}, {"role": "tool", "content": "3"}]
    assert tools_model.chat(messages, tools=[ADD], temperature=0, max_tokens=8).read().text


def test_what_cannot_be(model: cria.Model, tools_model: cria.Model) -> None:
    with pytest.raises(cria.UnsupportedError, match="template of this model shows no tools"):
        model.chat(QUESTION, tools=[ADD])
    with pytest.raises(cria.UsageError, match="regex cannot be given together with a tool_choice"):
        tools_model.chat(QUESTION, tools=[ADD], tool_choice="add", regex="a")
    with pytest.raises(cria.UsageError, match="as a variable of the template, too"):
        tools_model.chat(QUESTION, tools=[ADD], variables={"tools": []})
    with cria.Model(os.environ["CRIA_TEST_TOOLS_MODEL"]) as unconstrained:
        with pytest.raises(cria.UsageError, match="max_constraints"):
            unconstrained.chat(QUESTION, tools=[ADD], tool_choice="required").read()
