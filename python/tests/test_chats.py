"""Conversations: their messages, sessions in files, and constraints."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import ANSWER, QUESTION, model_path

import cria

SCHEMA = {"type": "object", "required": ["name", "legs"], "additionalProperties": False,
          "properties": {"name": {"enum": ["Cria", "Änn"]}, "legs": {"type": "integer", "minimum": 2, "maximum": 4}}}


def test_a_chat_remembers(model: cria.Model) -> None:
    with model.new_chat(temperature=0) as chat:
        assert chat.send("I am Ann.").read().text.startswith("Hello, Ann!")
        second = chat.send("What is my name?").read()
        assert second.text == "You are Ann." and second.reused_tokens > 10
        assert [message["role"] for message in chat.messages] == ["user", "assistant"] * 2
        assert chat.context_used == second.context_used_tokens and not chat.has_forgotten
        chat.drop_last_turn()
        assert len(chat.messages) == 2
        chat.reset()
        assert chat.messages == []


def test_a_chat_goes_on_from_messages(model: cria.Model) -> None:
    messages = [{"role": "user", "content": "I am Ann."},
                {"role": "assistant", "content": "Hello, Ann! Nice to meet you. I am Cria."},
                {"role": "user", "content": "What is my name?"}]
    assert model.chat(messages, temperature=0).read().text == "You are Ann."
    with model.new_chat(messages, temperature=0) as chat:
        assert chat.answer().read().text == "You are Ann."
        assert chat.regenerate().read().text == "You are Ann."
        assert len(chat.messages) == 4


def test_a_conversation_that_grows_is_read_once() -> None:
    with cria.Model(model_path(), num_threads=1) as model:
        first = model.chat(QUESTION, temperature=0).read()
        grown = [*QUESTION, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "Where do you run?"}]
        second = model.chat(grown, temperature=0).read()
        assert first.reused_tokens == 0 and second.reused_tokens >= first.prompt_tokens + first.generated_tokens


def test_the_logits_of_a_chat_are_those_of_its_answer(model: cria.Model) -> None:
    with model.new_chat(QUESTION, temperature=0) as chat:
        logits = chat.logits()
        best = max(range(len(logits)), key=lambda index: logits[index])
        assert model.detokenize([best]) == "Hello"


def test_options_change(model: cria.Model) -> None:
    with model.new_chat(QUESTION, temperature=0) as chat:
        chat.set_options(temperature=0, max_tokens=1)
        assert chat.answer().read().text == "Hello"
        chat.set_options(temperature=0)
        assert chat.regenerate().read().text == ANSWER


def test_a_closed_answer_keeps_what_was_seen(model: cria.Model) -> None:
    with model.new_chat(temperature=0) as chat:
        with chat.send(QUESTION[0]) as answer:
            assert [next(answer), next(answer), next(answer)] == ["Hello", "!", " I"]
        assert answer.result is not None and answer.result.finish_reason == "cancelled"
        assert answer.text == "Hello! I" and chat.messages[-1] == {"role": "assistant", "content": "Hello! I"}
        assert list(answer) == []
        assert chat.send("Where do you run?").read().text


def test_sessions_are_kept_in_files(model: cria.Model, tmp_path: Path) -> None:
    path = tmp_path / "chat.session"
    with model.new_chat(temperature=0) as chat:
        chat.send("I am Ann.").read()
        chat.save(path)
        messages = chat.messages
    with model.load_chat(path, temperature=0) as chat:
        assert chat.is_context_restored and chat.messages == messages
        result = chat.send("What is my name?").read()
        assert result.text == "You are Ann." and result.reused_tokens > 10
    with cria.Model(model_path(), num_threads=1, kv_type="f16") as other:
        with other.load_chat(path, temperature=0) as chat:
            assert not chat.is_context_restored and chat.send("What is my name?").read().text == "You are Ann."
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(cria.InvalidFileError):
        model.load_chat(path)
    with pytest.raises(cria.NotFoundError):
        model.load_chat(tmp_path / "missing")
    with model.new_chat() as chat, pytest.raises(cria.Error, match="nowhere"):
        chat.save("/nowhere/chat.session")


def test_variables_reach_the_template(model: cria.Model) -> None:
    with cria.Model(os.environ["CRIA_TEST_VARIABLES_MODEL"], num_threads=1) as other:
        assert "Größe" in other.render(QUESTION, variables={"note": "Größe"})
        without = other.chat(QUESTION, temperature=0).read()
        assert without.text == ANSWER
        with other.new_chat(QUESTION, variables={"note": "Größe"}, temperature=0) as chat:
            noted = chat.answer().read()
            assert noted.prompt_tokens + noted.reused_tokens > without.prompt_tokens + without.reused_tokens
            chat.set_variables(None)
            assert chat.regenerate().read().text == ANSWER
        with pytest.raises(cria.UsageError, match="unknown role tool"):
            other.chat([*QUESTION, {"role": "tool", "content": "5"}]).read()
    wrong: Any = ["tools"]
    with pytest.raises(cria.UsageError):
        model.chat(QUESTION, variables=wrong)


def test_a_chat_outlives_its_model() -> None:
    model = cria.Model(model_path(), num_threads=1)
    chat = model.new_chat(QUESTION, temperature=0)
    answer = chat.answer()
    assert next(answer) == "Hello"
    model.close()
    # The answer was stopped at its piece.
    assert list(answer) == [] and answer.result is not None and answer.result.finish_reason == "cancelled"
    chat.close()


def test_schemas(model: cria.Model) -> None:
    found = model.chat(QUESTION, schema=SCHEMA, temperature=0).read().json()
    assert set(found) == {"name", "legs"} and found["name"] in ("Cria", "Änn") and found["legs"] in (2, 3, 4)
    streamed = "".join(model.complete("A llama: ", schema=SCHEMA))
    assert set(json.loads(streamed)) == {"name", "legs"}

    class Llama:
        """As a pydantic model is."""

        @classmethod
        def model_json_schema(cls) -> Any:
            return {"const": {"größe": 3}}

    assert model.complete("", schema=Llama).read().json() == {"größe": 3}
    assert model.complete("", schema=Llama()).read().json() == {"größe": 3}


def test_other_forms(model: cria.Model) -> None:
    assert model.complete("Size: ", regex="[0-9]{2} cm").read().text[2:] == " cm"
    assert model.complete("Answer: ", grammar='root ::= "yes" | "no"').read().text in ("yes", "no")
    assert isinstance(model.complete("", json="object", max_tokens=30).read().json(), dict)
    model.complete("", json="value", max_tokens=30).read().json()


def test_wrong_forms_are_refused(model: cria.Model) -> None:
    with pytest.raises(cria.Error, match="uniqueItems"):
        model.complete("", schema={"type": "array", "uniqueItems": True}).read()
    with pytest.raises(cria.UsageError):
        model.complete("", grammar="root ::= (").read()
    with cria.Model(model_path(), num_threads=1) as other, pytest.raises(cria.Error, match="max_constraints"):
        other.complete("", json="value").read()
    # A failed call has given its constraint back.
    for _ in range(3):
        assert model.complete("", schema={"const": 5}).read().text == "5"
