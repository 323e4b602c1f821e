# SPDX-License-Identifier: Apache-2.0
"""The descriptor ring: every way to end, streams, writebacks, completion records, interrupts."""

from __future__ import annotations

import numpy as np
import pytest

from golden.command import EndlessWaitError, GuardedRange, Launch, ProgramEnd
from golden.command.descriptor import LaunchWords
from golden.command.memory import MemoryFaultError, pieces
from spec.regs import CmdOp, CmdReg
from tests.python.command.command_bench import (
    CLEAR,
    EXTENDED,
    LAUNCH,
    MEMORY_BYTES,
    OWNER,
    RECORDS,
    RING,
    SOURCE,
    START,
    STREAM,
    TARGET,
    WRITEBACK,
    CommandBench,
    extended,
    launch,
    pack,
    scalar,
    stream,
    tile,
)

DONE, FAILED, TIMEOUT = 0x02, 0x06, 0x0C
FULL = tile(2, 3, 7, 0, 14, 36, 7, 3, 12)
GEMM = CmdOp.GEMM_S8
ADD = scalar(CmdOp.ADD, 1, 2)


def _shaped(shape: tuple[int, int, int] = FULL, launch: Launch | None = None) -> CommandBench:
    """Return a bench whose tile registers and scratchpad are filled."""
    bench = CommandBench(launch=launch)
    bench.shape(shape)
    bench.scratch(bytes(range(100, 164)))
    return bench


def test_a_batch() -> None:
    """Three operations; the registers of an operation by register keep their values."""
    bench = CommandBench()
    bench.write(CmdReg.OP_A, 0x1111)
    status = bench.run(ADD, scalar(CmdOp.MUL_LO, 1 << 20, 1 << 21), scalar(CmdOp.MAC_S16, 9, 7, 5))
    assert status == DONE
    assert bench.read(CmdReg.CTRL_STATUS) == 2 and bench.port.irq
    assert bench.read(CmdReg.DESC_STATUS) == DONE | 2 << 9
    assert (bench.read(CmdReg.RESULT), bench.read(CmdReg.RESULT_HI)) == (68, 0)
    assert (bench.read(CmdReg.OP_A), bench.read(CmdReg.OPCODE)) == (0x1111, 0)
    assert bench.read(CmdReg.DESC_TAIL) == 3
    assert bench.field("DEBUG_OPCODE") == CmdOp.MAC_S16
    assert bench.counters() == {"OPS": 3, "DESC_BYTES_READ": 48, "DESC_READ_BEATS": 12}


def test_laps() -> None:
    """Batches of every size over many laps, on a ring that is not aligned to 16 bytes."""
    bench = CommandBench(base=RING + 4)
    total = 0
    for size in (7, 1, 5, 7, 3, 2, 6, 4, 7):
        for number in range(size):
            bench.put(scalar(CmdOp.SUB, 1000 + total, number))
            total += 1
        assert bench.field("DESC_STATUS_PENDING") == size
        assert bench.run() == DONE
        assert bench.read(CmdReg.RESULT) == 1000 + total - size
        assert bench.read(CmdReg.DESC_TAIL) == total % 8
        assert bench.field("DESC_STATUS_INDEX") == (total - 1) % 8
    assert bench.read(CmdReg.PERF_OPS) == total


@pytest.mark.parametrize("tail", [0, 5])
def test_nothing_to_run(tail: int) -> None:
    """An empty ring and a misaligned one are faults; the alignment is looked at first."""
    bench = CommandBench()
    bench.record_to(3)
    bench.write(CmdReg.CMD_IRQ, 1)
    bench.write(CmdReg.DESC_TAIL, tail)
    bench.next = tail
    assert bench.run() == 0x01
    assert bench.read(CmdReg.CTRL_STATUS) == 6
    assert bench.read(CmdReg.DESC_STATUS) == 1 | tail << 9
    for low in (1, 2, 3):
        bench.write(CmdReg.DESC_BASE, RING + low)
        assert bench.run() == 0x04
        assert bench.field("DESC_STATUS_INDEX") == tail
    assert bench.counters() == {"ERRORS": 4, "UNSUPPORTED_OPS": 4}
    assert (bench.field("CMD_IRQ_ENTRY"), bench.read(CmdReg.CQ_HEAD)) == (0, 0)


BAD_STREAMS = [
    (SOURCE + 2, stream(0, 4)),
    (SOURCE, stream(2, 4)),
    (SOURCE, stream(0, 6)),
    (SOURCE, stream(0, 0)),
    (SOURCE, stream(56, 12)),
    (SOURCE, stream(60, 8)),
]


