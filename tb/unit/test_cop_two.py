# SPDX-License-Identifier: Apache-2.0
"""The coprocessor of a host that delivers two operands, with the widest identifiers."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop.random_runs import run_random_lists


@cocotb.test
async def unit_cop_two_random(dut: Dut) -> None:
    """Random lists on a hostile memory, in every manner of offering, leave what golden says."""
    await run_random_lists(dut, *((500, 200) if full() else (25, 60)))
