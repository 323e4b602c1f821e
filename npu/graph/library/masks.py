# SPDX-License-Identifier: Apache-2.0
"""Which keys a query sees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from npu.graph.form import GraphError

MASKS = ("none", "causal", "window", "random")
MASKED = -200.0
"""What is added to a score that is not seen: its exponential is 0 in float32 and on the chip."""
WINDOW = 5
"""Keys that a query sees with the mask `window`, its own included."""


def visible_keys(
    random: np.random.Generator, mask: str, rows: int, keys: int
) -> npt.NDArray[np.bool_]:
    """Return what queries see, (rows, keys); the last query stands at the last key.

    Args:
        random: for a mask that is drawn; each query sees one key at least.
        mask: one of `MASKS`.
        rows: of queries.
        keys: at least as many as queries, unless the mask is none or random.

    Raises:
        GraphError: there are fewer keys than queries.
    """
    if mask in ("causal", "window") and keys < rows:
        raise GraphError(f"mask {mask} with {rows} rows and {keys} keys, allowed at least {rows}")
    place = np.arange(rows)[:, None] + keys - rows
    key = np.arange(keys)[None, :]
    match mask:
        case "causal":
            return key <= place
        case "window":
            return (key <= place) & (key > place - WINDOW)
        case "random":
            seen = random.random((rows, keys)) < 0.6
            seen[np.arange(rows), random.integers(0, keys, rows)] = True
            return seen
    return np.ones((rows, keys), dtype=bool)
