"""Wrong arguments raise, with the library's sentence or with the name of the argument."""

from pathlib import Path
from typing import Any

import pytest
from conftest import QUESTION, model_path

import cria


@pytest.mark.parametrize("options, kind, words", [
    ({"top_p": 7}, cria.UsageError, "top_p is 7, but must be"),
    ({"temperature": -1}, cria.UsageError, "temperature is -1"),
    ({"top_k": -1}, cria.UsageError, "top_k is -1, which is not between"),
    ({"max_tokens": 2 ** 32}, cria.UsageError, "max_tokens is 4294967296"),
    ({"max_tokens": "5"}, TypeError, "max_tokens is '5'"),
    ({"temperatur": 1}, TypeError, "no option 'temperatur'"),
    ({"when_full": "never"}, cria.UsageError, "when_full is 'never', which is none of 'stop', 'shift'"),
    ({"json": "array"}, cria.UsageError, "json is 'array'"),
    ({"json": "value", "regex": "a"}, cria.UsageError, "regex and json cannot be given together"),
    ({"stop_strings": "end"}, TypeError, "must be a sequence of strings"),
    ({"stop_strings": [""]}, cria.UsageError, "stop string"),
    ({"logit_bias": {99999: 1.0}}, cria.UsageError, "99999"),
])
def test_options_of_generating(model: cria.Model, options: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        model.complete("Hello", **options).read()
    with pytest.raises(kind, match=words):
        model.chat(QUESTION, **options).read()
    with pytest.raises(kind, match=words):
        for _ in model.complete("Hello", **options):
            pass


@pytest.mark.parametrize("options, kind, words", [
    ({"num_threads": 1 << 20}, cria.UsageError, "num_threads"),
    ({"context_tokens": -5}, cria.UsageError, "context_tokens is -5"),
    ({"kv_type": "int4"}, cria.UsageError, "kv_type is 'int4', which is none of 'f32', 'f16', 'int8', 'model'"),
    ({"context": 5}, TypeError, "no option 'context': there are .*context_tokens"),
    ({"memory_limit_bytes": 1000}, cria.OutOfMemoryError, "needs"),
    ({"pack_folder": "a\0b"}, cria.UsageError, "zero byte"),
])
def test_options_of_models(options: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        cria.Model(model_path(), **options)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(cria.NotFoundError, match="/nowhere: cannot open") as caught:
        cria.Model("/nowhere")
    assert caught.value.code == 4
    with pytest.raises(cria.NotFoundError, match="/nowhere"):
        cria.plan("/nowhere")
    damaged = tmp_path / "damaged.cria"
    damaged.write_bytes(Path(model_path()).read_bytes()[:1000])
    with pytest.raises(cria.InvalidFileError, match="damaged.cria"):
        cria.Model(damaged)
    with pytest.raises(cria.UsageError, match="path"):
        cria.Model()


def test_kinds_of_errors_are_pythons_too(model: cria.Model) -> None:
    assert issubclass(cria.UsageError, ValueError) and issubclass(cria.OutOfMemoryError, MemoryError)
    with pytest.raises(cria.OutOfRangeError, match="context"):
        model.complete("a " * 600).read()
    with pytest.raises(cria.OutOfRangeError):
        model.logits("a " * 600)
    with pytest.raises(UnicodeEncodeError):
        model.complete("\ud800")


def test_messages(model: cria.Model) -> None:
    wrong: Any = [{"role": "assistant", "content": "", "tool_calls": []}]
    with pytest.raises(cria.UsageError, match="role and content alone"):
        model.chat(wrong)
    with pytest.raises(cria.UsageError, match="answer"):
        model.chat([*QUESTION, {"role": "assistant", "content": "Hi"}]).read()
    with pytest.raises(cria.UsageError):
        model.chat([]).read()
    with model.new_chat() as chat, pytest.raises(cria.UsageError, match="assistant"):
        chat.send({"role": "assistant", "content": "Hi"}).read()


def test_what_a_callback_raises_ends_the_call(model: cria.Model, tmp_path: Path) -> None:
    class Wrong(Exception):
        pass

    def fail(*_: Any) -> None:
        raise Wrong

    with pytest.raises(Wrong):
        model.complete("Hello", on_prompt=fail).read()
    with pytest.raises(Wrong):
        next(model.complete("Hello", on_prompt=fail))
    with pytest.raises(Wrong):
        model.logits("Hello", on_prompt=fail)
    with pytest.raises(Wrong):
        cria.Model(model_path(), on_progress=fail)
    with pytest.raises(Wrong):
        cria.Model(model_path(), on_notice=fail, pack_folder=tmp_path)
    assert model.complete("Hello", max_tokens=1).read().generated_tokens == 1


def test_a_limit_of_the_temperature_has_bounds() -> None:
    with pytest.raises(cria.UsageError, match="10 °C"):
        cria.Model(model_path(), max_temperature_celsius=10)


def test_a_callback_must_not_generate(model: cria.Model) -> None:
    def read(*_: Any) -> None:
        model.complete("Hello").read()

    def stream(*_: Any) -> None:
        next(model.chat(QUESTION))

    def logits(*_: Any) -> None:
        model.logits("Hello")

    for generate in (read, stream, logits):
        answer = model.complete("Hello", on_prompt=generate)
        with pytest.raises(cria.UsageError, match="in use: a callback must not generate with it"):
            answer.read()
        with pytest.raises(cria.CancelledError, match="closed or failed"):
            answer.read()
    # What does not generate is allowed.
    told = []
    model.complete("Hello", max_tokens=1, on_prompt=lambda *_: told.append(model.tokenize("Hello"))).read()
    assert told


def test_a_closed_model_says_so() -> None:
    model = cria.Model(model_path(), num_threads=1)
    chat = model.new_chat()
    answer = model.complete("Hello")
    model.close()
    model.close()
    for call in (answer.read, lambda: next(chat.send("Hello")), lambda: model.tokenize("Hello"), model.cancel,
                 lambda: model.info, lambda: chat.save("/nowhere")):
        with pytest.raises(cria.UsageError, match="the model is closed"):
            call()
    chat.close()
    with pytest.raises(cria.UsageError, match="the chat is closed"):
        chat.reset()
