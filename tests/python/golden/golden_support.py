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
from weights.model import Block, Linear, Norm, QuantizedModel, Rescale
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
    "gpt_neox": Family("layernorm", rope=True, gated=False, qkv_bias=True),
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


def random_norm(rng: Rng, size: int, kind: NormKind = "layernorm", shift: int = 23) -> Norm:
    """Return a norm to int8 with a standard deviation of about 32; a LayerNorm has small biases.

    With a `shift` of 17 it is one to int16, of about 2000.

    Its epsilon term is that of eps = 1e-5 at RESIDUAL_SCALE.
    """
    gain = rng.integers(9000, 27000, size).astype(np.uint16)
    bias = rng.integers(-3, 4, size) if kind == "layernorm" else np.zeros(size)
    return Norm(
        round(1e-5 * size**2 / RESIDUAL_SCALE**2),
        gain,
        np.full(size, shift, np.uint8),
        bias.astype(np.int8),
    )


def silu_table(scale_in: float, scale_out: float) -> npt.NDArray[np.int8]:
    """Return the SiLU table, x / (1 + exp(-x)), for the real values of one unit."""
    x = np.arange(256, dtype=np.uint8).view(np.int8) * scale_in
    table: npt.NDArray[np.int8] = np.clip(
        np.rint(x / (1 + np.exp(-x)) / scale_out), -128, 127
    ).astype(np.int8)
    return table


