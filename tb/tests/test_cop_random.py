# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: random lists on a hostile memory, in every manner of offering."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.driver.errors import DeviceError
from tb.bench.dut import Dut
from tb.bench.environment import full, reset
from tb.bench.knobs import Knobs
from tb.cop.cop_session import CopSession, Scene
from tb.cop.random_scenes import draw_scene, shrink

COP_SOURCES = (3,)
LISTS, LENGTH = 20, 60
FULL_LISTS, FULL_LENGTH = 500, 200
"""Of the long form."""


@cocotb.test
async def test_cop_random(dut: Dut) -> None:
    """Random lists leave what golden says: results, state, faults, memory, nothing open."""
    session = await CopSession.start(dut)
    seed = int(cocotb.RANDOM_SEED)
    lists, length = (FULL_LISTS, FULL_LENGTH) if full() else (LISTS, LENGTH)
    for number in range(lists):
        scene = draw_scene(np.random.default_rng((seed, number)), length)
        try:
            await session.run_scene(scene)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"list {number}: {await _shrunk(dut, scene, error)}") from error


async def _shrunk(dut: Dut, scene: Scene, error: Exception) -> str:
    async def fails(shorter: Scene) -> str | None:
        Knobs().apply(dut)
        await reset(dut)
        try:
            await (await CopSession.start(dut)).run_scene(shorter)
        except (AssertionError, DeviceError) as found:
            return str(found)
        return None

    return await shrink(scene, str(error), fails)
