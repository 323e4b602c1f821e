# SPDX-License-Identifier: Apache-2.0
"""The GEMM engine with an array of 4, whose rows leave post-processing column after column."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.stimulus.gemm_cases import classic, gemm
from tb.unit.engine import CHIP, EngineBench


@cocotb.test
async def unit_gemm_a4_random(dut: Dut) -> None:
    """Random modes and shapes, several instructions in flight, under random stalls."""
    makers = [partial(make, rows=CHIP.acc_rows, edge=CHIP.tile) for make in (gemm, classic)]
    await EngineBench.of(dut).run_random(makers, programs=12)
