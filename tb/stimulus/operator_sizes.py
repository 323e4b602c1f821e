# SPDX-License-Identifier: Apache-2.0
"""Random sizes of operators of the library, such as fit together."""

from __future__ import annotations

import numpy as np

from npu.graph.library import OPERATORS, Size
from npu.graph.library.masks import MASKS

_RANGES = {
    "heads": (1, 4), "rows": (3, 24), "keys": (2, 40), "batch": (1, 4), "width": (6, 72),
    "hidden": (6, 130), "inner": (1, 70), "columns": (1, 40), "size": (3, 10), "channels": (1, 20),
    "filters": (1, 24), "times": (1, 3), "window": (1, 3), "fresh": (1, 4), "length": (0, 30),
    "spread": (0, 3), "position": (0, 60), "quick": (0, 1), "linear": (0, 1), "packed": (0, 1),
}  # fmt: skip
"""First and last of a size; those that others decide stand below."""


def operator_sizes(name: str, random: np.random.Generator) -> dict[str, Size]:
    """Return sizes for an operator."""
    found: dict[str, Size] = {}
    # A norm over few elements is as good as a sign, which no number of bits rounds well.
    first_half = 4 if name.endswith("_block") else 1
    for size in OPERATORS[name].sizes:
        if size == "mask":
            found[size] = str(random.choice(MASKS))
        elif size == "depth":
            found[size] = 2 * int(random.integers(first_half, 21))
        elif size in _RANGES:
            first, last = _RANGES[size]
            found[size] = int(random.integers(first, last + 1))
    if name in ("attention", "masked_softmax"):
        found["keys"] = int(found["rows"]) + int(random.integers(0, 12))
    if name == "decode_attention" and random.random() < 0.7:
        found["window"] = int(random.integers(0, 12))
    if "capacity" in OPERATORS[name].sizes:
        found["capacity"] = int(found["length"]) + int(found["fresh"]) + int(random.integers(1, 9))
    if "groups" in OPERATORS[name].sizes:
        groups = int(random.integers(1, 4))
        found["groups"] = groups
        for size in ("heads", "channels", "filters"):
            if size in found:
                found[size] = groups * int(random.integers(1, 4))
    return found
