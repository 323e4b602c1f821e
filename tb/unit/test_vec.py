# SPDX-License-Identifier: Apache-2.0
"""The vector engine alone: VEC, GELU and SILU."""

from __future__ import annotations

from functools import partial

import cocotb

from spec.isa import Engine, VecOp
from tb.bench.dut import Dut
from tb.stimulus.engine_cases import SHAPES, of_class
from tb.stimulus.simple_cases import StoreWindow, gelu, silu, vec
from tb.unit.engine import CHIP, EngineBench


@cocotb.test
async def unit_vec_random(dut: Dut) -> None:
    """Random instructions, shapes, pitches and values while SRAM and stream stall at random."""
    await EngineBench.of(dut).run_random([vec, gelu, silu], programs=60)


@cocotb.test
async def unit_vec_shapes(dut: Dut) -> None:
    """Each operation and each shape class."""
    bench = EngineBench.of(dut)
    await bench.run_program([partial(vec, op=op) for op in VecOp] * 4)
    for index in range(len(SHAPES)):
        await bench.run_program(of_class(Engine.VEC, index, StoreWindow(), CHIP.tile) * 4)


@cocotb.test
async def unit_vec_lengths(dut: Dut) -> None:
    """Rows of every length around one and two words, in operations and widths at random."""
    lengths = [partial(vec, extent=(2, elements)) for elements in range(1, 36)]
    await EngineBench.of(dut).run_program(lengths * 8)
