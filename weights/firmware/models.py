# SPDX-License-Identifier: Apache-2.0
"""What the models of the firmware consist of: dimensions, tensors, integer layers.

The byte-level transformer:

    x = wte[token] + wpe[position]
    layer:  h = x / sqrt(mean(x^2) + eps) * norm1,  q, k, v = W h + b,
            x += o(attention(q, k, v)) ;  h likewise with norm2,  x += down(gelu(up(h)))
    logits = head (x / sqrt(mean(x^2) + eps) * norm)

Attention is causal over 4 heads of 16, scores divided by 4; GELU is the exact one. Matrices are
(out, in), as the instructions VMAC and FVMAC read them: a row is one output's weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Tensors = dict[str, Float32]

LINEAR = ("q", "k", "v", "o", "up", "down")
"""The linear layers of a block, each with a weight (out, in) and a bias (out,)."""
OUTPUT_SHIFT = 14
"""Behind QMUL, of layers that give a signed byte."""
ADD_SHIFT = 6
"""Behind QMUL, of layers that add to the residual stream."""
LOGIT_BITS = 20
"""Fraction bits of a logit."""


@dataclass(frozen=True, slots=True)
class ByteLmShape:
    """Dimensions; a token is a byte. `epsilon` is added to the mean of squares of a norm."""

    vocab: int = 256
    dim: int = 64
    heads: int = 4
    layers: int = 2
    context: int = 32
    ffn: int = 256
    epsilon: float = 1e-5

    @property
    def head_dim(self) -> int:
        """Lanes of one head."""
        return self.dim // self.heads

    def tensors(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor, in the order of their use."""
        d, f = self.dim, self.ffn
        sizes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (f, d), "down": (d, f)}
        expected: dict[str, tuple[int, ...]] = {"wte": (self.vocab, d), "wpe": (self.context, d)}
        for layer in range(self.layers):
            expected |= {f"{layer}.norm1": (d,), f"{layer}.norm2": (d,)}
            for name in LINEAR:
                expected[f"{layer}.{name}.weight"] = sizes[name]
                expected[f"{layer}.{name}.bias"] = sizes[name][:1]
        return expected | {"norm": (d,), "head": (self.vocab, d)}


@dataclass(frozen=True, slots=True, eq=False)
class ByteLm:
    """A float model; `tensors` as `ByteLmShape.tensors` names and shapes them, float32."""

    shape: ByteLmShape
    tensors: Tensors

    def __post_init__(self) -> None:
        """Check that exactly the tensors of the shape are there."""
        given = {name: array.shape for name, array in self.tensors.items()}
        expected = self.shape.tensors()
        for name in sorted(given.keys() | expected.keys()):
            if given.get(name) != expected.get(name):
                raise ValueError(
                    f"ByteLm: {name}: given {given.get(name)}, allowed {expected.get(name)}"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Int8Linear:
    """A layer: QMUL(sum + bias, factor) >> shift, with sum = weight . x.

    Attributes:
        weight: (out, in) int8.
        bias: (out,) int32 in units of the sum; it holds the half of the shift's rounding, and the
            half step by which VMUL's floor has made x too small.
        factor: (out,) int32, QMUL's.
    """

    weight: Int8
    bias: Int32
    factor: Int32


@dataclass(frozen=True, slots=True, eq=False)
class ByteLmInt8:
    """The integer model.

    Attributes:
        shape: dimensions.
        wte, wpe: tables, (256, dim) and (context, dim) int8; a residual is
            wte[token] * wte_factor + wpe[position] * wpe_factor.
        wte_factor, wpe_factor: units of the residual stream per step of the tables.
        linear: layers by the names of the float model, with `head`.
        steps: of each norm, steps per unit of what it gives.
        epsilon: added to the mean of squares of the residual stream, Q16.16.
        score_factor: of each layer, QMUL's from q . k to Q16.16 scores.
    """

    shape: ByteLmShape
    wte: Int8
    wpe: Int8
    wte_factor: int
    wpe_factor: int
    linear: dict[str, Int8Linear]
    steps: dict[str, int]
    epsilon: int
    score_factor: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DigitsInt8:
    """A perceptron for digits: 784 pixels of 0..127, hidden bytes behind RELU, 10 outputs.

    Attributes:
        hidden: (32, 784), to bytes.
        output: (10, 32), to logits without a shift.
        images: (n, 784) int8 samples to run on.
        labels: (n,) uint8, their digits.
    """

    hidden: Int8Linear
    output: Int8Linear
    images: Int8
    labels: npt.NDArray[np.uint8]
