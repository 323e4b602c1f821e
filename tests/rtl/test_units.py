# SPDX-License-Identifier: Apache-2.0
"""Blocks alone in their benches, as pytest tests: the model is built and the block's tests run.

In the short form those of the whole engines are left out, which the tests on the chip are about,
and so are other ports of one of them.
"""

from __future__ import annotations

import os

import pytest

from tb.run import units
from tb.run.unit_commands import run_block
from tests.forms import sample

ENGINES = ("cmd", "cop", "dma", "gemm", "nrm", "softmax", "vec")
OTHERS = (*ENGINES, *units.VARIANTS)
PARTS = tuple(block for block in units.blocks() if block not in OTHERS)


@pytest.mark.parametrize("block", sample([*PARTS, *OTHERS], len(PARTS)))
def test_block(block: str) -> None:
    """All its tests pass; a failure names the command that repeats it."""
    seed = int(os.environ.get("SEED", "1"))
    result = run_block(block, units.tests_of(block), [seed])
    failed = [each for each in result.results if not each.passed]
    assert not failed, "\n".join(f"{each.message}\nrepeat: {each.job.repro}" for each in failed)
