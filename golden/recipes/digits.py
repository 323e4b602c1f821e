# SPDX-License-Identifier: Apache-2.0
"""The perceptron for digits in integers, as firmware/examples/mnist computes it.

    hidden = RELU(CLAMP(QMUL(VMAC(weights, pixels) + bias, factor) >> 14))
    logits = QMUL(VMAC(weights, hidden) + bias, factor);  the digit is the first largest

A row of 784 bytes is longer than LIMIT's reset value of 256: it is 4 VMACs into one sum.
"""

from __future__ import annotations

import numpy as np

from golden.recipes.layers import requantised
from golden.recipes.operations import Int64, byte
from weights.firmware.models import OUTPUT_SHIFT, DigitsInt8, Int8, Int8Linear


def _out(layer: Int8Linear, x: Int64, shift: int) -> Int64:
    sums = x @ layer.weight.astype(np.int64).T + layer.bias
    return requantised(sums, layer.factor.astype(np.int64), shift)


def logits(model: DigitsInt8, images: Int8) -> Int64:
    """Return (n, 10) int64 logits in units of 2^-16 of (n, 784) pixels."""
    hidden = np.maximum(byte(_out(model.hidden, images.astype(np.int64), OUTPUT_SHIFT)), 0)
    return _out(model.output, hidden, 0)
