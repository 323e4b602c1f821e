# SPDX-License-Identifier: Apache-2.0
"""The driver's descriptor ring, completion ring and queue of programs, on the reference model."""

from __future__ import annotations

import asyncio
import struct
from itertools import pairwise

import numpy as np
import pytest

from golden.command import ModelBus
from npu.driver.bus import Bus
from npu.driver.command import (
    Command,
    CommandBuffer,
    CommandPort,
    CompletionRing,
    Gemm,
    ProgramDescriptor,
    RingStatus,
    Scalar,
    StagedStream,
    Vrelu,
    scalars,
)
from npu.driver.command.descriptor import Descriptor, tile_words
from npu.driver.errors import CommandFailed, RequestError
from spec.isa import ErrorCode
from spec.regs import CMD_BASE, CmdOp, CmdReg, StartState
from tests.python.command.command_support import (
    OtherChip,
    RecordingBus,
    SlowBus,
    copy_program,
    model_bus,
)

RING, DATA = 0x1004, 0x2000


async def opened(bus: Bus, base: int = RING) -> CommandBuffer:
    """Return an empty buffer on a chip."""
    return await CommandBuffer.open(await CommandPort.connect(bus), base)


def test_images() -> None:
    """Each kind of descriptor, word for word."""
    tile = Gemm.packed(CmdOp.GEMM_S8, 2, 3, 7)
    words = tile.words()
    assert words == (2 | 3 << 8 | 7 << 16, 0 | 14 << 8 | 36 << 16, 7 | 3 << 8 | 12 << 16)
    stream = StagedStream(0x2000, 4, 36)
    streamed = 1 << 31 | 1 << 8 | 4 << 16 | 36 << 24
    expected: list[tuple[Descriptor, tuple[int, ...]]] = [
        (Command(scalars.add(1, 2)), (1 << 31, 1, 2, 0)),
        (Command(scalars.mac_s16(-1, 2, -3)), (1 << 31 | 3, 0xFFFF, 2, 0xFFFF_FFFD)),
        (
            Command(scalars.add(1, 2), writeback=0x3000),
            (1 << 31 | 1 << 30 | 16, 1, 2, 0, 0x3000, 0, 0, 0),
        ),
        (Command(scalars.sub(1, 2), tag=255), (1 << 31 | 17, 1, 2, 0, 0, 0, 0, 255 << 24)),
        (Command(tile, stream, 0x3000), (streamed | 1 << 30 | 8, 0x2000, 0x3000, 0)),
        (
            Command(tile, stream, 0x3000, tag=0),
            (streamed | 1 << 30 | 24, 0x2000, 0, 0, 0x3000, *words),
        ),
        (
            Command(Vrelu(5, 6, 7), tag=1),
            (1 << 31 | 27, 0, 0, 0, 0, 5, 6 | 7 << 8, 1 << 24),
        ),
        (
            ProgramDescriptor(0x4000, 4, pos=5, token=6, base0=0x70, base1=0x80, tag=9),
            (1 << 31 | 48, 6, 0x70, 0x80, 0x4000, 4, 5, 9 << 24),
        ),
    ]
    for descriptor, image in expected:
        descriptor.check(64)
        assert struct.unpack(f"<{len(image)}I", descriptor.image(words)) == image, descriptor
    other = Gemm.packed(CmdOp.GEMM_S8, 1, 1, 1)
    assert len(Command(other).image(words)) == 32


def test_seven_places_over_many_laps() -> None:
    """Batches of all lengths wrap around the ring; results are those of each descriptor."""
    rng = np.random.default_rng(1)

    async def check() -> None:
        buffer = await opened(model_bus())
        places = set()
        for _ in range(60):
            expected: list[tuple[int, int, int]] = []
            while True:
                a, b = (int(word) for word in rng.integers(0, 1 << 32, 2))
                slot = DATA + 8 * len(expected)
                choice = [
                    Command(scalars.mul_lo(a, b), writeback=slot),
                    Command(scalars.max_u32(a, b), writeback=slot, tag=3),
                    Command(scalars.add(a, b)),
                ][rng.integers(3)]
                if not buffer.fits(choice) or rng.random() < 0.1:
                    break
                index = buffer.index
                assert buffer.add(choice) == index
                places.add((index, len(choice.image(None))))
                low, high = [(a * b % (1 << 32), a * b >> 32), (max(a, b), 0), (0, 0)][
                    [CmdOp.MUL_LO, CmdOp.MAX_U32, CmdOp.ADD].index(choice.operation.op)
                ]
                value = low | high << 32 if choice.writeback else 0
                expected.append((index, value, 8 if choice.writeback else 0))
            if expected:
                await buffer.submit()
                found = await buffer.wait()
                assert [(it.index, it.value, len(it.data)) for it in found] == expected
        assert len(places) == 16  # short and extended entries at every place
        assert (await buffer.port.status()).pending == 0

    asyncio.run(check())