@pytest.mark.parametrize(("source", "flags"), BAD_STREAMS)
def test_stream_configuration(source: int, flags: int) -> None:
    """0x24; nothing has happened."""
    bench = _shaped()
    assert bench.run(ADD, scalar(CmdOp.SUB, source, 0, flags=flags)) == 0x24
    assert bench.scratch() == bytes(range(100, 164))
    assert bench.read(CmdReg.RESULT) == 3
    assert bench.read(CmdReg.DESC_TAIL) == 1
    assert bench.read(CmdReg.PERF_OPS) == 1


@pytest.mark.parametrize(("offset", "size"), [(0, 60), (4, 60), (60, 4), (8, 24)])
def test_stream(offset: int, size: int) -> None:
    """Bytes arrive where they should, before the operation, whose operand A is their address."""
    for source in (SOURCE, SOURCE + 12):
        bench = _shaped()
        before = bench.scratch()
        status = bench.run(scalar(CmdOp.ADD, source, 1, flags=stream(offset, size)))
        assert status == DONE
        assert bench.scratch() == (
            before[:offset] + bench.target(size, source) + before[offset + size :]
        )
        assert bench.read(CmdReg.RESULT) == source + 1
        assert bench.counters() == {
            "OPS": 1,
            "SCRATCH_BYTES": size,
            "DESC_BYTES_READ": 16 + size,
            "DESC_READ_BEATS": 4 + size // 4,
        }


def test_stream_that_fails_on_the_way() -> None:
    """0x34; the words of memory before the fault have arrived, and no byte is counted."""
    bench = _shaped()
    before = bench.scratch()
    bench.memory.read_errors.append((SOURCE + 0x21, SOURCE + 0x21))
    assert bench.run(scalar(CmdOp.ADD, SOURCE + 4, 0, flags=stream(8, 48))) == 0x34
    assert bench.scratch() == before[:8] + bench.target(28, SOURCE + 4) + before[36:]
    assert bench.read(CmdReg.PERF_SCRATCH_BYTES) == 0
    assert bench.read(CmdReg.DESC_BYTES_READ) == 16


BAD_WRITEBACKS = [
    (scalar(CmdOp.ADD, 0, TARGET, flags=WRITEBACK), FULL),
    (scalar(GEMM, 0, TARGET + 2, flags=WRITEBACK), FULL),
    (scalar(GEMM, 0, TARGET, flags=WRITEBACK), tile(0, 3, 7, 0, 14, 36, 7, 3, 12)),
    (scalar(GEMM, 0, TARGET, flags=WRITEBACK), tile(2, 0, 7, 0, 14, 36, 7, 3, 12)),
    (scalar(GEMM, 0, TARGET, flags=WRITEBACK), (4 | 3 << 8 | 7 << 16, *FULL[1:])),
    (scalar(CmdOp.VRELU_S8, 0, TARGET, flags=WRITEBACK), (0, 0, 0)),
    (scalar(CmdOp.VRELU_S8, 0, TARGET, flags=WRITEBACK), (2, 0, 0)),
    (scalar(CmdOp.VRELU_S8, 0, TARGET, flags=WRITEBACK), (6, 0, 0)),
    (scalar(CmdOp.VRELU_S8, 0, TARGET, flags=WRITEBACK), (68, 0, 0)),
    (scalar(CmdOp.VRELU_S8, 0, TARGET, flags=WRITEBACK), (8, 2 << 8, 0)),
    (extended(CmdOp.ADD, flags=WRITEBACK, to=TARGET + 1), FULL),
]


@pytest.mark.parametrize(("descriptor", "shape"), BAD_WRITEBACKS)
def test_writeback_configuration(descriptor: bytes, shape: tuple[int, int, int]) -> None:
    """0x84, before a stream and before the operation."""
    bench = _shaped(shape)
    before, memory = bench.scratch(), bench.memory.data.copy()
    words = np.frombuffer(descriptor, "<u4").copy()
    words[0] |= stream(0, 60)
    words[1] = SOURCE
    assert bench.run(words.tobytes()) == 0x84
    assert bench.scratch() == before
    memory[RING : RING + len(descriptor)] = words.view(np.uint8)
    assert np.array_equal(bench.memory.data, memory)
    assert bench.read(CmdReg.PERF_OPS) == 0


