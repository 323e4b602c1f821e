# SPDX-License-Identifier: Apache-2.0
"""The softmax of an array of 8, with 4 multipliers: an octet of probabilities takes two beats."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.stimulus.simple_cases import softmax
from tb.unit.engine import EngineBench


@cocotb.test
async def unit_softmax_a8_random(dut: Dut) -> None:
    """Random shapes, forms, masks and scores while the SRAM stalls at random."""
    await EngineBench.of(dut).run_random([softmax], programs=40)


@cocotb.test
async def unit_softmax_a8_lengths(dut: Dut) -> None:
    """Rows of every length around one and two words, in every form."""
    lengths = [partial(softmax, extent=(2, columns)) for columns in range(1, 36)]
    await EngineBench.of(dut).run_program(lengths * 6)
