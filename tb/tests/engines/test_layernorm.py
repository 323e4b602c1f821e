# SPDX-License-Identifier: Apache-2.0
"""LAYERNORM alone: rows of every spread, parameters from the stream and from SRAM."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus import run_cases
from tb.stimulus.simple_cases import layernorm
from tb.tests.engines.norms import run_longest, run_spreads

TAGS = ("nrm", "random")


@cocotb.test
async def test_layernorm_random(dut: Dut) -> None:
    """Random shapes, spreads, gains, biases and epsilon terms."""
    bench = await Bench.start(dut)
    await run_cases(bench, [layernorm], count=40, programs=4)


@cocotb.test
async def test_layernorm_spreads(dut: Dut) -> None:
    """Rows whose variance walks through every power of two, so that each table entry serves."""
    await run_spreads(await Bench.start(dut), "LAYERNORM")


@cocotb.test
async def test_layernorm_longest(dut: Dut) -> None:
    """A row of the greatest length, full-range values."""
    await run_longest(await Bench.start(dut), "LAYERNORM")
