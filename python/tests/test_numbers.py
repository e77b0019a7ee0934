"""Log-probabilities and logits without numpy; test_numpy.py has those with it."""

import sys
from array import array
from typing import Any

import pytest

import cria


def test_without_numpy(model: cria.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    logits: Any = model.logits("Hello")
    assert isinstance(logits, array) and logits.typecode == "f" and len(logits) == model.info.vocab_size
    embeddings: Any = model.embed(["a llama", "two"])
    assert all(isinstance(embedding, array) and embedding.typecode == "f" for embedding in embeddings)
    result = model.complete("Hello", max_tokens=2, log_probabilities=True).read()
    assert result.tokens is not None
    ids: Any = result.tokens.ids
    log_probabilities: Any = result.tokens.log_probabilities
    assert isinstance(ids, array) and ids.typecode == "i" and len(ids) == 2
    assert isinstance(log_probabilities, array) and log_probabilities.typecode == "d" and max(log_probabilities) <= 0
