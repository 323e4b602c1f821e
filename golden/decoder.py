# SPDX-License-Identifier: Apache-2.0
"""A decoder as plain integer arithmetic, from token ids to int16 logits, without any microcode.

Every tensor is computed from the model's integers alone by the operations of this package. One
block, residual stream x (S, H) int16 at positions P..P+S-1:

    x in the block's units: rs(x, stream_shift)
    norm1 = norm8(x), or without norms before parts sat8(rs(x * mult, shift))
    q | k | v = sat8(qkv(norm1)), the heads contiguous inside each
    with norms of q and k these are sat16, and q_norm, k_norm = norm8 of every head, or of a row
    q_rope, k_rope = q and k (or their norms) rotated by their positions and the table of the layer,
        where the model has one
    scores = sat16(rs(q k^T * score_mult, score_shift)) over all keys so far, query head h with
        K/V head h // group; numer, sums = base-2 softmax of the visible ones, u16
    ctx = sat8(rs((numer v) * recip(sums), 16 + msb(sums)))
    proj = sat16(proj(ctx)); with norms behind parts o_norm = norm16(proj) takes its place
    resid1 = sat16(x + proj); norm2 = norm8(resid1), of parallel parts norm8(x), or as norm1
    up = sat8(up(norm2))
    plain: act = table[up]; gated: gate = sat8(gate(norm2)), silu = table[gate],
        act = sat8(rs(silu * up * product_mult, product_shift)); wide: gate and up sat16,
        near = sat8(rs(gate * near_mult, near_shift)), ratio = table[near],
        silu = sat16(rs(gate * ratio, 7)),
        act = sat16(rs(silu * up, product_shift)) from -act_limit - 1 to act_limit
    down = sat16(down(act)), down_norm as o_norm; resid2 = sat16(resid1 + down)

All functions below the public ones take any number of leading axes before (S, H).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from golden.fixed import Int64Array, IntArray, as_int64, multiply, rs, sat8, sat16
from golden.gelu import apply_table
from golden.layernorm import norm8, norm16
from golden.requantize import requantize8, requantize16
from golden.rope import rotate
from golden.softmax import numerators16, reciprocal
from weights.model import RATIO_BITS, Rescale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weights.model import AnyLinear, Block, Norm, QuantizedModel

Int8Array = npt.NDArray[np.int8]
Int16Array = npt.NDArray[np.int16]

COLUMNS_AT_ONCE = 8192
"""Columns of a head that are multiplied at once: float64 copies of all take much memory."""
ROWS_AT_ONCE = 512
"""Positions that `forward_rows` works on at once: what fits a processor's cache is fastest."""