def test_tile_with_stream_and_writeback() -> None:
    """B streams in, C goes out row after row without gaps, whatever the stride."""
    bench = _shaped(tile(2, 2, 3, 0, 8, 20, 3, 2, 12))
    status = bench.run(scalar(GEMM, SOURCE + 8, TARGET + 4, flags=stream(8, 8) | WRITEBACK))
    assert status == DONE
    a = np.arange(100, 106, dtype=np.uint8).view(np.int8).astype(int).reshape(2, 3)
    b = np.frombuffer(bench.target(6, SOURCE + 8), np.int8).astype(int).reshape(3, 2)
    assert bench.target(16, TARGET + 4) == (a @ b).astype("<i4").tobytes()
    assert bench.counters() == {
        "OPS": 1,
        "MACS": 12,
        "SCRATCH_BYTES": 8 + (24 + 16) + 16,
        "DESC_BYTES_READ": 24,
        "DESC_READ_BEATS": 6,
        "DESC_BYTES_WRITTEN": 16,
        "DESC_WRITE_BEATS": 4,
    }


def test_vrelu_writeback() -> None:
    """A VRELU writes its bytes."""
    bench = _shaped((20, 8 | 40 << 8, 0))
    before = bench.target(28, TARGET - 4)
    assert bench.run(scalar(CmdOp.VRELU_S8, 7, TARGET, flags=WRITEBACK)) == DONE
    expected = bytes(range(108, 128))
    assert bench.target(28, TARGET - 4) == before[:4] + expected + before[24:]
    assert bench.read(CmdReg.PERF_SCRATCH_BYTES) == 60


def test_extended_operations() -> None:
    """Shape and destination from the second entry, A, B and ACC from the first, across the wrap."""
    bench = _shaped((0, 0, 0))
    bench.write(CmdReg.DESC_TAIL, 6)
    bench.next = 6
    product = extended(CmdOp.MAC_S16, 0xFFFF, 3, 1, flags=WRITEBACK, to=TARGET + 12)
    square = extended(GEMM, flags=WRITEBACK, to=TARGET + 32, shape=tile(1, 1, 2, 4, 8, 0, 9, 1, 3))
    assert bench.run(ADD, product, square) == DONE
    assert bench.target(8, TARGET + 12) == pack(0xFFFF_FFFE, 0xFFFF_FFFF)
    assert bench.target(4, TARGET + 32) == pack(104 * 108 + 105 * 109)
    assert (bench.read(CmdReg.DESC_TAIL), bench.field("DESC_STATUS_INDEX")) == (3, 1)
    assert bench.read(CmdReg.GEMM_CFG) == 0
    assert bench.read(CmdReg.DESC_BYTES_READ) == 80
    assert bench.read(CmdReg.DESC_BYTES_WRITTEN) == 12
    assert bench.read(CmdReg.PERF_SCRATCH_BYTES) == 2 * 2 + 4 + 4


def test_extended_needs_its_second_entry() -> None:
    """0x06 after one entry, and again with both: the entry is read again."""
    bench = CommandBench()
    whole = extended(CmdOp.ADD, 4, 5)
    assert bench.run(ADD, whole[:16]) == FAILED
    assert (bench.read(CmdReg.DESC_TAIL), bench.read(CmdReg.DESC_BYTES_READ)) == (1, 32)
    assert bench.run(whole[16:]) == DONE
    assert bench.read(CmdReg.RESULT) == 9


RESERVED_FIRST = [6, 7, *range(9, 16), 22, 23]


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        (0, RESERVED_FIRST),
        (5, [7, *range(10, 16), *range(19, 32)]),
        (6, [6, 7, 14, 15, *range(22, 32)]),
        (7, [*range(4, 8), *range(12, 16), *range(20, 24)]),
    ],
)
def test_reserved_bits_of_an_operation(word: int, bits: list[int]) -> None:
    """Each bit that this chip does not have is refused, every other one is taken."""
    clean = np.frombuffer(extended(CmdOp.ADD, 4, 5), "<u4")
    for bit in range(32):
        words = clean.copy()
        words[word] |= 1 << bit
        bench = CommandBench(launch=_ended)
        status = bench.run(words.tobytes())
        if bit in bits:
            assert status == FAILED, f"bit {bit}"
            assert bench.read(CmdReg.DESC_BYTES_READ) == 32
        elif word:
            assert status == DONE, f"bit {bit}"


@pytest.mark.parametrize(("size", "taken"), [(64, False), (128, True), (256, True)])
def test_a_larger_chip_has_more_fields(size: int, taken: bool) -> None:
    """The wide bits of shape, places and strides; bits above 23 stay reserved."""
    wide = extended(CmdOp.ADD, 4, 5, flags=0xC0 << 16, shape=(0xFCFC80, 0xC0C0C0, 0xF0F0F0))
    bench = CommandBench(scratch_bytes=size)
    assert bench.run(wide) == (DONE if taken else FAILED)
    assert (
        CommandBench(scratch_bytes=size).run(extended(CmdOp.ADD, shape=(1 << 24, 0, 0))) == FAILED
    )


