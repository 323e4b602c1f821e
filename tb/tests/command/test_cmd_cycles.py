# SPDX-License-Identifier: Apache-2.0
"""Counters of the command port in cycles, held against a monitor that does not ask the port."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cocotb

from spec.regs import CHIP_BASE, CMD_BASE, ChipReg, CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.bench.knobs import Knobs
from tb.bench.recovery import program
from tb.command.command_session import HOSTILE, RECORDS, CommandSession
from tb.command.descriptor_words import DescriptorWords, Extension, Record, TileWords, launch
from tb.command.random_descriptors import AREA, SOURCE, TARGET, Maker, legal_tile

TAGS = ("cmd", "timing")

SCRATCH_BYTES = (64, 128, 256)
PRODUCT = TileWords.gemm(3, 3, 4, (0, 12, 24), (4, 3, 12))
AROUND = 5
"""Cycles around an access to the memory in which the ring may wait although the bus is quiet."""


@dataclass(frozen=True)
class Counts:
    """The chip's counters, and those of the monitor."""

    cycles: int
    ring: int
    stall: int
    monitor_cycles: int
    monitor_ring: int
    owed: int


async def _counts(session: CommandSession) -> Counts:
    rtl, dut = session.bus.rtl, session.bench.dut
    return Counts(
        await rtl.read32(CMD_BASE + CmdReg.PERF_CYCLES),
        await rtl.read32(CMD_BASE + CmdReg.DESC_TIMEOUT_COUNT),
        await rtl.read32(CMD_BASE + CmdReg.PERF_STALL_CYCLES),
        int(dut.cmd_cycles.value),
        int(dut.cmd_ring_cycles.value),
        int(dut.cmd_owed_cycles.value),
    )


async def _agree(session: CommandSession, before: Counts) -> Counts:
    """Return the counts; what has been added since `before` agrees."""
    now = await _counts(session)
    for name, chip, monitor in (
        ("PERF_CYCLES", now.cycles - before.cycles, now.monitor_cycles - before.monitor_cycles),
        ("DESC_TIMEOUT_COUNT", now.ring - before.ring, now.monitor_ring - before.monitor_ring),
    ):
        assert chip == monitor, f"{name} counted {chip}, the monitor {monitor}"
    return now


@cocotb.test
async def test_cmd_cycles_of_operations(dut: Dut) -> None:
    """PERF_CYCLES of every operation by register, refused ones too; nothing else counts."""
    session = await CommandSession.start(dut)
    for op in CmdOp:
        for tile in (PRODUCT, TileWords()):
            before = await _counts(session)
            await session.operate(op, session.word(), session.word(), session.word(), tile)
            now = await _agree(session, before)
            assert now.cycles > before.cycles, f"{op.name} took no cycle"
            assert (now.ring, now.stall) == (0, 0), f"{op.name} by register: {now}"


