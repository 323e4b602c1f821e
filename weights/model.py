# SPDX-License-Identifier: Apache-2.0
"""The integer model that the quantiser produces and that every consumer reads.

All tensors are numpy arrays in the dtypes named below, in row-major order, and read-only once they
are inside one of these classes. Every class checks its own shapes, dtypes and ranges on
construction; `QuantizedModel` checks that the parts fit together. Formulas use the helpers

    rs(x, s)  = (x + (1 << (s - 1))) >> s, rs(x, 0) = x      round half up, arithmetic shift
    satN(x)   = x limited to a signed N-bit number
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from weights.formats.linear import NarrowLinear
from weights.limits import (
    EPS_TERM_MAX,
    INT16_MAX,
    INT32_MAX,
    MULT_MAX,
    MULT_MIN,
    RESCALE_SHIFT_MAX,
    SHIFT_MAX,
    WEIGHT_MAX,
    ModelError,
    check_array,
    check_int,
    check_range,
)
from weights.shape import HeadNorms, NormKind, Shape

RATIO_BITS = 7
"""Of the ratio that the gate of a wide block is multiplied by."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A linear layer: y = sat(rs((x @ weight + bias) * mult, shift)), per output channel.

    Attributes:
        weight: (K, N) int8 in [-127, 127]; w = weight * s_w[n].
        bias: (N,) int32 in units of s_a * s_w[n], s_a being the scale of the input x.
        mult: (N,) uint16 in [2^14, 2^15).
        shift: (N,) uint8 in [0, 63]. mult / 2^shift = s_a * s_w[n] / s_y.

    The width that y saturates to follows from the place of the layer in the model. The input is
    int8; |bias| + 128 * sum |weight[:, n]| < 2^31 is checked, so the sum cannot leave int32.
    """

    weight: npt.NDArray[np.int8]
    bias: npt.NDArray[np.int32]
    mult: npt.NDArray[np.uint16]
    shift: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        check_array("Linear.weight", self.weight, np.int8, (None, None))
        columns = self.weight.shape[1]
        check_array("Linear.bias", self.bias, np.int32, (columns,))
        check_array("Linear.mult", self.mult, np.uint16, (columns,))
        check_array("Linear.shift", self.shift, np.uint8, (columns,))
        check_range("Linear.weight", self.weight, -WEIGHT_MAX, WEIGHT_MAX)
        check_range("Linear.mult", self.mult, MULT_MIN, MULT_MAX)
        check_range("Linear.shift", self.shift, 0, SHIFT_MAX)
        bound = self.accumulator_bound()
        if bound > INT32_MAX:
            raise ModelError(
                f"Linear: the accumulator bound |bias| + 128 * sum|weight| is {bound}, "
                f"allowed at most {INT32_MAX} (int32)"
            )

    @property
    def inputs(self) -> int:
        """K, the number of input channels."""
        return int(self.weight.shape[0])

    @property
    def outputs(self) -> int:
        """N, the number of output channels."""
        return int(self.weight.shape[1])

    def accumulator_bound(self) -> int:
        """Return the largest magnitude that x @ weight + bias can reach for any int8 input x."""
        return accumulator_bound(self, 1 << 7)


AnyLinear: TypeAlias = Linear | NarrowLinear
"""A linear layer in int8 or in a narrow format: weight, bias, mult and shift mean the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """A norm with per-channel multipliers, on an int16 row x of H elements.

    V = max(1, H * sum x^2 - (sum x)^2 + eps_term), q = the normalised row in Q5.14,
    y = sat8(rs(q * gain, shift) + bias).

    Attributes:
        eps_term: E = round(eps * H^2 / s_r^2), an int in [0, 2^64), s_r the residual scale.
        gain: (H,) uint16 in [0, 2^15); 0 makes the channel constant.
        shift: (H,) uint8 in [0, 63].
        bias: (H,) int8, added after the rounding, normally 0.
    """

    eps_term: int
    gain: npt.NDArray[np.uint16]
    shift: npt.NDArray[np.uint8]
    bias: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        check_int("Norm.eps_term", self.eps_term, 0, EPS_TERM_MAX)
        check_array("Norm.gain", self.gain, np.uint16, (None,))
        check_array("Norm.shift", self.shift, np.uint8, self.gain.shape)
        check_array("Norm.bias", self.bias, np.int8, self.gain.shape)
        check_range("Norm.gain", self.gain, 0, MULT_MAX)
        check_range("Norm.shift", self.shift, 0, SHIFT_MAX)

    @property
    def size(self) -> int:
        """H, the row length."""
        return int(self.gain.shape[0])


