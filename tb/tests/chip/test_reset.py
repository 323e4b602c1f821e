# SPDX-License-Identifier: Apache-2.0
"""Soft and hard reset at any cycle: no transaction is left half way, the next program is right."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, Timer

from spec.regs.generated import ChipReg
from spec.regs.source import load_all
from tb.bench.bursts import OpenBursts
from tb.bench.dut import CLOCK_NS, Dut
from tb.bench.environment import Bench, reset, turns
from tb.bench.knobs import Knobs
from tb.bench.recovery import Command, command, next_program_runs, start_and_wait, wait_idle
from tb.command.reset_values import assert_reset_values

TAGS = ("seq", "faults")
TIMED = ("test_reset_soft_in_silence",)

PATIENCE = 150
"""MEM_TIMEOUT of the tests with a silent memory, in cycles."""
ACCESS = 50
"""Cycles that a write of CTRL may need to take effect, and more."""


def _assert_unreported(bench: Bench, status: dict[str, int]) -> None:
    """Check that no end of a program has been reported."""
    assert not int(bench.dut.irq.value), "the end of a program was reported"
    assert not any(status[name] for name in status if name != "BUSY"), f"STATUS {status}"


async def _duration(bench: Bench) -> int:
    """Return the cycles of the program that needs every engine."""
    return (await next_program_runs(bench)).finish.counters.cycles


async def _recovers(bench: Bench, owed: OpenBursts) -> None:
    """Wait until the chip is idle; then the bus must be quiet and the next program right."""
    await wait_idle(bench)
    assert owed.quiet, "idle although the bus is not"
    await next_program_runs(bench)


@cocotb.test
async def test_reset_soft(dut: Dut) -> None:
    """A soft reset at random cycles drains the bus and reports no end."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    cycles = await _duration(bench)
    for turn in range(turns(25)):
        await start_and_wait(bench, int(bench.random.integers(1, cycles - ACCESS)) if turn else 1)
        await command(bench, "SOFT_RESET")
        await wait_idle(bench)
        _assert_unreported(bench, await bench.chip.state())
        await _recovers(bench, owed)


@cocotb.test
async def test_reset_soft_while_draining(dut: Dut) -> None:
    """A soft reset in the cycles after an abort or another one, while the bus still drains."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    cycles = await _duration(bench)
    slow = Knobs(read_latency=150, write_latency=150)
    first: Command
    for first in ("ABORT", "SOFT_RESET"):
        for _ in range(turns(13)):
            await bench.set_knobs(slow)
            await start_and_wait(bench, int(bench.random.integers(1, cycles - ACCESS)))
            await command(bench, first)
            await ClockCycles(dut.clk, int(bench.random.integers(1, 60)))
            await command(bench, "SOFT_RESET")
            await wait_idle(bench)
            if first == "SOFT_RESET":
                _assert_unreported(bench, await bench.chip.state())
            await bench.set_knobs(Knobs())
            await _recovers(bench, owed)


@cocotb.test
async def test_reset_soft_in_silence(dut: Dut) -> None:
    """BUSY stays after a soft reset until a silent memory answers, and no end is reported."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    cycles = await _duration(bench)
    await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, PATIENCE)
    for _ in range(turns(25)):
        await start_and_wait(bench, int(bench.random.integers(1, cycles - ACCESS)))
        which = int(bench.random.integers(1, 4))
        await bench.set_knobs(Knobs(read_silent=which & 1, write_silent=which >> 1))
        await ClockCycles(dut.clk, int(bench.random.integers(1, PATIENCE // 3)))
        await command(bench, "SOFT_RESET")
        await ClockCycles(dut.clk, int(bench.random.integers(1, 3 * PATIENCE)))
        now = await bench.chip.state()
        assert now["BUSY"] or owed.quiet, "idle although the bus is not"
        _assert_unreported(bench, now)
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        _assert_unreported(bench, await bench.chip.state())
        await _recovers(bench, owed)


@cocotb.test
async def test_reset_soft_keeps_registers(dut: Dut) -> None:
    """A soft reset, busy or idle, leaves every register of the host as it is."""
    bench = await Bench.start(dut)
    kept = [
        (window.base + register.offset, register.name)
        for window in load_all()
        for register in window.registers
        if all(field.access == "read, write" for field in register.fields)
    ]
    values = {address: await bench.bus.read32(address) for address, _ in kept}
    for busy in (False, True):
        if busy:
            await start_and_wait(bench, 300)
            values = {address: await bench.bus.read32(address) for address, _ in kept}
        await command(bench, "SOFT_RESET")
        await wait_idle(bench)
        for address, name in kept:
            assert await bench.bus.read32(address) == values[address], f"{name} was lost"
    await next_program_runs(bench)


@cocotb.test
async def test_reset_hard(dut: Dut) -> None:
    """A hard reset at any cycle, silent memory or not, brings back the documented values."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    cycles = await _duration(bench)
    for _ in range(turns(25)):
        await start_and_wait(bench, int(bench.random.integers(1, cycles)))
        silent = int(bench.random.random() < 0.3)
        await bench.set_knobs(Knobs(read_silent=silent, write_silent=silent))
        await ClockCycles(dut.clk, int(bench.random.integers(1, PATIENCE)))
        await reset(dut, int(bench.random.integers(1, 6)))
        await bench.set_knobs(Knobs())
        await assert_reset_values(bench.bus)
        await _recovers(bench, owed)


@cocotb.test
async def test_reset_hard_between_edges(dut: Dut) -> None:
    """A reset takes back at once what the chip offers on the bus, while its clock stands still."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    offers = (dut.M_AXI_ARVALID, dut.M_AXI_AWVALID, dut.M_AXI_WVALID)
    for turn in range(turns(12)):
        await start_and_wait(bench, 1)
        await ReadOnly()
        while not offers[turn % 3].value:
            await RisingEdge(dut.clk)
            await ReadOnly()
        await Timer(CLOCK_NS // 4, "ns")
        dut.rst_n.value = 0
        await Timer(1, "ns")
        assert not any(int(offer.value) for offer in offers), "offered in reset"
        await reset(dut, int(bench.random.integers(2, 6)))
        await _recovers(bench, owed)


@cocotb.test
async def test_reset_hard_then_access(dut: Dut) -> None:
    """An access of the host that waits when a reset ends is taken, none is lost."""
    bench = await Bench.start(dut)
    for turn in range(turns(12)):
        dut.rst_n.value = 0
        await ClockCycles(dut.clk, int(bench.random.integers(1, 6)))
        dut.rst_n.value = 1
        await ClockCycles(dut.clk, turn % 4)
        await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, PATIENCE + turn)
        assert await bench.chip.read_chip(ChipReg.MEM_TIMEOUT) == PATIENCE + turn, "it was lost"
    await next_program_runs(bench)
