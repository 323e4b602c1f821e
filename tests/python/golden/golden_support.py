# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of `golden`: seeded generators, corner values, and synthetic decoders."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import decoder
from golden.gelu import gelu_table
from golden.requantize import factor
from weights.model import Block, Linear, Norm, QuantizedModel
from weights.shape import NormKind, Shape

Rng = np.random.Generator

RESIDUAL_SCALE = 1e-3
ACT_SCALE = 0.03
"""Real value of one unit of the residual stream, and of an activation's input and output."""
ROPE_THETA = 10_000.0


@dataclass(frozen=True, slots=True)
class Family:
    """What distinguishes an architecture."""

    norm: NormKind
    rope: bool
    gated: bool
    qkv_bias: bool
    window: int = 0


FAMILIES = {
    "gpt2": Family("layernorm", rope=False, gated=False, qkv_bias=True),
    "llama": Family("rmsnorm", rope=True, gated=True, qkv_bias=False),
    "mistral": Family("rmsnorm", rope=True, gated=True, qkv_bias=False, window=24),
    "qwen2": Family("rmsnorm", rope=True, gated=True, qkv_bias=True),
}


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


def random_norm(rng: Rng, size: int, kind: NormKind = "layernorm") -> Norm:
    """Return a norm to int8 with a standard deviation of about 32; a LayerNorm has small biases.

    Its epsilon term is that of eps = 1e-5 at RESIDUAL_SCALE.
    """
    gain = rng.integers(9000, 27000, size).astype(np.uint16)
    bias = rng.integers(-3, 4, size) if kind == "layernorm" else np.zeros(size)
    return Norm(
        round(1e-5 * size**2 / RESIDUAL_SCALE**2),
        gain,
        np.full(size, 23, np.uint8),
        bias.astype(np.int8),
    )


def silu_table(scale_in: float, scale_out: float) -> npt.NDArray[np.int8]:
    """Return the SiLU table, x / (1 + exp(-x)), for the real values of one unit."""
    x = np.arange(256, dtype=np.uint8).view(np.int8) * scale_in
    table: npt.NDArray[np.int8] = np.clip(
        np.rint(x / (1 + np.exp(-x)) / scale_out), -128, 127
    ).astype(np.int8)
    return table


