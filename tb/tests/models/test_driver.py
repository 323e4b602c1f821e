# SPDX-License-Identifier: Apache-2.0
"""The driver on the chip: the same calls give what they give on the reference."""

from __future__ import annotations

import cocotb
import numpy as np

from golden.command.model import ModelBus
from npu.driver.chip import PAGE, Chip, MemoryRegion
from npu.driver.errors import ProgramFailed
from spec.isa import Engine, ErrorCode
from spec.regs import StartState
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus.driver_session import COPY, INPUT, OUTPUT, PROGRAM, STORE_AT, session

TAGS = ("registers",)


@cocotb.test
async def test_driver_same_on_both(dut: Dut) -> None:
    """Identification, settings, programs, reports: line by line what the reference answers."""
    bench = await Bench.start(dut)
    data = bench.random.integers(0, 256, 64, np.uint8).tobytes()
    model = ModelBus(bench.memory.snapshot(), config=bench.config, sram=await bench.sync())
    expected = await session(await Chip.connect(model), data)
    actual = await session(bench.chip, data)
    for wanted, found in zip(expected, actual, strict=True):
        assert found == wanted, f"{found}, the reference gives {wanted}"
    assert any("refused: CONTEXT_FULL" in line for line in actual), actual


@cocotb.test
async def test_driver_names_what_failed(dut: Dut) -> None:
    """An access outside of the regions is an exception with engine, instruction and address."""
    bench = await Bench.start(dut)
    bench.chip.stage([(PROGRAM, COPY.image())])
    await bench.chip.protect([MemoryRegion(PROGRAM, INPUT + PAGE - PROGRAM, read=True, write=True)])
    bases = (INPUT, OUTPUT, 0, 0, 0, 0, 0, 0)
    try:
        await bench.chip.execute(StartState(PROGRAM, len(COPY.instructions), bases=bases))
        raise AssertionError("not refused")
    except ProgramFailed as error:
        report = error.report
        assert (report.code, report.engine) == (ErrorCode.REGION, Engine.ST), report
        assert (report.instr, report.address) == (STORE_AT, OUTPUT), report
