# SPDX-License-Identifier: Apache-2.0
"""The softmax engine alone: forms, masks, windows, long and flat rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import cocotb
import numpy as np

from tb.bench.dut import Dut
from tb.stimulus.engine_cases import EXTENTS
from tb.stimulus.random_case import Case
from tb.stimulus.simple_cases import softmax
from tb.stimulus.sram_space import Space
from tb.unit.engine import EngineBench


@cocotb.test
async def unit_softmax_random(dut: Dut) -> None:
    """Random shapes, forms, masks and scores while the SRAM stalls at random."""
    await EngineBench.of(dut).run_random([softmax], programs=40)


@cocotb.test
async def unit_softmax_shapes(dut: Dut) -> None:
    """Each shape class, and rows of every length around one and two words."""
    extents = [*EXTENTS, *((2, columns) for columns in range(1, 36))]
    await EngineBench.of(dut).run_program([partial(softmax, extent=each) for each in extents] * 3)


def flat(columns: int, random: np.random.Generator, space: Space) -> Case:
    """Return a softmax of rows in which all scores are equal, so that their sum is the greatest."""
    case = softmax(random, space, extent=(2, columns))
    score = random.bytes(1)
    return replace(case, fills=[(address, score * len(data)) for address, data in case.fills])


@cocotb.test
async def unit_softmax_long(dut: Dut) -> None:
    """Rows whose sums need all bits of the reciprocal."""
    lengths = (100, 513, 600, 1024, 2048)
    await EngineBench.of(dut).run_program([partial(flat, columns) for columns in lengths] * 10)
