# SPDX-License-Identifier: Apache-2.0
"""Random operands of products on the command port, full-range in every format."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array
from npu.graph.operations.port import FORMATS, GROUPED

LANES = 4
"""Neighbours of which two may differ from 0 in sparse matrices."""


def port_operands(
    random: np.random.Generator, name: str, shape: tuple[int, int, int], group: int = 0
) -> list[Array]:
    """Return a (M, K), b (K, N) and with groups the scales.

    Args:
        random: the generator.
        name: of the format.
        shape: M, K, N.
        group: rows of b that share a scale, with the grouped format.
    """
    m, k, n = shape
    if name == "fp8":
        drawn = [random.integers(0, 254, size) for size in ((m, k), (k, n))]
        return [(codes + (codes >= 0x7F)).astype(np.uint8) for codes in drawn]
    if name in ("fp16", "bf16"):
        return [_half(random, name, size) for size in ((m, k), (k, n))]
    fmt = FORMATS[name]
    low, high = (-128, 127) if name == GROUPED else (fmt.low, fmt.high)
    a = random.integers(low, high + 1, (m, k)).astype(np.int8)
    b = random.integers(fmt.low, fmt.high + 1, (k, n)).astype(np.int8)
    if name == "sparse_int4":
        for first in range(0, k, LANES):
            width = min(LANES, k - first)
            for row in a[:, first : first + width]:
                row[random.permutation(width)[2:]] = 0
    if name != GROUPED:
        return [a, b]
    scales = random.integers(-(1 << 15), 1 << 15, (-(-k // group), n)).astype(np.int16)
    return [a, b, scales]


def _half(random: np.random.Generator, name: str, shape: tuple[int, int]) -> Array:
    """Return codes of normal numbers of all sizes below 128, and zeros."""
    real = random.uniform(1, 1.99, shape) * np.exp2(random.integers(-14, 7, shape))
    real *= random.choice([-1, 0, 1], shape, p=[0.45, 0.1, 0.45])
    if name == "fp16":
        return real.astype(np.float16)
    return (real.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
