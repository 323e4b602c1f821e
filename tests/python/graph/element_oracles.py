# SPDX-License-Identifier: Apache-2.0
"""What the codes of weight formats stand for, by ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

from spec.isa import WEIGHT_FORMATS, WeightFormat

INTEGERS = {8: np.int8, 4: ml_dtypes.int4, 2: ml_dtypes.int2}
"""By their bits."""
FLOATS = {
    (2, 1): ml_dtypes.float4_e2m1fn,
    (2, 3): ml_dtypes.float6_e2m3fn,
    (3, 2): ml_dtypes.float6_e3m2fn,
    (4, 3): ml_dtypes.float8_e4m3fn,
    (5, 2): ml_dtypes.float8_e5m2,
}
"""By their bits of exponent and mantissa."""


def numbers(fmt: WeightFormat) -> dict[int, Fraction]:
    """Return the number of every code that is a finite one; of a table its entries."""
    info = WEIGHT_FORMATS[fmt]
    if info.table:
        return dict(enumerate(map(Fraction, info.table)))
    float_ = info.minifloat and FLOATS[info.minifloat.exponent, info.minifloat.mantissa]
    codes = np.arange(1 << info.bits, dtype=np.uint8)
    values = codes.view(float_ or INTEGERS[info.bits]).astype(np.float64).tolist()
    return {code: Fraction(v) for code, v in enumerate(values) if math.isfinite(v)}


def unit(fmt: WeightFormat) -> Fraction:
    """Return the number that a weight of 1 stands for where no side byte makes it smaller."""
    info = WEIGHT_FORMATS[fmt]
    if info.minifloat:  # the largest power of two becomes 64
        return Fraction(2 ** math.frexp(max(numbers(fmt).values()))[1], 128)
    return Fraction(1, info.unit)


def nearest(x: Fraction) -> int:
    """Round to nearest, ties upwards."""
    return math.floor(x + Fraction(1, 2))
