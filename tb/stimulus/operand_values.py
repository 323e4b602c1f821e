# SPDX-License-Identifier: Apache-2.0
"""Random operand data: full range, corners, and shapes that single operations need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def full(random: np.random.Generator, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return values over the whole range of `dtype`."""
    info = np.iinfo(np.dtype(dtype))
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def corners(random: np.random.Generator, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return values from the corners of `dtype` only."""
    info = np.iinfo(np.dtype(dtype))
    around = [info.min, info.min + 1, 0, 1, info.max - 1, info.max]
    if info.min < 0:
        around.append(-1)
    return random.choice(np.array(around, dtype=dtype), shape)


def mixed(random: np.random.Generator, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return full-range values, sometimes corners, sometimes small ones."""
    kind = random.random()
    if kind < 0.6:
        return full(random, shape, dtype)
    if kind < 0.8:
        return corners(random, shape, dtype)
    info = np.iinfo(np.dtype(dtype))
    return random.integers(max(info.min, -9), 10, shape, dtype)


def _any(random: np.random.Generator, ends: tuple[int, ...], last: int) -> int:
    """Return one of `ends`, or as often any number from the first of them to `last`."""
    if random.random() < 0.5:
        return int(random.choice(ends))
    return int(random.integers(ends[0], last + 1))


def any_shift(random: np.random.Generator) -> int:
    """Return a shift from 0 to 63, the ends more often than others."""
    return _any(random, (0, 63), 63)


def factor(random: np.random.Generator, spread: float, target: float) -> tuple[int, int]:
    """Return (mult, shift) that brings values of about `spread` to about `target`.

    Mostly normalised multipliers with a shift near the right one; now and then any pair.
    """
    if random.random() < 0.1:
        return _any(random, (1, (1 << 15) - 1), (1 << 15) - 1), any_shift(random)
    mult = int(random.integers(1 << 14, 1 << 15))
    shift = round(np.log2(max(spread, 1.0) * mult / target)) + int(random.integers(-2, 3))
    return mult, min(max(shift, 0), 63)


def stored_factor(random: np.random.Generator, spread: float, target: float) -> tuple[int, int]:
    """Return `factor`, now and then any uint16 multiplier and any shift byte.

    Of a shift byte in memory bits 5:0 count, and the multiplier may use all its 16 bits.
    """
    if random.random() < 0.1:
        mult = _any(random, (0, (1 << 16) - 1), (1 << 16) - 1)
        return mult, _any(random, (0, 63, 64, 128, 255), 255)
    return factor(random, spread, target)


def stored_factors(
    random: np.random.Generator, count: int, spread: float, target: float
) -> tuple[Array, Array]:
    """Return `stored_factor` for each of `count` channels: (mult uint16, shift uint8)."""
    pairs = [stored_factor(random, spread, target) for _ in range(count)]
    return np.array([m for m, _ in pairs], np.uint16), np.array([s for _, s in pairs], np.uint8)
