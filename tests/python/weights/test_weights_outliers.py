# SPDX-License-Identifier: Apache-2.0
"""The model with outlier channels: it has them, still models the text, and needs the pipeline."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from weights.checkpoint import Checkpoint
from weights.corpus import read_corpus, windows
from weights.importer import load_checkpoint
from weights.outliers import FACTOR, with_outliers
from weights.reference import Floats, bits_per_byte, forward
from weights.synthetic import random_checkpoint, random_tokens, shape_of

FOLDER = Path(__file__).parents[3] / "weights" / "checkpoints" / "gpt2-tiny"


def largest(checkpoint: Checkpoint, tokens: npt.NDArray[np.int64]) -> list[Floats]:
    """Return the largest magnitude of every channel, per residual stream."""
    seen: list[Floats] = []

    def observe(name: str, values: Floats) -> None:
        if name.endswith("residual"):
            seen.append(np.abs(values).max(axis=(0, 1)))

    forward(checkpoint, tokens, observe)
    return seen


def test_outlier_channels() -> None:
    """Two channels are an order of magnitude above the rest in every stream; the text is known."""
    checkpoint = load_checkpoint(FOLDER)
    corpus = read_corpus()
    changed = with_outliers(checkpoint, windows(corpus.development, 128, 16))
    rows = windows(corpus.held_out, 128, 8)
    for stream in largest(checkpoint, rows):
        assert stream.max() < 4 * np.median(stream)
    for stream in largest(changed, rows):
        second, third = np.sort(stream)[[-2, -3]]
        assert second > 0.4 * FACTOR * np.median(stream)
        assert third < 4 * np.median(stream)
    before, after = (bits_per_byte(forward(model, rows), rows) for model in (checkpoint, changed))
    assert before < after < before + 1.0  # 8 bits know nothing
    assert not changed.shape.tied


def test_the_original_stays() -> None:
    """The given checkpoint is not written to, and equal inputs give equal models."""
    shape = shape_of("gpt2")
    checkpoint = random_checkpoint(shape, 5)
    kept = {name: tensor.copy() for name, tensor in checkpoint.tensors.items()}
    first, second = (with_outliers(checkpoint, random_tokens(shape, 4, 6)) for _ in range(2))
    for name, tensor in kept.items():
        assert np.array_equal(checkpoint.tensors[name], tensor)
        assert np.array_equal(first.tensors[name], second.tensors[name])
    assert np.array_equal(first.tensors["head"], checkpoint.tensors["embed"].T)


def test_other_architectures_are_refused() -> None:
    """Without a bias in the norms the constant cannot be taken out again."""
    shape = shape_of("llama")
    with pytest.raises(ValueError, match=r"given rmsnorm and rotary positions, allowed layernorm"):
        with_outliers(random_checkpoint(shape, 5), random_tokens(shape, 4, 6))