def test_tiles_share_the_registers() -> None:
    """Equal tiles take one entry each, others two, and all come out right."""
    rng = np.random.default_rng(2)
    shapes = [(2, 3, 7), (2, 3, 7), (1, 3, 7), (2, 3, 7), (2, 3, 7)]

    async def check() -> None:
        bus = model_bus()
        buffer = await opened(bus)
        expected, indices = [], []
        for i, (m, n, k) in enumerate(shapes):
            a, b = (
                rng.integers(-128, 128, (m, k), np.int8),
                rng.integers(-128, 128, (k, n), np.int8),
            )
            data = a.tobytes() + b.tobytes()
            data += bytes(-len(data) % 4)
            bus.write_memory(DATA + 128 * i, data)
            tile = Gemm.packed(CmdOp.GEMM_S8, m, n, k)
            stream = StagedStream(DATA + 128 * i, 0, len(data))
            indices.append(buffer.add(Command(tile, stream, DATA + 128 * i + 64)))
            expected.append((a.astype(np.int32) @ b).ravel().tolist())
        assert indices == [0, 1, 2, 4, 5]
        assert buffer.room == 1
        assert not buffer.fits(Command(Gemm.packed(CmdOp.GEMM_S8, 1, 1, 1)))
        assert buffer.fits(Command(Gemm.packed(CmdOp.GEMM_S8, 2, 3, 7)))
        await buffer.submit()
        assert [result.words for result in await buffer.wait()] == expected
        counters = await buffer.port.counters()
        assert counters.macs == 4 * 42 + 21
        assert counters.bytes_read == 6 * 16 + 4 * 36 + 28

    asyncio.run(check())


def test_submit_and_staged_bytes() -> None:
    """What is added is staged from the current index on; HEAD follows it, START comes last."""
    bus = RecordingBus(model_bus())

    async def check() -> None:
        buffer = await opened(bus)
        for _ in range(7):
            buffer.add(Command(scalars.add(1, 1)))
        await buffer.submit()
        await buffer.wait()
        bus.log.clear()
        assert buffer.add(ProgramDescriptor(0, 1)) == 7
        images = [buffer.image(7), buffer.image(0)]
        assert not bus.log
        await buffer.submit(per_entry=True)
        assert bus.changes == [
            ("write", CMD_BASE + CmdReg.DESC_BASE, RING),
            ("write", CMD_BASE + CmdReg.CMD_IRQ, 1),
            ("write", CMD_BASE + CmdReg.CMD_PARAM, 1),
            ("write memory", RING + 112, images[0]),
            ("write memory", RING, images[1]),
            ("write", CMD_BASE + CmdReg.DESC_HEAD, 1),
            ("write", CMD_BASE + CmdReg.CTRL_STATUS, 1),
        ]

    asyncio.run(check())


