# SPDX-License-Identifier: Apache-2.0
"""Norms and RoPE of an array of 8, with four lanes: an octet takes two beats."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.stimulus.simple_cases import layernorm, rmsnorm, rope
from tb.unit.engine import EngineBench


@cocotb.test
async def unit_nrm_a8_random(dut: Dut) -> None:
    """Random instructions of the three kinds in turn while SRAM and stream stall at random."""
    await EngineBench.of(dut).run_random([layernorm, rmsnorm, rope], programs=40)


@cocotb.test
async def unit_nrm_a8_lengths(dut: Dut) -> None:
    """Norms of rows of every length around one and two words, and of the longest."""
    extents = [*((3, columns) for columns in range(1, 36)), (1, 8192)]
    norms = [partial(norm, extent=each) for norm in (layernorm, rmsnorm) for each in extents]
    await EngineBench.of(dut).run_program(norms * 2)


@cocotb.test
async def unit_nrm_a8_heads(dut: Dut) -> None:
    """RoPE of every even head dimension up to past four words, halves and neighbours."""
    heads = [
        partial(rope, extent=(2, dimension), heads=heads, neighbours=neighbours)
        for dimension in range(2, 76, 2)
        for heads in (1, 3)
        for neighbours in (False, True)
    ]
    await EngineBench.of(dut).run_program(heads)