def test_plain_entries_ignore_what_they_do_not_use() -> None:
    """Without bit 4 every other bit of word 0 is free, bit 5 too."""
    bench = CommandBench()
    free = sum(1 << bit for bit in (5, *RESERVED_FIRST)) | 0x3F3F0000
    assert bench.run(scalar(CmdOp.SUB, 9, 4, flags=free)) == DONE
    assert bench.read(CmdReg.RESULT) == 5


def test_owner_bit() -> None:
    """0x44, even if the second entry of an extended one cannot be read."""
    bench = CommandBench()
    bench.memory.read_errors.append((RING + 32, RING + 47))
    assert bench.run(ADD, pack(EXTENDED, 0, 0, 0, 0, 0, 0, 0)) == 0x44
    assert bench.read(CmdReg.DESC_BYTES_READ) == 32
    assert bench.read(CmdReg.DESC_STATUS) == 0x44 | 1 << 9 | 2 << 19


@pytest.mark.parametrize(("base", "first"), [(RING, 2), (RING + 8, 1)])
def test_fetch_error(base: int, first: int) -> None:
    """0x14 at the entry whose bytes share a word with the fault; entries before it complete."""
    bench = CommandBench(base=base)
    bench.memory.read_errors.append((RING + 0x20, RING + 0x20))
    assert bench.run(ADD, ADD, ADD) == 0x14
    assert bench.read(CmdReg.DESC_TAIL) == bench.field("DESC_STATUS_INDEX") == first
    assert bench.counters() == {
        "OPS": first, "ERRORS": 1, "UNSUPPORTED_OPS": 1,
        "DESC_BYTES_READ": 16 * first, "DESC_READ_BEATS": 4 * first,
    }  # fmt: skip
    bench.memory.read_errors.clear()
    assert bench.run() == DONE
    assert bench.read(CmdReg.PERF_OPS) == 3


def test_fetch_error_in_the_second_entry() -> None:
    """0x14 with one entry taken."""
    bench = CommandBench()
    bench.memory.read_errors.append((RING + 16, RING + 16))
    assert bench.run(extended(CmdOp.ADD, 1, 1)) == 0x14
    assert bench.read(CmdReg.DESC_BYTES_READ) == 16
    assert bench.read(CmdReg.DESC_TAIL) == 0


def test_beyond_the_memory_and_around_the_address_space() -> None:
    """No memory is an error; the entry after the last of the address space is at 0."""
    bench = CommandBench()
    bench.write(CmdReg.DESC_BASE, MEMORY_BYTES - 16)
    bench.memory.data[-16:] = np.frombuffer(ADD, np.uint8)
    bench.write(CmdReg.DESC_HEAD, 2)
    assert bench.run() == 0x01  # `run` moves DESC_HEAD
    bench.write(CmdReg.DESC_HEAD, 2)
    bench.write(CmdReg.CTRL_STATUS, START)
    assert bench.read(CmdReg.DESC_STATUS) & 0xFF == 0x14
    assert bench.read(CmdReg.DESC_TAIL) == 1

    bench = CommandBench()
    bench.memory.data[:16] = np.frombuffer(scalar(CmdOp.SUB, 8, 1), np.uint8)
    bench.write(CmdReg.DESC_BASE, 0xFFFF_FFF0)
    bench.write(CmdReg.DESC_TAIL, 1)
    bench.next = 2
    assert bench.run() == DONE
    assert bench.read(CmdReg.RESULT) == 7


def test_a_refused_operation() -> None:
    """0x06 for an illegal tile and a reserved lane; a stream has arrived by then."""
    bench = _shaped((0, 0, 0))
    assert bench.run(ADD, scalar(GEMM, SOURCE, 0, flags=stream(0, 4))) == FAILED
    assert bench.scratch()[:4] == bench.target(4, SOURCE)
    assert bench.read(CmdReg.PERF_OPS) == 1
    bench = CommandBench()
    assert bench.run(scalar(CmdOp.DOT4_FP8_E4M3, 0xFF, 0)) == FAILED
    expected = {"OPS": 1, "ERRORS": 1, "UNSUPPORTED_OPS": 1}
    assert {name: bench.counters().get(name) for name in expected} == expected


