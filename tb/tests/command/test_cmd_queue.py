# SPDX-License-Identifier: Apache-2.0
"""The ring as the queue of the chip: microcode programs among operations, completion records."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from npu.asm import assemble
from spec.regs import CHIP_BASE, CMD_BASE, SEQ_BASE, SEQ_FIELDS, ChipReg, CmdOp, CmdReg, RingStatus
from spec.regs.generated import SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM, full
from tb.bench.knobs import Knobs
from tb.command.command_session import CLEAR, DONE, HOSTILE, RECORDS, START, CommandSession
from tb.command.descriptor_words import (
    ENTRIES,
    DescriptorWords,
    Extension,
    Record,
    TileWords,
    launch,
)
from tb.command.random_descriptors import SOURCE

TAGS = ("cmd", "long")

SCRATCH_BYTES = (64, 128, 256)
STEP = 0x1000
"""Bytes from one program, input or output to the next."""
FAILING = "SET OUTCNT v=5\nNOP\nDMA_LOAD dst=0x0 M=1 N=64 b=2\nEND"
LONG = "SOFTMAX dst=0x10000 src0=0x20000 src1=0x30000 M=16 N=512 out=u16\nBARRIER smx\n"
"""Keeps the sequencer busy for thousands of cycles."""


def _sum_program(rows: int, count: int) -> str:
    """Return a program that stores the sum of its input and itself, and leaves OUTCNT `count`."""
    return f"""
        DMA_LOAD dst=0x0 M={rows} N=48 b=0
        BARRIER ld
        VEC op=add dst=0x2000 src0=0x0 src1=0x0 M={rows} N=48
        SET OUTCNT v={count}
        BARRIER vec
        DMA_STORE dst=0x2000 M={rows} N=48 b=1
        END
    """


def _stage(session: CommandSession, number: int, text: str) -> tuple[int, int]:
    """Put program `number` into both memories; return its place and length."""
    words = assemble(text).instructions
    place = PROGRAM + STEP * number
    session.bus.write_memory(place, b"".join(word.encode() for word in words))
    return place, len(words)


def _launch(session: CommandSession, number: int, text: str, tag: int = 0) -> DescriptorWords:
    """Return the launch of a program with input, output, token and position of its own."""
    place, length = _stage(session, number, text)
    return launch(
        place,
        length,
        token=session.word(),
        base0=INPUT + STEP * number,
        base1=OUTPUT + STEP * number,
        pos=session.word(),
        tag=tag,
    )


async def _sequencer(session: CommandSession) -> None:
    """Compare what the sequencer's window says about the last program."""
    for register in (SeqReg.STATUS, SeqReg.ERROR_INSTR, SeqReg.ERROR_ADDR, SeqReg.OUTCNT):
        await session.bus.read32(SEQ_BASE + register)
    for register in (SeqReg.LAST_TOKEN, SeqReg.LAST_POS):
        await session.bus.read32(SEQ_BASE + register)


@cocotb.test
async def test_cmd_queue_programs(dut: Dut) -> None:
    """Up to three programs in one batch, each with its own program, input, output and registers."""
    session = await CommandSession.start(dut)
    await session.use_records(5)
    for turn, count in enumerate((1, 2, 3, 3)):
        made = [
            _launch(session, n, _sum_program(2 + n + turn, 16 * turn + n), tag=17 * n + turn)
            for n in range(count)
        ]
        assert await session.run(*made), f"{count} programs"
        await _sequencer(session)
        await session.compare()
        assert await session.bus.read32(CHIP_BASE + ChipReg.IRQ_STATUS) == 3
        await session.bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 1)
        head = await session.consume_records()
        for n in range(count):
            at = RECORDS + 16 * ((head - count + n) % 32)
            record = Record.of(session.bus.rtl.read_memory(at, 16))
            assert (record.program, record.op, record.tag) == (True, 0, 17 * n + turn), str(record)
            assert (record.result, record.result_hi) == (16 * turn + n, 0), str(record)
    assert await session.read(CmdReg.PERF_OPS) == 9