@pytest.mark.parametrize("slow", [False, True])
def test_extend(slow: bool) -> None:
    """Descriptors join a ring that runs, and start one that has stopped; nothing runs twice."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(SlowBus(model) if slow else model)
        for lap in range(5):
            buffer.add(Command(scalars.add(lap, 1), writeback=DATA))
            await buffer.submit()
            await buffer.extend(Command(scalars.add(lap, 2), writeback=DATA + 8), Command(
                scalars.dot16_s2([1] * 16, [-2] * 16)
            ))  # fmt: skip
            await buffer.extend(Command(scalars.add(lap, 3), writeback=DATA + 16))
            found = await buffer.wait()
            assert [result.value for result in found] == [lap + 1, lap + 2, 0, lap + 3]
        assert (await buffer.port.counters()).ops == 20

    asyncio.run(check())


def test_extend_for_ever() -> None:
    """Entries that have completed make room: a batch can be longer than the ring."""

    async def check() -> None:
        buffer = await opened(model_bus())
        buffer.add(Command(scalars.add(0, 1), writeback=DATA))
        await buffer.submit()
        for i in range(1, 20):
            await buffer.extend(Command(scalars.add(i, 1), writeback=DATA + 8 * i))
        assert [result.value for result in await buffer.wait()] == list(range(1, 21))

    asyncio.run(check())


def test_extend_counts_the_room_that_is_left() -> None:
    """While nothing has completed seven entries are all; none of a refused group is added."""

    async def check() -> None:
        buffer = await opened(SlowBus(model_bus()))
        buffer.add(Command(scalars.add(1, 1), tag=1))
        await buffer.submit()
        one = Command(scalars.add(2, 2))
        with pytest.raises(ValueError, match=r"ring: given a descriptor of 1 entries, allowed 0"):
            await buffer.extend(*[one] * 6)
        with pytest.raises(ValueError, match=r"DOT16_S2.ternary: given True, allowed False"):
            await buffer.extend(one, Command(scalars.dot16_s2([1] * 16, [1] * 16, ternary=True)))
        await buffer.extend(*[one] * 5)
        assert len(await buffer.wait()) == 6

    asyncio.run(check())


@pytest.mark.parametrize("slow", [False, True])
def test_wait_per_entry(slow: bool) -> None:
    """Completed descriptors come as they complete, each once, and `wait` ends the batch."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(SlowBus(model) if slow else model)
        for _ in range(3):
            for i in range(3):
                buffer.add(Command(scalars.add(i, 1), writeback=DATA + 8 * i))
            await buffer.submit(per_entry=True)
            found = await buffer.wait_entry()
            assert [result.value for result in found] == [1, 2, 3]
            with pytest.raises(ValueError, match=r"wait_entry: given a batch that has completed"):
                await buffer.wait_entry()
            await buffer.extend(Command(scalars.add(8, 1), writeback=DATA))
            assert [result.value for result in await buffer.wait()] == [9]
            assert not await buffer.port.read(CmdReg.CMD_IRQ) & 2

    asyncio.run(check())


def test_ternary_is_of_the_batch() -> None:
    """TERNARY is set for a batch with ternary products and cleared for the next."""

    async def check() -> None:
        buffer = await opened(model_bus())
        for ternary, value in ((True, 16), (False, 32), (True, 16)):
            lanes = [-1 if ternary else -2] * 16
            command = scalars.dot16_s2(lanes, [-1] * 16, ternary=ternary)
            buffer.add(Command(command, writeback=DATA))
            with pytest.raises(ValueError, match=r"DOT16_S2.ternary"):
                buffer.add(Command(scalars.dot16_s2([0] * 16, [0] * 16, ternary=not ternary)))
            await buffer.submit()
            assert [result.value for result in await buffer.wait()] == [value]

    asyncio.run(check())


@pytest.mark.parametrize("per_entry", [False, True])
def test_a_failure_is_named_and_the_ring_goes_on_behind_it(per_entry: bool) -> None:
    """Index, code and descriptor are told, what had completed is there, the next batch works."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(model)
        for _ in range(2):
            buffer.add(Command(scalars.add(1, 2), writeback=DATA))
        await buffer.submit()
        await buffer.wait()
        for lap in range(9):
            model.faults.read_errors = [(0x3000, 0x300F)]
            buffer.add(Command(scalars.add(lap, 2), writeback=DATA))
            bad = Command(Vrelu(4, 0, 0), StagedStream(0x3000, 0, 16))
            index = buffer.add(bad)
            buffer.add(Command(scalars.add(3, 4)))
            await buffer.submit(per_entry=per_entry)
            with pytest.raises(CommandFailed) as error:
                await buffer.wait()
            assert (error.value.code, error.value.index) == (RingStatus.STREAM_READ, index)
            assert str(error.value) == (
                f"ring entry {index}: 0x34, reading the stream met an error; {bad}"
            )
            assert [result.value for result in buffer.results()] == [lap + 2]
            model.faults.read_errors = []
            assert buffer.add(Command(scalars.add(lap, 3), writeback=DATA)) == index
            await buffer.submit(per_entry=per_entry)
            assert [result.value for result in await buffer.wait()] == [lap + 3]

    asyncio.run(check())


def test_wait_entry_tells_of_a_failure() -> None:
    """First what has completed, then the failure."""

    async def check() -> None:
        model = model_bus()
        model.faults.write_errors = [(DATA, DATA + 15)]
        buffer = await opened(model)
        buffer.add(Command(scalars.add(1, 2)))
        buffer.add(Command(scalars.add(1, 2), writeback=DATA))
        await buffer.submit(per_entry=True)
        assert len(await buffer.wait_entry()) == 1
        with pytest.raises(CommandFailed, match=r"0x94, writing the result"):
            await buffer.wait_entry()
        assert not buffer.port.ring_runs

    asyncio.run(check())


def test_stop() -> None:
    """A batch that never ends can be left; the next one begins where the ring stood."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(model)
        records = await CompletionRing.enable(buffer.port, 0x4000, 0)
        for i in range(3):
            buffer.add(Command(scalars.add(i, 1), writeback=DATA + 8 * i))
        await buffer.submit()  # the second record finds no room
        assert (await buffer.port.status()).busy
        await buffer.stop()
        assert [result.value for result in buffer.results()] == [1]
        assert len(await records.take()) == 1
        assert buffer.add(Command(scalars.add(4, 4), writeback=DATA)) == 2
        await buffer.submit()
        assert [result.value for result in await buffer.wait()] == [8]

    asyncio.run(check())


