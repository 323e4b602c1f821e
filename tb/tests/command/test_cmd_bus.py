# SPDX-License-Identifier: Apache-2.0
"""Command port and programs on one bus at the same time: neither notices the other but by time."""

from __future__ import annotations

from dataclasses import replace

import cocotb
from cocotb.triggers import ClockCycles

from npu.driver.chip import start_accesses
from spec.regs import CHIP_BASE, SEQ_BASE, ChipReg, CmdOp, CmdReg, RingStatus
from spec.regs.generated import SeqReg
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.bench.recovery import load_every_engine
from tb.command.command_session import HOSTILE, CommandSession
from tb.command.descriptor_words import SCALARS, DescriptorWords, Extension, TileWords
from tb.command.random_descriptors import AREA, SOURCE, TARGET, Maker

TAGS = ("cmd",)

SCRATCH_BYTES = (64, 128, 256)
PATIENCE = 1500
"""DESC_TIMEOUT: longer than what the program has asked for before, shorter than MEM_TIMEOUT."""
PRODUCT = TileWords.gemm(3, 3, 4, (0, 12, 24), (4, 3, 12))


async def _start_program(session: CommandSession) -> None:
    """Start the program that keeps every engine and the bus busy, on chip and model."""
    start = load_every_engine(session.bench)
    session.memory.data[:] = session.bench.memory.data  # program, stream and input
    for one in start_accesses(start):
        # The interrupt line is the command port's.
        is_enable = one.address == CHIP_BASE + ChipReg.IRQ_ENABLE
        await session.bus.write32(one.address, 2 if is_enable else one.value or 0)


async def _end_program(session: CommandSession) -> None:
    """Wait for the end of the program; compare its report and everything."""
    for _ in range(1000):
        if not (await session.bench.chip.state())["BUSY"]:
            break
        await ClockCycles(session.bench.dut.clk, 20)
    for register in (SeqReg.STATUS, SeqReg.ERROR_INSTR, SeqReg.ERROR_ADDR):
        await session.bus.read32(SEQ_BASE + register)
    session.bus.compare_memory()


@cocotb.test
async def test_cmd_bus_shared(dut: Dut) -> None:
    """Random batches while a program uses every engine: both are right, on any memory."""
    session = await CommandSession.start(dut, sram=True)
    owed = OpenBursts(dut)
    session.data(SOURCE, AREA)
    await session.fill_scratch(16)
    maker, together = Maker(session.random, session.scratch_bytes, streams=0.7), 0
    turns = 6 if full() else 3
    for knobs in (Knobs(), *HOSTILE) * turns:
        await session.set_knobs(knobs)
        await _start_program(session)
        for _ in range(100):
            made = [maker.extended(CmdOp(int(session.random.integers(16)))) for _ in range(2)]
            made.append(
                maker.plain(SCALARS[int(session.random.integers(len(SCALARS)))], TileWords())
            )
            assert await session.run(*made)
            if not (await session.bench.chip.state())["BUSY"]:
                break
            together += 1
        await _end_program(session)
        assert owed.quiet
    await session.compare()
    assert together > 20, f"only {together} batches ran beside a program"


@cocotb.test
async def test_cmd_bus_errors_stay_apart(dut: Dut) -> None:
    """What the ring meets does not stop the program that runs beside it: errors and time-outs."""
    session = await CommandSession.start(dut, sram=True)
    session.data(SOURCE, AREA)
    streaming = DescriptorWords(CmdOp.ADD, SOURCE, stream=(0, 48))
    writing = DescriptorWords(
        CmdOp.GEMM_S8, writeback=True, extension=Extension.of_tile(PRODUCT, TARGET)
    )
    await session.write(CmdReg.DESC_TIMEOUT, PATIENCE)
    beside = 0
    quiet = Knobs(silent_first=SOURCE, silent_last=SOURCE + 63, read_silent=1)
    error = Knobs(read_error=1, error_first=SOURCE + 16, error_last=SOURCE + 31)
    for knobs, made, code in (
        (error, streaming, RingStatus.STREAM_READ),
        (
            replace(error, read_error=0, write_error=1, error_first=TARGET),
            writing,
            RingStatus.WRITEBACK_WRITE,
        ),
        (quiet, streaming, RingStatus.TIMEOUT),
    ):
        knobs = replace(knobs, error_last=max(knobs.error_first, knobs.error_last))
        for _ in range(3):
            await session.set_knobs(Knobs())
            await _start_program(session)
            await ClockCycles(dut.clk, int(session.random.integers(1, 200)))
            await session.set_knobs(knobs)
            assert not await session.run(DescriptorWords(0, 1, 2), made)
            status = await session.read(CmdReg.DESC_STATUS)
            assert status & 0xFF == code, f"DESC_STATUS {status & 0xFF:#04x}, expected {code:#04x}"
            beside += (await session.bench.chip.state())["BUSY"]
            await session.set_knobs(Knobs())
            await session.drop()
            assert await session.run(DescriptorWords(0, 3, 4))
            await _end_program(session)
    await session.compare()
    assert beside > 4, f"only {beside} failures happened beside a program"


@cocotb.test
async def test_cmd_bus_program_errors(dut: Dut) -> None:
    """A program that fails beside the ring does not stop it, nor does its abort."""
    session = await CommandSession.start(dut, sram=True)
    chip = session.bench.chip
    session.data(SOURCE, AREA)
    maker = Maker(session.random, session.scratch_bytes)
    for turn in range(8):
        start = load_every_engine(session.bench)
        session.memory.data[:] = session.bench.memory.data
        if turn % 2:  # its first store meets the end of memory
            start = replace(start, bases=(start.bases[0], session.memory.data.size, *[0] * 6))
        await chip.start(start)
        await chip.write_chip(ChipReg.IRQ_ENABLE, 2)
        session.put(*(maker.extended(CmdOp(int(session.random.integers(16)))) for _ in range(3)))
        await session.begin()
        if not turn % 2:
            await ClockCycles(dut.clk, int(session.random.integers(1, 60)))
            await chip.write_seq(SeqReg.CTRL, 4)
        assert await session.finish()
        for _ in range(200):
            if not (await chip.state())["BUSY"]:
                break
            await ClockCycles(dut.clk, 20)
        assert (await chip.state())["ERROR"]
        await chip.write_chip(ChipReg.IRQ_STATUS, 1)
        await session.compare_scratch()
        area = slice(SOURCE, TARGET + AREA)
        assert (session.memory.data[area] == session.bench.memory.data[area]).all()
