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


def entry(params: Norm | Rescale, unit_in: float, *, rms: bool) -> FloatNorm | FloatLinear:
    """Return what turns the stream into integer units: a norm, or a factor."""
    if isinstance(params, Norm):
        return norm(params, unit_in, rms=rms)
    scale = params.mult / 2.0**params.shift / unit_in
    return FloatLinear(scale * np.eye(params.size), np.zeros(params.size))


def norm(params: Norm, unit_in: float, *, rms: bool = False) -> FloatNorm:
    """Return the real norm; its output counts integer units."""
    weight = 2.0**14 * params.gain.astype(np.float64) / np.exp2(params.shift.astype(np.float64))
    eps = params.eps_term * unit_in**2 / params.size**2
    return FloatNorm(weight, params.bias.astype(np.float64), eps, rms)


def rotate(x: Array, table: int = 0) -> Array:
    """Turn lanes t and t + D/2 of (heads, S, D) by the position's angles in a table."""
    angles = rope_angles(x.shape[1], x.shape[2], table)
    half = x.shape[2] // 2
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def visible(length: int, window: int) -> npt.NDArray[np.bool_]:
    """Return who (row) sees whom (column): itself and what is before it, or a window of that."""
    distance = np.subtract.outer(np.arange(length), np.arange(length))
    return (distance >= 0) & (distance < (window or length))


@dataclass(frozen=True, slots=True, eq=False)
class FloatBlock:
    """One block in real units; `linears` and `norms` by the names of their outputs."""

    model: QuantizedModel
    layer: int
    norm1: FloatNorm | FloatLinear
    norm2: FloatNorm | FloatLinear
    linears: dict[str, FloatLinear]
    norms: dict[str, FloatNorm]

    def __call__(self, x: Array) -> Array:
        """Run the block on (S, H)."""
        between = x + self.attended(self.norm1(x))
        y = self.norm2(x if self.model.shape.parallel else between)
        inner = self.linears["up"](y)
        inner = silu(self.linears["gate"](y)) * inner if "gate" in self.linears else gelu(inner)
        return between + self.part("down", "down_norm", inner)

    def part(self, name: str, normed: str, x: Array) -> Array:
        """Return what a part adds to the stream."""
        y = self.linears[name](x)
        if normed not in self.norms:
            return y
        return self.norms[normed](y) * self.model.scales["residual"]

    def heads(self, name: str, y: Array) -> Array:
        """Return q, k or v of rows, (heads, S, D), as attention reads them."""
        model, shape, at = self.model, self.model.shape, f"h.{self.layer}.{name}_norm"
        rows = self.linears[name](y)
        if shape.head_norms == "row" and name != "v":
            rows = self.norms[f"{name}_norm"](rows) * model.scales[at]
        found = rows.reshape(len(y), -1, shape.head_dim).transpose(1, 0, 2)
        if shape.head_norms == "head" and name != "v":
            found = self.norms[f"{name}_norm"](found) * model.scales[at]
        if shape.rope and name != "v":
            found = rotate(found, shape.tables[self.layer] if shape.tables else 0)
        return found

    def attended(self, y: Array) -> Array:
        """Return what attention adds to the stream."""
        shape = self.model.shape
        window = shape.windows[self.layer] if shape.windows else shape.window
        q, k, v = (self.heads(name, y) for name in "qkv")
        contexts = []
        for head in range(shape.heads):
            shared = head // (shape.heads // shape.kv_heads)
            scores = q[head] @ k[shared].T / math.sqrt(shape.head_dim)
            scores = np.where(visible(len(y), window), scores, -np.inf)
            e = np.exp(scores - scores.max(axis=-1, keepdims=True))
            contexts.append(e / e.sum(axis=-1, keepdims=True) @ v[shared])
        return self.part("proj", "o_norm", np.concatenate(contexts, axis=1))


def block(model: QuantizedModel, layer: int) -> FloatBlock:
    """Return the real block of a layer."""
    params, rms = model.blocks[layer], model.shape.norm == "rmsnorm"
    residual, at = model.scales["residual"], f"h.{layer}"
    unit = {name: model.scales[f"{at}.{name}"] for name in ("q", "k", "v", "ctx", "up", "act")}
    added = {"proj": residual, "down": residual}
    if model.shape.part_norms:
        added = {name: model.scales[f"{at}.{name}"] for name in added}
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
    linears["proj"] = linear(params.proj, unit["ctx"], added["proj"])
    linears["up"] = linear(params.up, 1.0, unit["up"])
    linears["down"] = linear(params.down, unit["act"], added["down"])
    if params.gate is not None:
        linears["gate"] = linear(params.gate, 1.0, model.scales[f"{at}.gate"])
    given = {
        "q_norm": (params.q_norm, unit["q"]),
        "k_norm": (params.k_norm, unit["k"]),
        "o_norm": (params.o_norm, added["proj"]),
        "down_norm": (params.down_norm, added["down"]),
    }
    return FloatBlock(
        model,
        layer,
        entry(params.norm1, residual, rms=rms),
        entry(params.norm2, residual, rms=rms),
        linears,
        {name: norm(one, u, rms=rms) for name, (one, u) in given.items() if one is not None},
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
