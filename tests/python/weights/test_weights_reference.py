# SPDX-License-Identifier: Apache-2.0
"""The float forward pass: its activations, its masks, its errors, its measure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from weights.checkpoint import Checkpoint
from weights.reference import (
    activation,
    bits_per_byte,
    forward,
    normalise,
    rope_table,
    rotate,
    softmax,
    visible,
)
from weights.synthetic import random_checkpoint, random_tokens, shape_of

SHAPE = shape_of(
    "gpt2", hidden=16, layers=2, heads=4, ffn=24, vocab=30, context=10, activation="gelu_new"
)


def test_activations() -> None:
    """GELU at points whose values are known, and the distance between its two forms."""
    x = np.linspace(-6, 6, 241)
    exact = np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    np.testing.assert_allclose(activation("gelu", x), exact, atol=1e-12)
    smooth = activation("gelu_new", x)
    np.testing.assert_array_equal(smooth, activation("gelu_pytorch_tanh", x))
    assert 1e-5 < np.abs(smooth - exact).max() < 1e-3
    silu = activation("silu", np.append(x, [-1e4, 1e4]))
    np.testing.assert_allclose(silu[:-2], x / (1.0 + np.exp(-x)), atol=1e-12)
    np.testing.assert_array_equal(silu[-2:], [0.0, 1e4])
    assert activation("gelu", np.array([1.0], np.float32)).dtype == np.float32
    positive = np.maximum(x, 0)
    np.testing.assert_array_equal(activation("relu", x), positive)
    np.testing.assert_array_equal(activation("relu2", x), positive * positive)
    np.testing.assert_allclose(activation("quick_gelu", x), x / (1 + np.exp(-1.702 * x)), atol=1e-9)
    np.testing.assert_allclose(activation("sigmoid", x), 1 / (1 + np.exp(-x)), atol=1e-12)
    with pytest.raises(ValueError, match=r"given 'mish', allowed \['gelu'"):
        activation("mish", x)


def test_normalise_and_softmax() -> None:
    """A normalised row has mean 0 (of LayerNorm) and power 1; a softmax row sums to 1."""
    x = np.random.default_rng(1).normal(3.0, 2.0, (5, 64)).astype(np.float32)
    n = normalise(x, "layernorm", 1e-6)
    np.testing.assert_allclose(n.mean(-1), 0.0, atol=1e-5)
    np.testing.assert_allclose(n.std(-1), 1.0, atol=1e-5)
    r = normalise(x, "rmsnorm", 1e-6)
    np.testing.assert_allclose(np.square(r).mean(-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(r / x, (r / x)[:, :1].repeat(64, -1), rtol=1e-5)
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


@pytest.mark.parametrize(("window", "layers", "reach"), [(3, 1, 2), (3, 2, 4), (1, 2, 0)])
def test_window(window: int, layers: int, reach: int) -> None:
    """A token changes what lies in the window, through each layer; `reach` positions in all."""
    shape = shape_of("mistral", hidden=16, layers=layers, vocab=30, context=10, window=window)
    model, tokens = random_checkpoint(shape, 1), random_tokens(shape, 1, 2)
    before = forward(model, tokens)
    tokens[0, 2] = (tokens[0, 2] + 1) % shape.vocab
    changed = np.abs(before - forward(model, tokens)).max(axis=-1)[0]
    assert np.flatnonzero(changed).tolist() == list(range(2, 3 + reach))


def test_visible() -> None:
    """A window counts the position itself; 0 is none."""
    np.testing.assert_array_equal(visible(4, 0), np.tri(4))
    np.testing.assert_array_equal(visible(3, 2), [[1, 0, 0], [1, 1, 0], [0, 1, 1]])


def test_rotation() -> None:
    """Pairs (t, t + D/2) turn by position * theta^(-2t/D): complex numbers times exp(i angle)."""
    shape = shape_of("llama", head_dim=8, rope_theta=100.0)
    x = np.random.default_rng(4).normal(size=(2, 5, 8)).astype(np.float32)
    given = rotate(x, rope_table(shape, 5))
    angles = np.arange(5)[:, None] * 100.0 ** (-2 * np.arange(4) / 8)
    wanted = (x[..., :4] + 1j * x[..., 4:]) * np.exp(1j * angles)
    np.testing.assert_allclose(given[..., :4], wanted.real, atol=1e-6)
    np.testing.assert_allclose(given[..., 4:], wanted.imag, atol=1e-6)


def test_grouped_queries() -> None:
    """Heads h // group share keys and values: the same network with them written out."""
    shape = shape_of("llama", hidden=16, heads=6, kv_heads=2, head_dim=4, vocab=30, context=10)
    model, tokens = random_checkpoint(shape, 1), random_tokens(shape, 2, 2)
    whole = dict(model.tensors)
    for layer in range(shape.layers):
        for name in (f"h.{layer}.k.weight", f"h.{layer}.v.weight"):
            heads = whole[name].reshape(16, 2, 4)
            whole[name] = np.repeat(heads, 3, axis=1).reshape(16, 24)
    wide = Checkpoint(replace(shape, kv_heads=6), whole, "written out")
    np.testing.assert_allclose(forward(model, tokens), forward(wide, tokens), atol=1e-5)


def test_observed_tensors_of_a_gated_model() -> None:
    """What calibration needs of rotary positions and a gate."""
    seen: dict[str, tuple[int, ...]] = {}
    shape = shape_of("qwen2", hidden=16, heads=4, kv_heads=2, ffn=24, vocab=30, context=10)
    forward(
        random_checkpoint(shape, 1),
        random_tokens(shape, 3, 2),
        lambda name, values: seen.update({name: values.shape}),
    )
    assert seen["h.0.q"] == (3, 10, 16)
    assert seen["h.1.k"] == seen["h.1.v"] == (3, 10, 8)
    assert seen["h.1.q_rope"] == (3, 4, 10, 4)
    assert seen["h.1.k_rope"] == (3, 2, 10, 4)
    assert {seen[f"h.1.{key}"] for key in ("gate", "silu", "up", "act")} == {(3, 10, 24)}


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
    assert seen["residual"] == [(3, 10, 16)]
    for layer in range(2):
        assert seen[f"h.{layer}.residual"] == seen[f"h.{layer}.addend"] == [(3, 10, 16)] * 2
    assert seen["h.1.up"] == seen["h.1.act"] == [(3, 10, 24)]
    assert seen["h.0.scores"] == [(3, 4, 55)]
    assert seen["norm"] == seen["h.0.norm1"] == seen["h.0.ctx"] == [(3, 10, 16)]


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
