# SPDX-License-Identifier: Apache-2.0
"""The real-valued decoder that an integer model stands for: float64 parameters, a forward pass.

A norm's output stays in integer units; every other tensor is in real units by the model's scales.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.python.golden.golden_support import rope_angles
from weights.model import AnyLinear, Norm, QuantizedModel, Rescale

Array = npt.NDArray[np.float64]


def silu(x: Array) -> Array:
    """Return x / (1 + exp(-x))."""
    result: Array = x / (1.0 + np.exp(-x))
    return result


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
    layer: AnyLinear, unit_in: float, unit_out: float, part: slice = slice(None)
) -> FloatLinear:
    """Return the real layer of some columns, given the real value of one unit at both ends."""
    factor = layer.mult[part] / np.exp2(layer.shift[part].astype(np.float64)) * unit_out
    weight = layer.weight[:, part].astype(np.float64) / unit_in
    return FloatLinear(weight * factor, layer.bias[part] * factor)


@dataclass(frozen=True, slots=True, eq=False)
class FloatNorm:
    """LayerNorm or RMSNorm with weight, bias and eps, all in real units of the input."""

    weight: Array
    bias: Array
    eps: float
    rms: bool

    def __call__(self, x: Array) -> Array:
        """Normalise the rows."""
        centred = x if self.rms else x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.eps)
        result: Array = centred / scale * self.weight + self.bias
        return result


def norm(params: Norm | Rescale, unit_in: float, *, rms: bool = False) -> FloatNorm:
    """Return the real norm; its output counts integer units."""
    assert isinstance(params, Norm)
    weight = 2.0**14 * params.gain.astype(np.float64) / np.exp2(params.shift.astype(np.float64))
    eps = params.eps_term * unit_in**2 / params.size**2
    return FloatNorm(weight, params.bias.astype(np.float64), eps, rms)


def rotate(x: Array) -> Array:
    """Turn lanes t and t + D/2 of (heads, S, D) by the position's angles."""
    angles = rope_angles(x.shape[1], x.shape[2])
    half = x.shape[2] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def visible(length: int, window: int) -> npt.NDArray[np.bool_]:
    """Return who (row) sees whom (column): itself and what is before it, or a window of that."""
    distance = np.subtract.outer(np.arange(length), np.arange(length))
    return (distance >= 0) & (distance < (window or length))


@dataclass(frozen=True, slots=True, eq=False)
class FloatBlock:
    """One block in real units; `linears` by the names of their outputs."""

    model: QuantizedModel
    norm1: FloatNorm
    norm2: FloatNorm
    linears: dict[str, FloatLinear]

    def __call__(self, x: Array) -> Array:
        """Run the block on (S, H)."""
        model, linears, length = self.model, self.linears, x.shape[0]
        y = self.norm1(x)
        q, k, v = (
            linears[name](y).reshape(length, -1, model.shape.head_dim).transpose(1, 0, 2)
            for name in "qkv"
        )
        if model.rope is not None:
            q, k = rotate(q), rotate(k)
        contexts = []
        for head in range(model.shape.heads):
            shared = head // (model.shape.heads // model.shape.kv_heads)
            scores = q[head] @ k[shared].T / math.sqrt(model.shape.head_dim)
            scores = np.where(visible(length, model.shape.window), scores, -np.inf)
            e = np.exp(scores - scores.max(axis=-1, keepdims=True))
            contexts.append(e / e.sum(axis=-1, keepdims=True) @ v[shared])
        x = x + linears["proj"](np.concatenate(contexts, axis=1))
        y = self.norm2(x)
        inner = linears["up"](y)
        inner = silu(linears["gate"](y)) * inner if "gate" in linears else gelu(inner)
        return x + linears["down"](inner)


def block(model: QuantizedModel, layer: int) -> FloatBlock:
    """Return the real block of a layer."""
    params, rms = model.blocks[layer], model.shape.norm == "rmsnorm"
    residual = model.scales["residual"]
    unit = {name: model.scales[f"h.{layer}.{name}"] for name in ("q", "k", "v", "ctx", "up", "act")}
    queries, keys = (
        model.shape.q_columns,
        model.shape.kv_columns,
    )
    parts = {
        "q": slice(queries),
        "k": slice(queries, queries + keys),
        "v": slice(queries + keys, None),
    }
    linears = {name: linear(params.qkv, 1.0, unit[name], part) for name, part in parts.items()}
    linears["proj"] = linear(params.proj, unit["ctx"], residual)
    linears["up"] = linear(params.up, 1.0, unit["up"])
    linears["down"] = linear(params.down, unit["act"], residual)
    if params.gate is not None:
        linears["gate"] = linear(params.gate, 1.0, model.scales[f"h.{layer}.gate"])
    return FloatBlock(
        model,
        norm(params.norm1, residual, rms=rms),
        norm(params.norm2, residual, rms=rms),
        linears,
    )


def forward(model: QuantizedModel, ids: list[int]) -> tuple[list[Array], Array]:
    """Return the residual streams (layers + 1 of (S, H)) and the logits (S, V), in real units."""
    residual = model.scales["residual"]
    x = model.wte[ids].astype(np.float64) * residual
    if model.wpe is not None:
        x = x + model.wpe[: len(ids)] * residual
    streams = [x]
    for layer in range(model.shape.layers):
        streams.append(block(model, layer)(streams[-1]))
    final = norm(model.final_norm, residual, rms=model.shape.norm == "rmsnorm")(streams[-1])
    return streams, linear(model.head, 1.0, model.scales["logits"])(final)
