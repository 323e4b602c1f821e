# SPDX-License-Identifier: Apache-2.0
"""The command port's driver by register, on the reference model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, fields

import numpy as np
import pytest

from npu.driver.command import CommandPort, Gemm, Scalar, Vrelu
from npu.driver.errors import CommandFailed
from spec.regs import CHIP_BASE, CMD_BASE, SEQ_BASE, ChipReg, CmdOp, CmdReg, SeqReg, StartState
from tests.python.command.command_support import RecordingBus, model_bus

SIZES = (64, 128, 256)


def connected(scratch_bytes: int = 64) -> CommandPort:
    """Return the port of a model."""
    return asyncio.run(CommandPort.connect(model_bus(scratch_bytes)))


def wrapped(value: int) -> int:
    """Return a number as signed 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the sum of the products of lanes."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def drawn(rng: np.random.Generator, low: int, high: int, count: int) -> list[int]:
    """Return so many integers from low to high, both included."""
    return [int(value) for value in rng.integers(low, high, count, endpoint=True)]


def test_words() -> None:
    """Operations on words without sign, corners included."""
    port = connected()
    rng = np.random.default_rng(2)
    words = [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, *drawn(rng, 0, 0xFFFF_FFFF, 8)]
    run = asyncio.run
    for a in words:
        for b in words:
            assert run(port.add(a, b)) == (a + b) % (1 << 32)
            assert run(port.sub(a, b)) == (a - b) % (1 << 32)
            assert run(port.mul_lo(a, b)) == a * b
            assert run(port.max_u32(a, b)) == max(a, b)
            assert run(port.min_u32(a, b)) == min(a, b)


@pytest.mark.parametrize(
    ("name", "count", "low", "high"),
    [("dot4_s8", 4, -128, 127), ("dot8_s4", 8, -8, 7), ("dot16_s2", 16, -2, 1)],
)
def test_dot_products(name: str, count: int, low: int, high: int) -> None:
    """Lanes go where the field says, ACC is added, the sum wraps."""
    port = connected()
    method: Callable[..., Awaitable[int]] = getattr(port, name)
    rng = np.random.default_rng(3)

    async def check() -> None:
        for acc in [0, -1, (1 << 31) - 1, -(1 << 31), *drawn(rng, -(1 << 31), (1 << 31) - 1, 20)]:
            a, b = drawn(rng, low, high, count), drawn(rng, low, high, count)
            assert await method(a, b, acc) == wrapped(dot(a, b) + acc)
        assert await method([low] * count, [low] * count) == count * low * low

    asyncio.run(check())


def test_ternary() -> None:
    """Ternary lanes are -1, 0, 1, and the next product of plain lanes is plain again."""
    port = connected()
    rng = np.random.default_rng(4)

    async def check() -> None:
        for acc in drawn(rng, -1000, 1000, 20):
            a, b = drawn(rng, -1, 1, 16), drawn(rng, -1, 1, 16)
            assert await port.dot16_s2(a, b, acc, ternary=True) == dot(a, b) + acc
            assert await port.dot16_s2(a, b, acc) == dot(a, b) + acc
        assert await port.dot16_s2([-2] * 16, [-2] * 16, ternary=False) == 64

    asyncio.run(check())


def test_other_scalars() -> None:
    """MAC_S16, SDOT4, FP8, RELU4 and EXP2 by examples computed by hand, and at random."""
    port = connected()
    rng = np.random.default_rng(5)

    async def check() -> None:
        assert await port.mac_s16(-32768, -32768, -(1 << 31)) == -(1 << 30)
        for _ in range(20):
            a, b = drawn(rng, -32768, 32767, 2)
            assert await port.mac_s16(a, b, 7) == a * b + 7
            values, dense = drawn(rng, -8, 7, 4), drawn(rng, -8, 7, 8)
            first, second = (rng.permutation(4)[:2].tolist() for _ in range(2))
            lanes = [dense[i] for i in first] + [dense[4 + i] for i in second]
            assert await port.sdot4(values, first + second, dense) == dot(values, lanes)
        # 1.5 * -2, 448 * 448, 2^-9 * 2^-9 (0 in Q8.8, its codes are floored), -0 * 1.
        codes = [0x3C, 0x7E, 0x01, 0x80], [0xC0, 0x7E, 0x01, 0x38]
        assert await port.dot4_fp8(*codes, 5) == -3 * 256 + 448 * 448 * 256 + 5
        # -0.125 * 2^-6: -0.5 / 256, rounded down.
        assert await port.dot4_fp8([0xA0, 0, 0, 0], [0x08, 0, 0, 0]) == -1
        assert await port.relu4_s8([-128, 127, -1, 1]) == (0, 127, 0, 1)
        found = [await port.exp2_neg(a) for a in (-128, -9, -8, -7, -1, 0, 1, 127)]
        assert found == [1, 1, 1, 2, 128, 256, 256, 256]
        expected = -10 & 0xFFFF_FFFF | 0xFFFF_FFFF << 32
        assert await port.execute(Scalar(CmdOp.MAC_S16, 0xFFFE, 5)) == expected

    asyncio.run(check())