def test_ternary_is_latched_for_the_ring() -> None:
    """CMD_PARAM.TERNARY holds for all descriptors of a run."""
    bench = CommandBench()
    bench.write(CmdReg.CMD_PARAM, 2)
    assert bench.run(scalar(CmdOp.DOT16_S2, 2, 1, 10)) == DONE
    assert bench.read(CmdReg.RESULT) == 9
    bench.write(CmdReg.CMD_PARAM, 0)
    assert bench.run(scalar(CmdOp.DOT16_S2, 2, 1, 10)) == DONE
    assert bench.read(CmdReg.RESULT) == 8


def test_write_error() -> None:
    """0x94; the operation has been done, its bytes are not counted and the target undefined."""
    bench = _shaped()
    bench.memory.write_errors.append((TARGET + 16, TARGET + 16))
    assert bench.run(scalar(GEMM, 0, TARGET, flags=WRITEBACK)) == 0x94
    assert bench.counters() == {
        "OPS": 1, "MACS": 42, "SCRATCH_BYTES": 108, "ERRORS": 1, "UNSUPPORTED_OPS": 1,
        "DESC_BYTES_READ": 16, "DESC_READ_BEATS": 4,
    }  # fmt: skip
    assert bench.port.undefined == [(TARGET, 16), (TARGET + 16, 8)]
    assert bench.read(CmdReg.DESC_TAIL) == 0


def test_protection() -> None:
    """What no region permits, or writes into the stream in use, is an error at once."""
    everything = GuardedRange(0, 0xFFFF_FFFF, True, False)
    bench = _shaped()
    bench.memory.regions = [everything, GuardedRange(TARGET, TARGET + 0xFFF, False, True)]
    assert bench.run(scalar(GEMM, 0, TARGET + 0x1000, flags=WRITEBACK)) == 0x94
    bench.write(CmdReg.DESC_TAIL, 1)
    assert bench.run(scalar(GEMM, 0, TARGET, flags=WRITEBACK)) == DONE
    bench.memory.stream = (TARGET + 20, TARGET + 100)
    assert bench.run(scalar(GEMM, 0, TARGET, flags=WRITEBACK)) == 0x94
    bench.memory.regions = [GuardedRange(RING, SOURCE - 1, True, True)]
    bench.write(CmdReg.DESC_TAIL, 3)
    assert bench.run(scalar(CmdOp.ADD, SOURCE, 0, flags=stream(0, 4))) == 0x34
    bench.memory.regions = []
    bench.memory.silent_reads = True
    assert bench.run() == 0x14


def test_errors_strike_whole_words() -> None:
    """An error of one byte is one of its 16, and an access splits at 16 and at 2^32."""
    memory = CommandBench().memory
    memory.read_errors.append((TARGET, TARGET))
    with pytest.raises(MemoryFaultError, match="0x200c"):
        memory.read(TARGET + 12, 4)
    assert memory.read(TARGET + 16, 1) == memory.data[TARGET + 16 : TARGET + 17].tobytes()
    assert list(pieces(0xFFFF_FFEC, 40)) == [
        (0xFFFF_FFEC, 4), (0xFFFF_FFF0, 16), (0, 16), (16, 4),
    ]  # fmt: skip


def test_a_silent_place() -> None:
    """0x0C where nothing answers, even if the next start does not go there, until it has."""
    bench = _shaped()
    bench.memory.silent = [(TARGET + 20, TARGET + 20)]
    assert bench.run(scalar(GEMM, 0, TARGET, flags=WRITEBACK)) == TIMEOUT
    assert bench.port.undefined == [(TARGET, 16), (TARGET + 16, 8)]
    bench.write(CmdReg.DESC_TAIL, 1)
    assert bench.run(ADD) == TIMEOUT
    assert bench.field("DESC_STATUS_INDEX") == 1
    bench.memory.silent.clear()
    assert bench.run() == DONE


@pytest.mark.parametrize("silent", ["reads", "writes"])
def test_time_out(silent: str) -> None:
    """0x0C, without a record; a start before the memory has answered times out as well."""
    bench = _shaped()
    bench.record_to(2)
    bench.write(CmdReg.CMD_IRQ, 1)
    setattr(bench.memory, f"silent_{silent}", True)
    assert bench.run(scalar(GEMM, 0, TARGET, flags=WRITEBACK)) == TIMEOUT
    assert (bench.read(CmdReg.CTRL_STATUS), bench.read(CmdReg.CQ_HEAD)) == (6, 0)
    assert bench.field("CMD_IRQ_ENTRY") == 1
    assert bench.operate(CmdOp.ADD) == (0, 0)  # DESCRIPTOR is set: this starts the ring
    assert bench.read(CmdReg.DESC_STATUS) & 0xFF == TIMEOUT
    assert bench.read(CmdReg.PERF_OPS) == (1 if silent == "writes" else 0)
    bench.write(CmdReg.CMD_PARAM, 0)
    assert bench.operate(CmdOp.ADD, 3, 9) == (12, 0)
    setattr(bench.memory, f"silent_{silent}", False)
    bench.scratch(bytes(range(100, 164)))
    assert bench.run() == DONE
    assert bench.read(CmdReg.DESC_TAIL) == 1


