# SPDX-License-Identifier: Apache-2.0
"""Inputs whose result lies next to the middle of two float32: the ones that an error shows on.

A method that is off by less than the distance of the closest one rounds every input right. The
lists are complete; `python -m golden.coprocessor.boundaries` makes them again in a few minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np

from golden.coprocessor import arrays
from golden.coprocessor.floats import float32_value

NEAR = 2.0**-50
"""Largest distance of an input in the lists, relative to the leading bit of its result."""
NEAREST = {
    "exp_float32": (
        0x377E_FF81,
        0xB300_0000,
        0xBAE0_E25C,
        0xBBF0_EDF1,
        0xC169_12CD,
    ),
    "gelu_float32": (
        0x334A_A765,
        0x37B0_A46F,
        0x3802_8E89,
        0x38CA_1BE2,
        0x3E49_3CC6,
        0x3EAD_A244,
        0xB34A_A765,
        0xB7B0_A46F,
        0xB802_8E89,
        0xB8CA_1BE2,
        0xBE49_3CC6,
        0xC092_5885,
    ),
    "rsqrt_float32": (0x403A_18E3,),
}
"""All inputs within NEAR of a middle; of rsqrt those of two octaves, whose significands recur."""
_PRECISION = 200
_STEP = 1 << 22


@dataclass(frozen=True)
class BoundarySweep:
    """A function, and the inputs for which its result is not plain.

    Attributes:
        double: the function in double.
        margin: relative error of that.
        exact: the function to the working precision of mpmath.
        ranges: (first, last) patterns.

    """

    double: Callable[[arrays.Words], arrays.Doubles]
    margin: float
    exact: Callable[[mpmath.mpf], mpmath.mpf]
    ranges: tuple[tuple[int, int], ...]


SWEEPS = {
    # From 2^-26 on either side of 1, where all smaller inputs round to 1, to the ends.
    "exp_float32": BoundarySweep(
        arrays.exp_double,
        arrays.EXP_MARGIN,
        mpmath.exp,
        ((0x3280_0000, 0x42B1_7217), (0xB280_0000, 0xC2CF_F1B5)),
    ),
    # From 2^-31 on; below, the result is half of the input, moved towards plus infinity.
    "gelu_float32": BoundarySweep(
        arrays.gelu_double,
        arrays.GELU_MARGIN,
        lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        ((0x3000_0000, 0x417F_FFFF), (0xB000_0000, 0xC165_B275)),
    ),
    # Two octaves: every fourth power of two has the same significands.
    "rsqrt_float32": BoundarySweep(
        arrays.rsqrt_double,
        arrays.RSQRT_MARGIN,
        lambda x: 1 / mpmath.sqrt(x),
        ((0x3F80_0000, 0x407F_FFFF),),
    ),
}


def distance(name: str, bits: int) -> float:
    """Return how far the result of an input is from a middle of two float32.

    Relative to the leading bit of the result, as the error of a method is.
    """
    with mpmath.workprec(_PRECISION):
        true = abs(SWEEPS[name].exact(mpmath.mpf(float32_value(bits))))
        leading = mpmath.frexp(true)[1] - 1
        # In halves of the last place: odd ones are the middles.
        halves = mpmath.ldexp(true, 24 - max(leading, -126))
        middle = 2 * mpmath.floor(halves / 2) + 1
        return float(abs(mpmath.ldexp(halves - middle, max(leading, -126) - 24 - leading)))


def near(name: str, bits: arrays.Words, most: float = NEAR) -> list[int]:
    """Return the inputs among `bits` that are at most so far from a middle."""
    sweep = SWEEPS[name]
    numbers = sweep.double(bits)
    low, high = (arrays.nearest(numbers * (1 + side * (most + sweep.margin))) for side in (-1, 1))
    return [int(it) for it in bits[low != high] if distance(name, int(it)) <= most]


def find(name: str, most: float = NEAR) -> list[int]:
    """Return all inputs of a function that are at most so far from a middle."""
    found: list[int] = []
    for first, last in SWEEPS[name].ranges:
        for start in range(first, last + 1, _STEP):
            bits = np.arange(start, min(start + _STEP, last + 1), dtype=np.uint32)
            found += near(name, bits, most)
    return found


def _main() -> None:
    """Print the lists as they stand in this file, with the distances."""
    for name in SWEEPS:
        for bits in find(name):
            print(f"{name} {bits:#010x} {distance(name, bits):.3e}", flush=True)


if __name__ == "__main__":
    _main()