@cocotb.test
async def test_cmd_cycles_of_the_ring(dut: Dut) -> None:
    """PERF_CYCLES and DESC_TIMEOUT_COUNT of random batches, and the waits of single entries."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    maker = Maker(session.random, session.scratch_bytes)
    for knobs in (Knobs(), *HOSTILE):
        await session.set_knobs(knobs)
        for _ in range(4):
            before = await _counts(session)
            op = CmdOp(int(session.random.integers(16)))
            tile = legal_tile(session.random, CmdOp.GEMM_S8, session.scratch_bytes)
            await session.set_tile(tile)
            assert await session.run(maker.extended(op), maker.plain(CmdOp.GEMM_S8, tile))
            now = await _agree(session, before)
            stall, owed = now.stall - before.stall, now.owed - before.owed
            assert stall <= owed + 8 * AROUND, f"PERF_STALL_CYCLES {stall}, the bus owed in {owed}"
        for made, waits in (
            (DescriptorWords(CmdOp.ADD), 1),
            (DescriptorWords(CmdOp.ADD, SOURCE, stream=(0, 4)), 2),
            (DescriptorWords(CmdOp.ADD, writeback=True, extension=Extension(TARGET)), 2),
        ):
            before = await _counts(session)
            assert await session.run(made)
            now = await _agree(session, before)
            stall, owed = now.stall - before.stall, now.owed - before.owed
            assert 0 <= stall - owed + waits <= waits * AROUND, f"stall {stall}, owed {owed}"
    assert not await session.run(DescriptorWords(owner=False))
    await _agree(session, before)
    await session.drop()


@cocotb.test
async def test_cmd_cycles_of_waits(dut: Dut) -> None:
    """A slower memory lengthens a run by its stalls only, one latency for each wait in a row."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, 64)
    add = DescriptorWords(CmdOp.ADD, 1, 2)
    back = DescriptorWords(CmdOp.ADD, writeback=True, extension=Extension(TARGET))
    for name, made, reads, writes in (
        ("entries read ahead", [add] * 7, 1, 0),
        ("a stream", [replace(add, a=SOURCE, stream=(0, 60))], 2, 0),
        ("writebacks", [back, back], 1, 2),
        ("both", [add, replace(back, a=SOURCE, stream=(0, 16)), add], 2, 1),
    ):
        added = []
        for read, write in ((40, 40), (140, 40), (40, 240)):
            await session.set_knobs(Knobs(read_latency=read, write_latency=write))
            before = await _counts(session)
            assert await session.run(*made)
            now = await _agree(session, before)
            added.append((now.cycles - before.cycles, now.stall - before.stall))
        for which, latency, waits in ((1, 100, reads), (2, 200, writes)):
            cycles, stall = (added[which][n] - added[0][n] for n in range(2))
            assert cycles == stall == latency * waits, (
                f"{name}: {latency} cycles of latency more, {cycles} cycles, {stall} stalls more"
            )
        assert added[0][0] - added[0][1] <= 8 * len(made) + 8, f"{name}: {added[0]}"


@cocotb.test
async def test_cmd_cycles_of_records(dut: Dut) -> None:
    """Word 3 of a record: from taking the entry to its end, without the record itself."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, 64)
    await session.use_records(6)
    number = 0

    async def cycles(made: DescriptorWords, knobs: Knobs) -> int:
        nonlocal number
        await session.set_knobs(knobs)
        assert await session.run(made)
        number += 1
        at = RECORDS + 16 * (number - 1)
        return Record.of(session.bus.rtl.read_memory(at, 16)).cycles

    near, far = Knobs(), Knobs(read_latency=90, write_latency=140)
    streaming = DescriptorWords(CmdOp.ADD, SOURCE, stream=(0, 60))
    back = DescriptorWords(CmdOp.ADD, writeback=True, extension=Extension(TARGET))
    for name, made, more in (
        ("scalar", DescriptorWords(CmdOp.MUL_LO, 3, 4), 0),
        ("stream", streaming, 50),
        ("writeback", back, 100),
        ("both", replace(streaming, writeback=True, extension=Extension(TARGET)), 150),
    ):
        first, second = await cycles(made, near), await cycles(made, far)
        assert second - first == more, f"{name}: {first} cycles, {second} on a slower memory"
        least = 40 * (made.stream is not None) + 40 * made.writeback
        assert least < first <= least + 24, f"{name}: {first} cycles"
    small, large = (TileWords.gemm(m, 3, 4, (0, 12, 24), (4, 3, 12)) for m in (1, 3))
    shapes = [
        DescriptorWords(CmdOp.GEMM_S8, extension=Extension.of_tile(one)) for one in (small, large)
    ]
    first, second = [await cycles(made, near) for made in shapes]
    assert second - first == 6, f"six elements of C more: {first} and {second} cycles"
    # A program takes as long as the chip's own counter says, and a few cycles to begin and end.
    words = program("SOFTMAX dst=0x10000 src0=0x20000 src1=0x30000 M=2 N=256 out=u16\nEND")
    session.bus.write_memory(PROGRAM, b"".join(word.encode() for word in words))
    counted = await cycles(launch(PROGRAM, len(words)), near)
    chip = await session.bench.bus.read32(CHIP_BASE + ChipReg.CYCLES_LO)
    assert 0 <= counted - chip <= 8, f"the record says {counted} cycles, the chip {chip}"