def rope_angles(context: int, head_dim: int) -> npt.NDArray[np.float64]:
    """Return the angles (C, D/2) of every position and pair of lanes."""
    rates = ROPE_THETA ** (-2.0 * np.arange(head_dim // 2) / head_dim)
    return np.arange(context)[:, None] * rates


def rope_table(context: int, head_dim: int) -> npt.NDArray[np.int16]:
    """Return cosines and sines (1, C, D/2, 2) in Q1.14."""
    angles = rope_angles(context, head_dim)
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    table: npt.NDArray[np.int16] = np.rint(pairs * (1 << 14)).astype(np.int16)
    return table[None]


def _random_block(rng: Rng, model: QuantizedModel, x: npt.NDArray[np.int16]) -> Block:
    """Return a block calibrated on the residual stream x (S, H), stage by stage."""
    family = FAMILIES[model.shape.family]
    queries, keys = (
        model.shape.q_columns,
        model.shape.kv_columns,
    )
    norm1, norm2 = (random_norm(rng, model.shape.hidden, family.norm) for _ in range(2))
    first, second = (decoder.norm(model, x, norm) for norm in (norm1, norm2))
    qkv = random_linear(rng, first, queries + 2 * keys, 26.0, family.qkv_bias)
    q, k, _ = np.split(decoder.linear8(first, qkv), [queries, queries + keys], axis=1)
    if model.rope is not None:
        rows = model.rope[0, : len(x)]
        q, k = (
            decoder.rotated(q, rows, model.shape.heads),
            decoder.rotated(k, rows, model.shape.kv_heads),
        )
    dots = q[:, : model.shape.head_dim].astype(np.float64) @ k[:, : model.shape.head_dim].T
    score_mult, score_shift = factor(120.0 / float(dots.std()))
    guess = rng.integers(-40, 41, (len(x), queries)).astype(np.int8)
    proj = random_linear(rng, guess, model.shape.hidden, 3000.0, not family.gated)
    up = random_linear(rng, second, model.shape.ffn, 26.0, not family.gated)
    inner = decoder.linear8(second, up)
    gate, product = None, (0, 0)
    if family.gated:
        table = silu_table(ACT_SCALE, ACT_SCALE)
        gate = random_linear(rng, second, model.shape.ffn, 26.0, bias=False)
        pair = table[decoder.linear8(second, gate).view(np.uint8)].astype(np.int64) * inner
        product = factor(12.0 / float(pair.std()))  # products have long tails
        active = np.clip(np.rint(pair * product[0] / 2.0 ** product[1]), -128, 127).astype(np.int8)
    else:
        table = gelu_table(ACT_SCALE, ACT_SCALE)
        active = table[inner.view(np.uint8)]
    return Block(
        norm1,
        qkv,
        score_mult,
        score_shift,
        proj,
        norm2,
        up,
        table,
        random_linear(rng, active, model.shape.hidden, 3000.0, not family.gated),
        gate,
        *product,
    )


def random_model(
    seed: int,
    family: str = "gpt2",
    *,
    hidden: int = 64,
    heads: int = 4,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    layers: int = 2,
    ffn: int = 256,
    vocab: int = 256,
    context: int = 128,
    window: int | None = None,
) -> QuantizedModel:
    """Return a decoder with random weights whose every stage is well scaled.

    `kv_heads` defaults to heads, `head_dim` to hidden // heads, `window` to the family's.
    """
    rng = seeded(seed)
    kind = FAMILIES[family]
    head_dim = head_dim or hidden // heads
    kv_heads = kv_heads or heads
    ids = rng.integers(0, vocab, min(64, context)).tolist()
    model = QuantizedModel(
        shape=Shape(
            family=family,
            norm=kind.norm,
            hidden=hidden,
            layers=1,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            ffn=ffn,
            vocab=vocab,
            context=context,
            window=kind.window if window is None else window,
            rope=kind.rope,
        ),
        wte=np.rint(rng.normal(0, 4000, (vocab, hidden))).astype(np.int16),
        wpe=None if kind.rope else np.rint(rng.normal(0, 1500, (context, hidden))).astype(np.int16),
        rope=rope_table(context, head_dim) if kind.rope else None,
        blocks=(_placeholder(rng, hidden, (heads + 2 * kv_heads, heads), head_dim, ffn),),
        final_norm=random_norm(rng, hidden, kind.norm),
        head=_ones(hidden, vocab),
        scales={"residual": RESIDUAL_SCALE, "logits": 1e-3},
    )
    x = decoder.embed(model, ids)
    blocks: list[Block] = []
    for _ in range(layers):
        blocks.append(_random_block(rng, model, x))
        shape = replace(model.shape, layers=len(blocks), gated=kind.gated)
        model = replace(model, shape=shape, blocks=tuple(blocks))
        x = decoder.block(model, len(blocks) - 1, x).resid2
    final = decoder.norm(model, x, model.final_norm)
    head = random_linear(rng, final, vocab, 6000.0, bias=False)
    return replace(model, head=head, scales=_scales(model))


def _scales(model: QuantizedModel) -> dict[str, float]:
    """Return real scales under which the integer network has scores of 1/sqrt(head_dim)."""
    scales = dict(model.scales)
    for layer, block in enumerate(model.blocks):
        per_unit = block.score_mult / 2.0**block.score_shift * math.log(2) / 64
        root = math.sqrt(per_unit * math.sqrt(model.shape.head_dim))
        scales |= {f"h.{layer}.{name}": root for name in "qk"}
        scales |= {f"h.{layer}.{name}": 1 / 32 for name in ("v", "ctx")}
        scales |= {f"h.{layer}.{name}": ACT_SCALE for name in ("up", "act")}
        if block.gate is not None:
            scales |= {f"h.{layer}.{name}": ACT_SCALE for name in ("gate", "silu")}
            unit = block.product_mult / 2.0**block.product_shift
            scales[f"h.{layer}.act"] = ACT_SCALE * ACT_SCALE / unit
    return scales


def _ones(inputs: int, outputs: int) -> Linear:
    """Return a layer that is replaced before use."""
    return Linear(
        np.ones((inputs, outputs), np.int8),
        np.zeros(outputs, np.int32),
        np.full(outputs, 1 << 14, np.uint16),
        np.zeros(outputs, np.uint8),
    )


def _placeholder(rng: Rng, hidden: int, parts: tuple[int, int], head_dim: int, ffn: int) -> Block:
    """Return a block of the right shapes that is replaced before use; parts: heads of qkv, proj."""
    return Block(
        random_norm(rng, hidden),
        _ones(hidden, parts[0] * head_dim),
        1 << 14,
        14,
        _ones(parts[1] * head_dim, hidden),
        random_norm(rng, hidden),
        _ones(hidden, ffn),
        np.zeros(256, np.int8),
        _ones(ffn, hidden),
    )
