# SPDX-License-Identifier: Apache-2.0
"""The coprocessor with registers behind the issue, short identifiers, and wide numbers of harts."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop.cop_session import CopSession
from tb.cop.port_cases import plays_every_manner
from tb.cop.random_runs import run_random_lists
from tb.cop.soft_resets import reset_at_any_cycle


@cocotb.test
async def unit_cop_split_random(dut: Dut) -> None:
    """Random lists on a hostile memory, in every manner of offering, leave what golden says."""
    await run_random_lists(dut, *((500, 200) if full() else (25, 60)))


@cocotb.test
async def unit_cop_split_manners(dut: Dut) -> None:
    """Late operands, early commits, commits by age, kills of what waits, with golden's results."""
    await plays_every_manner(await CopSession.start(dut))


@cocotb.test
async def unit_cop_split_soft_reset(dut: Dut) -> None:
    """A soft reset at any cycle: one result each, RESET if one ran, state zero, memory in order."""
    session = await CopSession.start(dut)
    hits = await reset_at_any_cycle(session, 1000 if full() else 60)
    assert hits > 5, f"only {hits} instructions were hit"
