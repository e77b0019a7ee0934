"""Completions and chats, their pieces, results and options."""

import os
import subprocess
from math import exp, log
from pathlib import Path
from typing import Any, Dict, List

import pytest
from conftest import ANSWER, QUESTION, model_path

import cria


def test_a_completion_is_what_the_program_writes(model: cria.Model) -> None:
    for prompt in ("Hello! I am", "A llama is", "What is a KV cache?\n"):
        command = [os.environ["CRIA_TEST_PROGRAM"], "run", "-m", model_path(), "-p", prompt, "--temp", "0", "-n", "40",
                   "-t", "1", "-q", "--no-display-prompt"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        result = model.complete(prompt, temperature=0, max_tokens=40).read()
        assert result.text and done.stdout.rstrip("\n") == result.text.rstrip("\n")


def test_pieces_make_up_the_text(model: cria.Model) -> None:
    answer = model.chat(QUESTION, temperature=0)
    assert answer.text == "" and answer.result is None
    pieces = []
    for piece in answer:
        pieces.append(piece)
        assert answer.text == "".join(pieces)
    assert len(pieces) > 10 and "".join(pieces) == ANSWER
    assert answer.result is not None and answer.result.text == ANSWER and str(answer.result) == ANSWER
    assert list(answer) == [] and answer.read() is answer.result
    assert model.chat(QUESTION, temperature=0).read().text == ANSWER


def test_the_rest_of_an_answer_is_read(model: cria.Model) -> None:
    answer = model.chat(QUESTION, temperature=0)
    assert next(answer) == "Hello"
    assert answer.read().text == ANSWER


def test_results_count(model: cria.Model) -> None:
    result = model.complete("Hello! I am", temperature=0, max_tokens=5).read()
    assert result.finish_reason == "max_tokens" and result.generated_tokens == 5
    assert result.prompt_tokens + result.reused_tokens == len(model.tokenize("Hello! I am", add_special=True))
    assert result.context_used_tokens > 5 and result.total_seconds >= result.first_text_seconds > 0
    assert result.generated_tokens_per_second > 0 and result.draft_gain == 1 and result.tokens is None
    assert model.chat(QUESTION, temperature=0).read().finish_reason == "end"


def test_penalties_choose_other_tokens(model: cria.Model) -> None:
    # The demo model goes on with what it has said before.
    beginning = "Hello! I am"
    prompt = f"{beginning}{model.complete(beginning, temperature=0, max_tokens=12).read().text} {beginning}"
    options: Dict[str, Any] = {"temperature": 0, "max_tokens": 8}
    plain = model.complete(prompt, **options).read().text
    assert model.complete(prompt, **options, frequency_penalty=100).read().text != plain
    options["dry_multiplier"] = 100
    assert model.complete(prompt, **options, dry_sequence_breakers=[]).read().text != plain
    # No repetition goes on behind a space.
    assert model.complete(prompt, **options, dry_sequence_breakers=[" "]).read().text == plain
    with pytest.raises(cria.UsageError, match="dry_multiplier"):
        model.complete(prompt, dry_multiplier=-1).read()
    with pytest.raises(TypeError, match="sequence of strings"):
        model.complete(prompt, dry_sequence_breakers="x").read()


def test_stop_strings_end_a_text(model: cria.Model) -> None:
    result = model.chat(QUESTION, temperature=0, stop_strings=["xyz", "a baby"]).read()
    assert result.finish_reason == "string" and result.text == ANSWER[:ANSWER.index("a baby")]


def test_seeds_choose_texts(model: cria.Model) -> None:
    texts = {seed: model.complete("The", seed=seed, temperature=2.0, max_tokens=20).read().text for seed in range(4)}
    assert len(set(texts.values())) == 4
    assert model.complete("The", seed=3, temperature=2.0, max_tokens=20).read().text == texts[3]


def test_a_bias_forbids_a_token(model: cria.Model) -> None:
    first = model.tokenize("Hello")[0]
    result = model.chat(QUESTION, temperature=0, logit_bias={first: float("-inf")}, log_probabilities=True).read()
    assert result.tokens is not None and first not in list(result.tokens.ids) and not result.text.startswith("Hello")


def test_log_probabilities_are_those_of_the_logits(model: cria.Model) -> None:
    result = model.complete("Hello! I am", temperature=0, max_tokens=3, log_probabilities=True).read()
    tokens = result.tokens
    assert tokens is not None and len(tokens.ids) == len(tokens.log_probabilities) == len(tokens.texts) == 3
    assert "".join(tokens.texts) == result.text == model.detokenize([int(token) for token in tokens.ids])
    logits = model.logits("Hello! I am")
    assert len(logits) == model.info.vocab_size
    largest = max(range(len(logits)), key=lambda index: logits[index])
    assert tokens.ids[0] == largest
    top = logits[largest]
    assert tokens.log_probabilities[0] == pytest.approx(-log(sum(exp(logit - top) for logit in logits)), abs=1e-5)


def test_progress_of_a_prompt_is_told(model: cria.Model) -> None:
    told: List[Any] = []
    model.complete("a " * 300, max_tokens=1, on_prompt=lambda done, total: told.append((done, total))).read()
    assert len(told) > 2 and told == sorted(told) and told[-1][0] == told[-1][1]


def test_texts_keep_what_is_not_ascii(model: cria.Model) -> None:
    text = "Größe — ラマ 🦙\0end"
    assert model.detokenize(model.tokenize(text)) == text
    assert model.render([{"role": "user", "content": text}]).count(text) == 1
    assert model.new_chat([{"role": "user", "content": text}]).messages == [{"role": "user", "content": text}]


def test_the_chat_template_is_rendered(model: cria.Model) -> None:
    rendered = model.render(QUESTION)
    assert QUESTION[0]["content"] in rendered
    assert rendered.startswith(model.render(QUESTION, add_generation_prompt=False)) and rendered != model.render(
        QUESTION, add_generation_prompt=False)


def test_special_tokens_are_read_where_that_is_asked(model: cria.Model) -> None:
    rendered = model.render(QUESTION)
    read = model.tokenize(rendered, parse_special=True)
    assert len(read) < len(model.tokenize(rendered))
    result = model.complete(rendered, parse_special=True, temperature=0).read()
    assert result.text == ANSWER


def test_plans_have_parts() -> None:
    small, large = cria.plan(model_path(), context_tokens=128), cria.plan(model_path(), context_tokens=512)
    assert small.peak_bytes < large.peak_bytes and small.info.context_tokens == 128
    cache: Dict[str, int] = {part.name: part.bytes for part in large.parts}
    assert cache["KV cache"] > 0
    assert {part.is_mapped for part in large.parts} == {True, False}
    large.check()
    refused = cria.plan(model_path(), memory_limit_bytes=1_000_000)
    with pytest.raises(cria.OutOfMemoryError, match="needs"):
        refused.check()


def test_a_loaded_model_has_its_plan(model: cria.Model) -> None:
    assert model.plan.info == model.info
    assert model.plan.private_bytes > cria.plan(model_path(), num_threads=1).private_bytes


def test_a_descriptor_takes_the_place_of_a_path(tmp_path: Path) -> None:
    file = tmp_path / "archive"
    content = Path(model_path()).read_bytes()
    file.write_bytes(b"x" * 640 + content + b"y")
    with open(file, "rb") as opened:
        model = cria.Model(descriptor=opened.fileno(), offset_bytes=640, length_bytes=len(content), num_threads=1)
    with model:
        assert model.chat(QUESTION, temperature=0).read().text == ANSWER


def test_packing_is_told(tmp_path: Path) -> None:
    with pytest.raises(cria.NotFoundError, match="CRIA_PACK_ON_FIRST_USE"):
        cria.Model(model_path(), pack_folder=tmp_path, packing="never")
    told: List[Any] = []
    notices: List[str] = []
    options: Any = {"pack_folder": tmp_path, "num_threads": 1}
    cria.Model(model_path(), on_progress=lambda done, total: told.append((done, total)), on_notice=notices.append,
               **options).close()
    assert told and told[-1][0] == told[-1][1] and told == sorted(told)
    assert notices and all(notice.strip() for notice in notices)
    cria.Model(model_path(), packing="never", **options).close()