@cocotb.test
async def test_cmd_queue_mixed(dut: Dut) -> None:
    """Programs, tiles and scalar operations in turns; each sees what the one before has written."""
    session = await CommandSession.start(dut)
    await session.use_records(7)
    tile = TileWords.gemm(3, 3, 4, (0, 12, 24), (4, 3, 12))
    for turn, knobs in enumerate((Knobs(), *HOSTILE, Knobs(read_latency=3))):
        await session.set_knobs(knobs)
        session.data(SOURCE, 64)
        program = _launch(session, turn, _sum_program(3, turn))
        # The program reads what the tile has written, and the next tile what the program has.
        product = DescriptorWords(
            CmdOp.GEMM_S8,
            SOURCE,
            stream=(0, 24),
            writeback=True,
            extension=Extension.of_tile(tile, INPUT + STEP * turn + 8, turn),
        )
        back = DescriptorWords(CmdOp.DOT4_S8, OUTPUT + STEP * turn + 4, stream=(20, 40))
        assert await session.run(product, program, back, DescriptorWords(CmdOp.ADD, 1, 2))
        await _sequencer(session)
        await session.compare()
        await session.consume_records()


@cocotb.test
async def test_cmd_queue_failing_program(dut: Dut) -> None:
    """A program that ends with an error ends the ring; the sequencer's window says more."""
    session = await CommandSession.start(dut)
    await session.use_records(5)
    await session.bus.write32(SEQ_BASE + SeqReg.BASE2, session.bench.memory.data.size)
    for text, before in ((FAILING, 0), (FAILING, 1), ("NOP", 0), ("NOP\nNOP", 1)):
        good = [_launch(session, 0, _sum_program(4, 3))] * before
        first = session.head
        assert not await session.run(*good, _launch(session, 1, text, 99), DescriptorWords(0))
        status = await session.read(CmdReg.DESC_STATUS)
        assert status & 0xFF == RingStatus.OPERATION, f"DESC_STATUS {status:#x}"
        assert status >> 9 & 7 == (first + 2 * before) % ENTRIES
        await _sequencer(session)
        await session.compare()
        head = await session.consume_records()
        record = Record.of(session.bus.rtl.read_memory(RECORDS + 16 * ((head - 1) % 32), 16))
        shown = await session.bus.read32(SEQ_BASE + SeqReg.STATUS)
        assert record.result_hi == shown & 0x7F00 != 0, str(record)
        assert (record.tag, record.program, record.status) == (99, True, RingStatus.OPERATION), str(
            record
        )
        await session.drop()
        assert await session.run(_launch(session, 2, _sum_program(2, 1)), DescriptorWords(0, 3, 4))
        await session.compare()
        await session.consume_records()


@cocotb.test
async def test_cmd_queue_with_host_program(dut: Dut) -> None:
    """A launch waits for the host's program; the host's START during a launch is ignored."""
    session = await CommandSession.start(dut)
    rtl, model = session.bus.rtl, session.bus.model
    ctrl, start = SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask
    for turn in range(6):
        place, length = _stage(session, 4, LONG + _sum_program(2, 7))
        for register, value in (
            (SeqReg.UCODE_BASE, place),
            (SeqReg.UCODE_LEN, length),
            (SeqReg.DDR_BASE_ACT, INPUT + 0x8000),
            (SeqReg.DDR_BASE_OUT, OUTPUT + 0x8000),
            (SeqReg.POS, session.word()),
            (SeqReg.TOKEN, session.word()),
        ):
            await session.bus.write32(SEQ_BASE + register, value)
        launched = [_launch(session, n, LONG * (n == 0) + _sum_program(3, n)) for n in range(2)]
        if turn % 2:  # the host's program is under way
            await rtl.write32(ctrl, start)
            await model.write32(ctrl, start)
            await ClockCycles(dut.clk, int(session.random.integers(1, 200)))
            session.put(*launched)
            await session.begin()
        else:  # the launched one is: the host's START does nothing
            session.put(*launched)
            await session.begin()
            await ClockCycles(dut.clk, int(session.random.integers(200, 700)))
            assert (await session.bench.chip.state())["BUSY"]
            await rtl.write32(ctrl, start)
        assert await session.finish()
        await _sequencer(session)
        session.bus.compare_memory()
        assert not (await session.bench.chip.state())["BUSY"]
        await session.bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 1)
    await session.compare()


