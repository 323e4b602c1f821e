# SPDX-License-Identifier: Apache-2.0
"""Activation tables: 256 int8 entries, indexed by the bit pattern of an int8 input.

GELU is the exact one, x * (1 + erf(x / sqrt 2)) / 2, evaluated in float64 with `math.erf`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

ENTRIES = 256

GELU_TABLE_MAX_ERROR = 0.5
"""Largest |entry - clip(gelu(x * scale_in) / scale_out)| in units of the output."""


def gelu(x: float) -> float:
    """Return x * (1 + erf(x / sqrt 2)) / 2, the GELU without approximation."""
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))


def gelu_table(scale_in: float, scale_out: float) -> npt.NDArray[np.int8]:
    """Return the GELU table for the given real values of one unit of input and output.

    Entry i is the result for the int8 with bit pattern i: the nearest integer (ties to even, the
    rule of everything computed offline) to gelu(x * scale_in) / scale_out, cut to int8.

    Returns:
        (256,) int8. Maximum error against float64: GELU_TABLE_MAX_ERROR.

    Raises:
        ValueError: if a scale is not positive and finite.

    """
    for name, scale in (("scale_in", scale_in), ("scale_out", scale_out)):
        if not (scale > 0 and math.isfinite(scale)):
            raise ValueError(f"gelu_table: given {name} {scale}, allowed positive finite numbers")
    inputs = np.arange(ENTRIES, dtype=np.uint8).view(np.int8)
    entries = [min(max(round(gelu(int(x) * scale_in) / scale_out), -128), 127) for x in inputs]
    return np.array(entries, dtype=np.int8)


def apply_table(x: npt.NDArray[np.int8], table: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return table[x mod 256] for int8 x of any shape; exact.

    Raises:
        ValueError: if x is not int8 or the table not (256,) int8.

    """
    if x.dtype != np.int8 or table.dtype != np.int8 or table.shape != (ENTRIES,):
        raise ValueError(
            f"apply_table: given {x.dtype} input and {table.dtype}{table.shape} table, "
            "allowed int8 and int8(256,)"
        )
    return table[x.view(np.uint8)]
