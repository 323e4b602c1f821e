# SPDX-License-Identifier: Apache-2.0
"""The GEMM engine with an array of 4.

Its rows leave post-processing column after column, and lines of narrow weights take turns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import cocotb

from spec.isa import GemmB, WeightFormat
from tb.bench.dut import Dut
from tb.stimulus.gemm_cases import GemmSize, build, classic, gemm, groups, random_mode
from tb.unit.engine import CHIP, EngineBench


@cocotb.test
async def unit_gemm_a4_random(dut: Dut) -> None:
    """Random modes and shapes, several instructions in flight, under random stalls."""
    makers = [partial(make, rows=CHIP.acc_rows, edge=CHIP.tile) for make in (gemm, classic)]
    await EngineBench.of(dut).run_random(makers, programs=12)


@cocotb.test
async def unit_gemm_a4_formats(dut: Dut) -> None:
    """Each format and group behind int8 from the stream or from SRAM, in shapes around the tile."""
    bench = EngineBench.of(dut)
    random, edge = bench.unit.random, CHIP.tile
    makers = []
    for fmt in WeightFormat:
        for group in groups(fmt, edge):
            mode = replace(random_mode(random, edge), b_form=GemmB.STREAM, transpose=False)
            before = replace(random_mode(random, edge), fmt=WeightFormat.INT8)
            for each in (before, replace(mode, fmt=fmt, group=group)):
                m, n, k = random.integers(1, [4, 2 * edge + 2, 5 * edge + 2]).tolist()
                makers.append(partial(build, shape=GemmSize(m, n, k), mode=each, edge=edge))
    await bench.run_program(makers)
