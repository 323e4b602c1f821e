# SPDX-License-Identifier: Apache-2.0
"""Random pools and means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Array
from tb.stimulus.random_graphs.draw import Draw


def pool(draw: Draw) -> bool:
    """Draw the largest or the mean of windows."""
    x = draw.pick(rank=4)
    if x is None:
        return False
    batch, height, width, channels = draw.shape(x)
    window = draw.one_of((2, 2), (3, 3), (1, 3), (3, 1))
    strides = draw.one_of((1, 1), (2, 2), (2, 1))
    pads = tuple(draw.whole(0, k // 2) for k in (*window, *window))
    largest = draw.chance(0.5)
    # Each window has an element of the image.
    dilated = largest and min(height, width) > 1
    dilations = draw.one_of((1, 1), (1, 1), (2, 2), (1, 2)) if dilated else (1, 1)
    out = tuple(
        (n + pads[i] + pads[i + 2] - (window[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate((height, width))
    )
    if min(out) < 1:
        return False
    attributes: dict[str, Any] = {"window": window, "strides": strides, "pads": pads}
    shape = (batch, *out, channels)
    if largest:
        draw.add("maxpool", (x,), shape, attributes | {"dilations": dilations})
        return True
    size = (1,) if draw.chance(0.5) else out
    count, weight = window[0] * window[1], draw.one_of(1, 3, 64)
    integers: dict[str, Array] = {
        "bias": np.full(size, draw.one_of(0, 5), np.int32),
        "mult": draw.random.choice([17000, 25000, 32000], size).astype(np.uint16),
        "shift": np.full(size, 14 + round(math.log2(count) / 2 + math.log2(weight)), np.uint8),
    }
    attributes |= {"count_pads": draw.chance(0.5), "weight": weight}
    draw.add("avgpool", (x,), shape, attributes, integers)
    return True


def mean(draw: Draw) -> bool:
    """Draw the mean over axes."""
    x = draw.pick()
    if x is None or len(draw.shape(x)) < 2:
        return False
    shape = draw.shape(x)
    first = draw.whole(0, len(shape) - 2)
    axes = tuple(range(first, len(shape) - 1))
    count, weight = int(np.prod(shape[first:-1])), draw.one_of(1, 3, 64)
    keep = draw.chance(0.5)
    result = (*shape[:first], *((1,) * len(axes) if keep else ()), shape[-1])
    integers: dict[str, Array] = {
        "bias": np.array([draw.one_of(0, 9)], np.int32),
        "mult": np.array([draw.whole(1 << 14, (1 << 15) - 1)], np.uint16),
        "shift": np.array([14 + round(math.log2(count) / 2 + math.log2(weight))], np.uint8),
    }
    draw.add("mean", (x,), result, {"axes": axes, "keep": keep, "weight": weight}, integers)
    return True