def test_a_chip_that_contradicts_itself() -> None:
    """A ring that is done too early, and a completion ring that is fuller than it can be."""

    async def check() -> None:
        buffer = await opened(SlowBus(model_bus()))
        for _ in range(3):
            buffer.add(Command(scalars.add(1, 1)))
        await buffer.submit()
        await buffer.port.write(CmdReg.DESC_HEAD, 2)
        with pytest.raises(CommandFailed, match="the ring is done before entry 2"):
            await buffer.wait()
        assert len(buffer.results()) == 2

        head = CMD_BASE + CmdReg.CQ_HEAD
        port = await CommandPort.connect(model_bus())
        records = await CompletionRing.enable(port, 0x4000, 2)
        port.bus = OtherChip(model_bus(), {head: 5})
        with pytest.raises(CommandFailed, match="CQ_HEAD is 5, more than 4 behind 0"):
            await records.take()

    asyncio.run(check())


@pytest.mark.parametrize("by_phase", [False, True])
@pytest.mark.parametrize("log2_size", [0, 2, 3])
def test_completion_ring(by_phase: bool, log2_size: int) -> None:
    """Records over many laps, by CQ_HEAD and by the phase bits alone."""
    size = 1 << log2_size

    async def check() -> None:
        buffer = await opened(model_bus())
        records = await CompletionRing.enable(buffer.port, 0x4000, log2_size)
        assert await records.take(by_phase=by_phase) == []
        count = 0
        for lap in range(40):
            batch = min(size, 1 + lap % 3)
            indices = [
                buffer.add(Command(scalars.mul_lo(count + i, 1 << 31), tag=(count + i) % 256))
                for i in range(batch)
            ]
            await buffer.submit()
            await buffer.wait()
            found = await records.take(by_phase=by_phase)
            assert [(it.index, it.tag, it.result) for it in found] == [
                (index, (count + i) % 256, (count + i) << 31) for i, index in enumerate(indices)
            ]
            assert all(it.completed and it.operation == CmdOp.MUL_LO for it in found)
            assert await records.take(by_phase=by_phase) == []
            count += batch
        await records.disable()
        assert await buffer.port.read(CmdReg.CQ_HEAD) == 0

    asyncio.run(check())


def _programs(bus: ModelBus, count: int) -> list[ProgramDescriptor]:
    """Put data and a copying program into memory; return a launch for each 64 bytes."""
    bus.write_memory(0x8000, copy_program())
    return [
        ProgramDescriptor(
            0x8000, 4, pos=i, token=i, base0=0x9000 + 64 * i, base1=0xA000 + 64 * i, tag=i + 1
        )
        for i in range(count)
    ]


@pytest.mark.parametrize("per_entry", [False, True])
def test_queue_of_programs(per_entry: bool) -> None:
    """Three programs in one batch, mixed with an operation; records tell them apart."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(model)
        records = await CompletionRing.enable(buffer.port, 0x4000, 3)
        programs = _programs(model, 3)
        source = model.read_memory(0x9000, 192)
        assert model.read_memory(0xA000, 192) != source
        for program in programs:
            buffer.add(program)
        buffer.add(Command(scalars.add(1, 2)))
        await buffer.submit(per_entry=per_entry)
        assert len(await (buffer.wait_entry() if per_entry else buffer.wait())) == 4
        if per_entry:
            assert await buffer.wait() == []
        assert model.read_memory(0xA000, 192) == source
        found = await records.take()
        assert [(it.tag, it.operation, it.error) for it in found] == [
            (1, None, ErrorCode.NONE),
            (2, None, ErrorCode.NONE),
            (3, None, ErrorCode.NONE),
            (0, CmdOp.ADD, ErrorCode.NONE),
        ]
        assert found[3].result == 3
        assert all(one.index < other.index for one, other in pairwise(found))

    asyncio.run(check())


def test_failing_program() -> None:
    """The sequencer's error is part of the message and of the record; the queue goes on."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(model)
        records = await CompletionRing.enable(buffer.port, 0x4000, 3)
        good = _programs(model, 1)[0]
        bad = ProgramDescriptor(0x8000, 3, base0=0x9000, base1=0xA000)  # without its END
        buffer.add(good)
        buffer.add(bad)
        buffer.add(good)
        await buffer.submit()
        with pytest.raises(CommandFailed, match=r"ring entry 2: 0x06, .*NO_END by SEQ in word 3"):
            await buffer.wait()
        assert [result.descriptor for result in buffer.results()] == [good]
        found = await records.take()
        assert [(it.completed, it.error) for it in found] == [
            (True, ErrorCode.NONE),
            (False, ErrorCode.NO_END),
        ]
        buffer.add(good)
        await buffer.submit()
        await buffer.wait()

    asyncio.run(check())


