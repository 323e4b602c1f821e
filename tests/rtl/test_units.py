# SPDX-License-Identifier: Apache-2.0
"""Every block alone in its bench, as a pytest test: its model is built and its tests run."""

from __future__ import annotations

import os

import pytest

from tb.run import units
from tb.run.unit_commands import run_block


@pytest.mark.parametrize("block", units.blocks())
def test_block(block: str) -> None:
    """All its tests pass; a failure names the command that repeats it."""
    seed = int(os.environ.get("SEED", "1"))
    result = run_block(block, units.tests_of(block), [seed])
    failed = [each for each in result.results if not each.passed]
    assert not failed, "\n".join(f"{each.message}\nrepeat: {each.job.repro}" for each in failed)