@cocotb.test
async def test_cmd_queue_start_together(dut: Dut) -> None:
    """A START of the host around the cycle of a launch: both run or the host's is ignored."""
    session = await CommandSession.start(dut)
    rtl = session.bus.rtl
    ctrl, start = SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask
    place, length = _stage(session, 4, _sum_program(2, 7))
    host_output, launched_output = OUTPUT + 0x8000, OUTPUT
    for register, value in (
        (SeqReg.UCODE_BASE, place),
        (SeqReg.UCODE_LEN, length),
        (SeqReg.DDR_BASE_ACT, INPUT + 0x8000),
        (SeqReg.DDR_BASE_OUT, host_output),
    ):
        await session.bus.write32(SEQ_BASE + register, value)
    ran = {True: 0, False: 0}
    for wait in range(40, 100, 1 if full() else 3):
        made = _launch(session, 0, _sum_program(2, 1))
        for area in (host_output, launched_output):
            session.bus.write_memory(area, bytes(256))
        session.put(made)
        await session.begin()
        await ClockCycles(dut.clk, wait)
        await rtl.write32(ctrl, start)
        assert await session.finish()
        for _ in range(50):
            if not (await session.bench.chip.state())["BUSY"]:
                break
            await ClockCycles(dut.clk, 20)
        did = any(rtl.read_memory(host_output, 96))
        ran[did] += 1
        if did:
            await session.bus.model.write32(ctrl, start)
        session.bus.compare_memory()
        assert any(rtl.read_memory(launched_output, 96)), "the launched program did not run"
        await session.bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 1)
    assert all(ran.values()), f"the host's program ran or not: {ran}"


@cocotb.test
async def test_cmd_queue_soft_reset(dut: Dut) -> None:
    """A soft reset while a program launched by the ring runs: nothing is reported, all goes on."""
    session = await CommandSession.start(dut)
    rtl, stopped = session.bus.rtl, 0
    for _ in range(12):
        text = LONG + _sum_program(3, 9)
        made = [_launch(session, 0, text), _launch(session, 1, _sum_program(2, 1))]
        await session.write(CmdReg.CTRL_STATUS, CLEAR)
        session.put(*made)
        await session.begin()
        await ClockCycles(dut.clk, int(session.random.integers(1, 2500)))
        await rtl.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await session.settle(300)
        assert not (await session.bench.chip.state())["BUSY"]
        ended = await rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS)
        if ended != DONE:  # it had not come to its end before
            assert ended == 0, f"CTRL_STATUS {ended:#x} after a soft reset"
            assert not int(dut.irq.value), "the end of the ring was reported"
            if await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) == session.head:  # before its report
                session.put(DescriptorWords(CmdOp.ADD, 1, 2))
                await session.write(CmdReg.DESC_HEAD, session.head)
                await session.bus.model.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
            await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
            stopped += 1
        assert await session.finish()
        session.bus.compare_memory()
        await session.bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 1)
    assert stopped > 5, f"only {stopped} runs were stopped"


@cocotb.test
async def test_cmd_queue_abort(dut: Dut) -> None:
    """An abort of a launched program fails its descriptor; the ring goes on behind it."""
    session = await CommandSession.start(dut)
    rtl = session.bus.rtl
    session.put(_launch(session, 0, LONG * 2 + _sum_program(3, 9)), DescriptorWords(0, 1, 2))
    await rtl.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
    await rtl.write32(CMD_BASE + CmdReg.CMD_PARAM, 1)
    await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
    await ClockCycles(dut.clk, 500)
    await rtl.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_ABORT"].mask)
    await rtl.wait_interrupt()
    assert await rtl.read32(CMD_BASE + CmdReg.DESC_STATUS) & 0xFF == RingStatus.OPERATION
    assert await rtl.read32(CMD_BASE + CmdReg.DESC_TAIL) == 0
    assert await rtl.read32(CMD_BASE + CmdReg.PERF_ERRORS) == 1
    await rtl.write32(CMD_BASE + CmdReg.DESC_TAIL, 2)
    await rtl.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
    await rtl.wait_interrupt()
    assert await rtl.read32(CMD_BASE + CmdReg.DESC_STATUS) & 0xFF == 2
    assert await rtl.read32(CMD_BASE + CmdReg.RESULT) == 3


