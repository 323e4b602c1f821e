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
from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHT_MAX = 127
"""Weights are symmetric: -128 is not used."""
MULT_MIN, MULT_MAX = 1 << 14, (1 << 15) - 1
"""Multipliers are normalised 15-bit numbers."""
SHIFT_MAX = 63
INT32_MAX = (1 << 31) - 1
EPS_TERM_MAX = (1 << 64) - 1
"""The width of the epsilon term in a norm's parameters."""


class ModelError(ValueError):
    """A part of a quantised model has a wrong type, shape, dtype or value."""


def _check_array(
    where: str, value: object, dtype: type[np.generic], shape: tuple[int | None, ...]
) -> None:
    """Raise ModelError unless `value` is an array of `dtype` and `shape` (None: any length >= 1).

    The array is marked read-only, since the dataclasses are frozen.
    """
    if not isinstance(value, np.ndarray):
        raise ModelError(f"{where}: given {type(value).__name__}, allowed numpy.ndarray")
    if value.dtype != np.dtype(dtype):
        raise ModelError(f"{where}: given dtype {value.dtype}, allowed {np.dtype(dtype)}")
    fits = len(value.shape) == len(shape) and all(
        have >= 1 and want in (None, have) for have, want in zip(value.shape, shape, strict=True)
    )
    if not fits:
        allowed = ", ".join("any" if want is None else str(want) for want in shape)
        raise ModelError(f"{where}: given shape {value.shape}, allowed ({allowed})")
    value.setflags(write=False)


def _check_range(where: str, value: npt.NDArray[Any], low: int, high: int) -> None:
    """Raise ModelError unless every entry of the integer array `value` lies in [low, high]."""
    least, most = int(value.min()), int(value.max())
    if least < low or most > high:
        worst = least if least < low else most
        index = tuple(int(i) for i in np.argwhere(value == worst)[0])
        raise ModelError(f"{where}: given {worst} at index {index}, allowed {low}..{high}")


