# SPDX-License-Identifier: Apache-2.0
"""Every way in which a descriptor fails, at every place of the ring, and the port afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cocotb
from cocotb.triggers import ClockCycles

from spec.regs import CHIP_BASE, CMD_BASE, SEQ_BASE, SEQ_FIELDS, ChipReg, CmdOp, CmdReg, RingStatus
from spec.regs.generated import SeqReg
from tb.bench.bursts import OpenBursts, ReadBursts, WriteBursts
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.command.command_session import (
    DESCRIPTOR,
    HOSTILE,
    RECORDS,
    RING,
    START,
    CommandSession,
)
from tb.command.descriptor_words import ENTRIES, DescriptorWords, Extension, TileWords
from tb.command.faulty_descriptors import PRODUCT, Fault, configuration_faults
from tb.command.random_descriptors import SOURCE, TARGET

TAGS = ("cmd", "faults")
TIMED = (
    "test_cmd_faults_between_halves",
    "test_cmd_faults_patience",
    "test_cmd_faults_silence",
    "test_cmd_faults_silence_anywhere",
    "test_cmd_faults_stutter",
)

SCRATCH_BYTES = (64, 128, 256)
PATIENCE = 100
"""DESC_TIMEOUT of the tests with a silent memory, in cycles."""


def _good(session: CommandSession, count: int) -> list[DescriptorWords]:
    return [DescriptorWords(CmdOp.MUL_LO, session.word(), session.word()) for _ in range(count)]


async def _fails(
    session: CommandSession, name: str, code: int, faulty: DescriptorWords, before: int, behind: int
) -> None:
    """Run a batch whose descriptor behind `before` good ones fails with `code`; compare all.

    Those before it have completed, those behind it have not, and the next batch is right.
    """
    first = session.head
    session.put(*_good(session, before), faulty, *_good(session, behind))
    await session.begin()
    assert not await session.finish(), f"{name}: no error"
    status, index = await session.read(CmdReg.DESC_STATUS), (first + before) % ENTRIES
    assert status & 0xFF == code, f"{name}: DESC_STATUS {status & 0xFF:#04x}, expected {code:#04x}"
    assert status >> 9 & 7 == index, f"{name}: INDEX {status >> 9 & 7}, expected {index}"
    assert await session.read(CmdReg.DESC_TAIL) == index, name
    await session.compare()
    await session.drop()


async def _fail_somewhere(session: CommandSession, cases: Sequence[Fault]) -> None:
    """Run every case behind a random number of good descriptors, then a good batch."""
    for name, code, faulty in cases:
        room = ENTRIES - 1 - faulty.places
        before = int(session.random.integers(0, room + 1))
        behind = int(session.random.integers(0, room - before + 1))
        await _fails(session, name, code, faulty, before, behind)
        assert await session.run(*_good(session, 1)), f"behind {name}"


@cocotb.test
async def test_cmd_faults_configuration(dut: Dut) -> None:
    """Every field that a descriptor may have wrong, behind and before good ones."""
    session = await CommandSession.start(dut, Knobs(read_latency=6, write_latency=6))
    await session.fill_scratch(16)
    await _fail_somewhere(session, list(configuration_faults(session.scratch_bytes)))
    await session.compare()


@cocotb.test
async def test_cmd_faults_registers(dut: Dut) -> None:
    """An entry without extension takes its tile from the registers, right or wrong."""
    session = await CommandSession.start(dut, Knobs(read_latency=6, write_latency=6))
    await session.fill_scratch(16)
    for op, tile, code in (
        (CmdOp.GEMM_S8, TileWords(), RingStatus.WRITEBACK_CONFIG),
        (CmdOp.GEMM_S4, TileWords.gemm(1, 1, 0, (0, 0, 8), (0, 0, 0)), RingStatus.OPERATION),
        (CmdOp.VRELU_S8, TileWords.vrelu(5, 0, 0), RingStatus.WRITEBACK_CONFIG),
        (CmdOp.VRELU_S8, TileWords.vrelu(8, session.scratch_bytes - 4, 0), RingStatus.OPERATION),
    ):
        await session.set_tile(tile)
        made = DescriptorWords(op, 0, TARGET, writeback=True)
        await _fails(session, op.name, code, made, 2, 1)
    await session.set_tile(PRODUCT)
    assert await session.run(DescriptorWords(CmdOp.GEMM_S8, 0, TARGET, writeback=True))
    await session.compare()


@cocotb.test
async def test_cmd_faults_start(dut: Dut) -> None:
    """Without entries, and with a base that is not a multiple of 4; at every entry."""
    session = await CommandSession.start(dut)
    await session.write(CmdReg.CMD_IRQ, 1)
    await session.use_records(6)
    for entry in range(ENTRIES):
        for wrong, pending, code in (
            (0, 0, RingStatus.EMPTY),
            (2, 0, RingStatus.BASE),
            (2, 1, RingStatus.BASE),
        ):
            await session.write(CmdReg.DESC_BASE, session.base + wrong)
            session.put(*_good(session, pending))
            await session.begin()
            assert not await session.finish()
            status = await session.read(CmdReg.DESC_STATUS)
            assert status & 0xFF == code, f"DESC_STATUS {status:#x}"
            assert status >> 9 & 7 == await session.read(CmdReg.DESC_TAIL) == entry
            await session.compare()
            await session.write(CmdReg.DESC_BASE, session.base)
        await session.begin()
        assert await session.finish()
    await session.compare()


@cocotb.test
async def test_cmd_faults_at_every_entry(dut: Dut) -> None:
    """A descriptor with each code of a wrong field, in turn at every entry of the ring."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(16)
    one_of_each = {
        code: (name, made) for name, code, made in configuration_faults(session.scratch_bytes)
    }
    for code, (name, faulty) in one_of_each.items():
        for entry in range(ENTRIES):
            if ahead := (entry - session.head) % ENTRIES:
                assert await session.run(*_good(session, ahead)), f"ahead of {name}"
            await _fails(session, name, code, faulty, 0, 0)
    await session.compare()