def test_program_of_a_launch() -> None:
    """A StartState is split between descriptor and `prepare`."""
    launch = StartState(0x8000, 4, bases=(0x10, 0x20, 0, 0, 0, 0, 0, 0), pos=3, token=5)
    assert ProgramDescriptor.of(launch, tag=7) == ProgramDescriptor(0x8000, 4, 3, 5, 0x10, 0x20, 7)


def test_operand_and_stream_share_a_word() -> None:
    """A scalar operation with a stream has the stream's address as operand A."""

    async def check() -> None:
        model = model_bus()
        buffer = await opened(model)
        stream = StagedStream(DATA, 8, 12)
        buffer.add(Command(Scalar(CmdOp.ADD, DATA, 5), stream, writeback=DATA + 64))
        await buffer.submit()
        assert [result.value for result in await buffer.wait()] == [DATA + 5]
        assert await buffer.port.read_scratch(8, 12) == model.read_memory(DATA, 12)

    asyncio.run(check())


def _random_command(rng: np.random.Generator, scratch_bytes: int) -> Command:
    """Return a command around the limits of what the hardware takes; its fields hold it."""

    def pick(low: int, high: int, step: int = 1) -> int:
        aligned = int(rng.integers(low, high, endpoint=True)) // step * step
        return aligned + (rng.random() < 0.03)

    narrow = scratch_bytes == 64
    base = 60 if narrow else 252
    stream = StagedStream(0x2000 + pick(0, 64, 4), pick(0, base, 4), min(pick(0, 60, 4), 63))
    has_stream = rng.random() < 0.5
    kind = rng.integers(3)
    operation: Scalar | Gemm | Vrelu
    if kind == 0:
        operation = Scalar(CmdOp.ADD, stream.source if has_stream else 1, 2)
    elif kind == 1:
        operation = Vrelu(pick(0, scratch_bytes // 4, 4), pick(0, base), pick(0, base, 4))
    else:
        m, n, k = (pick(0, most) for most in ((2, 2, 6) if narrow else (4, 4, 8)))
        places = pick(0, base // 3), pick(base // 3, base // 2), pick(base // 2, base, 4)
        strides = pick(0, 8), pick(0, 3), pick(4, 12, 4)
        op = (CmdOp.GEMM_S8, CmdOp.GEMM_S4)[rng.integers(2)]
        operation = Gemm(op, m, n, k, *places, *strides)
    return Command(
        operation,
        stream if has_stream else None,
        0x3000 + pick(0, 64, 4) if rng.random() < 0.5 else None,
        7 if rng.random() < 0.5 else None,
    )


@pytest.mark.parametrize("scratch_bytes", [64, 256])
def test_the_driver_refuses_what_the_ring_refuses(scratch_bytes: int) -> None:
    """Random descriptors: RequestError exactly where the model ends the ring with an error."""
    rng = np.random.default_rng(9)
    seen = {True: 0, False: 0}

    async def check() -> None:
        bus = model_bus(scratch_bytes)
        port = await CommandPort.connect(bus)
        await port.write(CmdReg.DESC_BASE, RING)
        await port.write(CmdReg.CMD_PARAM, 1)
        for _ in range(2000):
            command = _random_command(rng, scratch_bytes)
            try:
                command.check(scratch_bytes)
                legal = True
            except RequestError:
                legal = False
            words = tile_words(command)
            if words is not None:
                await port.write_tile(words)
            image = command.image(words)
            bus.write_memory(RING, image)
            await port.write(CmdReg.DESC_TAIL, 0)
            await port.write(CmdReg.DESC_HEAD, len(image) // 16)
            await port.start()
            assert bool(await port.finish() & 4) != legal, (command, await port.status())
            seen[legal] += 1

    asyncio.run(check())
    assert min(seen.values()) > 400
