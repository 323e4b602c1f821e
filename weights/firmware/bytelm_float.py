# SPDX-License-Identifier: Apache-2.0
"""The byte-level transformer in float64, with what its tensors hold on a text.

For the scales of the integer model and as the real network that others are compared with. Formulas:
weights.firmware.models.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from weights.firmware.models import ByteLm

Float64 = npt.NDArray[np.float64]
_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Float64) -> Float64:
    """Return x (1 + erf(x / sqrt 2)) / 2."""
    result: Float64 = 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))
    return result


def forward(
    model: ByteLm,
    tokens: npt.NDArray[np.int64],
    tap: Callable[[str, Float64], None] = lambda name, x: None,
) -> Float64:
    """Return (B, T, vocab) float64 logits of (B, T) tokens.

    Args:
        model: the model.
        tokens: (B, T) token ids, each row from position 0.
        tap: gets the name and the values (..., lanes) of every tensor that an integer model scales.
    """
    shape = model.shape
    t = {name: array.astype(np.float64) for name, array in model.tensors.items()}

    def norm(x: Float64, name: str) -> Float64:
        tap("residual", x)
        mean = np.mean(x * x, axis=-1, keepdims=True)
        h: Float64 = x / np.sqrt(mean + shape.epsilon) * t[name]
        tap(name, h)
        return h

    def linear(x: Float64, name: str) -> Float64:
        y: Float64 = x @ t[f"{name}.weight"].T + t[f"{name}.bias"]
        tap(name, y)
        return y

    batch, length = tokens.shape
    hidden = np.triu(np.full((length, length), -np.inf), 1)
    x = t["wte"][tokens] + t["wpe"][:length]
    for layer in range(shape.layers):
        h = norm(x, f"{layer}.norm1")
        q, k, v = (
            linear(h, f"{layer}.{name}").reshape(batch, length, shape.heads, -1).swapaxes(1, 2)
            for name in "qkv"
        )
        scores = q @ k.swapaxes(2, 3) / math.sqrt(shape.head_dim) + hidden
        numerators = np.exp(scores - scores.max(axis=-1, keepdims=True))
        context = numerators @ v / numerators.sum(axis=-1, keepdims=True)
        x = x + linear(context.swapaxes(1, 2).reshape(batch, length, -1), f"{layer}.o")
        h = norm(x, f"{layer}.norm2")
        x = x + linear(gelu(linear(h, f"{layer}.up")), f"{layer}.down")
    result: Float64 = norm(x, "norm") @ t["head"].T
    return result


def bits_per_byte(logits: Float64, tokens: npt.NDArray[np.int64]) -> float:
    """Return the mean code length in bits of tokens[:, 1:] under (B, T, vocab) logits."""
    scaled = logits[:, :-1] - logits[:, :-1].max(axis=-1, keepdims=True)
    own = np.take_along_axis(scaled, tokens[:, 1:, None], axis=-1)[..., 0]
    return float(np.mean(np.log(np.exp(scaled).sum(axis=-1)) - own)) / math.log(2.0)