@pytest.mark.parametrize("scratch_bytes", SIZES)
def test_scratchpad(scratch_bytes: int) -> None:
    """All pages of the scratchpad, from any word to any other."""
    port = connected(scratch_bytes)
    rng = np.random.default_rng(6)
    expected = bytearray(scratch_bytes)

    async def check() -> None:
        for _ in range(40):
            first, last = sorted(int(i) * 4 for i in rng.integers(0, scratch_bytes // 4 + 1, 2))
            data = rng.bytes(last - first)
            await port.write_scratch(first, data)
            expected[first:last] = data
            first, last = sorted(int(i) * 4 for i in rng.integers(0, scratch_bytes // 4 + 1, 2))
            assert await port.read_scratch(first, last - first) == expected[first:last]
        assert await port.read_scratch(0, scratch_bytes) == expected

    asyncio.run(check())


@pytest.mark.parametrize("scratch_bytes", SIZES)
def test_tiles(scratch_bytes: int) -> None:
    """GEMM with packed and with given places, and VRELU."""
    port = connected(scratch_bytes)
    rng = np.random.default_rng(7)

    async def check() -> None:
        a, b = rng.integers(-128, 128, (2, 7), np.int8), rng.integers(-128, 128, (7, 3), np.int8)
        await port.write_scratch(0, (a.tobytes() + b.tobytes()).ljust(36, b"\0"))
        tile = await port.gemm_s8((2, 3, 7))
        found = np.frombuffer(await port.read_scratch(tile.c, tile.output_bytes), "<i4")
        assert (found.reshape(2, 3) == a.astype(np.int32) @ b).all()
        # A in the high nibbles of bytes 0 and 2, B in bytes 4 and 5, C in the last column.
        await port.write_scratch(0, bytes([0x70, 0, 0x90, 0, 0xE3, 0x51, 0, 0]))
        tile = await port.gemm_s4((2, 2, 1), (1, 8, 8), (4, 2, 12))
        found = np.frombuffer(await port.read_scratch(8, 20), "<i4")
        assert found[[0, 1, 3, 4]].tolist() == [7 * 3, 7 * -2, -7 * 3, -7 * -2]
        data = rng.bytes(scratch_bytes)
        await port.write_scratch(0, data)
        await port.vrelu_s8(scratch_bytes - 9, 9, 0)
        positive = bytes(0 if byte >> 7 else byte for byte in data[9:])
        assert await port.read_scratch(0, scratch_bytes) == positive + data[-9:]

    asyncio.run(check())


def test_counters_status_and_clear() -> None:
    """Each field of Counters is the register of that name."""
    port = connected()

    async def check() -> None:
        await port.gemm_s8((2, 2, 3))
        await port.add(1, 2)
        await port.count_throttle()
        counters = await port.counters()
        assert (counters.macs, counters.ops, counters.thermal_throttle) == (12, 2, 1)
        assert (counters.scratch_bytes, counters.errors) == (2 * 12 + 16, 0)
        assert len(fields(counters)) == 13
        status = await port.status()
        assert (status.busy, status.done, status.error, status.ring_code) == (False, True, False, 1)
        await port.clear()
        status = await port.status()
        assert (status.done, status.ring_code) == (False, 0)
        assert (await port.counters()).macs == 12
        await port.clear_counters()
        assert set(astuple(await port.counters())) == {0}

    asyncio.run(check())


def test_failure_by_register() -> None:
    """What the hardware refuses after all is CommandFailed; the next operation works."""
    bus = model_bus()
    port = asyncio.run(CommandPort.connect(bus))
    port.scratch_bytes = 256  # a driver that knows less than the chip

    async def check() -> None:
        with pytest.raises(CommandFailed, match=r"VRELU_S8 by register ended with an error"):
            await port.execute(Vrelu(65, 0, 0))
        assert (await port.counters()).errors == 1
        assert await port.add(2, 2) == 4

    asyncio.run(check())


def test_connect_takes_the_interrupt_line() -> None:
    """`connect` looks before it touches, and only the command port drives the line then."""
    bus = RecordingBus(model_bus())
    asyncio.run(bus.chip.write32(CHIP_BASE + ChipReg.IRQ_ENABLE, 1))
    asyncio.run(CommandPort.connect(bus))
    assert bus.changes == [("write", CHIP_BASE + ChipReg.IRQ_ENABLE, 2)]
    assert bus.log[-1] == bus.changes[0]


def test_registers_of_an_operation() -> None:
    """A scalar operation is these accesses and no others."""
    bus = RecordingBus(model_bus())

    async def check() -> None:
        port = await CommandPort.connect(bus)
        bus.log.clear()
        assert await port.mac_s16(-3, 5, 1) == -14
        assert [(what, CmdReg(at - CMD_BASE).name, value) for what, at, value in bus.log] == [
            ("write", "OPCODE", 3),
            ("write", "OP_A", 0xFFFD),
            ("write", "OP_B", 5),
            ("write", "ACC", 1),
            ("write", "CMD_PARAM", 0),
            ("write", "CTRL_STATUS", 1),
            ("interrupt", "OP_A", 0),
            ("read", "CTRL_STATUS", 2),
            ("read", "RESULT", 0xFFFF_FFF2),
            ("read", "RESULT_HI", 0xFFFF_FFFF),
        ]

    asyncio.run(check())


def test_prepare_writes_the_sequencer() -> None:
    """Everything of a StartState but what a descriptor brings."""
    bus = RecordingBus(model_bus())
    launch = StartState.of_registers(lambda offset: offset << 8)

    async def check() -> None:
        port = await CommandPort.connect(bus)
        bus.log.clear()
        await port.prepare(launch)

    asyncio.run(check())
    written = {SeqReg(at - SEQ_BASE).name: value for _, at, value in bus.log}
    all_of_it = {SeqReg(register).name: value for register, value in launch.writes()}
    assert all_of_it.items() >= written.items()
    assert all_of_it.keys() - written.keys() == {
        *("UCODE_BASE", "UCODE_LEN", "POS", "TOKEN", "DDR_BASE_ACT", "DDR_BASE_OUT"),
    }


@pytest.mark.parametrize("scratch_bytes", SIZES)
def test_the_driver_refuses_what_the_hardware_refuses(scratch_bytes: int) -> None:
    """Random tiles around the limits: RequestError exactly where the model reports an error."""
    port = connected(scratch_bytes)
    rng = np.random.default_rng(8)
    narrow = scratch_bytes == 64
    most_shape = (3, 3, 7) if narrow else (6, 6, 12)
    most_base, most_stride = (63, 15) if narrow else (scratch_bytes - 1, 24)
    refused = 0

    async def raw(words: tuple[int, int, int], op: CmdOp) -> bool:
        await port.write(CmdReg.OPCODE, op)
        await port.write(CmdReg.CMD_PARAM, 0)
        await port.write_tile(words)
        await port.start()
        return bool(await port.finish() & 4)

    async def check() -> None:
        nonlocal refused
        for _ in range(1500):
            op = [CmdOp.GEMM_S8, CmdOp.GEMM_S4, CmdOp.VRELU_S8][rng.integers(3)]
            tile: Gemm | Vrelu
            if op == CmdOp.VRELU_S8:
                length = int(rng.integers(0, scratch_bytes * 5 // 4 if not narrow else 128))
                tile = Vrelu(length, *drawn(rng, 0, most_base, 2))
            else:
                shape = [drawn(rng, 0, most, 1)[0] for most in most_shape]
                bases = drawn(rng, 0, most_base, 3)
                strides = drawn(rng, 0, most_stride, 3)
                if rng.random() < 0.9:
                    bases[2], strides[2] = bases[2] // 4 * 4, strides[2] // 4 * 4
                tile = Gemm(op, *shape, *bases, *strides)
            try:
                tile.check(scratch_bytes)
                legal = True
            except ValueError:
                legal = False
                refused += 1
            assert await raw(tile.words(), op) != legal, tile

    asyncio.run(check())
    assert 200 < refused < 1450