def test_silence_without_a_time_out() -> None:
    """DESC_TIMEOUT 0 waits for ever, which the model cannot."""
    bench = CommandBench()
    bench.write(CmdReg.DESC_TIMEOUT, 0)
    bench.memory.silent_reads = True
    with pytest.raises(EndlessWaitError, match="DESC_TIMEOUT is 0"):
        bench.run(ADD)


def test_interrupt_per_entry() -> None:
    """ENTRY is set by what finishes while PER_ENTRY is set, and acknowledged on its own."""
    bench = CommandBench()
    bench.run(ADD)
    assert bench.field("CMD_IRQ_ENTRY") == 0
    bench.write(CmdReg.CMD_IRQ, 1)
    bench.run(ADD)
    assert bench.read(CmdReg.CMD_IRQ) == 3
    bench.write(CmdReg.CTRL_STATUS, CLEAR)
    assert bench.read(CmdReg.CMD_IRQ) == 1 and not bench.port.irq
    for finish in (ADD, pack(0, 0, 0, 0)):
        bench.run(finish)
        bench.write(CmdReg.CMD_IRQ, 1)
        assert bench.read(CmdReg.CMD_IRQ) == 3
        bench.write(CmdReg.CMD_IRQ, 0x103, 0b0010)
        assert bench.read(CmdReg.CMD_IRQ) == 3
        bench.write(CmdReg.CMD_IRQ, 3)
        assert bench.read(CmdReg.CMD_IRQ) == 1 and bench.port.irq
    bench.write(CmdReg.CMD_IRQ, 0)
    bench.write(CmdReg.CMD_PARAM, 0)
    bench.operate(CmdOp.ADD)
    assert bench.read(CmdReg.CMD_IRQ) == 0


def test_a_start_clears_the_entry() -> None:
    """A start by register clears ENTRY as well."""
    bench = CommandBench()
    bench.write(CmdReg.CMD_IRQ, 1)
    bench.run(ADD)
    bench.write(CmdReg.CMD_PARAM, 0)
    bench.write(CmdReg.CTRL_STATUS, START)
    assert bench.read(CmdReg.CMD_IRQ) == 1


def _ended(program: LaunchWords) -> ProgramEnd:
    """Pretend to run a program: its length says how it ends."""
    return ProgramEnd(program.pos + program.token, program.ucode_len << 8)


def test_records() -> None:
    """A record of every kind of descriptor."""
    bench = _shaped((0, 0, 0), launch=_ended)
    bench.record_to(4)
    writing = extended(CmdOp.MAC_S16, 0xFFFF, 3, tag=0x5A, flags=WRITEBACK, to=TARGET)
    work = extended(GEMM, tag=0xFF, shape=FULL)
    assert bench.run(ADD, writing, work, launch(0x40, 0, pos=30, token=4, tag=9)) == DONE
    assert bench.record(0) == (0x8002, 3, 0, 0)
    assert bench.record(1) == (0x035A_8102, 0xFFFF_FFFD, 0xFFFF_FFFF, 0)
    assert bench.record(2) == (0x08FF_8302, 0, 0, 0)
    assert bench.record(3) == (0x1009_8502, 34, 0, 0)
    assert bench.read(CmdReg.DESC_BYTES_WRITTEN) == 8
    assert bench.run(launch(0x40, 0x5B, pos=1, tag=1)) == FAILED
    assert bench.record(4) == (0x1001_8706, 1, 0x5B00, 0)
    assert bench.read(CmdReg.CQ_HEAD) == 5


FAILURES = [
    (pack(CmdOp.SUB | EXTENDED | LAUNCH, 0, 0, 0), 0x1000_8044),
    (pack(CmdOp.SUB, 0, 0, 0), 0x0100_8044),
    (extended(CmdOp.SUB, tag=3)[:16], 0x0100_8006),
    (extended(CmdOp.SUB, tag=3, shape=(1 << 31, 0, 0)), 0x0103_8006),
    (launch(0x41, 1, tag=3), 0x1003_8006),
    (scalar(CmdOp.SUB, 1, flags=STREAM, b=0), 0x0100_8024),
    (scalar(CmdOp.SUB, MEMORY_BYTES, flags=stream(0, 4), b=0), 0x0100_8034),
    (scalar(CmdOp.SUB, 1, flags=WRITEBACK, b=0), 0x0100_8084),
    (extended(CmdOp.SUB, 1, flags=WRITEBACK, to=MEMORY_BYTES, tag=7), 0x0107_8094),
    (scalar(GEMM, 1, 0), 0x0800_8006),
]


