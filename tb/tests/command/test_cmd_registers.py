# SPDX-License-Identifier: Apache-2.0
"""The window of the command port, walked from the register description."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from spec.regs import CHIP_BASE, CMD_BASE, CMD_FIELDS, ChipReg, CmdOp, CmdReg, RingStatus
from spec.regs.source import Field, Register, Window, load_all
from tb.bench.dut import Dut
from tb.bench.environment import Bench, reset
from tb.command.command_session import CLEAR, START, CommandSession
from tb.command.reset_values import assert_reset_values, reset_values

TAGS = ("cmd", "registers")

SCRATCH_BYTES = (64, 128, 256)
CHANGES_OTHERS = ("CTRL_STATUS", "PERF_ERRORS", "PERF_THERMAL_THROTTLE", "SCRATCH_PAGE")
"""Registers whose writes are seen elsewhere."""


def _window() -> Window:
    (window,) = (window for window in load_all() if window.key == "cmd")
    return window


def _scratch_bytes() -> int:
    return int(str(cocotb.plusargs["scratch_bytes"]))


def _bits(field: Field) -> int:
    """Return the bits of a field that this chip has."""
    mask = ((1 << field.width) - 1) << field.lsb
    if field.name == "PAGE_WIDE":
        return mask & _scratch_bytes() // 64 - 1
    return 0 if field.name.endswith("_WIDE") and _scratch_bytes() == 64 else mask


def _mask(register: Register, access: str) -> int:
    return sum(_bits(field) for field in register.fields if field.access == access)


@cocotb.test
async def test_cmd_registers_reset_values(dut: Dut) -> None:
    """After reset, and after another one, every register holds its documented value."""
    bench = await Bench.start(dut)
    await assert_reset_values(bench.bus, "cmd")
    for register in _window().registers:
        if register.name != "CTRL_STATUS":
            await bench.bus.write32(CMD_BASE + register.offset, 0xFFFF_FFFF)
    await bench.bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
    await ClockCycles(dut.clk, 20)
    await reset(dut)
    await assert_reset_values(bench.bus, "cmd")


@cocotb.test
async def test_cmd_registers_access_kinds(dut: Dut) -> None:
    """Writes change exactly the writable bits, byte by byte; each register is its own."""
    bench = await Bench.start(dut)
    bus = bench.bus
    values = {one.name.removeprefix("cmd."): one.value for one in reset_values("cmd")}
    for _ in range(6):
        for register in _window().registers:
            if register.name in CHANGES_OTHERS:
                continue
            value, strobe = int(bench.random.integers(1 << 32)), int(bench.random.integers(16))
            lanes = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
            writable = _mask(register, "read, write") & lanes
            before = values[register.name]
            values[register.name] = before & ~writable | value & writable
            await bus.write32(CMD_BASE + register.offset, value, strobe)
        pending = values["DESC_HEAD"] - values["DESC_TAIL"]
        values["DESC_STATUS"] = RingStatus.EMPTY | CMD_FIELDS["DESC_STATUS_PENDING"].put(
            pending % 8
        )
        for register in _window().registers:
            actual = await bus.read32(CMD_BASE + register.offset)
            expected = values[register.name]
            assert actual == expected, f"{register.name}: {actual:#010x}, expected {expected:#010x}"


@cocotb.test
async def test_cmd_registers_thermal(dut: Dut) -> None:
    """Each write of PERF_THERMAL_THROTTLE adds 1, whatever its value; PERF_ERRORS clears."""
    session = await CommandSession.start(dut)
    for turn in range(5):
        await session.write(CmdReg.PERF_THERMAL_THROTTLE, session.word())
        assert await session.read(CmdReg.PERF_THERMAL_THROTTLE) == turn + 1
    await session.operate(CmdOp.DOT4_FP8_E4M3, 0x7F, 0, 0)
    await session.operate(CmdOp.ADD, 1, 2, 3)
    await session.write(CmdReg.PERF_ERRORS, 0xFFFF_FFFE)
    assert await session.read(CmdReg.PERF_THERMAL_THROTTLE) == 5
    assert await session.read(CmdReg.PERF_ERRORS) == 1
    await session.bus.rtl.write32(CMD_BASE + CmdReg.PERF_ERRORS, 1, 0b1110)
    await session.compare()
    await session.write(CmdReg.PERF_ERRORS, 1)
    await session.compare()
    for register in CmdReg:
        if register.name.startswith("PERF_"):
            assert await session.read(register) == 0, f"{register.name} was not cleared"


@cocotb.test
async def test_cmd_registers_scratchpad(dut: Dut) -> None:
    """Every word of every page of the scratchpad is its own and takes its bytes by strobes."""
    bench = await Bench.start(dut)
    pages = _scratch_bytes() // 64
    words = [0] * (16 * pages)
    for _ in range(2):
        for place in bench.random.permutation(16 * pages).tolist():
            value, strobe = int(bench.random.integers(1 << 32)), int(bench.random.integers(16))
            lanes = sum(0xFF << 8 * byte for byte in range(4) if strobe >> byte & 1)
            words[place] = words[place] & ~lanes | value & lanes
            await bench.bus.write32(CMD_BASE + CmdReg.SCRATCH_PAGE, place // 16)
            at = CMD_BASE + CmdReg.SCRATCH0 + 4 * (place % 16)
            await bench.bus.write32(at, value, strobe)
        for place, expected in enumerate(words):
            await bench.bus.write32(CMD_BASE + CmdReg.SCRATCH_PAGE, place // 16)
            actual = await bench.bus.read32(CMD_BASE + CmdReg.SCRATCH0 + 4 * (place % 16))
            assert actual == expected, f"word {place}: {actual:#010x}, expected {expected:#010x}"


@cocotb.test
async def test_cmd_registers_interrupt(dut: Dut) -> None:
    """DONE drives the line through IRQ_ENABLE.CMD until it is cleared; IRQ_STATUS only shows it."""
    session = await CommandSession.start(dut)
    status = CHIP_BASE + ChipReg.IRQ_STATUS
    assert await session.bench.chip.read_chip(ChipReg.IRQ_ENABLE) == 2
    await session.operate(CmdOp.ADD, 1, 1, 0)
    for enable in (0, 1, 2, 3):
        await session.bus.write32(CHIP_BASE + ChipReg.IRQ_ENABLE, enable)
        await session.settle(3)
        assert int(dut.irq.value) == enable >> 1, f"IRQ_ENABLE {enable}"
        assert await session.bus.read32(status) == 2
    await session.bus.write32(status, 0xFFFF_FFFF)
    assert await session.bus.read32(status) == 2, "IRQ_STATUS.CMD was cleared by a write"
    await session.write(CmdReg.CTRL_STATUS, CLEAR)
    await session.settle(3)
    assert not int(dut.irq.value)
    await session.compare()
