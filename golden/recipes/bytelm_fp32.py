# SPDX-License-Identifier: Apache-2.0
"""The byte-level transformer in FP32, bit for bit as firmware/examples/bytelm computes it.

The model is in the form that the program holds: norm gains are part of the weights, and the
division of the scores by 4 is part of q. One token at a time, at position p, with keys and values
of positions 0..p at hand:

    x = wpe[p] + wte[token]
    layer:  h = rmsnorm(x);  q = linear(q, h), k = linear(k, h), v = linear(v, h)
            per head: s[t] = FVMAC(q, k[t]), P = softmax(s), c[d] = FVMAC(P, v[:, d])
            x = linear(o, c) + x
            h = rmsnorm(x);  g = FVGELU(linear(up, h));  x = linear(down, g) + x
    logits = FVMAC(head, rmsnorm(x))
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.recipes.layers import linear, rmsnorm, softmax
from golden.recipes.operations import Float32, gelu, products
from weights.firmware.models import ByteLm


class ByteLmFp32:
    """Keys and values of some texts, which grow by a token each at a time."""

    def __init__(self, model: ByteLm, texts: int = 1) -> None:
        """Start `texts` texts at position 0."""
        shape = self.shape = model.shape
        self.weights = model.tensors
        self.position = 0
        size = (shape.layers, texts, shape.context, shape.heads, shape.head_dim)
        self.keys, self.values = np.zeros(size, np.float32), np.zeros(size, np.float32)

    def _linear(self, name: str, x: Float32) -> Float32:
        return linear(self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], x)

    def _attention(self, layer: int, h: Float32) -> Float32:
        """Return the context (texts, dim), having stored key and value of this position."""
        heads = (h.shape[0], self.shape.heads, self.shape.head_dim)
        q, k, v = (self._linear(f"{layer}.{name}", h).reshape(heads) for name in "qkv")
        keys, values = self.keys[layer], self.values[layer]
        keys[:, self.position], values[:, self.position] = k, v
        seen = slice(0, self.position + 1)
        scores = products(keys[:, seen].swapaxes(1, 2), q)
        context = products(np.moveaxis(values[:, seen], 1, 3), softmax(scores))
        return context.reshape(h.shape)

    def step(self, tokens: npt.NDArray[np.int64]) -> Float32:
        """Return the logits (texts, vocab) float32 behind one more token (texts,) of each text."""
        epsilon, w = self.shape.epsilon, self.weights
        x = w["wpe"][self.position] + w["wte"][tokens]
        for layer in range(self.shape.layers):
            context = self._attention(layer, rmsnorm(x, epsilon))
            x = self._linear(f"{layer}.o", context) + x
            hidden = gelu(self._linear(f"{layer}.up", rmsnorm(x, epsilon)))
            x = self._linear(f"{layer}.down", hidden) + x
        self.position += 1
        return products(w["head"], rmsnorm(x, epsilon))


def forward(model: ByteLm, tokens: npt.NDArray[np.int64]) -> Float32:
    """Return (B, T, vocab) float32 logits of (B, T) tokens, T at most the context."""
    run = ByteLmFp32(model, len(tokens))
    return np.stack([run.step(column) for column in tokens.T], axis=1)