@pytest.mark.parametrize(("descriptor", "first"), FAILURES)
def test_records_of_failures(descriptor: bytes, first: int) -> None:
    """The record has the code, and words 1 and 2 are 0."""
    bench = CommandBench(launch=_ended)
    bench.record_to(2)
    assert bench.run(descriptor) == first & 0xFF
    assert bench.record(0) == (first, 0, 0, 0)
    assert bench.read(CmdReg.CQ_HEAD) == 1
    assert bench.read(CmdReg.PERF_ERRORS) == bench.read(CmdReg.PERF_UNSUPPORTED_OPS) == 1


def test_record_of_a_fetch_error() -> None:
    """Operation, tag and program bit are 0, whichever entry could not be read."""
    for first in (0, 1):
        bench = CommandBench()
        bench.record_to(2)
        bench.memory.read_errors.append((RING + 16 * first, RING + 16 * first))
        assert bench.run(extended(CmdOp.SUB, tag=9)) == 0x14
        assert bench.record(0) == (0x8014, 0, 0, 0)


def test_program_fields() -> None:
    """A program has no other bits in word 0 and word 7, and an aligned address."""
    clean = np.frombuffer(launch(0x40, 0, pos=3), "<u4")
    taken = {0: {4, 5, 31}, 4: set(range(4, 32)), 7: set(range(24, 32))}
    for word, bits in taken.items():
        for bit in range(32):
            words = clean.copy()
            words[word] ^= 1 << bit
            if word == 0 and bit in bits:
                continue
            status = CommandBench(launch=_ended).run(words.tobytes())
            assert status == (DONE if bit in bits else FAILED), f"word {word}, bit {bit}"


def test_program_arguments() -> None:
    """Every word reaches the program; a launch counts as an operation."""
    seen: list[LaunchWords] = []

    def record(program: LaunchWords) -> ProgramEnd:
        seen.append(program)
        return ProgramEnd(0, 0)

    bench = CommandBench(launch=record)
    assert bench.run(launch(0x1230, 7, pos=8, token=9, bases=(10, 11), tag=0xFF)) == DONE
    assert seen == [LaunchWords(ucode_base=0x1230, ucode_len=7, pos=8, token=9, base0=10, base1=11)]
    assert bench.read(CmdReg.PERF_OPS) == 1
    assert bench.field("DEBUG_OPCODE") == 0
    with pytest.raises(NotImplementedError, match="launch="):
        CommandBench().run(launch(0x1230, 7))


def test_laps_of_the_completion_ring() -> None:
    """Records go round, the phase changes with every lap, indices run on."""
    bench = CommandBench()
    bench.record_to(1)
    for count in range(9):
        assert bench.run(scalar(CmdOp.ADD, count, 100)) == DONE
        phase = 1 - count // 2 % 2
        first = DONE | count % 8 << 8 | phase << 15
        assert bench.record(count % 2) == (first, 100 + count, 0, 0)
        assert bench.read(CmdReg.CQ_HEAD) == count + 1
        bench.write(CmdReg.CQ_TAIL, count + 1)
    bench.write(CmdReg.CQ_CTRL, 1 << 8)
    assert bench.read(CmdReg.CQ_HEAD) == 0


def test_indices_of_the_completion_ring_wrap() -> None:
    """CQ_HEAD counts modulo 65,536, and the phase goes on alternating."""
    bench = CommandBench()
    bench.record_to(3)
    bench.port.state.cq_head = 0xFFFF
    bench.write(CmdReg.CQ_TAIL, 0xFFFE)
    assert bench.run(ADD, ADD) == DONE
    assert bench.record(7)[0] == DONE
    assert bench.record(0)[0] == DONE | 1 << 8 | 1 << 15
    assert bench.read(CmdReg.CQ_HEAD) == 1
    bench.write(CmdReg.CQ_TAIL, 0xFFF9)
    bench.run(ADD)
    assert (bench.field("CTRL_STATUS_BUSY"), bench.read(CmdReg.CQ_HEAD)) == (1, 1)
    assert bench.field("DESC_STATUS_INDEX") == 0  # nothing has finished in this run
    bench.write(CmdReg.CQ_TAIL, 0xFFFA)
    assert (bench.field("CTRL_STATUS_BUSY"), bench.read(CmdReg.CQ_HEAD)) == (0, 2)
    assert bench.field("DESC_STATUS_INDEX") == 2


