# SPDX-License-Identifier: Apache-2.0
"""Elements of the narrow weight formats: what a code and a side byte stand for.

A code decodes to an integer v and a shift t, the side byte of its group and column to a factor f,
and the weight is w = rs(v * f, 8 + t), rs(x, s) = (x + (1 << (s - 1))) >> s: one rounding, half up.
Formats without side bytes have f = 256 and t = 0, so w = v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.elements import Minifloat
from spec.isa.weight_formats import GROUPED, MX

WHOLE = 256
"""The factor with which w = v * 2^-t."""
FRACTION_BITS = 6
"""Bits below the leading one of a minifloat's v."""


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """All codes of a format, C of them.

    Attributes:
        v: (C,) int64.
        t: (C,) int64, 0..8.
        number: (C,) bool, False for the codes of infinities and not-a-numbers.
    """

    v: npt.NDArray[np.int64]
    t: npt.NDArray[np.int64]
    number: npt.NDArray[np.bool_]


@cache
def elements(fmt: WeightFormat) -> Elements:
    """Return v, t and validity of every code of a format."""
    info = WEIGHT_FORMATS[fmt]
    if info.minifloat:
        return _minifloats(info.minifloat)
    code = np.arange(1 << info.bits, dtype=np.int64)
    v = np.where(code < code.size // 2, code, code - code.size) * info.unit
    if info.table:
        v = np.array(info.table, np.int64)
    return Elements(v, np.zeros_like(v), np.ones(v.shape, bool))


def _minifloats(kind: Minifloat) -> Elements:
    """Return the codes of a minifloat: v of one binade, t binades below the top."""
    codes = np.arange(2 * kind.sign, dtype=np.int64)
    exponent = (codes >> kind.mantissa) & ((1 << kind.exponent) - 1)
    mantissa = codes & ((1 << kind.mantissa) - 1)
    hidden = (exponent > 0).astype(np.int64) << kind.mantissa
    v = (hidden | mantissa) << (FRACTION_BITS - kind.mantissa)
    t = np.clip(kind.top - np.maximum(exponent, 1), 0, 8)
    number = codes & (kind.sign - 1) <= kind.largest
    return Elements(np.where(codes & kind.sign, -v, v), t, number)


@cache
def factors(fmt: WeightFormat) -> npt.NDArray[np.int64]:
    """Return f (256,) int64 of every side byte; all 256 where there are none."""
    side = np.arange(256, dtype=np.int64)
    if fmt in GROUPED:
        return side
    if fmt in MX:
        return WHOLE >> np.minimum(side, 9)
    return np.full(256, WHOLE, np.int64)


@cache
def expansion(fmt: WeightFormat) -> npt.NDArray[np.int8]:
    """Return w (256, C) int8 of every side byte and code."""
    found = elements(fmt)
    scaled = found.v * factors(fmt)[:, None]
    shift = 8 + found.t
    w: npt.NDArray[np.int8] = ((scaled + (1 << (shift - 1))) >> shift).astype(np.int8)
    return w