@cocotb.test
async def test_cmd_faults_extension_pending(dut: Dut) -> None:
    """An extended entry needs a second pending one, at every index."""
    session = await CommandSession.start(dut)
    await session.use_records(6)
    for before in range(6):
        made = replace(_good(session, 1)[0], extension=Extension(0, (0, 0, 9 << 24)))
        session.put(*_good(session, before), made)
        session.head = (session.head - 1) % ENTRIES
        await session.begin()
        assert not await session.finish()
        assert await session.read(CmdReg.DESC_STATUS) & 0xFF == RingStatus.OPERATION
        await session.compare()
        # With its second entry it runs.
        session.head = (session.head + 1) % ENTRIES
        await session.begin()
        assert await session.finish()
        await session.compare()


async def _with_error(session: CommandSession, first: int, last: int, *, write: bool) -> None:
    """Let accesses from `first` to `last` fail."""
    knobs = replace(session.memory.knobs, read_error=int(not write), write_error=int(write))
    await session.set_knobs(replace(knobs, error_first=first & -16, error_last=last | 15))


async def _without_errors(session: CommandSession) -> None:
    await session.set_knobs(replace(session.memory.knobs, read_error=0, write_error=0))


@cocotb.test
async def test_cmd_faults_fetch(dut: Dut) -> None:
    """A memory error at each entry of a batch strikes that one, also of an unaligned ring."""
    session = await CommandSession.start(dut)
    await session.use_records(6)
    for base in (session.base, session.base + 0x208):
        await session.move_base(base)
        for before in range(7):
            place = session.place(session.head + before)
            place += 8 if base % 16 else 0  # only its second half, so that the one before is whole
            await _with_error(session, place, place, write=False)
            await _fails(
                session,
                f"entry {before}",
                RingStatus.FETCH,
                _good(session, 1)[0],
                before,
                6 - before,
            )
            await _without_errors(session)
            await session.consume_records()
        # The second entry of an extended descriptor
        extended = replace(_good(session, 1)[0], extension=Extension(0, (0, 0, 77 << 24)))
        for before in (0, 3):
            place = session.place(session.head + before + 1) + (8 if base % 16 else 0)
            await _with_error(session, place, place, write=False)
            await _fails(session, f"extension of {before}", RingStatus.FETCH, extended, before, 1)
            await _without_errors(session)
            await session.consume_records()
        assert await session.run(*_good(session, 3))
    end = session.bench.memory.data.size
    await session.write(CmdReg.DESC_BASE, end - 32)
    await session.write(CmdReg.DESC_HEAD, 5)
    await session.write(CmdReg.DESC_TAIL, 2)
    session.head = 5
    await session.write(CmdReg.CTRL_STATUS, START)
    assert not await session.finish(), "entries beyond the memory"
    await session.compare()


