# SPDX-License-Identifier: Apache-2.0
"""A chip that is built without the command port (EnableCmd = 0)."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from spec.regs import CHIP_BASE, CMD_BASE, ChipReg, CmdReg
from tb.bench.bursts import ReadBursts
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.recovery import next_program_runs

TAGS = ("cmd",)

SCRATCH_BYTES = (0,)


@cocotb.test
async def test_cmd_absent(dut: Dut) -> None:
    """The window reads 0 and ignores writes, nothing starts, and the rest of the chip works."""
    bench = await Bench.start(dut)
    bus, reads = bench.bus, ReadBursts(dut)
    for value in (0xFFFF_FFFF, int(bench.random.integers(1 << 32)) | 1):
        for offset in range(0, 0x100, 4):
            await bus.write32(CMD_BASE + offset, value)
        await bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, 1)
        await ClockCycles(dut.clk, 100)
        for offset in range(0, 0x100, 4):
            actual = await bus.read32(CMD_BASE + offset)
            assert actual == 0, f"{offset:#04x} reads {actual:#010x}"
    assert not reads.bursts, "something was read from memory"
    assert not int(dut.irq.value)
    await bench.chip.write_chip(ChipReg.IRQ_ENABLE, 3)
    assert await bus.read32(CHIP_BASE + ChipReg.IRQ_STATUS) == 0
    await next_program_runs(bench)