@cocotb.test
async def test_cmd_queue_record_contents(dut: Dut) -> None:
    """Records of everything: scalar, tile, refused, reserved, without owner, program."""
    session = await CommandSession.start(dut)
    await session.use_records(6)
    await session.fill_scratch(16)
    tile = Extension.of_tile(TileWords.gemm(1, 1, 1, (0, 4, 8), (0, 0, 0)), 0, 0xA5)
    good = DescriptorWords(CmdOp.MUL_LO, session.word(), session.word())
    cases = [
        (good, (2, 0, CmdOp.MUL_LO, False)),
        (DescriptorWords(CmdOp.GEMM_S8, extension=tile), (2, 0xA5, CmdOp.GEMM_S8, False)),
        (
            DescriptorWords(CmdOp.GEMM_S8, extension=Extension.of_tile(TileWords(), 0, 3)),
            (6, 3, 8, False),
        ),
        (DescriptorWords(CmdOp.DOT4_FP8_E4M3, 0x7F), (6, 0, CmdOp.DOT4_FP8_E4M3, False)),
        (DescriptorWords(CmdOp.SUB, owner=False), (RingStatus.OWNER, 0, CmdOp.SUB, False)),
        (_launch(session, 0, "END", 0x5A), (2, 0x5A, 0, True)),
        (_launch(session, 1, "NOP", 0xFF), (6, 0xFF, 0, True)),
    ]
    for number, (made, expected) in enumerate(cases):
        index = session.head
        if not await session.run(made):
            await session.drop()
        await session.compare()
        record = Record.of(session.bus.rtl.read_memory(RECORDS + 16 * number, 16))
        shown = (record.status, record.tag, record.op, record.program)
        assert shown == expected, f"{record}, expected {expected}"
        assert (record.index, record.phase) == (index, 1), str(record)
        if made is not good:
            assert not record.result, str(record)
    assert Record.of(session.bus.rtl.read_memory(RECORDS, 16)).result == good.a * good.b % (1 << 32)


@cocotb.test
async def test_cmd_queue_record_ring_full(dut: Dut) -> None:
    """A full completion ring makes the descriptor ring wait; nothing is lost, for any size."""
    session = await CommandSession.start(dut)
    rtl = session.bus.rtl
    for log2_size in (0, 1, 2, 4):
        size = 1 << log2_size
        await session.use_records(log2_size)
        total = 0
        for _ in range(3 if log2_size < 3 else 6):
            made = [DescriptorWords(CmdOp.MUL_LO, session.word(), session.word()) for _ in range(7)]
            session.put(*made)
            await session.begin()
            await ClockCycles(dut.clk, 900)
            for _ in range(7):
                tail = await session.read(CmdReg.CQ_TAIL)
                head = await session.read(CmdReg.CQ_HEAD)
                assert head == min(total + 7, tail + size), f"CQ_HEAD {head}, CQ_TAIL {tail}"
                if head == tail:
                    break
                record = Record.of(rtl.read_memory(RECORDS + 16 * (tail % size), 16))
                one = made[tail - total]
                assert record.result == one.a * one.b % (1 << 32), f"{tail}: {record}"
                assert record.phase == 1 - tail // size % 2, f"{tail}: {record}"
                await session.write(CmdReg.CQ_TAIL, tail + 1)
                await ClockCycles(dut.clk, 150)
            assert await session.finish()
            total += 7
            await session.consume_records()
            await session.compare()