@cocotb.test
async def test_cmd_faults_stream_and_writeback(dut: Dut) -> None:
    """A memory error at each word of a stream and of a writeback."""
    session = await CommandSession.start(dut)
    await session.use_records(7)
    session.data(SOURCE, 0x100)
    for knobs in (Knobs(), *HOSTILE):
        await session.set_knobs(knobs)
        for source in (SOURCE, SOURCE + 12):
            for word in range(4):
                await session.fill_scratch(16)
                await _with_error(session, source + 16 * word, source + 16 * word, write=False)
                made = DescriptorWords(CmdOp.ADD, source, stream=(4, 60))
                await _fails(session, f"stream word {word}", RingStatus.STREAM_READ, made, word, 1)
                await _without_errors(session)
        for target in (TARGET, TARGET + 12):
            for word in range(3):
                if word == 2 and target % 16 == 0:
                    continue
                await _with_error(session, target + 16 * word, target + 16 * word, write=True)
                extension = Extension.of_tile(PRODUCT, target, 3)
                made = DescriptorWords(CmdOp.GEMM_S8, writeback=True, extension=extension)
                await _fails(
                    session, f"writeback word {word}", RingStatus.WRITEBACK_WRITE, made, word, 1
                )
                await _without_errors(session)
        straddling = DescriptorWords(
            CmdOp.MUL_LO, 3, 5, writeback=True, extension=Extension(TARGET + 12)
        )
        for word in range(2):
            await _with_error(session, TARGET + 16 * word, TARGET + 16 * word, write=True)
            await _fails(
                session, f"result word {word}", RingStatus.WRITEBACK_WRITE, straddling, 1, 1
            )
            await _without_errors(session)
        assert await session.run(straddling, *_good(session, 2))
        await session.consume_records()
    end = session.bench.memory.data.size
    await _fails(
        session,
        "stream beyond",
        RingStatus.STREAM_READ,
        DescriptorWords(0, end - 8, stream=(0, 16)),
        1,
        1,
    )
    beyond = DescriptorWords(0, writeback=True, extension=Extension(end - 4))
    await _fails(session, "writeback beyond", RingStatus.WRITEBACK_WRITE, beyond, 1, 1)
    await session.compare()


@cocotb.test
async def test_cmd_faults_record(dut: Dut) -> None:
    """A record that fails ends the run; one behind a failed descriptor changes nothing of it."""
    session = await CommandSession.start(dut)
    await session.use_records(3)
    for before in (0, 1, 5):
        head = await session.consume_records()
        place = RECORDS + 16 * ((head + before) % 8)
        await _with_error(session, place, place, write=True)
        await _fails(
            session, f"record {before}", RingStatus.WRITEBACK_WRITE, _good(session, 1)[0], before, 1
        )
        assert await session.read(CmdReg.CQ_HEAD) == head + before
        await _fails(
            session, "descriptor and record", RingStatus.OWNER, DescriptorWords(owner=False), 0, 1
        )
        await _without_errors(session)
        assert await session.run(*_good(session, 1))
    await session.compare()


async def _regions(session: CommandSession, regions: Sequence[tuple[int, int, int]]) -> None:
    """Program regions of (first page, last page, control); the others are closed."""
    for index in range(8):
        first, last, control = regions[index] if index < len(regions) else (0, 0, 0)
        at = CHIP_BASE + ChipReg[f"REGION{index}_BASE"]
        for offset, value in zip((0, 4, 8), (first << 12, last << 12, control), strict=True):
            await session.bus.write32(at + offset, value)


