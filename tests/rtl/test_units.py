# SPDX-License-Identifier: Apache-2.0
"""Blocks alone in their benches, as pytest tests: the model is built and the block's tests run.

The short form has some of the parts; the whole engines are what the tests on the chip are about.
"""

from __future__ import annotations

import os

import pytest

from tb.run import units
from tb.run.unit_commands import run_block
from tests.forms import sample

FIRST = ("axi_mux", "cop_lane", "cop_rules", "dram", "legal_gemm", "mem_port", "sram", "streamer")
BLOCKS = [*FIRST, *(block for block in units.blocks() if block not in FIRST)]


@pytest.mark.parametrize("block", sample(BLOCKS, len(FIRST)))
def test_block(block: str) -> None:
    """All its tests pass; a failure names the command that repeats it."""
    seed = int(os.environ.get("SEED", "1"))
    result = run_block(block, units.tests_of(block), [seed])
    failed = [each for each in result.results if not each.passed]
    assert not failed, "\n".join(f"{each.message}\nrepeat: {each.job.repro}" for each in failed)
