# SPDX-License-Identifier: Apache-2.0
"""Elements of the narrow weight formats: what a code and a side byte stand for.

A code decodes to an integer v and a shift t, the side byte of its group and column to a factor f,
and the weight is w = rs(v * f, 8 + t), rs(x, s) = (x + (1 << (s - 1))) >> s: one rounding, half up.
Formats without side bytes have f = 256 and t = 0, so w = v.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
import numpy.typing as npt


class Format(StrEnum):
    """The narrow formats of the parameter stream; int8 is a plain `Linear`."""

    INT4 = "int4"
    INT4G = "int4g"
    INT4S = "int4s"
    INT2 = "int2"
    INT8S = "int8s"
    NF4G = "nf4g"
    FP4G = "fp4g"
    MXINT8 = "mxint8"
    MXFP8E4 = "mxfp8e4"
    MXFP8E5 = "mxfp8e5"
    MXFP6E3 = "mxfp6e3"
    MXFP6E2 = "mxfp6e2"
    MXFP4 = "mxfp4"


GROUPED = frozenset({Format.INT4G, Format.NF4G, Format.FP4G})
"""Formats whose side byte is a factor of a group of rows."""
SPARSE = frozenset({Format.INT4S, Format.INT8S})
"""Formats that keep two of four rows."""
MX = frozenset(one for one in Format if one.startswith("mx"))
"""Formats whose side byte is how far a block's exponent lies below its column's."""
GROUPS = (16, 32, 64, 128)
"""Rows of a group that GROUPED formats can have."""
MX_BLOCK = 32
"""Rows of an MX block."""
QUAD = 4
"""Rows of which SPARSE formats keep two."""
WHOLE = 256
"""The factor with which w = v * 2^-t."""


@dataclass(frozen=True, slots=True)
class Minifloat:
    """Fields of a small float: sign, `exponent` bits, `mantissa` bits.

    `top` is the largest exponent field of a finite number; with `reserved` the code of that
    exponent and an all-ones mantissa is no number (E4M3). Larger exponent fields are none either.
    """

    exponent: int
    mantissa: int
    top: int
    reserved: bool = False


MINIFLOATS = {
    Format.FP4G: Minifloat(2, 1, 3),
    Format.MXFP4: Minifloat(2, 1, 3),
    Format.MXFP6E2: Minifloat(2, 3, 3),
    Format.MXFP6E3: Minifloat(3, 2, 7),
    Format.MXFP8E4: Minifloat(4, 3, 15, reserved=True),
    Format.MXFP8E5: Minifloat(5, 2, 30),
}
"""The float elements of OCP Microscaling Formats (MX) v1.0, section 5.3."""
NF4 = (-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127)
"""round(127 x) of the sixteen values of NormalFloat4 (Dettmers et al., "QLoRA", 2023)."""
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
def elements(fmt: Format) -> Elements:
    """Return v, t and validity of every code of a format."""
    if fmt in MINIFLOATS:
        return _minifloats(MINIFLOATS[fmt])
    if fmt == Format.NF4G:
        v = np.array(NF4, np.int64)
    else:
        v = np.arange(1 << code_bits(fmt), dtype=np.int64)
        v = np.where(v < v.size // 2, v, v - v.size)
        if fmt == Format.INT4G:
            v *= 16
    return Elements(v, np.zeros_like(v), np.ones(v.shape, bool))


def _minifloats(kind: Minifloat) -> Elements:
    """Return the codes of a minifloat: v of one binade, t binades below the top."""
    codes = np.arange(1 << (1 + kind.exponent + kind.mantissa), dtype=np.int64)
    sign = codes >> (kind.exponent + kind.mantissa)
    exponent = (codes >> kind.mantissa) & ((1 << kind.exponent) - 1)
    mantissa = codes & ((1 << kind.mantissa) - 1)
    hidden = (exponent > 0).astype(np.int64) << kind.mantissa
    v = (hidden | mantissa) << (FRACTION_BITS - kind.mantissa)
    t = np.clip(kind.top - np.maximum(exponent, 1), 0, 8)
    number = exponent <= kind.top
    if kind.reserved:
        number &= (exponent < kind.top) | (mantissa < (1 << kind.mantissa) - 1)
    return Elements(np.where(sign == 1, -v, v), t, number)


def code_bits(fmt: Format) -> int:
    """Return the bits of a code."""
    if fmt in MINIFLOATS:
        return 1 + MINIFLOATS[fmt].exponent + MINIFLOATS[fmt].mantissa
    return {Format.INT2: 2, Format.INT8S: 8, Format.MXINT8: 8}.get(fmt, 4)


@cache
def factors(fmt: Format) -> npt.NDArray[np.int64]:
    """Return f (256,) int64 of every side byte; all 256 where there are none."""
    side = np.arange(256, dtype=np.int64)
    if fmt in GROUPED:
        return side
    if fmt in MX:
        return WHOLE >> np.minimum(side, 9)
    return np.full(256, WHOLE, np.int64)


@cache
def expansion(fmt: Format) -> npt.NDArray[np.int8]:
    """Return w (256, C) int8 of every side byte and code."""
    found = elements(fmt)
    scaled = found.v * factors(fmt)[:, None]
    shift = 8 + found.t
    w: npt.NDArray[np.int8] = ((scaled + (1 << (shift - 1))) >> shift).astype(np.int8)
    return w