@cocotb.test
async def test_cmd_faults_regions(dut: Dut) -> None:
    """What no region permits is an error and never reaches the bus."""
    session = await CommandSession.start(dut)
    reads, writes = ReadBursts(dut), WriteBursts(dut)
    await session.use_records(6)
    everything = (0, 0xFFFFF, 3)
    page = {name: at >> 12 for name, at in (("stream", SOURCE), ("target", TARGET))}
    page |= {"ring": session.base >> 12, "record": RECORDS >> 12}
    read, write = 1, 2
    streaming = DescriptorWords(0, SOURCE + 0xFF0, stream=(0, 32))  # over the end of the page
    writing = DescriptorWords(0, writeback=True, extension=Extension(TARGET + 0xFFC))
    for name, code, made, shut, control in (
        ("ring", RingStatus.FETCH, _good(session, 1)[0], page["ring"], write),
        ("stream", RingStatus.STREAM_READ, streaming, page["stream"], write),
        ("stream, next page", RingStatus.STREAM_READ, streaming, page["stream"] + 1, 0),
        ("target", RingStatus.WRITEBACK_WRITE, writing, page["target"], read),
        ("target, next page", RingStatus.WRITEBACK_WRITE, writing, page["target"] + 1, read),
        ("record", RingStatus.WRITEBACK_WRITE, _good(session, 1)[0], page["record"], read),
    ):
        await _regions(session, [(0, shut - 1, 3), (shut, shut, control), (shut + 1, 0xFFFFF, 3)])
        reads.bursts.clear()
        writes.bursts.clear()
        if name == "record":
            await _fails(session, name, code, made, 0, 1)
        else:
            await _fails(session, name, code, made, 0 if name == "ring" else 2, 1)
        touched = {
            burst.address >> 12
            for burst in (writes if code == RingStatus.WRITEBACK_WRITE else reads).bursts
        }
        assert shut not in touched, f"{name}: an access that is not permitted reached the bus"
        await _regions(session, [everything])
        assert await session.run(*_good(session, 1))
    await session.compare()


# --------------------------------------------------------------------------------------------------
# Silence
# --------------------------------------------------------------------------------------------------
def _quiet(first: int, size: int, *, write: bool, everything: bool = False) -> Knobs:
    """Return a memory that accepts all, but withholds its answers from `first` on."""
    place = (
        {} if everything else {"silent_first": first & -16, "silent_last": first + size - 1 | 15}
    )
    return Knobs(read_silent=int(not write), write_silent=int(write), **place)


async def _times_out(
    session: CommandSession,
    name: str,
    knobs: Knobs,
    made: Sequence[DescriptorWords],
    code: int = RingStatus.TIMEOUT,
) -> None:
    """Run descriptors of which the last one meets a silent memory; the port is usable at once.

    It ends with `code`: a failure that came before the silence is the one reported. Operations
    by register work during the silence, a start of the ring times out again, and the next batch is
    right once the memory answers.
    """
    await session.set_knobs(knobs)
    first = session.head
    session.put(*made)
    await session.begin()
    assert not await session.finish(), f"{name}: no time-out"
    status = await session.read(CmdReg.DESC_STATUS)
    index = (first + sum(one.places for one in made[:-1])) % ENTRIES
    assert status & 0xFF == code, f"{name}: DESC_STATUS {status & 0xFF:#04x}"
    assert status >> 9 & 7 == index, f"{name}: INDEX {status >> 9 & 7}, expected {index}"
    await session.compare()
    assert await session.operate(CmdOp.MUL_LO, session.word(), session.word(), 0)
    assert await session.operate(CmdOp.GEMM_S8, tile=PRODUCT)
    await session.compare_scratch()
    await session.begin()
    assert not await session.finish(), f"{name}: the memory still owes an answer"
    assert await session.read(CmdReg.DESC_STATUS) & 0xFF == RingStatus.TIMEOUT
    await session.compare()
    await session.set_knobs(Knobs())
    if session.random.integers(2):
        await session.settle(int(session.random.integers(1, 80)))
    await session.drop()
    assert await session.run(*_good(session, 3)), f"the batch behind {name}"
    await session.settle()
    session.bus.adopt_undefined(late=False)
    await session.compare()