@cocotb.test
async def test_cmd_queue_record_indices_wrap(dut: Dut) -> None:
    """CQ_HEAD and CQ_TAIL run freely modulo 65,536."""
    session = await CommandSession.start(dut, Knobs(read_latency=1, write_latency=1))
    await session.use_records(3)
    made = [DescriptorWords(CmdOp.ADD, session.word(), session.word()) for _ in range(7)]
    turns = -(-((1 << 16) + 20) // 7) if full() else 60
    rtl = session.bus.rtl
    for turn in range(turns):
        session.put(*made)
        if turn % 512 == 0:
            await session.begin()
            assert await session.finish()
            await session.compare()
            await session.consume_records()
            continue
        for bus in (rtl, session.bus.model):
            await bus.write32(CMD_BASE + CmdReg.DESC_HEAD, session.head)
            await bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)
        await rtl.wait_interrupt()
        for bus in (rtl, session.bus.model):
            await bus.write32(CMD_BASE + CmdReg.CQ_TAIL, (7 * turn + 7) % (1 << 16))
    await session.compare()
    assert await session.read(CmdReg.CQ_HEAD) == 7 * turns % (1 << 16)


@cocotb.test
async def test_cmd_queue_interrupt_per_entry(dut: Dut) -> None:
    """One interrupt per program with PER_ENTRY, one per batch without."""
    session = await CommandSession.start(dut)
    rtl = session.bus.rtl
    await session.use_records(4)
    for per_entry in (1, 0):
        await session.write(CmdReg.CMD_IRQ, per_entry)
        session.put(*(_launch(session, n, LONG + _sum_program(2, n)) for n in range(3)))
        await session.begin()
        heads = []
        while True:
            await rtl.wait_interrupt()
            heads.append(await rtl.read32(CMD_BASE + CmdReg.CQ_HEAD))
            if not await rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS) & 1:
                break
            await rtl.write32(CMD_BASE + CmdReg.CMD_IRQ, 3)
        expected = [1, 2, 3] if per_entry else [6]
        assert heads == expected, f"interrupts at CQ_HEAD {heads}, expected {expected}"
        assert await session.finish()
        await session.compare()
        await session.consume_records()


@cocotb.test
async def test_cmd_queue_parameter_stream(dut: Dut) -> None:
    """The parameter stream of a running program cannot be written by results or records."""
    session = await CommandSession.start(dut)
    text = LONG + "GELU dst=0x4000 src0=0x8000 M=4 N=100 stream\nEND"
    place, length = _stage(session, 0, text)
    session.data(STREAM, 0x200)
    for register, value in (
        (SeqReg.UCODE_BASE, place),
        (SeqReg.UCODE_LEN, length),
        (SeqReg.DDR_BASE_WGT, STREAM + 0x40),
        (SeqReg.STREAM_LEN, 0x100),
    ):
        await session.bus.write32(SEQ_BASE + register, value)
    for offset in (0x38, 0x3C, 0x40, 0x80, 0x13C, 0x140):
        await session.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask)
        await ClockCycles(dut.clk, 150)
        session.memory.stream = (STREAM + 0x40, STREAM + 0x13F)
        made = DescriptorWords(0, 1, 2, writeback=True, extension=Extension(STREAM + offset))
        right = await session.run(made)
        assert (await session.bench.chip.state())["BUSY"], "the program has ended"
        assert right != (0x3C <= offset < 0x140), f"writeback at {offset:#x}"
        if not right:
            assert await session.read(CmdReg.DESC_STATUS) & 0xFF == RingStatus.WRITEBACK_WRITE
            await session.drop()
        session.memory.stream = None
        for _ in range(400):
            if not (await session.bench.chip.state())["BUSY"]:
                break
            await ClockCycles(dut.clk, 50)
        assert await session.run(
            DescriptorWords(0, 1, 2, writeback=True, extension=Extension(STREAM))
        )
        session.bus.compare_memory()
    await session.use_records(2, STREAM + 0x30)
    await session.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask)
    await ClockCycles(dut.clk, 150)
    session.memory.stream = (STREAM + 0x40, STREAM + 0x13F)
    assert not await session.run(DescriptorWords(0, 1, 2), DescriptorWords(0, 3, 4))
    assert await session.read(CmdReg.DESC_STATUS) & 0xFF == RingStatus.WRITEBACK_WRITE
    await session.compare()
