# SPDX-License-Identifier: Apache-2.0
"""Operands of the coprocessor: numbers at which something changes, and any others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

INTEGERS = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFF, 0x100, 0x7FFF, 0x8000, 0x7FFF_FFFF, 0x8000_0000)
"""Integers, of which the negatives and the neighbours are drawn as well."""
SATURATED, SMALLEST = 681392, -772243
"""exp in Q16.16: first saturated input, first one with a result above 0."""
FLOATS = (
    *(0x0000_0000, 0x0000_0001, 0x0000_0003, 0x007F_FFFF, 0x0080_0000, 0x0080_0001),
    *(0x3F7F_FFFF, 0x3F80_0000, 0x3F80_0001, 0x4000_0000, 0x3F00_0000, 0x4080_0000),
    *(0x2F80_0000, 0x3000_0000, 0x7F7F_FFFF, 0x7F00_0000, 0x7F80_0000, 0x7FC0_0000),
    *(0x7F80_0001, 0x7FFF_FFFF, 0x7FA5_A5A5, 0x1F80_0000, 0x5F80_0000, 0x3380_0000),
    *(0x42B1_7217, 0x42B1_7218, 0x42CF_F1B4, 0x42CF_F1B5, 0x42AE_AC4F, 0x42AE_AC50),
    *(0x4165_B274, 0x4165_B275, 0x4180_0000, 0x417F_FFFF, 0x40C0_0000, 0x4150_0000),
)
"""Magnitudes of floats: zero, subnormals, ones, infinity, NaN with and without payload, and where
exp and GELU begin to overflow, to underflow or to be something simple."""


def integers(random: np.random.Generator, count: int) -> Words:
    """Return words at the ends of integer ranges and anywhere, (count,) uint32."""
    corners = random.choice(np.array(INTEGERS, np.int64), count)
    corners = corners * random.choice((-1, 1), count) + random.integers(-1, 2, count)
    anywhere = random.integers(0, 1 << 32, count) >> random.integers(0, 32, count)
    return np.where(random.random(count) < 0.5, corners, anywhere).astype(np.uint32)


def exponents(random: np.random.Generator, count: int) -> Words:
    """Return inputs of exp in Q16.16, most of them between zero and saturation, (count,) uint32."""
    near = random.choice(np.array((0, SATURATED, SMALLEST, -1, 65536, -65536)), count)
    near = near + random.integers(-3, 4, count)
    inside = random.integers(SMALLEST - 20_000, SATURATED + 20_000, count)
    softmax = -random.integers(0, 8 << 16, count)
    kind = random.integers(0, 4, count)
    chosen = np.select([kind == 0, kind == 1, kind == 2], [near, inside, softmax], 0)
    return np.where(kind == 3, integers(random, count), chosen.astype(np.uint32))


def radicands(random: np.random.Generator, count: int) -> Words:
    """Return inputs of 1/sqrt in Q16.16: around powers of two, and any, (count,) uint32."""
    powers = (1 << random.integers(0, 32, count)) + random.integers(-1, 2, count)
    return np.where(random.random(count) < 0.6, powers, integers(random, count)).astype(np.uint32)


def floats(random: np.random.Generator, count: int) -> Words:
    """Return float32: special ones, moderate ones, all exponents, (count,) uint32."""
    signs = random.integers(0, 2, count).astype(np.uint32) << 31
    special = random.choice(np.array(FLOATS, np.uint32), count) | signs
    near = special + random.integers(-1, 2, count).astype(np.uint32)
    moderate = random.normal(0.0, 3.0, count).astype(np.float32).view(np.uint32)
    anywhere = random.integers(0, 1 << 32, count).astype(np.uint32)
    wide = random.uniform(-105, 92, count).astype(np.float32).view(np.uint32)
    kind = random.integers(0, 10, count)
    return np.select(
        [kind < 2, kind < 3, kind < 7, kind < 8], [special, near, moderate, wide], anywhere
    )


def signed_bytes(random: np.random.Generator, count: int) -> npt.NDArray[np.uint8]:
    """Return signed bytes, their ends often, (count,) uint8."""
    corners = random.choice(np.array((0, 1, 0x7F, 0x80, 0x81, 0xFF), np.uint8), count)
    anywhere = random.integers(0, 256, count).astype(np.uint8)
    return np.where(random.random(count) < 0.3, corners, anywhere)


def one_of(random: np.random.Generator, several: Sequence[int]) -> int:
    """Return one of several numbers."""
    return int(several[int(random.integers(len(several)))])