@dataclass(frozen=True, slots=True)
class Rescale:
    """Another unit for an int16 row: y = sat8(rs(x * mult, shift)).

    Attributes:
        mult: 2^14 to 2^15 - 1.
        shift: 0 to 31.
        size: H, the row length.
    """

    mult: int
    shift: int
    size: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_int("Rescale.mult", self.mult, MULT_MIN, MULT_MAX)
        check_int("Rescale.shift", self.shift, 0, RESCALE_SHIFT_MAX)
        check_int("Rescale.size", self.size, 1, INT32_MAX)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One transformer block: norm, attention, residual add, norm, feed-forward, residual add.

    With `Shape.parallel` both norms read the block's input x, else norm2 reads the stream behind
    the first add; what attention gives is added and saturated first, then the feed-forward, in
    either case. H hidden, Q = heads * head_dim, G = kv_heads * head_dim, F feed-forward. A Linear
    below may be a NarrowLinear.

    Attributes:
        stream_shift: the block's input is taken as x = rs(x, stream_shift), in coarser units, by
            norms and adds; what stands below is in these.
        norm1, norm2: norms of the int16 residual stream to int8. Without `Shape.pre_norms` they
            only change its unit.
        qkv: Linear (H, Q + 2G), int8 out, columns q | k | v, the heads contiguous inside each.
            With `Shape.head_norms` q and k are int16.
        q_norm, k_norm: norms of the int16 q and k to int8, over D lanes of each head ("head") or
            over all Q or G columns of a position ("row"); what follows reads their results. The
            same arithmetic as of norm1.
        score_mult, score_shift: scores = sat16(rs((q . k) * score_mult, score_shift)) in units of
            2^-6 of a binary logarithm: s_q * s_k * log2(e) / sqrt(head_dim) * 2^6 is folded in.
        proj: Linear (Q, H) from int8 context, int16 out at the residual scale, or at one of its own
            in front of o_norm.
        o_norm, down_norm: with `Shape.part_norms`, norms of the int16 results of `proj` and `down`
            to int16 at the residual scale, y = sat16(rs(q * gain, shift) + bias); they are what is
            added to the stream.
        up: Linear (H, F), int8 out.
        table: (256,) int8, the activation, indexed by the bit pattern of its int8 input read as
            uint8. It is applied to `gate` where there is one, else to `up`.
        down: Linear (F, H), int16 out as `proj`.
        gate: Linear (H, F), int8 out, of a gated feed-forward; None without.
        product_mult, product_shift: with a gate the input of `down` is
            sat8(rs(table[gate] * up * product_mult, product_shift)); 0 without.
        wide: `gate` and `up` give int16, the table has activation(x) / x in units of 1/127, and
            with near = sat8(rs(gate * near_mult, near_shift)) and product_mult 0
            silu = sat16(rs(gate * table[near], 7)), and the input of `down` is
            sat16(rs(silu * up, product_shift)) limited to -act_limit - 1 and act_limit.
        near_mult, near_shift: of a wide block, 0 without.
        act_limit: 1 to 32767 of a wide block, 0 without.
    """

    norm1: Norm | Rescale
    qkv: AnyLinear
    score_mult: int
    score_shift: int
    proj: AnyLinear
    norm2: Norm | Rescale
    up: AnyLinear
    table: npt.NDArray[np.int8]
    down: AnyLinear
    gate: AnyLinear | None = None
    product_mult: int = 0
    product_shift: int = 0
    wide: bool = False
    near_mult: int = 0
    near_shift: int = 0
    act_limit: int = 0
    stream_shift: int = 0
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    o_norm: Norm | None = None
    down_norm: Norm | None = None

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        check_int("Block.score_mult", self.score_mult, MULT_MIN, MULT_MAX)
        check_int("Block.score_shift", self.score_shift, 0, SHIFT_MAX)
        check_array("Block.table", self.table, np.int8, (256,))
        hidden, ffn = self.norm1.size, self.up.outputs
        _check_size("Block.norm2", (self.norm2.size,), (hidden,))
        _check_size("Block.qkv inputs", (self.qkv.inputs,), (hidden,))
        _check_size("Block.proj outputs", (self.proj.outputs,), (hidden,))
        _check_size("Block.up", self.up.weight.shape, (hidden, ffn))
        _check_size("Block.down", self.down.weight.shape, (ffn, hidden))
        check_int("Block.stream_shift", self.stream_shift, 0, 15)
        for name, norm in (("o_norm", self.o_norm), ("down_norm", self.down_norm)):
            if norm is not None:
                _check_size(f"Block.{name}", (norm.size,), (hidden,))
        if self.gate is None:
            check_int("Block.product_mult without a gate", self.product_mult, 0, 0)
            check_int("Block.product_shift without a gate", self.product_shift, 0, 0)
        else:
            _check_size("Block.gate", self.gate.weight.shape, (hidden, ffn))
            if self.wide:
                check_int("Block.product_mult of a wide block", self.product_mult, 0, 0)
                check_int("Block.near_mult", self.near_mult, MULT_MIN, MULT_MAX)
                check_int("Block.near_shift", self.near_shift, 0, SHIFT_MAX)
                check_int("Block.act_limit", self.act_limit, 1, INT16_MAX)
                bound = accumulator_bound(self.down, self.act_limit + 1)
                check_int("Block.down with an int16 input: accumulator bound", bound, 0, INT32_MAX)
            else:
                check_int("Block.product_mult", self.product_mult, MULT_MIN, MULT_MAX)
                check_int("Block.act_limit without int16", self.act_limit, 0, 0)
            check_int("Block.product_shift", self.product_shift, 0, SHIFT_MAX)


def largest_input(layer: AnyLinear) -> int:
    """Return the largest magnitude of inputs with which no x @ weight + bias can leave int32."""
    sums = np.abs(layer.weight.astype(np.int16)).sum(axis=0, dtype=np.int64)
    room = INT32_MAX - np.abs(layer.bias.astype(np.int64))
    return int((room // np.maximum(sums, 1)).min())


def accumulator_bound(layer: AnyLinear, largest: int) -> int:
    """Return the largest magnitude of x @ weight + bias for any input up to `largest`."""
    sums = np.abs(layer.weight.astype(np.int16)).sum(axis=0, dtype=np.int64)
    return int((largest * sums + np.abs(layer.bias.astype(np.int64))).max())


def _check_size(where: str, given: tuple[int, ...], allowed: tuple[int, ...]) -> None:
    """Raise ModelError unless the two shapes are equal."""
    if given != allowed:
        raise ModelError(f"{where}: given size {given}, allowed {allowed}")


@dataclass(frozen=True, slots=True, eq=False)
class Sink:
    """Keys and values of position 0, which is always the same token (weights.sink).

    Attributes:
        token: its id.
        k, v: (layers, K/V heads * D) int8 as attention reads them, keys rotated.
    """

    token: int
    k: npt.NDArray[np.int8]
    v: npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedModel:
    """A whole decoder in integers.

    Attributes:
        shape: its dimensions, V, H, C and D below.
        wte: (V, H) int16 token embeddings at the residual scale.
        wpe: (C, H) int16 position embeddings at the residual scale, x = sat16(wte + wpe); None
            with `shape.rope`, then x = wte.
        rope: (T, C, D/2, 2) int16 cosine and sine of every position and pair in Q1.14, for lanes t
            and t + D/2 of every head of q and k, in T tables of which layer l has number
            `Shape.table_of(l)`; None without.
        blocks: `layers` blocks.
        final_norm: the norm before the head.
        head: Linear (H, V), int16 logits, all channels at the one scale scales["logits"].
        scales: real value of one unit of each tensor, by name: "residual" (of `wte`, and of the
            stream up to the next stream_shift), "logits" and, per layer
            l, "h.{l}." with "q", "k", "v", "ctx", "up", "act" (the input of `down`) and, with a
            gate, "gate" and "silu" (its activation); with `head_norms` "q_norm" and "k_norm", with
            `part_norms` "proj" and "down", without `pre_norms` "norm1" and "norm2".
        sink: what stands at position 0, a text then begins at position 1; None for nothing.
    """

    shape: Shape
    wte: npt.NDArray[np.int16]
    wpe: npt.NDArray[np.int16] | None
    rope: npt.NDArray[np.int16] | None
    blocks: tuple[Block, ...]
    final_norm: Norm
    head: AnyLinear
    scales: dict[str, float]
    sink: Sink | None = None

    def stream_unit(self, layer: int) -> float:
        """Return the real value of one unit of the stream in a block."""
        return self.scales["residual"] * 2.0 ** sum(
            b.stream_shift for b in self.blocks[: layer + 1]
        )

    @property
    def first(self) -> int:
        """The position that a text begins at."""
        return int(self.sink is not None)

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        self._check_shape()
        self._check_tables()
        shape = self.shape
        if len(self.blocks) != shape.layers:
            raise ModelError(
                f"QuantizedModel.blocks: given {len(self.blocks)} blocks, allowed {shape.layers}"
            )
        for index, block in enumerate(self.blocks):
            self._check_block(f"QuantizedModel.blocks[{index}]", block)
        _check_size("QuantizedModel.final_norm", (self.final_norm.size,), (shape.hidden,))
        _check_size("QuantizedModel.head", self.head.weight.shape, (shape.hidden, shape.vocab))
        for name, scale in self.scales.items():
            if not (math.isfinite(scale) and scale > 0):
                raise ModelError(
                    f"QuantizedModel.scales[{name!r}]: given {scale}, allowed finite and > 0"
                )

    def _check_shape(self) -> None:
        shape = self.shape
        if shape.norm not in get_args(NormKind):
            raise ModelError(
                f"QuantizedModel.norm: given {shape.norm!r}, allowed {get_args(NormKind)}"
            )
        for name in ("hidden", "layers", "heads", "kv_heads", "head_dim", "ffn", "vocab"):
            check_int(f"QuantizedModel.{name}", getattr(shape, name), 1, INT32_MAX)
        check_int("QuantizedModel.context", shape.context, 1 + self.first, INT32_MAX)
        check_int("QuantizedModel.window", shape.window, 0, INT32_MAX)
        if shape.head_norms not in get_args(HeadNorms):
            raise ModelError(
                f"QuantizedModel.head_norms: given {shape.head_norms!r}, "
                f"allowed {get_args(HeadNorms)}"
            )
        for name, by_layer in (("windows", shape.windows), ("tables", shape.tables)):
            if by_layer:
                _check_size(f"QuantizedModel.{name}", (len(by_layer),), (shape.layers,))
            for layer, value in enumerate(by_layer):
                check_int(f"QuantizedModel.{name}[{layer}]", value, 0, INT32_MAX)
        if not shape.rope:
            _check_size("QuantizedModel.tables without rope", (len(shape.tables),), (0,))
        if shape.heads % shape.kv_heads:
            raise ModelError(
                f"QuantizedModel.heads: given {shape.heads}, allowed multiples of kv_heads = "
                f"{shape.kv_heads}"
            )

    def _check_tables(self) -> None:
        shape = self.shape
        check_array("QuantizedModel.wte", self.wte, np.int16, (shape.vocab, shape.hidden))
        _check_presence("QuantizedModel.wpe", self.wpe, shape.positions)
        _check_presence("QuantizedModel.rope", self.rope, shape.rope)
        if self.wpe is not None:
            check_array("QuantizedModel.wpe", self.wpe, np.int16, (shape.context, shape.hidden))
        if self.rope is not None:
            _check_size("QuantizedModel.head_dim with rope", (shape.head_dim % 2,), (0,))
            tables = (shape.table_count, shape.context, shape.head_dim // 2, 2)
            check_array("QuantizedModel.rope", self.rope, np.int16, tables)
            check_range("QuantizedModel.rope", self.rope, -(1 << 14), 1 << 14)

        if self.sink is not None:
            check_int("QuantizedModel.sink.token", self.sink.token, 0, shape.vocab - 1)
            for name, rows in (("k", self.sink.k), ("v", self.sink.v)):
                size = (shape.layers, shape.kv_columns)
                check_array(f"QuantizedModel.sink.{name}", rows, np.int8, size)

    def _check_block(self, where: str, block: Block) -> None:
        shape = self.shape
        queries, keys = shape.q_columns, shape.kv_columns
        _check_presence(f"{where}.gate", block.gate, shape.gated)
        check_int(f"{where}.wide", int(block.wide), int(shape.wide), int(shape.wide))
        _check_size(f"{where}.up", block.up.weight.shape, (shape.hidden, shape.ffn))
        columns = queries + 2 * keys
        _check_size(f"{where}.qkv", block.qkv.weight.shape, (shape.hidden, columns))
        _check_size(f"{where}.proj", block.proj.weight.shape, (queries, shape.hidden))
        kind = Norm if shape.pre_norms else Rescale
        for name in ("norm1", "norm2"):
            given = type(getattr(block, name))
            if given is not kind:
                raise ModelError(
                    f"{where}.{name}: given a {given.__name__}, allowed a {kind.__name__}"
                )
        rows = (queries, keys) if shape.head_norms == "row" else (shape.head_dim,) * 2
        for name, size in zip(("q_norm", "k_norm"), rows, strict=True):
            norm = getattr(block, name)
            _check_presence(f"{where}.{name}", norm, bool(shape.head_norms))
            if norm is not None:
                _check_size(f"{where}.{name}", (norm.size,), (size,))
        for name in ("o_norm", "down_norm"):
            _check_presence(f"{where}.{name}", getattr(block, name), shape.part_norms)


def _check_presence(where: str, value: object, wanted: bool) -> None:
    """Raise ModelError unless a part is there just where the shape has one."""
    if (value is not None) != wanted:
        given = "none" if value is None else "one"
        raise ModelError(f"{where}: given {given}, allowed {'one' if wanted else 'none'}")
