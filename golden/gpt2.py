# SPDX-License-Identifier: Apache-2.0
"""GPT-2 as plain integer arithmetic, from token ids to int16 logits, without any microcode.

Every tensor is computed from the model's integers alone by the operations of this package. One
block, residual stream x (S, H) int16:

    ln1 = norm8(x); q | k | v = sat8(qkv(ln1)), the heads contiguous inside each
    scores = sat16(rs(q k^T * score_mult, score_shift)); numer, sums = base-2 softmax, causal, u16
    ctx = sat8(rs((numer v) * recip(sums), 16 + msb(sums)))
    resid1 = sat16(x + sat16(proj(ctx)))
    ln2 = norm8(resid1); fc = gelu_table[sat8(fc(ln2))]; resid2 = sat16(resid1 + sat16(down(fc)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from golden.fixed import as_int64, sat16
from golden.gelu import apply_table
from golden.gemm import accumulate, combined, per_row
from golden.layernorm import norm8
from golden.requantize import requantize8, requantize16
from golden.softmax import numerators16

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weights.model import Block, Linear, Norm, QuantizedModel

Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class BlockTrace:
    """Every tensor of one block; S positions, H hidden, h heads, D head dimension, F feed-forward.

    Attributes:
        ln1: (S, H) int8.
        q, k, v: (S, H) int8, head i in columns i*D .. i*D+D-1.
        scores: (h, S, S) int16, all columns (also those that the mask hides).
        numer: (h, S, S) uint16, 0 where masked.
        sums: (h, S) uint32.
        ctx: (S, H) int8.
        proj: (S, H) int16, before the residual add.
        resid1: (S, H) int16, after the add.
        ln2: (S, H) int8.
        fc_pre: (S, F) int8, before GELU.
        fc: (S, F) int8, after GELU.
        down: (S, H) int16, before the residual add.
        resid2: (S, H) int16, the block's output.

    """

    ln1: Int8Array
    q: Int8Array
    k: Int8Array
    v: Int8Array
    scores: Int16Array
    numer: npt.NDArray[np.uint16]
    sums: npt.NDArray[np.uint32]
    ctx: Int8Array
    proj: Int16Array
    resid1: Int16Array
    ln2: Int8Array
    fc_pre: Int8Array
    fc: Int8Array
    down: Int16Array
    resid2: Int16Array


@dataclass(frozen=True, slots=True, eq=False)
class ModelTrace:
    """A whole forward pass.

    Attributes:
        residuals: layers + 1 residual streams (S, H) int16: the input of every block, in order,
            then the output of the last one.
        final: (S, H) int8, the final norm.
        logits: (S, V) int16.

    """

    residuals: tuple[Int16Array, ...]
    final: Int8Array
    logits: Int16Array


def norm(x: Int16Array, params: Norm) -> Int8Array:
    """Return the LayerNorm of (S, H) int16 rows as int8."""
    return norm8(x, params.eps_term, params.gain, params.shift, params.bias)


def linear8(x: Int8Array, layer: Linear) -> Int8Array:
    """Return sat8(rs((x @ weight + bias) * mult, shift)), (S, N) int8."""
    sums = combined(accumulate(x, layer.weight)) + layer.bias
    return requantize8(sums, layer.mult, layer.shift)


def linear16(x: Int8Array, layer: Linear) -> Int16Array:
    """Return sat16(rs((x @ weight + bias) * mult, shift)), (S, N) int16."""
    sums = combined(accumulate(x, layer.weight)) + layer.bias
    return requantize16(sums, layer.mult, layer.shift)


def residual_add(x: Int16Array, y: Int16Array) -> Int16Array:
    """Return sat16(x + y)."""
    return sat16(as_int64(x) + as_int64(y))


def embed(model: QuantizedModel, ids: Sequence[int], pos: int = 0) -> Int16Array:
    """Return sat16(wte[id] + wpe[position]) for token ids at positions pos, pos + 1, ...

    Returns:
        (S, H) int16 at the residual scale.

    Raises:
        ValueError: for an id outside the vocabulary or no integer, no ids, or positions outside
            the context.

    """
    try:
        tokens = np.asarray(ids)
    except ValueError:  # rows of different lengths
        tokens = np.zeros((0, 0))
    fits = tokens.ndim == 1 and tokens.size > 0 and isinstance(pos, int) and pos >= 0
    if not fits or pos + tokens.size > model.context:
        raise ValueError(
            f"embed: given ids of shape {tokens.shape} at position {pos!r}, allowed 1 or more ids "
            f"in positions 0..{model.context - 1}"
        )
    if tokens.dtype.kind not in "iu":
        raise ValueError(f"embed: given ids of dtype {tokens.dtype}, allowed integers")
    if int(tokens.min()) < 0 or int(tokens.max()) >= model.vocab:
        raise ValueError(
            f"embed: given ids {int(tokens.min())}..{int(tokens.max())}, "
            f"allowed 0..{model.vocab - 1}"
        )
    assert model.wpe is not None
    return residual_add(model.wte[tokens], model.wpe[pos : pos + tokens.size])


def split_heads(x: Int8Array, heads: int) -> Int8Array:
    """Return (S, H) as (heads, S, head_dim)."""
    return x.reshape(x.shape[0], heads, -1).transpose(1, 0, 2)


def attention_scores(q: Int8Array, k: Int8Array, heads: int, block: Block) -> Int16Array:
    """Return (heads, S, S) int16 scores of (S, H) int8 queries and keys, nothing masked."""
    pairs = zip(split_heads(q, heads), split_heads(k, heads), strict=True)
    return np.stack(
        [
            requantize16(combined(accumulate(one_q, one_k.T)), block.score_mult, block.score_shift)
            for one_q, one_k in pairs
        ]
    )


def attention_context(
    numer: npt.NDArray[np.uint16], sums: npt.NDArray[np.uint32], v: Int8Array
) -> Int8Array:
    """Return the context (S, H) int8 of numerators (h, S, S), sums (h, S) and values (S, H)."""
    heads = []
    for e, total, one_v in zip(numer, sums, split_heads(v, numer.shape[0]), strict=True):
        factor = per_row(total)
        heads.append(requantize8(combined(accumulate(e, one_v)), factor.mult, factor.shift))
    return np.concatenate(heads, axis=1)


def block(model: QuantizedModel, layer: int, x: Int16Array) -> BlockTrace:
    """Run one block on the residual stream x (S, H) int16 from position 0 and keep every tensor.

    Raises:
        ValueError: for a layer that the model does not have, or an x of another type or shape.

    """
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < len(model.blocks):
        raise ValueError(f"block: layer: given {layer!r}, allowed 0..{len(model.blocks) - 1}")
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", type(x).__name__)
    allowed = f"(1..{model.context}, {model.hidden}) int16"
    if dtype != np.int16 or shape is None or len(shape) != 2 or shape[1] != model.hidden:
        raise ValueError(f"block: x: given {shape} {dtype}, allowed {allowed}")
    if not 1 <= shape[0] <= model.context:
        raise ValueError(f"block: x: given {shape[0]} rows, allowed {allowed}")
    params = model.blocks[layer]
    ln1 = norm(x, params.norm1)
    q, k, v = np.split(linear8(ln1, params.qkv), 3, axis=1)
    scores = attention_scores(q, k, model.heads, params)
    softmaxed = [numerators16(head, causal=True) for head in scores]
    numer = np.stack([e for e, _ in softmaxed])
    sums = np.stack([total for _, total in softmaxed])
    ctx = attention_context(numer, sums, v)
    proj = linear16(ctx, params.proj)
    resid1 = residual_add(x, proj)
    ln2 = norm(resid1, params.norm2)
    fc_pre = linear8(ln2, params.up)
    fc = apply_table(fc_pre, params.table)
    down = linear16(fc, params.down)
    return BlockTrace(
        ln1=ln1,
        q=q,
        k=k,
        v=v,
        scores=scores,
        numer=numer,
        sums=sums,
        ctx=ctx,
        proj=proj,
        resid1=resid1,
        ln2=ln2,
        fc_pre=fc_pre,
        fc=fc,
        down=down,
        resid2=residual_add(resid1, down),
    )


def residuals(model: QuantizedModel, ids: Sequence[int]) -> tuple[Int16Array, ...]:
    """Return the layers + 1 residual streams (S, H) int16 of a prompt."""
    streams = [embed(model, ids)]
    for layer in range(model.layers):
        streams.append(block(model, layer, streams[-1]).resid2)
    return tuple(streams)


def forward_trace(model: QuantizedModel, ids: Sequence[int]) -> ModelTrace:
    """Run the whole network on token ids and keep residual streams, final norm and logits."""
    streams = residuals(model, ids)
    final = norm(streams[-1], model.final_norm)
    return ModelTrace(streams, final, linear16(final, model.head))


def forward(model: QuantizedModel, ids: Sequence[int]) -> Int16Array:
    """Return the logits (S, V) int16 of token ids at positions 0..S-1."""
    return forward_trace(model, ids).logits