def _check_int(where: str, value: object, low: int, high: int) -> None:
    """Raise ModelError unless `value` is a Python int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"{where}: given {type(value).__name__} {value!r}, allowed int")
    if not low <= value <= high:
        raise ModelError(f"{where}: given {value}, allowed {low}..{high}")


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
        _check_array("Linear.weight", self.weight, np.int8, (None, None))
        columns = self.weight.shape[1]
        _check_array("Linear.bias", self.bias, np.int32, (columns,))
        _check_array("Linear.mult", self.mult, np.uint16, (columns,))
        _check_array("Linear.shift", self.shift, np.uint8, (columns,))
        _check_range("Linear.weight", self.weight, -WEIGHT_MAX, WEIGHT_MAX)
        _check_range("Linear.mult", self.mult, MULT_MIN, MULT_MAX)
        _check_range("Linear.shift", self.shift, 0, SHIFT_MAX)
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
        sums = np.abs(self.weight.astype(np.int64)).sum(axis=0)
        return int((128 * sums + np.abs(self.bias.astype(np.int64))).max())


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """A LayerNorm with per-channel multipliers, on an int16 row x of H elements.

    V = max(1, H * sum x^2 - (sum x)^2 + eps_term), q = the normalised row in Q5.10,
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
        _check_int("Norm.eps_term", self.eps_term, 0, EPS_TERM_MAX)
        _check_array("Norm.gain", self.gain, np.uint16, (None,))
        _check_array("Norm.shift", self.shift, np.uint8, self.gain.shape)
        _check_array("Norm.bias", self.bias, np.int8, self.gain.shape)
        _check_range("Norm.gain", self.gain, 0, MULT_MAX)
        _check_range("Norm.shift", self.shift, 0, SHIFT_MAX)

    @property
    def size(self) -> int:
        """H, the row length."""
        return int(self.gain.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Gpt2Block:
    """One transformer block: norm, attention, residual add, norm, feed-forward, residual add.

    Attributes:
        ln1, ln2: norms of the int16 residual stream to int8.
        qkv: Linear (H, 3H), int8 out, columns q | k | v, the heads contiguous inside each.
        score_mult, score_shift: scores = sat16(rs((q . k) * score_mult, score_shift)) in units of
            2^-6 of a binary logarithm: s_q * s_k * log2(e) / sqrt(head_dim) * 2^6 is folded in.
        proj: Linear (H, H) from int8 context, int16 out at the residual scale.
        fc: Linear (H, F), int8 out, then `gelu_table`.
        gelu_table: (256,) int8, indexed by the bit pattern of the int8 input read as uint8.
        down: Linear (F, H), int16 out at the residual scale.
    """

    ln1: Norm
    qkv: Linear
    score_mult: int
    score_shift: int
    proj: Linear
    ln2: Norm
    fc: Linear
    gelu_table: npt.NDArray[np.int8]
    down: Linear

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        _check_int("Gpt2Block.score_mult", self.score_mult, MULT_MIN, MULT_MAX)
        _check_int("Gpt2Block.score_shift", self.score_shift, 0, SHIFT_MAX)
        _check_array("Gpt2Block.gelu_table", self.gelu_table, np.int8, (256,))
        hidden, ffn = self.ln1.size, self.fc.outputs
        _check_size("Gpt2Block.ln2", (self.ln2.size,), (hidden,))
        _check_size("Gpt2Block.qkv", self.qkv.weight.shape, (hidden, 3 * hidden))
        _check_size("Gpt2Block.proj", self.proj.weight.shape, (hidden, hidden))
        _check_size("Gpt2Block.fc", self.fc.weight.shape, (hidden, ffn))
        _check_size("Gpt2Block.down", self.down.weight.shape, (ffn, hidden))


def _check_size(where: str, given: tuple[int, ...], allowed: tuple[int, ...]) -> None:
    """Raise ModelError unless the two shapes are equal."""
    if given != allowed:
        raise ModelError(f"{where}: given size {given}, allowed {allowed}")


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedModel:
    """A whole GPT-2 in integers.

    Attributes:
        family: "gpt2".
        hidden, layers, heads, head_dim, ffn, vocab, context: dimensions; hidden = heads * head_dim.
        wte: (V, H) int16 token embeddings at the residual scale.
        wpe: (C, H) int16 position embeddings at the residual scale; x = sat16(wte + wpe).
        blocks: `layers` blocks.
        final_norm: the norm before the head.
        head: Linear (H, V), int16 logits, all channels at the one scale scales["logits"].
        scales: real value of one unit of each tensor, by name: "residual", "logits" and, per layer
            l, "h.{l}.q", "h.{l}.k", "h.{l}.v", "h.{l}.ctx", "h.{l}.fc", "h.{l}.gelu".
    """

    family: str
    hidden: int
    layers: int
    heads: int
    head_dim: int
    ffn: int
    vocab: int
    context: int
    wte: npt.NDArray[np.int16]
    wpe: npt.NDArray[np.int16]
    blocks: tuple[Gpt2Block, ...]
    final_norm: Norm
    head: Linear
    scales: dict[str, float]

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together."""
        if self.family != "gpt2":
            raise ModelError(f"QuantizedModel.family: given {self.family!r}, allowed 'gpt2'")
        for name in ("hidden", "layers", "heads", "head_dim", "ffn", "vocab", "context"):
            _check_int(f"QuantizedModel.{name}", getattr(self, name), 1, INT32_MAX)
        if self.heads * self.head_dim != self.hidden:
            raise ModelError(
                f"QuantizedModel.hidden: given {self.hidden}, allowed heads * head_dim = "
                f"{self.heads} * {self.head_dim} = {self.heads * self.head_dim}"
            )
        _check_array("QuantizedModel.wte", self.wte, np.int16, (self.vocab, self.hidden))
        _check_array("QuantizedModel.wpe", self.wpe, np.int16, (self.context, self.hidden))
        if len(self.blocks) != self.layers:
            raise ModelError(
                f"QuantizedModel.blocks: given {len(self.blocks)} blocks, allowed {self.layers}"
            )
        for index, block in enumerate(self.blocks):
            where = f"QuantizedModel.blocks[{index}]"
            _check_size(f"{where}.fc", block.fc.weight.shape, (self.hidden, self.ffn))
        _check_size("QuantizedModel.final_norm", (self.final_norm.size,), (self.hidden,))
        _check_size("QuantizedModel.head", self.head.weight.shape, (self.hidden, self.vocab))
        for name, scale in self.scales.items():
            if not (math.isfinite(scale) and scale > 0):
                raise ModelError(
                    f"QuantizedModel.scales[{name!r}]: given {scale}, allowed finite and > 0"
                )
