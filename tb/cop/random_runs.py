# SPDX-License-Identifier: Apache-2.0
"""Runs random lists, each of which may run alone and with fewer instructions."""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np

from npu.driver.errors import DeviceError
from tb.bench.dut import Dut
from tb.bench.scenes import chosen, names_of, wanted
from tb.cop.cop_session import CopSession
from tb.cop.random_scenes import draw_scene


async def run_random_lists(dut: Dut, lists: int, length: int) -> None:
    """Run random lists, drawn by the run's seed.

    Args:
        dut: the bench top.
        lists: how many.
        length: instructions in each.

    Raises:
        AssertionError: chip and model differ, or the chip did not end.
    """
    session = await CopSession.start(dut)
    seed = int(cocotb.RANDOM_SEED)
    for keep in wanted(lists):
        whole = draw_scene(np.random.default_rng((seed, keep.scene)), length)
        scene = replace(whole, offers=chosen("c", whole.offers, keep))
        session.bench.record_scene(keep, names_of("c", whole.offers), scene.text())
        try:
            await session.run_scene(scene)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"list {keep}: {error}") from error
