# SPDX-License-Identifier: Apache-2.0
"""Equalisation changes the weights and not the function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weights.equalize import equalize, value_factors
from weights.importer import Checkpoint, Gpt2Shape
from weights.reference import forward
from weights.synthetic import random_checkpoint, random_tokens

SHAPE = Gpt2Shape(
    hidden=24, layers=2, heads=3, ffn=40, vocab=50, context=12, epsilon=1e-5, activation="gelu"
)


def unbalanced(seed: int) -> Checkpoint:
    """Return a model whose value channels have very different ranges."""
    model = random_checkpoint(SHAPE, seed)
    spread = np.exp2(np.linspace(-5, 5, SHAPE.hidden)).astype(np.float32)
    tensors = dict(model.tensors)
    for layer in range(SHAPE.layers):
        for name in (f"h.{layer}.attn.c_attn.weight", f"h.{layer}.attn.c_attn.bias"):
            tensors[name] = tensors[name].copy()
            tensors[name][..., 2 * SHAPE.hidden :] *= spread
    return replace(model, tensors=tensors)


def test_logits_are_bit_identical() -> None:
    """Factors are powers of two, so not one bit of the float logits changes."""
    model, tokens = unbalanced(1), random_tokens(SHAPE, 2, 3)
    balanced = equalize(model)
    assert (value_factors(model, 0) != 1.0).any()
    for name in ("h.1.attn.c_attn.weight", "h.1.attn.c_attn.bias", "h.1.attn.c_proj.weight"):
        assert (balanced.tensors[name] != model.tensors[name]).any()
    np.testing.assert_array_equal(forward(model, tokens), forward(balanced, tokens))


def test_ranges_are_balanced() -> None:
    """Both sides of a pair end within the rounding of the factor of one another."""
    balanced = equalize(unbalanced(2))
    for layer in range(SHAPE.layers):
        gain = balanced.layer(layer, "ln_1.weight")[:, None]
        value = balanced.layer(layer, "attn.c_attn.weight")[:, 2 * SHAPE.hidden :]
        output = balanced.layer(layer, "attn.c_proj.weight")
        ratio = np.linalg.norm(gain * value, axis=0) / np.linalg.norm(output, axis=1)
        assert ratio.max() / ratio.min() < 4.0 * 1.001


def test_only_values_change() -> None:
    """Queries, keys and everything outside attention stay as they are."""
    model = unbalanced(3)
    balanced = equalize(model)
    keep = slice(0, 2 * SHAPE.hidden)
    for name, tensor in model.tensors.items():
        if name.endswith("c_attn.weight") or name.endswith("c_attn.bias"):
            np.testing.assert_array_equal(balanced.tensors[name][..., keep], tensor[..., keep])
        elif not name.endswith("attn.c_proj.weight"):
            np.testing.assert_array_equal(balanced.tensors[name], tensor)


def test_dead_channels() -> None:
    """A channel without weights on one side is left alone."""
    model = unbalanced(4)
    model.tensors["h.0.attn.c_proj.weight"][5] = 0.0
    model.tensors["h.0.attn.c_attn.weight"][:, 2 * SHAPE.hidden + 7] = 0.0
    factors = value_factors(model, 0)
    assert factors[5] == factors[7] == 1.0
    assert np.isfinite(factors).all()
    assert all(np.isfinite(tensor).all() for tensor in equalize(model).tensors.values())