@cocotb.test
async def test_cmd_faults_silence(dut: Dut) -> None:
    """A silent memory at fetch, stream, writeback and record: a time-out, then all is well.

    Where it is the record of a descriptor that has failed, the first failure is the one reported.
    """
    session = await CommandSession.start(dut)
    session.data(SOURCE, 0x100)
    await session.write(CmdReg.DESC_TIMEOUT, PATIENCE)
    streaming = DescriptorWords(0, SOURCE, stream=(8, 48))
    writing = DescriptorWords(
        CmdOp.GEMM_S8, writeback=True, extension=Extension.of_tile(PRODUCT, TARGET + 4)
    )
    result = DescriptorWords(CmdOp.MUL_LO, 7, 9, writeback=True, extension=Extension(TARGET + 12))
    for everything in (False, True):
        for before in (0, 1, 4):
            good = _good(session, before)
            if not (everything and before):
                place = session.place(session.head + before)
                knobs = _quiet(place, 16, write=False, everything=everything)
                await _times_out(session, f"fetch {before}", knobs, [*good, *_good(session, 1)])
            if not everything:
                for word in (0, 2):
                    knobs = _quiet(SOURCE + 16 * word, 16, write=False)
                    await _times_out(session, f"stream {word}", knobs, [*good, streaming])
            for made, target in ((writing, TARGET), (result, TARGET + 16)):
                knobs = _quiet(target, 16, write=True, everything=everything)
                await _times_out(session, "writeback", knobs, [*good, made])
    await session.use_records(6)
    for before in (0, 3):
        for last, code in (
            (_good(session, 1)[0], RingStatus.TIMEOUT),
            (DescriptorWords(owner=False), RingStatus.OWNER),
        ):
            head = await session.consume_records()
            knobs = _quiet(RECORDS + 16 * ((head + before) % 64), 16, write=True)
            await _times_out(session, "record", knobs, [*_good(session, before), last], code)
    await session.compare()


@cocotb.test
async def test_cmd_faults_patience(dut: Dut) -> None:
    """A wait a little shorter than DESC_TIMEOUT is endured, a longer one is not; 0 is for ever."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, 0x100)
    made = [DescriptorWords(0, SOURCE, stream=(0, 60)), *_good(session, 2)]
    made.append(DescriptorWords(0, writeback=True, extension=Extension(TARGET)))
    for latency in (120, 400):
        slow = Knobs(read_latency=latency, write_latency=latency)
        await session.bench.set_knobs(slow)
        await session.write(CmdReg.DESC_TIMEOUT, latency + 8)
        assert await session.run(*made), f"latency {latency}"
        await session.compare()
        # The wait begins with the last of five words: one is asked for every other cycle.
        await session.write(CmdReg.DESC_TIMEOUT, latency - 16)
        session.memory.obey(Knobs(read_silent=1))
        assert not await session.run(*made), f"latency {latency}"
        assert await session.read(CmdReg.DESC_STATUS) & 0xFF == RingStatus.TIMEOUT
        session.memory.obey(Knobs())
        await session.settle(2 * latency)
        await session.drop()
    for patience, silence in ((0, 9000), (4096, 3900)):
        await session.write(CmdReg.DESC_TIMEOUT, patience)
        await session.bench.set_knobs(Knobs(read_silent=1))
        session.put(*made)
        await session.begin()
        await session.settle(silence)
        await session.bench.set_knobs(Knobs())
        assert await session.finish(), f"a silence of {silence} with DESC_TIMEOUT {patience}"
        await session.compare()


@cocotb.test
async def test_cmd_faults_stutter(dut: Dut) -> None:
    """A memory that moves once in 60 cycles never exceeds a patience of 100, however long."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, 0x100)
    await session.write(CmdReg.DESC_TIMEOUT, PATIENCE)

    async def stutter() -> None:
        while True:
            await session.bench.set_knobs(Knobs(read_silent=1, write_silent=1))
            await ClockCycles(dut.clk, 58)
            await session.bench.set_knobs(Knobs())

    stuttering = cocotb.start_soon(stutter())
    extension = Extension.of_tile(PRODUCT, TARGET + 8)
    writing = DescriptorWords(
        CmdOp.GEMM_S8, SOURCE + 4, stream=(0, 60), writeback=True, extension=extension
    )
    for _ in range(3):
        assert await session.run(*_good(session, 2), writing, *_good(session, 2))
    stuttering.cancel()
    await session.compare()


