# SPDX-License-Identifier: Apache-2.0
"""All front doors at once: a random program, random descriptors, a random list of instructions.

The program, which the ring may launch, uses every engine, weight format and the K/V cache, or is
that of a random graph; ring and coprocessor work beside it on a memory that is often hostile.
Registers, scratchpad, SRAM, memory, and each answer of the coprocessor are compared with the model
of the whole chip; what a graph gives is compared with golden as well.
"""

from __future__ import annotations

import cocotb
import numpy as np

from npu.driver.errors import DeviceError
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.memory import Memory
from tb.bench.scenes import wanted
from tb.stimulus.dependent_programs import Surroundings, complete
from tb.tests.chip.mixed_scenes import describe_mixed, draw_mixed, run_mixed

TAGS = ("seq", "cmd", "cop", "random", "long")

COP_SOURCES = (2, 3)

SCENES, FULL = 60, 1000
"""Scenes of the test, and of its long form."""


@cocotb.test
async def test_mixed(dut: Dut) -> None:
    """Random scenes leave what golden says, at every door."""
    bench = await Bench.start(dut)
    scratch_bytes = int(str(cocotb.plusargs["scratch_bytes"]))
    scenes, together = wanted(FULL if full() else SCENES), 0
    for keep in scenes:
        random = np.random.default_rng((int(cocotb.RANDOM_SEED), keep.scene))
        around = Surroundings(bench.config, Memory(bench.memory.snapshot()), await bench.sync())
        whole = draw_mixed(random, around, bench.limits, scratch_bytes)
        scene = whole.keeping(keep)
        bench.memory.data[:] = around.memory.data  # with what the program has staged
        program = complete(around, scene.draft)
        bench.record_scene(keep, whole.parts, describe_mixed(scene, program))
        try:
            together += await run_mixed(bench, scene, program)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"scene {keep}: {error}") from error
    dut._log.info("all doors at work together in %d of %d scenes", together, len(scenes))
    assert len(scenes) == 1 or together >= len(scenes) // 10, f"together in {together} only"
