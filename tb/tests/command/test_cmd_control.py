# SPDX-License-Identifier: Apache-2.0
"""Start, clear, latching, interrupts and soft reset of the command port, busy and idle."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from spec.regs import (
    CHIP_BASE,
    CMD_BASE,
    CMD_FIELDS,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    CmdOp,
    CmdReg,
    RingStatus,
)
from spec.regs.generated import SeqReg
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.command.command_session import CLEAR, DESCRIPTOR, DONE, START, TERNARY, CommandSession
from tb.command.descriptor_words import TILES, DescriptorWords, Extension, TileWords
from tb.command.random_descriptors import SOURCE, TARGET, Maker, legal_gemm

TAGS = ("cmd", "faults")

SCRATCH_BYTES = (64, 128, 256)
SLOW = Knobs(read_latency=600, write_latency=600)
"""Keeps the ring busy for long enough to do something else meanwhile."""
PRODUCT = TileWords.gemm(3, 3, 4, (0, 12, 24), (4, 3, 12))


async def _tell_chip(session: CommandSession, register: CmdReg, value: int) -> None:
    """Write a register of the chip alone."""
    await session.bus.rtl.write32(CMD_BASE + register, value)


def _idempotent(session: CommandSession) -> list[DescriptorWords]:
    """Return four descriptors whose results do not depend on what ran before them."""
    source = SOURCE + 0x40
    session.data(source, 60)
    product = Extension.of_tile(PRODUCT, TARGET + 0x100, 7)
    return [
        DescriptorWords(CmdOp.MUL_LO, session.word(), session.word()),
        DescriptorWords(CmdOp.GEMM_S8, source, stream=(0, 24), writeback=True, extension=product),
        DescriptorWords(CmdOp.MAC_S16, session.word(), session.word(), session.word()),
        DescriptorWords(CmdOp.DOT4_S8, session.word(), writeback=True, extension=Extension(TARGET)),
    ]


@cocotb.test
async def test_cmd_control_latching(dut: Dut) -> None:
    """What is written while the ring runs changes the registers, not the work under way."""
    session = await CommandSession.start(dut, SLOW)
    await session.set_tile(PRODUCT)
    await session.fill_scratch(16)
    session.param = TERNARY
    for _ in range(3):
        a, b = (session.word() & 0x5555_5555 for _ in range(2))
        session.put(
            DescriptorWords(CmdOp.DOT16_S2, a, b, 5),
            DescriptorWords(CmdOp.GEMM_S8, session.word(), TARGET + 0x200, writeback=True),
        )
        base = session.base
        await session.begin()
        await ClockCycles(dut.clk, int(session.random.integers(1, 300)))
        for register in (CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC, CmdReg.OPCODE):
            await session.write(register, session.word() & 15)
        await session.set_tile(TileWords(session.word() & 0x30707, 0, 0))
        await session.write(CmdReg.DESC_BASE, base + 0x1000)
        await session.write(CmdReg.CMD_PARAM, 0)
        assert await session.finish(), "registers written while busy have changed the work"
        await session.compare()
        await session.write(CmdReg.DESC_BASE, base)
        await session.set_tile(PRODUCT)


@cocotb.test
async def test_cmd_control_ignored_while_busy(dut: Dut) -> None:
    """While the ring runs starts are ignored, and so are writes of what is its own."""
    session = await CommandSession.start(dut, SLOW)
    await session.use_records(4)
    await session.fill_scratch(16)
    for _ in range(3):
        session.put(*_idempotent(session))
        await session.begin()
        await ClockCycles(dut.clk, int(session.random.integers(1, 300)))
        for word in (CmdReg.SCRATCH0, CmdReg.SCRATCH8, CmdReg.SCRATCH15):
            await _tell_chip(session, word, session.word())
        await _tell_chip(session, CmdReg.DESC_TAIL, session.word() & 7)
        await _tell_chip(session, CmdReg.CQ_BASE, 0)
        await _tell_chip(session, CmdReg.CQ_CTRL, 0)
        status = await session.bus.rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS)
        assert status == CMD_FIELDS["CTRL_STATUS_BUSY"].mask, f"CTRL_STATUS {status:#x}"
        running = await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_STATUS)
        assert running & 0x1FF == CMD_FIELDS["DESC_STATUS_BUSY"].mask, f"DESC_STATUS {running:#x}"
        for _ in range(3):
            await _tell_chip(session, CmdReg.CTRL_STATUS, START)
        assert await session.finish()
        await session.compare()
        await session.consume_records()


@cocotb.test
async def test_cmd_control_clear(dut: Dut) -> None:
    """Clear takes back every report but no PERF counter, also together with a start."""
    session = await CommandSession.start(dut)
    for op in (CmdOp.ADD, CmdOp.DOT4_FP8_E4M3):
        await session.write(CmdReg.CMD_IRQ, 1)
        assert not await session.run(*_idempotent(session), DescriptorWords(op, owner=False))
        await session.drop()
        await session.compare()
        await session.write(CmdReg.CTRL_STATUS, CLEAR)
        await session.compare()
        assert await session.read(CmdReg.CTRL_STATUS) == 0
        assert await session.read(CmdReg.DESC_STATUS) == 0
        assert await session.read(CmdReg.PERF_ERRORS) > 0
        assert not await session.run(DescriptorWords(op, owner=False))
        await session.drop()
        # Both in one write: the operation runs, and what was reported before is gone.
        await session.write(CmdReg.CMD_PARAM, 0)
        await session.write(CmdReg.OPCODE, op)
        await session.write(CmdReg.OP_A, 0x7F if op == CmdOp.DOT4_FP8_E4M3 else 3)
        await session.write(CmdReg.CTRL_STATUS, START | CLEAR)
        await session.wait()
        await session.compare()
        assert await session.read(CmdReg.DESC_STATUS) == 0
        # And with the ring.
        session.put(DescriptorWords(CmdOp.SUB, 5, 3))
        await session.write(CmdReg.DESC_HEAD, session.head)
        await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
        await session.write(CmdReg.CTRL_STATUS, START | CLEAR)
        assert await session.finish()
        assert await session.read(CmdReg.DESC_BYTES_READ) == 16
        await session.compare()


@cocotb.test
async def test_cmd_control_clear_while_busy(dut: Dut) -> None:
    """A clear while the ring runs stops nothing; the counters of the ring begin again."""
    session = await CommandSession.start(dut, SLOW)
    assert await session.run(*_idempotent(session))
    session.put(*_idempotent(session))
    await session.begin()
    await ClockCycles(dut.clk, 200)  # before the first answer of the memory
    await _tell_chip(session, CmdReg.CTRL_STATUS, CLEAR)
    counted = await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_BYTES_READ)
    assert counted == 0, f"DESC_BYTES_READ is {counted}"
    await session.bus.wait_interrupt()
    total = 16 * 6 + 24
    assert await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_BYTES_READ) == total
    assert await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_READ_BEATS) == total // 4
    written = 4 * 9 + 8
    assert await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_BYTES_WRITTEN) == written
    status = await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_STATUS)
    assert status & 0xFF == RingStatus.DONE, f"DESC_STATUS {status:#x}"
    session.bus.compare_memory()
    await session.write(CmdReg.CTRL_STATUS, CLEAR)
    await session.compare()


@cocotb.test
async def test_cmd_control_start_clears(dut: Dut) -> None:
    """A start takes back DONE, ERROR and ENTRY; a start by register leaves DESC_STATUS alone."""
    session = await CommandSession.start(dut, SLOW)
    await session.write(CmdReg.CMD_IRQ, 1)
    assert not await session.run(DescriptorWords(owner=False))
    await session.drop()
    await session.compare()
    assert await session.operate(CmdOp.ADD, 1, 2)
    await session.compare()
    assert await session.read(CmdReg.CTRL_STATUS) == 2
    assert await session.read(CmdReg.DESC_STATUS) == 0x44
    session.put(DescriptorWords(CmdOp.ADD))
    await session.begin()
    await ClockCycles(dut.clk, 100)
    assert not int(dut.irq.value), "the line is still up after the start"
    for register in (CmdReg.CTRL_STATUS, CmdReg.CMD_IRQ):
        assert await session.bus.rtl.read32(CMD_BASE + register) == 1, register.name
    assert await session.finish()
    await session.compare()


@cocotb.test
async def test_cmd_control_debug(dut: Dut) -> None:
    """DEBUG names the operation last handed to the unit, also a refused one, by either way."""
    session = await CommandSession.start(dut)
    for op in session.random.permutation([int(op) for op in CmdOp]).tolist():
        await session.operate(CmdOp(op), 0x7F7F, 0, 0, TileWords())
        assert await session.read(CmdReg.DEBUG) == op << 3
        other = (op + 5) % 16
        if not await session.run(DescriptorWords(other, 0x7F7F)):
            await session.drop()
        assert await session.read(CmdReg.DEBUG) == other << 3
    busy = CMD_FIELDS["DEBUG_GEMM_BUSY"].mask, CMD_FIELDS["DEBUG_VECTOR_BUSY"].mask
    tile = TileWords.gemm(3, 3, 3, (0, 12, 24), (0, 0, 12))
    await session.operate(CmdOp.GEMM_S8, tile=tile)
    assert not await session.read(CmdReg.DEBUG) & sum(busy)
    await session.compare()


@cocotb.test
async def test_cmd_control_interrupt_per_entry(dut: Dut) -> None:
    """With PER_ENTRY every entry raises the line, also with the ring still running."""
    session = await CommandSession.start(dut, SLOW)
    entry = CMD_FIELDS["CMD_IRQ_ENTRY"].mask
    await session.write(CmdReg.CMD_IRQ, 1)
    made = _idempotent(session)
    session.put(*made)
    await session.begin()
    seen = 0
    for _ in made:
        await session.bus.rtl.wait_interrupt()
        seen += 1
        now = await session.bus.rtl.read32(CMD_BASE + CmdReg.CMD_IRQ)
        assert now == entry | 1, f"CMD_IRQ {now}"
        if await session.bus.rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS) & 1 == 0:
            break
        await _tell_chip(session, CmdReg.CMD_IRQ, entry | 1)
    assert seen > 2, f"{seen} interrupts for {len(made)} entries"
    assert await session.finish()
    await session.write(CmdReg.CMD_IRQ, entry | 1)
    await session.settle(3)
    assert int(dut.irq.value), "ENTRY is acknowledged, DONE still drives the line"
    await session.compare()
    await session.write(CmdReg.CTRL_STATUS, CLEAR)
    await session.settle(3)
    assert not int(dut.irq.value)
    await session.write(CmdReg.CMD_IRQ, 0)
    assert await session.run(*_idempotent(session))
    assert not await session.read(CmdReg.CMD_IRQ)
    await session.compare()


async def _idle(session: CommandSession, limit: int = 3000) -> None:
    """Return when neither the command port nor the sequencer is busy."""
    for _ in range(limit // 20):
        busy = await session.bus.rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS) & 1
        if not busy and not (await session.bench.chip.state())["BUSY"]:
            return
        await ClockCycles(session.bench.dut.clk, 20)
    raise AssertionError(f"still busy after {limit} cycles")


@cocotb.test
async def test_cmd_control_soft_reset(dut: Dut) -> None:
    """A soft reset at any cycle reports nothing; the ring goes on from the entry under way."""
    knobs = Knobs(read_latency=25, write_latency=25, read_gap=20)
    session = await CommandSession.start(dut, knobs)
    owed = OpenBursts(dut)
    stopped = set()
    for turn in range(40):
        made = _idempotent(session)
        await session.write(CmdReg.CTRL_STATUS, CLEAR)
        session.put(*made)
        await session.write(CmdReg.DESC_HEAD, session.head)
        await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
        await _tell_chip(session, CmdReg.CTRL_STATUS, START)
        await ClockCycles(dut.clk, int(session.random.integers(1, 260)) if turn else 1)
        await session.bus.rtl.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await session.settle(4)
        status = await session.bus.rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS)
        tail = await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_TAIL)
        await _idle(session)
        if status == DONE:  # the ring had ended before
            assert tail == session.head, f"done with DESC_TAIL {tail}"
        else:
            assert status == 0, f"CTRL_STATUS {status:#x} after a soft reset"
            assert not int(dut.irq.value), "something was reported"
            assert await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) == tail
            stopped.add((session.head - tail) % 8)
            if tail == session.head:  # stopped before its report; it gets one of another entry
                session.put(DescriptorWords(CmdOp.ADD, 1, 2))
                await session.write(CmdReg.DESC_HEAD, session.head)
            await _tell_chip(session, CmdReg.CTRL_STATUS, START)
        # The model has not been stopped; both are right at the end, but for what was counted twice.
        await session.bus.model.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        assert await session.finish()
        assert owed.quiet
        session.bus.compare_memory()
        await session.compare_scratch()
        for register in (CmdReg.RESULT, CmdReg.RESULT_HI, CmdReg.DESC_TAIL, CmdReg.DESC_STATUS):
            await session.read(register)
    assert len(stopped) >= 3, f"all soft resets hit the same entries: {stopped}"


@cocotb.test
async def test_cmd_control_soft_reset_keeps(dut: Dut) -> None:
    """A soft reset, idle or busy, keeps registers, scratchpad and counters."""
    session = await CommandSession.start(dut, SLOW)
    await session.fill_scratch(16)
    await session.use_records(3)
    tile = legal_gemm(session.random, CmdOp.GEMM_S8, session.scratch_bytes)
    assert await session.operate(CmdOp.GEMM_S8, 1, 2, 3, tile)
    assert not await session.run(*_idempotent(session), DescriptorWords(owner=False))
    await session.compare()
    await session.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
    await _idle(session)
    await session.compare()
    await session.drop()
    session.put(*_idempotent(session))
    await session.write(CmdReg.DESC_HEAD, session.head)
    before = [await session.read(register) for register in CmdReg]
    await _tell_chip(session, CmdReg.CTRL_STATUS, START)
    await ClockCycles(dut.clk, 300)  # nothing has been answered yet
    await session.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
    await _idle(session)
    changing = {
        *(CmdReg.CTRL_STATUS, CmdReg.DESC_STATUS),  # cleared by the start
        *(CmdReg.PERF_CYCLES, CmdReg.PERF_STALL_CYCLES, CmdReg.DESC_TIMEOUT_COUNT),
    }
    for register, value in zip(CmdReg, before, strict=True):
        if register not in changing:
            actual = await session.bus.rtl.read32(CMD_BASE + register)
            assert actual == value, f"{register.name}: {actual:#x}, before {value:#x}"
    assert await session.bus.rtl.read32(CHIP_BASE + ChipReg.IRQ_STATUS) == 0
    session.bus.compare_memory()


@cocotb.test
async def test_cmd_control_both_ways(dut: Dut) -> None:
    """Operations by register and runs of the ring in turns, with random pauses between them."""
    session = await CommandSession.start(dut)
    maker = Maker(session.random, session.scratch_bytes)
    session.data(SOURCE, 0x4000)
    for _ in range(12):
        op = CmdOp(int(session.random.choice([int(op) for op in TILES])))
        tile = legal_gemm(session.random, op, session.scratch_bytes)
        assert await session.operate(op, 1, 2, 3, tile)
        assert await session.run(maker.extended(CmdOp.MAC_S16), maker.plain(op, tile))
        await ClockCycles(dut.clk, int(session.random.integers(1, 30)))
        assert await session.operate(CmdOp.MUL_LO, session.word(), session.word(), 0)
    await session.compare()
    assert np.array_equal(session.memory.data, session.bench.memory.data)
