# SPDX-License-Identifier: Apache-2.0
"""The float forward pass: its activations, its masks, its errors, its measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weights.importer import Gpt2Shape
from weights.reference import activation, bits_per_byte, forward, normalise, softmax
from weights.synthetic import random_checkpoint, random_tokens

SHAPE = Gpt2Shape(
    hidden=16, layers=2, heads=4, ffn=24, vocab=30, context=10, epsilon=1e-5, activation="gelu_new"
)


def test_activations() -> None:
    """GELU at points whose values are known, and the distance between its two forms."""
    x = np.linspace(-6, 6, 241)
    exact = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    np.testing.assert_allclose(activation("gelu", x), exact, atol=1e-12)
    smooth = activation("gelu_new", x)
    np.testing.assert_array_equal(smooth, activation("gelu_pytorch_tanh", x))
    assert 1e-5 < np.abs(smooth - exact).max() < 1e-3
    assert activation("gelu", np.array([1.0], np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match=r"given 'relu', allowed \['gelu'"):
        activation("relu", x)


def test_normalise_and_softmax() -> None:
    """A normalised row has mean 0 and variance 1; a softmax row sums to 1."""
    x = np.random.default_rng(1).normal(3.0, 2.0, (5, 64)).astype(np.float32)
    n = normalise(x, 1e-6)
    np.testing.assert_allclose(n.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(n.std(-1), 1.0, atol=1e-5)
    p = softmax(np.array([[0.0, -np.inf, 0.0]], np.float32))
    np.testing.assert_array_equal(p, [[0.5, 0.0, 0.5]])


def test_causal() -> None:
    """A token changes the logits of its own and later positions only."""
    model, tokens = random_checkpoint(SHAPE, 1), random_tokens(SHAPE, 1, 2)
    before = forward(model, tokens)
    tokens[0, 6] = (tokens[0, 6] + 1) % SHAPE.vocab
    after = forward(model, tokens)
    np.testing.assert_array_equal(before[:, :6], after[:, :6])
    assert (np.abs(before - after).max(axis=-1)[0, 6:] > 1e-4).all()


def test_observed_tensors() -> None:
    """Every tensor that calibration needs is reported, once per layer."""
    seen: dict[str, list[tuple[int, ...]]] = {}
    tokens = random_tokens(SHAPE, 3, 2)
    logits = forward(
        random_checkpoint(SHAPE, 1),
        tokens,
        lambda name, values: seen.setdefault(name, []).append(values.shape),
    )
    assert logits.shape == (3, 10, 30)
    assert logits.dtype == np.float32
    assert seen["residual"] == [(3, 10, 16)] * 5
    assert seen["addend"] == [(3, 10, 16)] * 4
    assert seen["h.1.fc"] == seen["h.1.gelu"] == [(3, 10, 24)]
    assert seen["h.0.scores"] == [(3, 4, 55)]
    assert seen["ln_f"] == seen["h.0.ln_1"] == seen["h.0.ctx"] == [(3, 10, 16)]


def test_refused_tokens() -> None:
    """Wrong rank, too many positions and foreign ids are refused."""
    model = random_checkpoint(SHAPE, 1)
    with pytest.raises(ValueError, match=r"given shape \(3,\), allowed \(B, T\)"):
        forward(model, np.zeros(3, np.int64))
    with pytest.raises(ValueError, match=r"given 11 positions, allowed 1\.\.10"):
        forward(model, np.zeros((1, 11), np.int64))
    with pytest.raises(ValueError, match=r"given ids 0\.\.30, allowed 0\.\.29"):
        forward(model, np.array([[0, 30]]))


def test_bits_per_byte() -> None:
    """Flat logits cost log2(V); certainty costs nothing; the last position predicts nothing."""
    tokens = np.array([[1, 2, 3], [4, 5, 6]])
    assert bits_per_byte(np.zeros((2, 3, 8)), tokens) == pytest.approx(3.0)
    sure = np.zeros((2, 3, 8), np.int16)
    for row in range(2):
        for t in range(2):
            sure[row, t, tokens[row, t + 1]] = 1000
    assert bits_per_byte(sure, tokens) == pytest.approx(0.0)
