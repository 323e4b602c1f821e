# SPDX-License-Identifier: Apache-2.0
"""Equalisation changes the weights and not the function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weights.checkpoint import Checkpoint, CheckpointShape
from weights.equalize import equalize, inner_factors, value_factors
from weights.reference import forward
from weights.synthetic import random_checkpoint, random_tokens, shape_of

GPT2 = shape_of("gpt2", hidden=24, layers=2, heads=3, ffn=40, vocab=50, context=12)
QWEN2 = shape_of(
    "qwen2", hidden=24, layers=2, heads=6, kv_heads=2, head_dim=4, ffn=40, vocab=50, context=12
)
OLMO2 = replace(
    QWEN2, norm="rmsnorm", head_norms="row", pre_norms=False, part_norms=True, biases=()
)
NEOX = replace(GPT2, parallel=True, head_norms="head")
ALL = pytest.mark.parametrize(
    "shape", [GPT2, QWEN2, OLMO2, NEOX], ids=["gpt2", "qwen2", "no norms before parts", "parallel"]
)
SHAPES = pytest.mark.parametrize("shape", [GPT2, QWEN2], ids=lambda shape: shape.family)


def unbalanced(shape: CheckpointShape, seed: int) -> Checkpoint:
    """Return a model whose value channels, and gated channels, have very different ranges."""
    model = random_checkpoint(shape, seed)
    tensors = dict(model.tensors)
    for layer in range(shape.layers):
        for name in ("v", "up") if shape.gated else ("v",):
            columns = model.linear(f"h.{layer}.{name}")[0].shape[1]
            spread = np.exp2(np.linspace(-5, 5, columns)).astype(np.float32)
            for key in (f"h.{layer}.{name}.weight", f"h.{layer}.{name}.bias"):
                if key in tensors:
                    tensors[key] = tensors[key] * spread
    return replace(model, tensors=tensors)


@ALL
def test_logits_are_bit_identical(shape: CheckpointShape) -> None:
    """Factors are powers of two, so not one bit of the float logits changes."""
    model, tokens = unbalanced(shape, 1), random_tokens(shape, 2, 3)
    balanced = equalize(model)
    assert (value_factors(model.shape, model.tensors, 0) != 1.0).any()
    names = {"h.1.v.weight", "h.1.o.weight"} | ({"h.1.v.bias"} if "v" in shape.biases else set())
    if shape.gated:
        assert (inner_factors(model.tensors, 0) != 1.0).any()
        names |= {"h.1.up.weight", "h.1.down.weight"}
    for name in names:
        assert (balanced.tensors[name] != model.tensors[name]).any()
    np.testing.assert_array_equal(forward(model, tokens), forward(balanced, tokens))


@SHAPES
def test_ranges_are_balanced(shape: CheckpointShape) -> None:
    """Both sides of a pair end within the rounding of the factor of one another."""
    balanced = equalize(unbalanced(shape, 2))
    for layer in range(shape.layers):
        gain = balanced.tensors[f"h.{layer}.norm1.weight"][:, None]
        value = np.linalg.norm(gain * balanced.linear(f"h.{layer}.v")[0], axis=0)
        output = balanced.linear(f"h.{layer}.o")[0]
        by_head = output.reshape(shape.kv_heads, shape.group, shape.head_dim, shape.hidden)
        ratio = value / np.sqrt(np.square(by_head).sum(axis=(1, 3))).ravel()
        assert ratio.max() / ratio.min() < 4.0 * 1.001
        if shape.gated:
            gain = balanced.tensors[f"h.{layer}.norm2.weight"][:, None]
            up, gate = (
                np.linalg.norm(gain * balanced.linear(f"h.{layer}.{name}")[0], axis=0)
                for name in ("up", "gate")
            )
            ratio = up * gate / np.linalg.norm(balanced.linear(f"h.{layer}.down")[0], axis=1)
            assert ratio.max() / ratio.min() < 4.0 * 1.001


@ALL
def test_only_pairs_change(shape: CheckpointShape) -> None:
    """Queries, keys, gates and everything outside the blocks stay as they are."""
    model = unbalanced(shape, 3)
    balanced = equalize(model)
    changing = {"v", "o", "up", "down"} if shape.gated else {"v", "o"}
    for name, tensor in model.tensors.items():
        if not changing.intersection(name.split(".")):
            np.testing.assert_array_equal(balanced.tensors[name], tensor)


@SHAPES
def test_dead_channels(shape: CheckpointShape) -> None:
    """A channel without weights on one side is left alone."""
    model = unbalanced(shape, 4)
    tensors = {name: tensor.copy() for name, tensor in model.tensors.items()}
    reads = [head * shape.head_dim + 2 for head in range(shape.group)]  # channel 2 of K/V head 0
    tensors["h.0.o.weight"][reads] = 0.0
    tensors["h.0.v.weight"][:, 7] = 0.0
    if shape.gated:
        tensors["h.0.gate.weight"][:, 3] = 0.0
    model = replace(model, tensors=tensors)
    factors = value_factors(model.shape, model.tensors, 0)
    assert factors[2] == factors[7] == 1.0
    assert np.isfinite(factors).all()
    if shape.gated:
        assert inner_factors(model.tensors, 0)[3] == 1.0
    assert all(np.isfinite(tensor).all() for tensor in equalize(model).tensors.values())