def test_a_full_completion_ring() -> None:
    """The ring waits and stays busy; writes then change registers only; room lets it go on."""
    bench = CommandBench()
    bench.record_to(1)
    bench.write(CmdReg.CMD_IRQ, 1)
    bench.put(*(scalar(CmdOp.ADD, number, 40) for number in range(4)))
    bench.run()
    assert (bench.read(CmdReg.CTRL_STATUS), bench.read(CmdReg.CQ_HEAD)) == (1, 2)
    assert bench.read(CmdReg.DESC_STATUS) == 1 << 8 | 1 << 9 | 2 << 19
    assert bench.read(CmdReg.RESULT) == 42
    assert bench.port.irq and bench.field("CMD_IRQ_ENTRY")

    for register in (CmdReg.DESC_TAIL, CmdReg.CQ_BASE, CmdReg.CQ_CTRL, CmdReg.SCRATCH0):
        before = bench.read(register)
        bench.write(register, ~before & 0xFFFF_FFFF)
        assert bench.read(register) == before, register.name
    bench.write(CmdReg.DESC_BASE, 0x123)
    bench.write(CmdReg.CTRL_STATUS, START)
    bench.put(scalar(CmdOp.MUL_LO, 6, 7))
    assert bench.read(CmdReg.PERF_OPS) == 3

    bench.write(CmdReg.CQ_TAIL, 1)
    assert (bench.read(CmdReg.CTRL_STATUS), bench.read(CmdReg.CQ_HEAD)) == (1, 3)
    bench.write(CmdReg.CQ_TAIL, 3)
    assert bench.read(CmdReg.CTRL_STATUS) == 2
    assert bench.read(CmdReg.DESC_STATUS) == DONE | 4 << 9
    assert (bench.read(CmdReg.CQ_HEAD), bench.read(CmdReg.RESULT)) == (5, 42)
    assert bench.record(1)[1] == 43
    assert bench.record(0) == (DONE | 4 << 8 | 1 << 15 | CmdOp.MUL_LO << 24, 42, 0, 0)


def test_soft_reset_of_a_waiting_ring() -> None:
    """It stops without a report, and DESC_TAIL stays on the entry under way."""
    bench = CommandBench()
    bench.record_to(0)
    bench.run(ADD, scalar(CmdOp.SUB, 9, 1))
    assert bench.read(CmdReg.CTRL_STATUS) == 1
    bench.port.soft_reset()
    assert bench.read(CmdReg.CTRL_STATUS) == 0
    assert (bench.read(CmdReg.DESC_TAIL), bench.read(CmdReg.RESULT)) == (1, 8)
    bench.write(CmdReg.CQ_TAIL, 1)
    assert bench.read(CmdReg.CQ_HEAD) == 1
    assert bench.run() == DONE
    assert bench.record(0) == (DONE | 1 << 8 | CmdOp.SUB << 24, 8, 0, 0)


def test_a_record_that_fails() -> None:
    """0x94 and the tail stays, but a descriptor that failed before keeps its own code."""
    for descriptor, code in ((ADD, 0x94), (pack(0, 0, 0, 0), 0x44)):
        bench = CommandBench()
        bench.record_to(1)
        bench.write(CmdReg.CMD_IRQ, 1)
        bench.memory.write_errors.append((RECORDS, RECORDS))
        assert bench.run(descriptor) == code
        assert (bench.read(CmdReg.CQ_HEAD), bench.read(CmdReg.DESC_TAIL)) == (0, 0)
        assert bench.read(CmdReg.PERF_ERRORS) == bench.read(CmdReg.PERF_UNSUPPORTED_OPS) == 1
        assert bench.field("CMD_IRQ_ENTRY") == 1
    bench = CommandBench()
    bench.record_to(1)
    bench.memory.silent_writes = True
    assert bench.run(ADD) == TIMEOUT


def test_head_of_entries_is_not_passed() -> None:
    """What lies behind DESC_HEAD is not looked at, owner bit or not."""
    bench = CommandBench()
    bench.put(ADD, ADD, ADD)
    bench.write(CmdReg.DESC_HEAD, 2)
    bench.next = 2
    assert bench.run() == DONE
    assert (bench.read(CmdReg.DESC_TAIL), bench.read(CmdReg.PERF_OPS)) == (2, 2)
    assert OWNER & int.from_bytes(bench.target(4, RING + 32), "little")
