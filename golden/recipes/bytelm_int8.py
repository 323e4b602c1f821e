# SPDX-License-Identifier: Apache-2.0
"""The byte-level transformer in integers, as firmware/examples/bytelm computes it.

One token at a time, at position p; x is the residual stream, 32 bits;
sum(l, a) = VMAC(weight of l, a) + bias of l, out(l, a) = QMUL(sum, factor of l):

    x = wte[token] * wte_factor + wpe[p] * wpe_factor
    layer:  h = rmsnorm(x);  q, k, v = CLAMP(out(q, h) >> 14), ...
            per head: s[t] = QMUL(VMAC(q, k[t]), score_factor), Q16.16;  P = softmax(s)
            c[d] = (257 * sum over t of P[t] * v[t][d] + 32768) >> 16
            x += out(o, c) >> 6
            h = rmsnorm(x);  g = GELU(CLAMP(out(up, h) >> 14));  x += out(down, g) >> 6
    logits = out(head, rmsnorm(x)), 20 fraction bits

VMAC multiplies signed bytes: the program gives it P - 128 and adds 128 times the sum of v[t][d],
which it keeps. The result is the sum above.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.recipes.layers import requantised, rmsnorm_bytes, softmax_bytes
from golden.recipes.operations import Int64, byte, gelu_byte, high_product
from weights.firmware.models import ADD_SHIFT, LOGIT_BITS, OUTPUT_SHIFT, ByteLmInt8


class ByteLmIntegers:
    """Keys and values of some texts, which grow by a token each at a time."""

    def __init__(self, model: ByteLmInt8, texts: int = 1) -> None:
        """Start `texts` texts at position 0."""
        self.model, self.position = model, 0
        shape = self.shape = model.shape
        size = (shape.layers, texts, shape.context, shape.heads, shape.head_dim)
        self.keys, self.values = np.zeros(size, np.int64), np.zeros(size, np.int64)

    def _out(self, name: str, x: Int64, shift: int) -> Int64:
        layer = self.model.linear[name]
        sums = x @ layer.weight.astype(np.int64).T + layer.bias
        return requantised(sums, layer.factor.astype(np.int64), shift)

    def _norm(self, name: str, x: Int64) -> Int64:
        return rmsnorm_bytes(x, self.model.epsilon, self.model.steps[name])

    def _attention(self, layer: int, h: Int64) -> Int64:
        """Return the context (texts, dim), having stored key and value of this position."""
        heads = (h.shape[0], self.shape.heads, self.shape.head_dim)
        q, k, v = (
            byte(self._out(f"{layer}.{name}", h, OUTPUT_SHIFT)).reshape(heads) for name in "qkv"
        )
        keys, values = self.keys[layer], self.values[layer]
        keys[:, self.position], values[:, self.position] = k, v
        seen = slice(0, self.position + 1)
        products = np.einsum("bhd,bthd->bht", q, keys[:, seen])
        weights = softmax_bytes(high_product(products, self.model.score_factor[layer]))
        context = np.einsum("bht,bthd->bhd", weights, values[:, seen])
        mean: Int64 = (257 * context + 32768) >> 16
        return mean.reshape(h.shape)

    def step(self, tokens: npt.NDArray[np.int64]) -> Int64:
        """Return the logits (texts, vocab) int64 behind one more token (texts,) of each text."""
        m = self.model
        x = m.wte[tokens].astype(np.int64) * m.wte_factor
        x = x + m.wpe[self.position].astype(np.int64) * m.wpe_factor
        for layer in range(self.shape.layers):
            context = self._attention(layer, self._norm(f"{layer}.norm1", x))
            x = x + self._out(f"{layer}.o", context, ADD_SHIFT)
            hidden = byte(self._out(f"{layer}.up", self._norm(f"{layer}.norm2", x), OUTPUT_SHIFT))
            x = x + self._out(f"{layer}.down", gelu_byte(hidden), ADD_SHIFT)
        self.position += 1
        return self._out("head", self._norm("norm", x), 0)


def forward(model: ByteLmInt8, tokens: npt.NDArray[np.int64]) -> Int64:
    """Return (B, T, vocab) int64 logits in units of 2^-20 of (B, T) tokens."""
    run = ByteLmIntegers(model, len(tokens))
    return np.stack([run.step(column) for column in tokens.T], axis=1)


def real_logits(logits: Int64) -> npt.NDArray[np.float64]:
    """Return logits as real numbers."""
    return logits / float(1 << LOGIT_BITS)
