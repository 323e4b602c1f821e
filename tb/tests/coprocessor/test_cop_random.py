# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: random lists on a hostile memory, in every manner of offering."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop.random_runs import run_random_lists

TAGS = ("cop", "random", "long")

COP_SOURCES = (2, 3)


@cocotb.test
async def test_cop_random(dut: Dut) -> None:
    """Random lists leave what golden says: results, state, faults, memory, nothing open."""
    await run_random_lists(dut, *((500, 200) if full() else (20, 60)))
