# SPDX-License-Identifier: Apache-2.0
"""The vector engine of an array of 8, which has 8 lanes: a word of int8 takes two steps."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.stimulus.simple_cases import gelu, silu, vec
from tb.unit.engine import EngineBench


@cocotb.test
async def unit_vec_a8_random(dut: Dut) -> None:
    """Random instructions, shapes, pitches and values while SRAM and stream stall at random."""
    await EngineBench.of(dut).run_random([vec, gelu, silu], programs=60)


@cocotb.test
async def unit_vec_a8_lengths(dut: Dut) -> None:
    """Rows of every length around one and two words, in operations and widths at random."""
    lengths = [partial(vec, extent=(2, elements)) for elements in range(1, 36)]
    await EngineBench.of(dut).run_program(lengths * 8)
