# SPDX-License-Identifier: Apache-2.0
"""Runs random lists; one that fails is cut down on a fresh chip."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.driver.errors import DeviceError
from tb.bench.dut import Dut
from tb.bench.environment import reset
from tb.bench.knobs import Knobs
from tb.cop.cop_session import CopSession, ListScene
from tb.cop.random_scenes import draw_scene, shrink


async def run_random_lists(dut: Dut, lists: int, length: int) -> None:
    """Run random lists, drawn by the run's seed.

    Args:
        dut: the bench top.
        lists: how many.
        length: instructions in each.

    Raises:
        AssertionError: chip and model differ, or the chip did not end; tells the shortest list
            that was found.
    """
    session = await CopSession.start(dut)
    seed = int(cocotb.RANDOM_SEED)
    for number in range(lists):
        dut._log.info("list %d", number)  # the last one before an assertion in the log
        scene = draw_scene(np.random.default_rng((seed, number)), length)
        try:
            await session.run_scene(scene)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"list {number}: {await _shrunk(dut, scene, error)}") from error


async def _shrunk(dut: Dut, scene: ListScene, error: Exception) -> str:
    async def fails(shorter: ListScene) -> str | None:
        Knobs().apply(dut)
        await reset(dut)
        try:
            await (await CopSession.start(dut)).run_scene(shorter)
        except (AssertionError, DeviceError) as found:
            return str(found)
        return None

    return await shrink(scene, str(error), fails)