@cocotb.test
async def test_cmd_faults_between_halves(dut: Dut) -> None:
    """A run that ends behind the first half of an entry leaves nothing of it to the next run.

    The second half lies in a page that no region permits, or is not answered until a time-out or a
    soft reset has ended the run.
    """
    session = await CommandSession.start(dut)
    rtl = session.bus.rtl
    split = 3  # the entry that lies in two pages
    second = RING + 0x1000
    for offset in (4, 8, 12):
        await session.move_base(second - 16 * (split + 1) + offset)
        for end in (RingStatus.FETCH, RingStatus.TIMEOUT, None):
            session.put(*_good(session, split + 2))
            await session.write(CmdReg.DESC_TIMEOUT, PATIENCE if end else 0)
            if end == RingStatus.FETCH:
                await _regions(session, [(0, second // 4096 - 1, 3)])
            else:
                await session.set_knobs(_quiet(second, 16, write=False))
            if end:
                await session.begin()
                assert not await session.finish(), f"{end.name}: no error"
                assert await session.read(CmdReg.DESC_STATUS) & 0xFF == end
                await session.compare()
            else:  # the model is not stopped: it starts when the chip does so again
                await session.write(CmdReg.DESC_HEAD, session.head)
                await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
                await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
                await session.settle(3 * PATIENCE)
                await rtl.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
            assert await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) == split
            await _regions(session, [(0, 0xFFFFF, 3)])
            await session.set_knobs(Knobs())
            await session.begin()
            assert await session.finish(), f"the entry behind {end}"
            await session.compare()
            assert await session.run(*_good(session, ENTRIES - split - 2)), "to index 0"
    await session.compare()


@cocotb.test
async def test_cmd_faults_silence_anywhere(dut: Dut) -> None:
    """Silence from a random cycle on: completed or timed out, and right with the next start."""
    session = await CommandSession.start(dut)
    owed = OpenBursts(dut)
    rtl = session.bus.rtl
    source = SOURCE + 4
    session.data(source, 60)
    await session.write(CmdReg.DESC_TIMEOUT, PATIENCE)
    extension = Extension.of_tile(PRODUCT, TARGET + 8)
    timeouts = 0
    for turn in range(60 if full() else 25):
        writing = DescriptorWords(
            CmdOp.GEMM_S8, source, stream=(0, 24), writeback=True, extension=extension
        )
        session.put(*_good(session, 2), writing, *_good(session, 1))
        await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await session.write(CmdReg.CMD_PARAM, DESCRIPTOR)
        await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await ClockCycles(dut.clk, int(session.random.integers(1, 220)))
        which = int(session.random.integers(1, 4))
        await session.bench.set_knobs(Knobs(read_silent=which & 1, write_silent=which >> 1))
        await rtl.wait_interrupt()
        status = await rtl.read32(CMD_BASE + CmdReg.DESC_STATUS) & 0xFF
        tail = await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL)
        assert status in (2, RingStatus.TIMEOUT), f"DESC_STATUS {status:#04x}"
        assert (tail == session.head) == (status == 2), f"DESC_TAIL {tail}"
        if turn % 3 == 2:
            await rtl.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await ClockCycles(dut.clk, int(session.random.integers(1, 2 * PATIENCE)))
        await session.bench.set_knobs(Knobs())
        if status == RingStatus.TIMEOUT:
            timeouts += 1
            await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await session.bus.model.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
        await session.bus.model.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        if status == RingStatus.TIMEOUT or turn % 3 != 2:
            assert await session.finish()
        await session.settle()
        assert owed.quiet
        session.bus.compare_memory()
        await session.compare_scratch()
    assert timeouts > 5, f"only {timeouts} runs met the silence"
