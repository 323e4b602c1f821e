# SPDX-License-Identifier: Apache-2.0
"""RMSNORM: rows of every spread, parameters from the stream and from SRAM, between LAYERNORMs."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus import build_program, run_cases
from tb.stimulus.simple_cases import layernorm, rmsnorm
from tb.tests.engines.norms import run_longest, run_spreads

TAGS = ("nrm", "random")


@cocotb.test
async def test_rmsnorm_random(dut: Dut) -> None:
    """Random shapes, spreads, gains, biases and epsilon terms."""
    bench = await Bench.start(dut)
    await run_cases(bench, [rmsnorm], count=40, programs=4)


@cocotb.test
async def test_rmsnorm_every_length(dut: Dut) -> None:
    """Every row length from 1 past two words of int16 and of int8, one row and several."""
    bench = await Bench.start(dut)
    for rows in (1, 3):
        makers = [partial(rmsnorm, extent=(rows, length)) for length in range(1, 67)]
        program, stream = build_program(bench, makers)
        execution = await bench.execute(program, stream)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_rmsnorm_spreads(dut: Dut) -> None:
    """Rows whose mean square walks through every power of two, so that each table entry serves."""
    await run_spreads(await Bench.start(dut), "RMSNORM")


@cocotb.test
async def test_rmsnorm_longest(dut: Dut) -> None:
    """A row of the greatest length, full-range values."""
    await run_longest(await Bench.start(dut), "RMSNORM")


@cocotb.test
async def test_rmsnorm_and_layernorm(dut: Dut) -> None:
    """Both norms in turn, back to back on the same engine."""
    bench = await Bench.start(dut)
    await run_cases(bench, [rmsnorm, layernorm], count=40, programs=2)
