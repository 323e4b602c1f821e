# SPDX-License-Identifier: Apache-2.0
"""Turn real numbers into the integers of the pipeline. Offline, so: round half to even."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.limits import MULT_MAX, MULT_MIN, SHIFT_MAX

MIN_FACTOR = MULT_MIN / 2.0**SHIFT_MAX
MAX_FACTOR = float(MULT_MAX)
"""Real factors that a multiplier with shift can express."""


def multiplier(where: str, factor: float) -> tuple[int, int]:
    """Return (M, sh) with factor close to M / 2^sh, 2^14 <= M < 2^15, 0 <= sh <= 63.

    sh = 14 - floor(log2 factor), M = round(factor * 2^sh), halved if it reaches 2^15: the relative
    error is at most 2^-15.

    Raises:
        ValueError: the factor is not positive, or outside what (M, sh) can express.
    """
    if not (math.isfinite(factor) and MIN_FACTOR <= factor <= MAX_FACTOR):
        raise ValueError(
            f"{where}: given requantisation factor {factor!r}, "
            f"allowed {MIN_FACTOR:.3g}..{MAX_FACTOR:g}"
        )
    mantissa, exponent = math.frexp(factor)  # factor = mantissa * 2^exponent, 0.5 <= mantissa < 1
    shift = 15 - exponent
    mult = round(mantissa * (1 << 15))
    if mult > MULT_MAX:
        mult, shift = mult // 2, shift - 1
    return mult, shift


def multipliers(
    where: str, factors: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]:
    """Return `multiplier` of every entry of a vector, as (N,) uint16 and (N,) uint8."""
    pairs = [multiplier(f"{where}[{i}]", float(factor)) for i, factor in enumerate(factors)]
    mult = np.array([pair[0] for pair in pairs], np.uint16)
    shift = np.array([pair[1] for pair in pairs], np.uint8)
    return mult, shift


def to_int(
    values: npt.NDArray[np.floating[Any]], dtype: type[np.signedinteger[Any]], low: int, high: int
) -> npt.NDArray[Any]:
    """Round half to even and limit to [low, high]."""
    limited: npt.NDArray[Any] = np.clip(np.rint(values), low, high).astype(dtype)
    return limited