class ContextFullError(ValueError):
    """More positions are needed than the model's context has.

    Attributes:
        produced: the tokens that were generated before.

    """

    def __init__(self, message: str, produced: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.produced = tuple(produced)


@dataclass(frozen=True, slots=True, eq=False)
class KeyValues:
    """What attention reads of the positions so far in one layer; G = kv_heads * head_dim.

    Attributes:
        k: (P, G) int8, rotated where the model rotates; head i in columns i*D .. i*D+D-1.
        v: (P, G) int8.

    """

    k: Int8Array
    v: Int8Array

    def followed_by(self, k: Int8Array, v: Int8Array) -> KeyValues:
        """Return these positions and then those of k and v (..., S, G)."""
        before = (*k.shape[:-2], *self.k.shape)
        return KeyValues(
            np.concatenate([np.broadcast_to(self.k, before), k], axis=-2),
            np.concatenate([np.broadcast_to(self.v, before), v], axis=-2),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BlockTrace:
    """Every tensor of one block, in the order of the data flow; None: the model has it not.

    S positions, T = P + S keys, H hidden, h heads, D head dimension, Q = h * D, G = K/V heads * D,
    F feed-forward.

    Attributes:
        stream: (S, H) int16, the input in the block's units where they differ from those before.
        norm1: (S, H) int8.
        q: (S, Q) int8, head i in columns i*D .. i*D+D-1; int16 in front of a norm.
        k: (S, G), the same with K/V heads.
        v: (S, G) int8.
        q_norm, k_norm: q and k normalised, int8.
        q_rope, k_rope: q and k, or their norms, after the rotation, int8.
        scores: (h, S, T) int16, all columns (also those that the mask hides).
        numer: (h, S, T) uint16, 0 where masked.
        sums: (h, S) uint32.
        ctx: (S, Q) int8.
        proj: (S, H) int16, before the residual add, or before its norm.
        o_norm: (S, H) int16, proj normalised, before the residual add.
        resid1: (S, H) int16, after the add.
        norm2: (S, H) int8.
        gate: (S, F) int8, before its table; int16 of a wide block.
        near: (S, F) int8, the gate in coarse units, which choose the ratio; of a wide block.
        ratio: (S, F) int8, what the gate is multiplied by, table[near]; of a wide block.
        silu: (S, F), the type of `gate`, the activation of it.
        up: (S, F) int8, before the table or the product; int16 of a wide block.
        act: (S, F), the same type, the input of `down`.
        down: (S, H) int16, before the residual add, or before its norm.
        down_norm: (S, H) int16, down normalised, before the residual add.
        resid2: (S, H) int16, the block's output.

    """

    stream: Int16Array | None
    norm1: Int8Array
    q: Int8Array | Int16Array
    k: Int8Array | Int16Array
    v: Int8Array
    q_norm: Int8Array | None
    k_norm: Int8Array | None
    q_rope: Int8Array | None
    k_rope: Int8Array | None
    scores: Int16Array
    numer: npt.NDArray[np.uint16]
    sums: npt.NDArray[np.uint32]
    ctx: Int8Array
    proj: Int16Array
    o_norm: Int16Array | None
    resid1: Int16Array
    norm2: Int8Array
    gate: Int8Array | Int16Array | None
    near: Int8Array | None
    ratio: Int8Array | None
    silu: Int8Array | Int16Array | None
    up: Int8Array | Int16Array
    act: Int8Array | Int16Array
    down: Int16Array
    down_norm: Int16Array | None
    resid2: Int16Array

    @property
    def keys(self) -> Int8Array:
        """(S, G) int8, the keys as attention reads them."""
        found = (self.k_rope, self.k_norm, sat8(self.k))
        return next(keys for keys in found if keys is not None)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Return the tensors that the model has, by name."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class ModelTrace:
    """A whole forward pass.

    Attributes:
        embedding: (S, H) int16, the residual stream before the first block.
        blocks: every tensor of every block.
        final: (S, H) int8, the final norm.
        logits: (S, V) int16.

    """

    embedding: Int16Array
    blocks: tuple[BlockTrace, ...]
    final: Int8Array
    logits: Int16Array

    @property
    def residuals(self) -> tuple[Int16Array, ...]:
        """The layers + 1 residual streams: every block's input, then the last one's output."""
        return self.embedding, *(block.resid2 for block in self.blocks)


def product(a: IntArray, b: IntArray) -> Int64Array:
    """Return the exact matrix products of (..., M, K) and (..., K, N) integers of up to 16 bits.

    float64 sums of integers below 2^53 are exact in any order: K * 65535 * 128 stays below that for
    every K up to 2^30.
    """
    exact: npt.NDArray[np.float64] = a.astype(np.float64) @ b.astype(np.float64)
    return exact.astype(np.int64)


def norm(model: QuantizedModel, x: IntArray, params: Norm | Rescale) -> Int8Array:
    """Return norms of int16 rows as int8, or sat8(rs(x * mult, shift)).

    A norm of fewer elements than the last axis has is one of every so many: of heads.
    """
    if isinstance(params, Rescale):
        return requantize8(x, params.mult, params.shift)
    rows, rms = x.reshape(-1, params.size), model.shape.norm == "rmsnorm"
    y = norm8(rows, params.eps_term, params.gain, params.shift, params.bias, rms=rms)
    return y.reshape(x.shape)


def part_norm(model: QuantizedModel, x: Int16Array, params: Norm) -> Int16Array:
    """Return the norm of (..., H) int16 rows as int16: what a part adds to the stream."""
    rows, rms = x.reshape(-1, params.size), model.shape.norm == "rmsnorm"
    y = norm16(rows, params.eps_term, params.gain, params.shift, params.bias, rms=rms)
    return y.reshape(x.shape)


def linear8(x: Int8Array, layer: AnyLinear) -> Int8Array:
    """Return sat8(rs((x @ weight + bias) * mult, shift)), (..., N) int8."""
    return requantize8(product(x, layer.weight) + layer.bias, layer.mult, layer.shift)


def linear16(x: Int8Array | Int16Array, layer: AnyLinear) -> Int16Array:
    """Return sat16(rs((x @ weight + bias) * mult, shift)), (..., N) int16."""
    weight, result = layer.weight, np.empty((*x.shape[:-1], layer.outputs), np.int16)
    for first in range(0, layer.outputs, COLUMNS_AT_ONCE):
        part = slice(first, first + COLUMNS_AT_ONCE)
        sums = product(x, weight[:, part]) + layer.bias[part]
        result[..., part] = requantize16(sums, layer.mult[part], layer.shift[part])
    return result


def projected(
    model: QuantizedModel, x: Int8Array, params: Block
) -> tuple[Int8Array | Int16Array, Int8Array | Int16Array, Int8Array]:
    """Return q (..., Q), k and v (..., G): int8, but q and k int16 where they are normalised."""
    queries, keys = model.shape.q_columns, model.shape.kv_columns
    q, k, v = np.split(linear16(x, params.qkv), [queries, queries + keys], axis=-1)
    return (q, k, sat8(v)) if model.shape.head_norms else (sat8(q), sat8(k), sat8(v))


def streamed(x: Int16Array, params: Block) -> Int16Array:
    """Return rs(x, stream_shift), the stream in the units of a block."""
    return sat16(rs(as_int64(x), params.stream_shift)) if params.stream_shift else x


def residual_add(x: Int16Array, y: Int16Array) -> Int16Array:
    """Return sat16(x + y)."""
    return sat16(as_int64(x) + as_int64(y))


def coarse(gate: Int16Array, params: Block) -> Int8Array:
    """Return sat8(rs(gate * near_mult, near_shift)), what the table of a wide block is read by."""
    return sat8(rs(multiply(gate, params.near_mult), params.near_shift))


def bent(gate: Int16Array, ratio: Int8Array) -> Int16Array:
    """Return sat16(rs(gate * ratio, 7)), the activation of a wide block."""
    return sat16(rs(as_int64(gate) * as_int64(ratio), RATIO_BITS))


def gated(silu: IntArray, up: IntArray, params: Block) -> Int8Array | Int16Array:
    """Return the input of `down` of a gated feed-forward.

    sat8(rs(silu * up * mult, shift)), or where it is wide sat16(rs(silu * up, shift)) limited to
    -act_limit - 1 and act_limit.
    """
    pair = as_int64(silu) * as_int64(up)
    if params.wide:
        limit = params.act_limit
        return np.clip(sat16(rs(pair, params.product_shift)), -limit - 1, limit)
    return sat8(rs(multiply(pair, params.product_mult), params.product_shift))


def split_heads(x: Int8Array, heads: int) -> Int8Array:
    """Return (..., S, heads * D) as (..., heads, S, D)."""
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def rotated(x: Int8Array, rows: Int16Array, heads: int) -> Int8Array:
    """Return (..., S, heads * D) int8 with all heads turned by the rope rows (S, D/2, 2)."""
    by_head = x.reshape(*x.shape[:-1], heads, -1)
    return rotate(by_head, rows[:, None, :, 0], rows[:, None, :, 1]).reshape(x.shape)


def attention_scores(
    model: QuantizedModel, q: Int8Array, k: Int8Array, params: Block
) -> Int16Array:
    """Return (..., heads, S, T) int16 scores of (..., S, Q) queries and (..., T, G) keys."""
    queries = split_heads(q, model.shape.heads)
    keys = np.repeat(split_heads(k, model.shape.kv_heads), model.shape.group, axis=-3)
    dots = product(queries, keys.swapaxes(-1, -2))
    return requantize16(dots, params.score_mult, params.score_shift)


def attention_weights(
    model: QuantizedModel, layer: int, scores: Int16Array
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Return numerators (..., S, T) and sums (..., S); the last S of the T keys are the rows' own.

    A row sees itself and the keys before it, or the last ones of them in the layer's window.
    """
    rows, columns = scores.shape[-2:]
    numer, sums = numerators16(
        scores.reshape(-1, columns),
        causal=True,
        pos=columns - rows,
        rows_per_head=rows,
        window=model.shape.window_of(layer),
    )
    return numer.reshape(scores.shape), sums.reshape(scores.shape[:-1])


def attention_context(
    model: QuantizedModel,
    numer: npt.NDArray[np.uint16],
    sums: npt.NDArray[np.uint32],
    v: Int8Array,
) -> Int8Array:
    """Return the context (..., S, Q) int8 of numerators, sums and values (..., T, G)."""
    values = np.repeat(split_heads(v, model.shape.kv_heads), model.shape.group, axis=-3)
    factor = reciprocal(sums)
    mixed = requantize8(
        product(numer, values), factor.value[..., None], factor.shift[..., None]
    ).swapaxes(-2, -3)
    return mixed.reshape(*mixed.shape[:-2], -1)


def _checked(
    where: str, model: QuantizedModel, ids: object, pos: int, dimensions: int = 1
) -> npt.NDArray[np.integer[Any]]:
    """Return the ids as an array, once they are tokens of the model that fit its context."""
    try:
        tokens = np.asarray(ids)
    except ValueError:  # rows of different lengths
        tokens = np.empty((0, 0))
    fine = isinstance(pos, int) and not isinstance(pos, bool) and 0 <= pos < model.shape.context
    if tokens.ndim != dimensions or not tokens.size or not fine:
        what = "1 or more ids" if dimensions == 1 else "rows of 1 or more ids"
        raise ValueError(
            f"{where}: given ids of shape {tokens.shape} at position {pos!r}, allowed {what} "
            f"in positions 0..{model.shape.context - 1}"
        )
    if tokens.dtype.kind not in "iu":
        raise ValueError(f"{where}: given ids of dtype {tokens.dtype}, allowed integers")
    if pos + tokens.shape[-1] > model.shape.context:
        raise ContextFullError(
            f"{where}: context full: given {tokens.shape[-1]} ids at position {pos}, "
            f"allowed at most {model.shape.context - pos} of {model.shape.context} positions"
        )
    if int(tokens.min()) < 0 or int(tokens.max()) >= model.shape.vocab:
        raise ValueError(
            f"{where}: given ids {int(tokens.min())}..{int(tokens.max())}, "
            f"allowed 0..{model.shape.vocab - 1}"
        )
    return tokens


def _embed(model: QuantizedModel, tokens: npt.NDArray[np.integer[Any]], pos: int) -> Int16Array:
    """Return the rows of checked tokens."""
    rows: Int16Array = model.wte[tokens]
    if model.wpe is None:
        return rows
    return residual_add(rows, model.wpe[pos : pos + tokens.shape[-1]])


def embed(model: QuantizedModel, ids: Sequence[int], pos: int = 0) -> Int16Array:
    """Return the residual stream (S, H) int16 of token ids at positions pos..pos+S-1.

    Raises:
        ContextFullError: the positions leave the context.
        ValueError: no ids, no integers, or ids outside the vocabulary.

    """
    return _embed(model, _checked("embed", model, ids, pos), pos)


def _block(model: QuantizedModel, layer: int, x: Int16Array, past: KeyValues | None) -> BlockTrace:
    """Run one block on (..., S, H) behind a past (P, G), which leading axes share."""
    params, shape = model.blocks[layer], model.shape
    x = streamed(x, params)
    norm1 = norm(model, x, params.norm1)
    q, k, v = projected(model, norm1, params)
    q_norm = None if params.q_norm is None else norm(model, q, params.q_norm)
    k_norm = None if params.k_norm is None else norm(model, k, params.k_norm)
    queries, keys = sat8(q) if q_norm is None else q_norm, sat8(k) if k_norm is None else k_norm
    q_rope = k_rope = None
    if model.rope is not None:
        pos = 0 if past is None else past.k.shape[0]
        rows = model.rope[shape.table_of(layer), pos : pos + x.shape[-2]]
        queries = q_rope = rotated(queries, rows, shape.heads)
        keys = k_rope = rotated(keys, rows, shape.kv_heads)
    own = KeyValues(keys, v)
    seen = own if past is None else past.followed_by(own.k, own.v)
    scores = attention_scores(model, queries, seen.k, params)
    numer, sums = attention_weights(model, layer, scores)
    ctx = attention_context(model, numer, sums, seen.v)
    proj = linear16(ctx, params.proj)
    o_norm = None if params.o_norm is None else part_norm(model, proj, params.o_norm)
    resid1 = residual_add(x, proj if o_norm is None else o_norm)
    norm2 = norm(model, x if shape.parallel else resid1, params.norm2)
    gate: Int8Array | Int16Array | None = None
    silu: Int8Array | Int16Array | None = None
    near = ratio = None
    up: Int8Array | Int16Array
    act: Int8Array | Int16Array
    if params.gate is None:
        plain = linear8(norm2, params.up)
        up, act = plain, apply_table(plain, params.table)
    elif params.wide:
        up, gate = linear16(norm2, params.up), linear16(norm2, params.gate)
        near = coarse(gate, params)
        ratio = apply_table(near, params.table)
        silu = bent(gate, ratio)
        act = gated(silu, up, params)
    else:
        up, gate = linear8(norm2, params.up), linear8(norm2, params.gate)
        silu = apply_table(gate, params.table)
        act = gated(silu, up, params)
    down = linear16(act, params.down)
    down_norm = None if params.down_norm is None else part_norm(model, down, params.down_norm)
    return BlockTrace(
        stream=x if params.stream_shift else None,
        norm1=norm1,
        q=q,
        k=k,
        v=v,
        q_norm=q_norm,
        k_norm=k_norm,
        q_rope=q_rope,
        k_rope=k_rope,
        scores=scores,
        numer=numer,
        sums=sums,
        ctx=ctx,
        proj=proj,
        o_norm=o_norm,
        resid1=resid1,
        norm2=norm2,
        gate=gate,
        near=near,
        ratio=ratio,
        silu=silu,
        up=up,
        act=act,
        down=down,
        down_norm=down_norm,
        resid2=residual_add(resid1, down if down_norm is None else down_norm),
    )


def block(
    model: QuantizedModel, layer: int, x: Int16Array, past: KeyValues | None = None
) -> BlockTrace:
    """Run one block on the residual stream x (S, H) int16 behind `past` and keep every tensor.

    Args:
        model: the model.
        layer: 0 and up.
        x: rows at positions P..P+S-1.
        past: keys and values of positions 0..P-1 in this layer; None for P = 0.

    Raises:
        ValueError: for a layer that the model does not have, an x or a past of another type or
            shape, or positions outside the context.

    """
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < len(model.blocks):
        raise ValueError(f"block: layer: given {layer!r}, allowed 0..{len(model.blocks) - 1}")
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", type(x).__name__)
    before = 0 if past is None else _positions(model, past)
    allowed = f"(1..{model.shape.context - before}, {model.shape.hidden}) int16"
    if dtype != np.int16 or shape is None or len(shape) != 2 or shape[1] != model.shape.hidden:
        raise ValueError(f"block: x: given {shape} {dtype}, allowed {allowed}")
    if not 1 <= shape[0] <= model.shape.context - before:
        raise ValueError(f"block: x: given {shape[0]} rows, allowed {allowed}")
    return _block(model, layer, x, past)


def _positions(model: QuantizedModel, past: KeyValues) -> int:
    """Return P of a well-formed past."""
    columns = model.shape.kv_columns
    for name, value in (("k", past.k), ("v", past.v)):
        if value.dtype != np.int8 or value.shape != (past.k.shape[0], columns):
            raise ValueError(
                f"block: past.{name}: given {value.shape} {value.dtype}, "
                f"allowed ({past.k.shape[0]}, {columns}) int8"
            )
    return int(past.k.shape[0])


def run(
    model: QuantizedModel, embedding: Int16Array, past: Sequence[KeyValues] | None = None
) -> ModelTrace:
    """Run all blocks, the final norm and the head on an embedding (S, H), behind a past per layer.

    The embedding may have leading axes, one sequence each; all have the same past.
    """
    blocks: list[BlockTrace] = []
    x = embedding
    for layer in range(model.shape.layers):
        blocks.append(_block(model, layer, x, None if past is None else past[layer]))
        x = blocks[-1].resid2
    final = norm(model, x, model.final_norm)
    return ModelTrace(embedding, tuple(blocks), final, linear16(final, model.head))


def beginning(model: QuantizedModel) -> list[KeyValues]:
    """Return keys and values of what stands before every text, per layer: the sink, or nothing."""
    if model.sink is None:
        nothing = np.empty((0, model.shape.kv_columns), np.int8)
        return [KeyValues(nothing, nothing)] * model.shape.layers
    return [KeyValues(k[None], v[None]) for k, v in zip(model.sink.k, model.sink.v, strict=True)]


def forward_trace(model: QuantizedModel, ids: Sequence[int]) -> ModelTrace:
    """Run the whole network on a text's token ids and keep every tensor of their rows."""
    return run(model, embed(model, ids, model.first), beginning(model))


def residuals(model: QuantizedModel, ids: Sequence[int]) -> tuple[Int16Array, ...]:
    """Return the layers + 1 residual streams (S, H) int16 of a prompt."""
    return forward_trace(model, ids).residuals


def forward(model: QuantizedModel, ids: Sequence[int]) -> Int16Array:
    """Return the logits (S, V) int16 of a text's token ids."""
    return forward_trace(model, ids).logits


def forward_rows(model: QuantizedModel, rows: npt.NDArray[np.integer[Any]]) -> Int16Array:
    """Return the logits (R, T, V) int16 of R sequences (R, T) of ids, each a text of its own.

    Raises:
        ContextFullError, ValueError: as `embed`.

    """
    tokens = _checked("forward_rows", model, rows, model.first, dimensions=2)
    together = max(1, ROWS_AT_ONCE // tokens.shape[1])
    parts = [tokens[start : start + together] for start in range(0, len(tokens), together)]
    first, past = model.first, beginning(model)
    return np.concatenate([run(model, _embed(model, part, first), past).logits for part in parts])
