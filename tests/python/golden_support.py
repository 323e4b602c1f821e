# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `golden`: seeded generators, corner values, and a synthetic GPT-2."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import gpt2
from golden.gelu import gelu_table
from golden.requantize import factor
from weights.model import Block, Linear, Norm, QuantizedModel

Rng = np.random.Generator

RESIDUAL_SCALE = 1e-3
GELU_SCALE = 0.03
"""Real value of one unit of the residual stream, and of GELU's input and output."""


def seeded(seed: int) -> Rng:
    """Return a generator and print its seed, which a failing test then shows."""
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def integers(
    rng: Rng, dtype: type[np.integer[Any]], shape: tuple[int, ...], corners: float = 0.2
) -> npt.NDArray[Any]:
    """Return full-range integers of which a share are corner values of the dtype."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    special = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    chosen = rng.random(shape) < corners
    return np.where(chosen, rng.choice(special, shape), values).astype(dtype)


def random_linear(
    rng: Rng, x: npt.NDArray[np.int8], outputs: int, spread: float, bias: bool = True
) -> Linear:
    """Return a layer whose outputs on the int8 input x have about the given standard deviation."""
    weight = np.clip(np.rint(rng.normal(0, 40, (x.shape[1], outputs))), -127, 127)
    sums = x.astype(np.float64) @ weight
    offset = rng.normal(0, 0.3 * sums.std(), outputs) if bias else np.zeros(outputs)
    deviation = np.maximum((sums + offset).std(axis=0), 0.5 * sums.std())
    factors = [factor(spread / float(d)) for d in deviation]
    return Linear(
        weight.astype(np.int8),
        np.rint(offset).astype(np.int32),
        np.array([m for m, _ in factors], np.uint16),
        np.array([s for _, s in factors], np.uint8),
    )


def random_norm(rng: Rng, size: int) -> Norm:
    """Return a norm to int8 with a standard deviation of about 32 and small biases.

    Its epsilon term is that of eps = 1e-5 at RESIDUAL_SCALE.
    """
    return Norm(
        round(1e-5 * size**2 / RESIDUAL_SCALE**2),
        rng.integers(9000, 27000, size).astype(np.uint16),
        np.full(size, 19, np.uint8),
        rng.integers(-3, 4, size).astype(np.int8),
    )


def _random_block(rng: Rng, model: QuantizedModel, x: npt.NDArray[np.int16]) -> Block:
    """Return a block calibrated on the residual stream x (S, H), stage by stage."""
    hidden, ffn = model.hidden, model.ffn
    ln1, ln2 = random_norm(rng, hidden), random_norm(rng, hidden)
    first = gpt2.norm(x, ln1)
    qkv = random_linear(rng, first, 3 * hidden, 26.0)
    q, k, _ = np.split(gpt2.linear8(first, qkv), 3, axis=1)
    dots = q[:, : model.head_dim].astype(np.float64) @ k[:, : model.head_dim].T
    score_mult, score_shift = factor(120.0 / float(dots.std()))
    table = gelu_table(GELU_SCALE, GELU_SCALE)
    guess = rng.integers(-40, 41, x.shape).astype(np.int8)
    proj = random_linear(rng, guess, hidden, 3000.0)
    fc = random_linear(rng, gpt2.norm(x, ln2), ffn, 26.0)
    active = table[gpt2.linear8(gpt2.norm(x, ln2), fc).view(np.uint8)]
    down = random_linear(rng, active, hidden, 3000.0)
    return Block(ln1, qkv, score_mult, score_shift, proj, ln2, fc, table, down)


def random_model(
    seed: int,
    *,
    hidden: int = 64,
    heads: int = 4,
    layers: int = 2,
    ffn: int = 256,
    vocab: int = 256,
    context: int = 128,
) -> QuantizedModel:
    """Return a GPT-2 with random weights whose every stage is well scaled."""
    rng = seeded(seed)
    ids = rng.integers(0, vocab, min(64, context)).tolist()
    empty = Linear(
        np.ones((hidden, vocab), np.int8),
        np.zeros(vocab, np.int32),
        np.full(vocab, 1 << 14, np.uint16),
        np.zeros(vocab, np.uint8),
    )
    model = QuantizedModel(
        family="gpt2",
        norm="layernorm",
        hidden=hidden,
        layers=1,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=ffn,
        vocab=vocab,
        context=context,
        window=0,
        wte=np.rint(rng.normal(0, 4000, (vocab, hidden))).astype(np.int16),
        wpe=np.rint(rng.normal(0, 1500, (context, hidden))).astype(np.int16),
        rope=None,
        blocks=(_placeholder(rng, hidden, ffn),),
        final_norm=random_norm(rng, hidden),
        head=empty,
        scales={"residual": RESIDUAL_SCALE, "logits": 1e-3},
    )
    x = gpt2.embed(model, ids)
    blocks: list[Block] = []
    for _ in range(layers):
        blocks.append(_random_block(rng, model, x))
        model = replace(model, layers=len(blocks), blocks=tuple(blocks))
        x = gpt2.block(model, len(blocks) - 1, x).resid2
    final = gpt2.norm(x, model.final_norm)
    head = random_linear(rng, final, vocab, 6000.0, bias=False)
    return replace(model, head=head, scales=_scales(model))


def _scales(model: QuantizedModel) -> dict[str, float]:
    """Return real scales under which the integer network is a GPT-2 with 1/sqrt(head_dim)."""
    scales = dict(model.scales)
    for layer, block in enumerate(model.blocks):
        per_unit = block.score_mult / 2.0**block.score_shift * math.log(2) / 64
        root = math.sqrt(per_unit * math.sqrt(model.head_dim))
        scales |= {f"h.{layer}.{name}": root for name in "qk"}
        scales |= {f"h.{layer}.{name}": 1 / 32 for name in ("v", "ctx")}
        scales |= {f"h.{layer}.{name}": GELU_SCALE for name in ("up", "act")}
    return scales


def _placeholder(rng: Rng, hidden: int, ffn: int) -> Block:
    """Return a block of the right shapes that is replaced before use."""
    ones = np.ones((4, hidden), np.int8)
    wide = np.ones((4, ffn), np.int8)
    return Block(
        random_norm(rng, hidden),
        random_linear(rng, ones, 3 * hidden, 1.0),
        1 << 14,
        14,
        random_linear(rng, ones, hidden, 1.0),
        random_norm(rng, hidden),
        random_linear(rng, ones, ffn, 1.0),
        np.zeros(256, np.int8),
        random_linear(rng, wide, hidden, 1.0),
    )
