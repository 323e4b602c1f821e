# SPDX-License-Identifier: Apache-2.0
"""The real-valued GPT-2 that an integer model stands for, as float64 parameters and a forward pass.

A norm's output stays in integer units; every other tensor is in real units by the model's scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weights.model import Linear, Norm, QuantizedModel

Array = npt.NDArray[np.float64]


def gelu(x: Array) -> Array:
    """Return the exact GELU of an array."""
    result: Array = np.vectorize(lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)))(x)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class FloatLinear:
    """y = x @ weight + bias, (K, N) and (N,)."""

    weight: Array
    bias: Array

    def __call__(self, x: Array) -> Array:
        """Apply the layer."""
        return x @ self.weight + self.bias


def linear(
    layer: Linear, unit_in: float, unit_out: float, part: slice = slice(None)
) -> FloatLinear:
    """Return the real layer of some columns, given the real value of one unit at both ends."""
    factor = layer.mult[part] / np.exp2(layer.shift[part].astype(np.float64)) * unit_out
    weight = layer.weight[:, part].astype(np.float64) / unit_in
    return FloatLinear(weight * factor, layer.bias[part] * factor)


@dataclass(frozen=True, slots=True, eq=False)
class FloatNorm:
    """LayerNorm with weight, bias and eps, all in real units of the input."""

    weight: Array
    bias: Array
    eps: float

    def __call__(self, x: Array) -> Array:
        """Normalise the rows."""
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.eps)
        result: Array = centred / scale * self.weight + self.bias
        return result


def norm(params: Norm, unit_in: float) -> FloatNorm:
    """Return the real norm; its output counts integer units."""
    weight = 1024.0 * params.gain.astype(np.float64) / np.exp2(params.shift.astype(np.float64))
    eps = params.eps_term * unit_in**2 / params.size**2
    return FloatNorm(weight, params.bias.astype(np.float64), eps)


@dataclass(frozen=True, slots=True, eq=False)
class FloatBlock:
    """One block in real units."""

    ln1: FloatNorm
    q: FloatLinear
    k: FloatLinear
    v: FloatLinear
    proj: FloatLinear
    ln2: FloatNorm
    fc: FloatLinear
    down: FloatLinear
    heads: int

    def __call__(self, x: Array) -> Array:
        """Run the block on (S, H)."""
        y = self.ln1(x)
        shape = (x.shape[0], self.heads, -1)
        q, k, v = (f(y).reshape(shape).transpose(1, 0, 2) for f in (self.q, self.k, self.v))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2])
        scores = np.where(np.tri(x.shape[0], dtype=np.bool_), scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        context = (e / e.sum(axis=-1, keepdims=True) @ v).transpose(1, 0, 2)
        x = x + self.proj(context.reshape(x.shape))
        return x + self.down(gelu(self.fc(self.ln2(x))))


def block(model: QuantizedModel, layer: int) -> FloatBlock:
    """Return the real block of a layer."""
    params, hidden = model.blocks[layer], model.hidden
    unit = {name: model.scales[f"h.{layer}.{name}"] for name in ("q", "k", "v", "ctx", "up", "act")}
    residual = model.scales["residual"]
    q, k, v = (
        linear(params.qkv, 1.0, unit[name], slice(i * hidden, (i + 1) * hidden))
        for i, name in enumerate("qkv")
    )
    return FloatBlock(
        norm(params.norm1, residual),
        q,
        k,
        v,
        linear(params.proj, unit["ctx"], residual),
        norm(params.norm2, residual),
        linear(params.up, 1.0, unit["up"]),
        linear(params.down, unit["act"], residual),
        model.heads,
    )


def forward(model: QuantizedModel, ids: list[int]) -> tuple[list[Array], Array]:
    """Return the residual streams (layers + 1 of (S, H)) and the logits (S, V), in real units."""
    residual = model.scales["residual"]
    x = (model.wte[ids].astype(np.float64) + model.wpe[: len(ids)]) * residual
    streams = [x]
    for layer in range(model.layers):
        streams.append(block(model, layer)(streams[-1]))
    final = norm(model.final_norm, residual)(streams[-1])
    return streams, linear(model.head, 1.0, model.scales["logits"])(final)
