# SPDX-License-Identifier: Apache-2.0
"""The descriptor ring: laps, places, streams, writebacks, and entries added while it runs."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from spec.regs import CMD_BASE, CmdOp, CmdReg
from tb.bench.bursts import ReadBursts
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.command.command_session import (
    DESCRIPTOR,
    DONE,
    HOSTILE,
    RECORDS,
    RING,
    START,
    TERNARY,
    CommandSession,
)
from tb.command.descriptor_words import (
    ENTRIES,
    SCALARS,
    TILES,
    DescriptorWords,
    Extension,
    Record,
    TileWords,
)
from tb.command.random_descriptors import AREA, SOURCE, TARGET, Maker, legal_tile, legal_vrelu

TAGS = ("cmd",)

SCRATCH_BYTES = (64, 128, 256)


async def _tile_for_plain(session: CommandSession) -> tuple[CmdOp, TileWords]:
    """Put a random legal tile into the registers; return it and the operation that it is for."""
    op = CmdOp(int(session.random.choice([*map(int, TILES), int(CmdOp.VRELU_S8)])))
    tile = legal_tile(session.random, op, session.scratch_bytes)
    await session.set_tile(tile)
    return op, tile


async def _batch(session: CommandSession, room: int = ENTRIES - 1) -> list[DescriptorWords]:
    """Return random descriptors that take at most `room` entries; sets the registers for them."""
    maker = Maker(session.random, session.scratch_bytes, bool(session.param & TERNARY))
    op, tile = await _tile_for_plain(session)
    made: list[DescriptorWords] = []
    target = int(session.random.integers(1, room + 1))
    while (left := target - sum(one.places for one in made)) > 0:
        kind = int(session.random.integers(4))
        scalar = CmdOp(int(session.random.choice([int(op) for op in SCALARS])))
        if kind == 0 and left >= 2:
            made.append(maker.extended(CmdOp(int(session.random.integers(16)))))
        elif kind == 1:
            made.append(maker.plain(op, tile))
        else:
            made.append(maker.plain(scalar, tile))
    return made


@cocotb.test
async def test_cmd_ring_random_batches(dut: Dut) -> None:
    """Random batches of everything that succeeds, lap after lap, on memories of every temper."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    await session.fill_scratch(session.scratch_bytes // 4)
    for turn in range(120 if full() else 28):
        if turn % 4 == 0:
            await session.set_knobs([Knobs(), *HOSTILE][turn // 4 % 5])
        session.param = TERNARY * (turn % 3 == 0)
        assert await session.run(*await _batch(session))
        await session.compare_scratch()
        session.bus.compare_memory()
    await session.compare()


@cocotb.test
async def test_cmd_ring_every_operation(dut: Dut) -> None:
    """Every operation plain and extended, with stream and writeback wherever they are allowed."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    size = session.scratch_bytes
    for op in CmdOp:
        maker = Maker(session.random, size)
        for streamed in (False, True):
            maker.streams = float(streamed)
            tile = TileWords()
            if op in TILES:
                tile = legal_tile(session.random, op, size)
            elif op == CmdOp.VRELU_S8:
                tile = legal_vrelu(session.random, size, 4)
            await session.set_tile(tile)
            plain = maker.plain(op, tile)
            extended = maker.extended(op)
            if streamed:
                extended = _with_stream(session, extended)
                plain = _with_stream(session, plain)
            assert await session.run(plain, extended), f"{op.name}"
            await session.compare_scratch()
        tile = (
            legal_tile(session.random, op, size)
            if op in TILES
            else legal_vrelu(session.random, size, 4)
        )
        await session.set_tile(tile)
        target = TARGET + 4 * int(session.random.integers(0, 64))
        writing = DescriptorWords(
            op, 0x0101, target, writeback=True, extension=Extension.of_tile(tile, target + 0x1000)
        )
        assert await session.run(writing), op.name
        if op not in SCALARS:
            plain = DescriptorWords(op, session.word(), target, writeback=True)
            assert await session.run(plain), op.name
        await session.compare()


def _with_stream(session: CommandSession, made: DescriptorWords) -> DescriptorWords:
    """Return a descriptor that certainly has a stream."""
    if made.stream is not None:
        return made
    maker = Maker(session.random, session.scratch_bytes)
    # Bytes of an address that are no reserved lanes.
    return DescriptorWords(
        made.op,
        SOURCE + 4 * int(session.random.integers(0, 16)),
        made.b,
        made.acc,
        maker.stream(),
        made.writeback,
        made.extension,
    )


@cocotb.test
async def test_cmd_ring_laps(dut: Dut) -> None:
    """Batches of one to seven entries from every index, several laps, seven pending at a time."""
    session = await CommandSession.start(dut, Knobs(read_latency=9, write_latency=9))
    await session.use_records(5)
    expected = 0
    for count in [7] * 9 + [6, 5, 4, 3, 2, 1] * 3:
        made = [DescriptorWords(CmdOp.MUL_LO, session.word(), session.word()) for _ in range(count)]
        session.put(*made)
        await session.write(CmdReg.DESC_HEAD, session.head)
        assert await session.read(CmdReg.DESC_STATUS) >> 19 & 7 == count
        await session.begin()
        assert await session.finish()
        for one in made:
            data = session.bus.rtl.read_memory(RECORDS + 16 * (expected % 32), 16)
            record = Record.of(data)
            assert record.result | record.result_hi << 32 == one.a * one.b, str(record)
            assert record.phase == 1 - expected // 32 % 2, str(record)
            expected += 1
        await session.consume_records()
    await session.compare()


@cocotb.test
async def test_cmd_ring_bases(dut: Dut) -> None:
    """The ring at every multiple of 4 in a memory word, over a page and at the end of memory."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    end = session.bench.memory.data.size - ENTRIES * 16
    for base in (RING + 4, RING + 8, RING + 12, RING + 0xFD0, RING + 0xFF4, end, end - 4):
        await session.move_base(base)
        for _ in range(3):
            assert await session.run(*await _batch(session))
        await session.compare_scratch()
        session.bus.compare_memory()
    await session.compare()


@cocotb.test
async def test_cmd_ring_streams(dut: Dut) -> None:
    """Streams of every size from and to every place, over pages and ends of words."""
    session = await CommandSession.start(dut, HOSTILE[1])
    session.data(SOURCE, 2 * AREA)
    sources = [SOURCE + 4 * word for word in range(4)] + [SOURCE + 0xFFC - 4 * n for n in range(12)]
    for size in range(4, 64, 4):
        batch = []
        for _ in range(3):
            source = int(session.random.choice(sources))
            offset = 4 * int(session.random.integers(0, (session.scratch_bytes - size) // 4 + 1))
            batch.append(DescriptorWords(CmdOp.ADD, source, 1, stream=(offset, size)))
        assert await session.run(*batch)
        await session.compare_scratch()
    last = (session.scratch_bytes - 60, 60)
    assert await session.run(DescriptorWords(CmdOp.ADD, SOURCE, stream=last))
    await session.compare()


@cocotb.test
async def test_cmd_ring_writebacks(dut: Dut) -> None:
    """Writebacks of every size to every place: exactly their bytes reach the memory."""
    session = await CommandSession.start(dut, HOSTILE[2])
    size = session.scratch_bytes
    targets = [TARGET + 4 * word for word in range(4)] + [TARGET + 0xFFC - 4 * n for n in range(12)]
    for turn in range(120 if full() else 24):
        await session.fill_scratch(8)
        op = (CmdOp.GEMM_S8, CmdOp.GEMM_S4, CmdOp.VRELU_S8, CmdOp.DOT4_S8)[turn % 4]
        target = int(session.random.choice(targets))
        tile = TileWords()
        if op in TILES:
            tile = legal_tile(session.random, op, size)
        elif op == CmdOp.VRELU_S8:
            tile = legal_vrelu(session.random, size, 4)
        made = DescriptorWords(
            op, session.word(), 1, writeback=True, extension=Extension.of_tile(tile, target)
        )
        await session.set_tile(tile)
        plain = DescriptorWords(op, 1, target + 0x1100, writeback=True)
        assert await session.run(made, *([plain] if op not in SCALARS else []))
        session.bus.compare_memory()
    await session.compare()


@cocotb.test
async def test_cmd_ring_stream_feeds_tile(dut: Dut) -> None:
    """Matrices stream in, are multiplied and go back, entry after entry, for every lap."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    tile = TileWords.gemm(3, 3, 4, (0, 12, 24), (4, 3, 12))
    for turn in range(12):
        source, target = SOURCE + 64 * turn, TARGET + 0x40 * turn
        made = DescriptorWords(
            CmdOp.GEMM_S8,
            source,
            stream=(0, 24),
            writeback=True,
            extension=Extension.of_tile(tile, target, turn),
        )
        assert await session.run(made)
        data = np.frombuffer(session.bus.rtl.read_memory(source, 24), np.int8).astype(np.int64)
        product = data[:12].reshape(3, 4) @ data[12:].reshape(4, 3)
        written = np.frombuffer(session.bus.rtl.read_memory(target, 36), "<i4").reshape(3, 3)
        assert np.array_equal(written, product), f"{written} instead of {product}"
    await session.compare()


@cocotb.test
async def test_cmd_ring_append(dut: Dut) -> None:
    """Entries added while the ring runs are taken, at whatever cycle they come."""
    session = await CommandSession.start(dut, Knobs(read_latency=12, write_latency=12))
    await session.use_records(10)
    added = late = 0
    for _ in range(150 if full() else 40):
        session.put(
            *(DescriptorWords(CmdOp.MUL_LO, session.word(), session.word()) for _ in range(2))
        )
        first = session.head
        await session.bus.rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, first)
        await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
        await session.bus.rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        for _ in range(2):
            await ClockCycles(dut.clk, int(session.random.integers(1, 45)))
            session.put(
                DescriptorWords(CmdOp.DOT4_S8, session.word(), session.word(), session.word())
            )
            await session.bus.rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await session.bus.rtl.wait_interrupt()
        tail = await session.bus.rtl.read32(CMD_BASE + CmdReg.DESC_TAIL)
        left = (session.head - tail) % ENTRIES
        added, late = added + 2 - left, late + left
        # The model gets all four at once, and so does the chip where it had ended before.
        await session.bus.model.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await session.bus.model.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        if left:
            await session.bus.rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        assert await session.finish()
        await session.consume_records()
    await session.compare()
    assert added and late, f"{added} entries were added in time, {late} too late"


@cocotb.test
async def test_cmd_ring_append_at_the_end(dut: Dut) -> None:
    """An entry that is added in any cycle around the end runs now or with the next start."""
    session = await CommandSession.start(dut, Knobs(read_latency=10))
    rtl = session.bus.rtl
    await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
    in_time = {True: 0, False: 0}
    for wait in range(60):
        made = [DescriptorWords(CmdOp.ADD, session.word(), session.word()) for _ in range(2)]
        session.put(made[0])
        await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        session.put(made[1])
        before = await rtl.read32(CMD_BASE + CmdReg.PERF_OPS)
        await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await ClockCycles(dut.clk, wait // 2)
        await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await ClockCycles(dut.clk, 100)
        tail = await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL)
        assert await rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS) == DONE
        done = await rtl.read32(CMD_BASE + CmdReg.PERF_OPS) - before
        left = (session.head - tail) % ENTRIES
        assert done + left == 2, f"{done} done and {left} left of 2 entries"
        in_time[not left] += 1
        if left:
            await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await session.bus.model.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await session.bus.model.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        assert await session.finish()
        assert await session.read(CmdReg.RESULT) == (made[1].a + made[1].b) % (1 << 32)
    await session.compare()
    assert all(in_time.values()), f"in time or too late: {in_time}"


@cocotb.test
async def test_cmd_ring_append_endless(dut: Dut) -> None:
    """A ring that is fed for long enough runs many laps with one start."""
    session = await CommandSession.start(dut, Knobs(read_latency=3, write_latency=3))
    rtl = session.bus.rtl
    await session.use_records(8)
    count = 0
    session.put(*(DescriptorWords(CmdOp.ADD, session.word(), session.word()) for _ in range(7)))
    await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
    await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
    await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
    starts = 1
    done: list[DescriptorWords] = []
    while count < 200:
        tail = await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL)
        room = (tail - session.head - 1) % ENTRIES
        if room:
            more = [DescriptorWords(CmdOp.SUB, session.word(), session.word()) for _ in range(room)]
            session.put(*more)
            done += more
            count += room
            await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        status = await rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS)
        if status == 2 and await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) != session.head:
            await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
            starts += 1
    await rtl.wait_interrupt()
    while await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) != session.head:
        await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await rtl.wait_interrupt()
    for index, made in enumerate(done, start=7):
        record = Record.of(rtl.read_memory(RECORDS + 16 * (index % 256), 16))
        assert record.result == (made.a - made.b) % (1 << 32), f"entry {index}: {record}"
    assert await rtl.read32(CMD_BASE + CmdReg.PERF_OPS) == count + 7
    assert await rtl.read32(CMD_BASE + CmdReg.DESC_BYTES_READ) == 16 * (count + 7)


@cocotb.test
async def test_cmd_ring_reads_only_what_is_pending(dut: Dut) -> None:
    """No word of the ring beyond DESC_HEAD is read, and none twice."""
    session = await CommandSession.start(dut)
    reads = ReadBursts(dut)
    for count in range(1, 8):
        first = session.head
        reads.bursts.clear()
        made = [DescriptorWords(CmdOp.ADD, session.word(), session.word()) for _ in range(count)]
        assert await session.run(*made)
        places = sorted(at for burst in reads.bursts for at in burst.addresses)
        assert places == sorted(session.place(first + index) for index in range(count))
    await session.compare()


@cocotb.test
async def test_cmd_ring_ignored_bits(dut: Dut) -> None:
    """Bits of word 0 without a meaning are ignored in an entry that is not extended."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    free = [5, 6, 7, *range(9, 16), *range(16, 24), *range(24, 30)]
    for bit in free:
        made = DescriptorWords(CmdOp.MUL_LO, session.word(), session.word(), flipped=1 << bit)
        assert await session.run(made), f"bit {bit}"
    for bit in [5, 6, 7, *range(9, 16)] + ([22, 23] if session.scratch_bytes == 64 else []):
        made = DescriptorWords(CmdOp.ADD, SOURCE + 4, stream=(8, 12), flipped=1 << bit)
        assert await session.run(made), f"bit {bit} of a stream"
    await session.compare()
