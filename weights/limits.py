# SPDX-License-Identifier: Apache-2.0
"""Ranges of the parts of an integer model, and the checks by which they refuse the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

WEIGHT_MAX = 127
"""Weights are symmetric: -128 is not used."""
MULT_MIN, MULT_MAX = 1 << 14, (1 << 15) - 1
"""Multipliers are normalised 15-bit numbers."""
SHIFT_MAX = 63
RESCALE_SHIFT_MAX = 31
"""Of a row of the stream that only changes its unit."""
INT16_MAX = (1 << 15) - 1
INT32_MAX = (1 << 31) - 1
EPS_TERM_MAX = (1 << 64) - 1
"""The width of the epsilon term in a norm's parameters."""


class ModelError(ValueError):
    """A part of a quantised model has a wrong type, shape, dtype or value."""


def check_array(
    where: str, value: object, dtype: type[np.generic], shape: tuple[int | None, ...]
) -> None:
    """Raise ModelError unless `value` is an array of `dtype` and `shape` (None: any length >= 1).

    The array is marked read-only, since the dataclasses are frozen.
    """
    if not isinstance(value, np.ndarray):
        raise ModelError(f"{where}: given {type(value).__name__}, allowed numpy.ndarray")
    if value.dtype != np.dtype(dtype):
        raise ModelError(f"{where}: given dtype {value.dtype}, allowed {np.dtype(dtype)}")
    fits = len(value.shape) == len(shape) and all(
        have >= 1 and want in (None, have) for have, want in zip(value.shape, shape, strict=True)
    )
    if not fits:
        allowed = ", ".join("any" if want is None else str(want) for want in shape)
        raise ModelError(f"{where}: given shape {value.shape}, allowed ({allowed})")
    value.setflags(write=False)


def check_range(where: str, value: npt.NDArray[Any], low: int, high: int) -> None:
    """Raise ModelError unless every entry of the integer array `value` lies in [low, high]."""
    least, most = int(value.min()), int(value.max())
    if least < low or most > high:
        worst = least if least < low else most
        index = tuple(int(i) for i in np.argwhere(value == worst)[0])
        raise ModelError(f"{where}: given {worst} at index {index}, allowed {low}..{high}")


def check_int(where: str, value: object, low: int, high: int) -> None:
    """Raise ModelError unless `value` is a Python int in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelError(f"{where}: given {type(value).__name__} {value!r}, allowed int")
    if not low <= value <= high:
        raise ModelError(f"{where}: given {value}, allowed {low}..{high}")