def rope_angles(context: int, head_dim: int, number: int = 0) -> npt.NDArray[np.float64]:
    """Return the angles (C, D/2) of every position and pair of lanes in the table of a number."""
    theta = ROPE_THETA / 100.0**number
    rates = theta ** (-2.0 * np.arange(head_dim // 2) / head_dim)
    return np.arange(context)[:, None] * rates


def rope_tables(context: int, head_dim: int, count: int) -> npt.NDArray[np.int16]:
    """Return cosines and sines (T, C, D/2, 2) in Q1.14."""
    angles = np.stack([rope_angles(context, head_dim, number) for number in range(count)])
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    tables: npt.NDArray[np.int16] = np.rint(pairs * (1 << 14)).astype(np.int16)
    return tables


def _joined(layers: list[Linear]) -> Linear:
    """Return one layer with the outputs of all."""
    names = ("weight", "bias", "mult", "shift")
    return Linear(*(np.concatenate([getattr(one, n) for one in layers], axis=-1) for n in names))


def _random_entry(rng: Rng, shape: Shape, x: npt.NDArray[np.int16]) -> Norm | Rescale:
    """Return what turns the stream x (S, H) into int8."""
    if shape.pre_norms:
        return random_norm(rng, shape.hidden, shape.norm)
    return Rescale(*factor(32.0 / float(x.std())), shape.hidden)


def _random_block(
    rng: Rng,
    model: QuantizedModel,
    shape: Shape,
    rope: npt.NDArray[np.int16] | None,
    x: npt.NDArray[np.int16],
) -> Block:
    """Return a block calibrated on the residual stream x (S, H), stage by stage.

    The model has the kind of the norms, the shape all else.
    """
    family = FAMILIES[shape.family]
    norm1, norm2 = (_random_entry(rng, shape, x) for _ in range(2))
    first, second = (decoder.norm(model, x, norm) for norm in (norm1, norm2))
    columns = {"q": shape.q_columns, "k": shape.kv_columns, "v": shape.kv_columns}
    spread = {name: 3000.0 if shape.head_norms and name in "qk" else 26.0 for name in columns}
    parts = {
        name: random_linear(rng, first, count, spread[name], family.qkv_bias)
        for name, count in columns.items()
    }
    norms: dict[str, Norm | None] = {}
    turned = {}
    for name, heads in (("q", shape.heads), ("k", shape.kv_heads)):
        if shape.head_norms:
            size = shape.head_dim if shape.head_norms == "head" else columns[name]
            one = norms[f"{name}_norm"] = random_norm(rng, size, shape.norm)
            rows = decoder.norm(model, decoder.linear16(first, parts[name]), one)
        else:
            rows = decoder.linear8(first, parts[name])
        turned[name] = rows if rope is None else decoder.rotated(rows, rope[: len(x)], heads)
    own = slice(shape.head_dim)
    dots = turned["q"][:, own].astype(np.float64) @ turned["k"][:, own].T
    score_mult, score_shift = factor(120.0 / float(dots.std()))
    guess = rng.integers(-40, 41, (len(x), shape.q_columns)).astype(np.int8)
    proj = random_linear(rng, guess, shape.hidden, 3000.0, not family.gated)
    up = random_linear(rng, second, shape.ffn, 26.0, not family.gated)
    inner = decoder.linear8(second, up)
    gate, product = None, (0, 0)
    if family.gated:
        table = silu_table(ACT_SCALE, ACT_SCALE)
        gate = random_linear(rng, second, shape.ffn, 26.0, bias=False)
        pair = table[decoder.linear8(second, gate).view(np.uint8)].astype(np.int64) * inner
        product = factor(12.0 / float(pair.std()))  # products have long tails
        active = np.clip(np.rint(pair * product[0] / 2.0 ** product[1]), -128, 127).astype(np.int8)
    else:
        table = gelu_table(ACT_SCALE, ACT_SCALE)
        active = table[inner.view(np.uint8)]
    if shape.part_norms:
        names = ("o_norm", "down_norm")
        norms |= {name: random_norm(rng, shape.hidden, shape.norm, 17) for name in names}
    return Block(
        norm1,
        _joined(list(parts.values())),
        score_mult,
        score_shift,
        proj,
        norm2,
        up,
        table,
        random_linear(rng, active, shape.hidden, 3000.0, not family.gated),
        gate,
        *product,
        **norms,  # type: ignore[arg-type]
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
    **others: Any,  # noqa: ANN401
) -> QuantizedModel:
    """Return a decoder with random weights whose every stage is well scaled.

    `kv_heads` defaults to heads, `head_dim` to hidden // heads, `window` to the family's; `others`
    are further fields of a Shape.
    """
    rng = seeded(seed)
    kind = FAMILIES[family]
    head_dim = head_dim or hidden // heads
    kv_heads = kv_heads or heads
    ids = rng.integers(0, vocab, min(64, context)).tolist()
    plain = Shape(
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
    )
    shape = replace(plain, layers=layers, gated=kind.gated, **others)
    rope = rope_tables(context, head_dim, shape.table_count) if kind.rope else None
    model = QuantizedModel(
        shape=plain,
        wte=np.rint(rng.normal(0, 4000, (vocab, hidden))).astype(np.int16),
        wpe=None if kind.rope else np.rint(rng.normal(0, 1500, (context, hidden))).astype(np.int16),
        rope=None if rope is None else rope[:1],
        blocks=(_placeholder(rng, hidden, (heads + 2 * kv_heads, heads), head_dim, ffn),),
        final_norm=random_norm(rng, hidden, kind.norm),
        head=_ones(hidden, vocab),
        scales={"residual": RESIDUAL_SCALE, "logits": 1e-3},
    )
    x = decoder.embed(model, ids)
    blocks: list[Block] = []
    for layer in range(layers):
        own = None if rope is None else rope[shape.table_of(layer)]
        blocks.append(_random_block(rng, model, shape, own, x))
        rest = [blocks[-1]] * (layers - len(blocks))  # replaced before use
        model = replace(model, shape=shape, rope=rope, blocks=(*blocks, *rest))
        x = decoder.block(model, layer, x).resid2
    final = decoder.norm(model, x, model.final_norm)
    head = random_linear(rng, final, vocab, 6000.0, bias=False)
    return replace(model, head=head, scales=_scales(model))


def _scales(model: QuantizedModel) -> dict[str, float]:
    """Return real scales under which the integer network has scores of 1/sqrt(head_dim)."""
    scales = dict(model.scales)
    for layer, block in enumerate(model.blocks):
        per_unit = block.score_mult / 2.0**block.score_shift * math.log(2) / 64
        root = math.sqrt(per_unit * math.sqrt(model.shape.head_dim))
        read = ("q_norm", "k_norm") if model.shape.head_norms else ("q", "k")
        scales |= {f"h.{layer}.{name}": RESIDUAL_SCALE for name in ("q", "k", "proj", "down")}
        scales |= {f"h.{layer}.{name}": root for name in read}
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
