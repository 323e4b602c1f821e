# SPDX-License-Identifier: Apache-2.0
"""Plays prepared signals cycle by cycle and returns what the block showed in each cycle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spec.isa import WORD
from tb.bench.environment import PROGRAM, STREAM
from tb.unit.world import UnitBench, World

Words = npt.NDArray[np.uint32]
"""(cycles, 4 * words of a row) uint32: what is driven or observed, lowest bits first."""


async def play(unit: UnitBench, driven: Words) -> Words:
    """Play a table through `unit_player`; return the table of what was observed, of equal shape."""
    unit.memory.stage(PROGRAM, driven)
    cycles, columns = driven.shape
    await unit.run(World(), cycles + 100, words=cycles)
    return unit.memory.array(STREAM, (cycles, columns), np.uint32)


def table(cycles: int, words: int) -> Words:
    """Return a table of zeros: `words` words of 16 bytes for each cycle."""
    return np.zeros((cycles, words * WORD // 4), np.uint32)
