"""Log-probabilities and logits as numpy arrays."""

from typing import Any

import pytest

import cria

numpy: Any = pytest.importorskip("numpy")


def test_with_numpy(model: cria.Model) -> None:
    logits: Any = model.logits("Hello")
    assert isinstance(logits, numpy.ndarray) and logits.dtype == numpy.float32
    assert logits.shape == (model.info.vocab_size,)
    embeddings: Any = model.embed(["a llama", "two llamas", "a llama"])
    assert all(embedding.dtype == numpy.float32 for embedding in embeddings)
    to_other = float(embeddings[0] @ embeddings[1])
    assert [float(embeddings[0] @ other) for other in embeddings] == pytest.approx([1, to_other, 1])
    assert to_other < 1 - 1e-3
    assert model.embed([]) == []
    with pytest.raises(cria.OutOfRangeError):
        model.embed(["x" * 100_000])
    result = model.complete("Hello", max_tokens=2, temperature=0, log_probabilities=True).read()
    assert result.tokens is not None
    ids: Any = result.tokens.ids
    log_probabilities: Any = result.tokens.log_probabilities
    assert ids.dtype == numpy.int32 and log_probabilities.dtype == numpy.float64 and ids.shape == (2,)
    assert ids[0] == logits.argmax()
    shifted = logits.astype(numpy.float64) - logits.max()
    assert log_probabilities[0] == pytest.approx((shifted - numpy.log(numpy.exp(shifted).sum()))[ids[0]], abs=1e-5)
