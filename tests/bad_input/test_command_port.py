# SPDX-License-Identifier: Apache-2.0
"""The command port's driver refuses naming field, value and range, before it touches the chip."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from npu.driver.command import (
    Command,
    CommandBuffer,
    CommandPort,
    CompletionRing,
    Gemm,
    ProgramDescriptor,
    Scalar,
    StagedStream,
    Vrelu,
    scalars,
)
from npu.driver.command.group_matmul import group_matmul
from npu.driver.command.matmul import matmul
from npu.driver.command.mx_matmul import Blocks, mx_matmul
from npu.driver.errors import RequestError
from spec.regs import CmdOp, StartState
from tests.python.command.command_support import (
    CONFIG,
    ID,
    VERSION,
    OtherChip,
    RecordingBus,
    model_bus,
)

S8, S4 = CmdOp.GEMM_S8, CmdOp.GEMM_S4
Call = Callable[[CommandPort], Awaitable[object]]


def refused(call: Call, scratch_bytes: int = 64) -> str:
    """Return the message of what a call on a fresh port raises; nothing may have been touched."""
    bus = RecordingBus(model_bus(scratch_bytes))

    async def attempt() -> str:
        port = await CommandPort.connect(bus)
        bus.log.clear()
        with pytest.raises(RequestError) as error:
            await call(port)
        found = error.value
        assert str(found) == f"{found.field}: given {found.given}, allowed {found.allowed}"
        assert bus.log == []
        return str(found)

    return asyncio.run(attempt())


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda p: p.add(-1, 0), "add.a: given -1, allowed 0 to 4294967295"),
        (lambda p: p.sub(0, 1 << 32), "sub.b: given 4294967296, allowed 0 to 4294967295"),
        (lambda p: p.mul_lo(True, 0), "mul_lo.a: given True, allowed 0 to 4294967295"),
        (lambda p: p.max_u32(1.5, 0), "max_u32.a: given 1.5, allowed 0 to 4294967295"),
        (lambda p: p.min_u32("1", 0), "min_u32.a: given '1', allowed 0 to 4294967295"),
        (lambda p: p.mac_s16(32768, 0), "mac_s16.a: given 32768, allowed -32768 to 32767"),
        (
            lambda p: p.mac_s16(0, 0, 1 << 31),
            "mac_s16.acc: given 2147483648, allowed -2147483648 to 2147483647",
        ),
        (lambda p: p.dot4_s8([1] * 3, [1] * 4), "dot4_s8.a: given 3 lanes, allowed 4"),
        (
            lambda p: p.dot4_s8([1] * 4, [1, 1, 128, 1]),
            "dot4_s8.b[2]: given 128, allowed -128 to 127",
        ),
        (
            lambda p: p.dot4_s8(b"1234", [1] * 4),
            "dot4_s8.a: given bytes, allowed a sequence of 4 lanes",
        ),
        (lambda p: p.dot8_s4([8] * 8, [1] * 8), "dot8_s4.a[0]: given 8, allowed -8 to 7"),
        (lambda p: p.dot16_s2([2] * 16, [1] * 16), "dot16_s2.a[0]: given 2, allowed -2 to 1"),
        (
            lambda p: p.dot16_s2([0] * 16, [-2] * 16, ternary=True),
            "dot16_s2.b[0]: given -2, allowed -1 to 1",
        ),
        (
            lambda p: p.dot4_fp8([0, 0, 0, 0x7F], [0] * 4),
            "dot4_fp8.a[3]: given FP8 code 0x7f (not a number), allowed 0x00-0x7e, 0x80-0xfe",
        ),
        (
            lambda p: p.dot4_fp8([0] * 4, [0, 256, 0, 0]),
            "dot4_fp8.b[1]: given 256, allowed 0 to 255",
        ),
        (
            lambda p: p.sdot4([1] * 4, [0, 1, 2, 2], [1] * 8),
            "sdot4.positions[3]: given 2, allowed another one than its neighbour's",
        ),
        (
            lambda p: p.sdot4([1] * 4, [0, 4, 1, 2], [1] * 8),
            "sdot4.positions[1]: given 4, allowed 0 to 3",
        ),
        (lambda p: p.sdot4([1] * 4, [0, 1, 1, 2], [1] * 7), "sdot4.b: given 7 lanes, allowed 8"),
        (lambda p: p.relu4_s8([1, 2, 3, 255]), "relu4_s8.a[3]: given 255, allowed -128 to 127"),
        (lambda p: p.exp2_neg(-129), "exp2_neg.a: given -129, allowed -128 to 127"),
        (
            lambda p: p.execute(Scalar(CmdOp.DOT16_S2, 0x30, 0, ternary=True)),
            "DOT16_S2.a[2]: given code 3, allowed codes 0 to 2",
        ),
        (
            lambda p: p.execute(Scalar(CmdOp.DOT4_FP8_E4M3, 0, 0xFF00)),
            "DOT4_FP8_E4M3.b[1]: given FP8 code 0xff (not a number), allowed 0x00-0x7e, 0x80-0xfe",
        ),
        (
            lambda p: p.execute(Scalar(CmdOp.ADD, 0, ternary=True)),
            "ADD.ternary: given True, allowed False but for DOT16_S2",
        ),
        (
            lambda p: p.execute(Scalar(S8, 0)),
            f"Scalar.op: given {S8!r}, allowed a CmdOp other than GEMM and VRELU",
        ),
        (
            lambda p: p.execute(Gemm(CmdOp.ADD, 1, 1, 1, 0, 1, 4, 1, 1, 4)),
            f"Gemm.op: given {CmdOp.ADD!r}, allowed GEMM_S8 or GEMM_S4",
        ),
        (lambda p: p.execute(7), "operation: given int, allowed Scalar, Gemm or Vrelu"),
    ],
)
def test_scalars(call: Call, line: str) -> None:
    """Ranges, lane counts, reserved lanes, positions."""
    assert refused(call) == line


@pytest.mark.parametrize(
    ("call", "scratch_bytes", "line"),
    [
        (lambda p: p.gemm_s8((0, 1, 1)), 64, "GEMM_S8.m: given 0, allowed 1 to 4294967295"),
        (lambda p: p.gemm_s8((4, 1, 1)), 64, "GEMM_S8.m: given 4, allowed 1 to 3"),
        (lambda p: p.gemm_s4((1, 4, 1)), 64, "GEMM_S4.n: given 4, allowed 1 to 3"),
        (lambda p: p.gemm_s8((1, 1, 8)), 64, "GEMM_S8.k: given 8, allowed 1 to 7"),
        (lambda p: p.gemm_s8((1, 1, 256)), 256, "GEMM_S8.k: given 256, allowed 1 to 255"),
        (lambda p: p.gemm_s8((1, 1)), 64, "gemm_s8.shape: given 2 numbers, allowed 3"),
        (
            lambda p: p.gemm_s8((3, 3, 7)),
            64,
            "GEMM_S8.c: given bytes 44 to 79 of the scratchpad, allowed bytes 0 to 63",
        ),
        (
            lambda p: p.gemm_s8((1, 1, 1), (64, 0, 4)),
            64,
            "GEMM_S8.a: given 64, allowed 0 to 63",
        ),
        (
            lambda p: p.gemm_s8((2, 1, 1), (63, 0, 4), (1, 1, 4)),
            64,
            "GEMM_S8.a: given bytes 63 to 64 of the scratchpad, allowed bytes 0 to 63",
        ),
        (
            lambda p: p.gemm_s8((1, 1, 1), (0, 1, 6)),
            64,
            "GEMM_S8.c: given 6, allowed multiples of 4 0 to 63",
        ),
        (
            lambda p: p.gemm_s8((2, 1, 1), (0, 2, 8), (1, 1, 6)),
            64,
            "GEMM_S8.stride_c: given 6, allowed multiples of 4 0 to 15",
        ),
        (
            lambda p: p.gemm_s8((1, 1, 1), (0, 1, 4), (16, 1, 4)),
            64,
            "GEMM_S8.stride_a: given 16, allowed 0 to 15",
        ),
        (
            lambda p: p.gemm_s8((1, 1, 1), (0, 7, 4)),
            64,
            "GEMM_S8.c: given bytes 4 to 7 of the scratchpad, "
            "allowed none of bytes 7 to 7, where b lies",
        ),
        (
            lambda p: p.gemm_s4((3, 1, 1), (0, 4, 4), (4, 1, 4)),
            64,
            "GEMM_S4.c: given bytes 4 to 15 of the scratchpad, "
            "allowed none of bytes 0 to 4, where a lies",
        ),
        (lambda p: p.vrelu_s8(0, 0, 0), 64, "VRELU_S8.length: given 0, allowed 1 to 64"),
        (lambda p: p.vrelu_s8(129, 0, 0), 128, "VRELU_S8.length: given 129, allowed 1 to 128"),
        (lambda p: p.vrelu_s8(60, 5, 0), 64, "VRELU_S8.source: given 5, allowed 0 to 4"),
        (lambda p: p.vrelu_s8(60, 0, -1), 64, "VRELU_S8.destination: given -1, allowed 0 to 4"),
        (
            lambda p: p.read_scratch(2, 4),
            64,
            "read_scratch.offset: given 2, allowed multiples of 4 0 to 64",
        ),
        (
            lambda p: p.read_scratch(60, 8),
            64,
            "read_scratch.size: given 8, allowed multiples of 4 0 to 4",
        ),
        (
            lambda p: p.write_scratch(0, b"123"),
            64,
            "write_scratch.size: given 3, allowed multiples of 4 0 to 64",
        ),
        (
            lambda p: p.set_timeout(1 << 24),
            64,
            "set_timeout.cycles: given 16777216, allowed 0 to 16777215",
        ),
    ],
)
def test_tiles_and_scratchpad(call: Call, scratch_bytes: int, line: str) -> None:
    """Shapes, footprints, overlaps, alignment."""
    assert refused(call, scratch_bytes) == line


ADD = scalars.add(1, 2)
TILE = Gemm.packed(S8, 1, 1, 1)


@pytest.mark.parametrize(
    ("descriptor", "line"),
    [
        (None, "descriptor: given NoneType, allowed Command or ProgramDescriptor"),
        (Command(None), "operation: given NoneType, allowed Scalar, Gemm or Vrelu"),  # type: ignore[arg-type]
        (Command(Gemm.packed(S8, 3, 3, 8)), "GEMM_S8.k: given 8, allowed 1 to 7"),
        (Command(ADD, tag=256), "Command.tag: given 256, allowed 0 to 255"),
        (
            Command(ADD, writeback=0x1002),
            "Command.writeback: given 4098, allowed multiples of 4 0 to 4294967288",
        ),
        (
            Command(TILE, writeback=1 << 32),
            "Command.writeback: given 4294967296, allowed multiples of 4 0 to 4294967292",
        ),
        (
            Command(TILE, StagedStream(0x1000, 0, 64)),
            "StagedStream.size: given 64, allowed multiples of 4 4 to 60",
        ),
        (
            Command(TILE, StagedStream(0x1000, 0, 0)),
            "StagedStream.size: given 0, allowed multiples of 4 4 to 60",
        ),
        (
            Command(TILE, StagedStream(0x1000, 8, 60)),
            "StagedStream.offset: given 8, allowed multiples of 4 0 to 4",
        ),
        (
            Command(TILE, StagedStream(0x1001, 0, 8)),
            "StagedStream.source: given 4097, allowed multiples of 4 0 to 4294967288",
        ),
        (
            Command(TILE, (0x1000, 0, 8)),  # type: ignore[arg-type]
            "Command.stream: given tuple, allowed StagedStream or None",
        ),
        (
            Command(ADD, StagedStream(0x1000, 0, 8)),
            "ADD.a: given 0x1 with a stream, allowed its source, 0x1000",
        ),
        (
            Command(Vrelu(6, 0, 0), writeback=0),
            "VRELU_S8.length with writeback: given 6, allowed multiples of 4 4 to 64",
        ),
        (
            Command(Vrelu(8, 0, 2), writeback=0),
            "VRELU_S8.destination with writeback: given 2, allowed multiples of 4 0 to 60",
        ),
        (
            ProgramDescriptor(0x1008, 4),
            "ProgramDescriptor.base: given 4104, allowed multiples of 16 0 to 4294967232",
        ),
        (ProgramDescriptor(0, 0), "ProgramDescriptor.length: given 0, allowed 1 to 268435456"),
        (
            ProgramDescriptor(0, 1, pos=-1),
            "ProgramDescriptor.pos: given -1, allowed 0 to 4294967295",
        ),
        (
            ProgramDescriptor(0, 1, token=1 << 32),
            "ProgramDescriptor.token: given 4294967296, allowed 0 to 4294967295",
        ),
        (
            ProgramDescriptor(0, 1, base0=8),
            "ProgramDescriptor.base0: given 8, allowed multiples of 16 0 to 4294967295",
        ),
        (
            ProgramDescriptor(0, 1, base1=-16),
            "ProgramDescriptor.base1: given -16, allowed multiples of 16 0 to 4294967295",
        ),
        (ProgramDescriptor(0, 1, tag=-1), "ProgramDescriptor.tag: given -1, allowed 0 to 255"),
    ],
)
def test_descriptors(descriptor: Any, line: str) -> None:  # noqa: ANN401  wrong types are the point
    """What the hardware would refuse is refused when it is added; the buffer stays as it was."""
    bus = RecordingBus(model_bus())

    async def check() -> None:
        buffer = await CommandBuffer.open(await CommandPort.connect(bus), 0x1000)
        buffer.add(Command(ADD))
        bus.log.clear()
        with pytest.raises(RequestError) as error:
            buffer.add(descriptor)
        assert str(error.value) == line
        assert bus.log == []
        assert (buffer.index, buffer.room) == (1, 6)
        await buffer.submit()
        with pytest.raises(RequestError) as error:
            await buffer.extend(Command(ADD), descriptor)
        assert str(error.value) == line
        assert len(await buffer.wait()) == 1
        assert (await buffer.port.counters()).ops == 1

    asyncio.run(check())


def test_room_and_order_of_calls() -> None:
    """Seven entries, and each call in its time."""
    bus = RecordingBus(model_bus())
    extended = Command(ADD, tag=0)

    async def fails(call: Awaitable[object], line: str) -> None:
        before = len(bus.changes)
        with pytest.raises(RequestError) as error:
            await call
        assert str(error.value) == line
        assert len(bus.changes) == before

    async def check() -> None:
        port = await CommandPort.connect(bus)
        buffer = await CommandBuffer.open(port, 0x1000)
        rest = "a ring at rest, allowed a batch that was submitted"
        await fails(
            buffer.submit(), "submit: given an empty batch, allowed at least one descriptor"
        )
        await fails(buffer.wait(), f"wait: given {rest}")
        await fails(buffer.wait_entry(), f"wait_entry: given {rest}")
        await fails(buffer.extend(extended), f"extend: given {rest}")
        await fails(buffer.stop(), f"stop: given {rest}")
        for _ in range(3):
            buffer.add(extended)
        with pytest.raises(RequestError) as error:
            buffer.add(extended)
        assert str(error.value) == "ring: given a descriptor of 2 entries, allowed 1 more"
        buffer.add(Command(ADD))
        with pytest.raises(RequestError) as error:
            buffer.add(Command(ADD))
        assert str(error.value) == "ring: given a descriptor of 1 entries, allowed 0 more"
        with pytest.raises(RequestError) as error:
            buffer.image(7)
        assert str(error.value) == (
            "image.index: given 7, allowed [0, 1, 2, 3, 4, 5, 6], which hold something"
        )
        await buffer.submit()
        busy = "command port: given a start or write while the ring runs, allowed when idle"
        one = np.ones((1, 1), np.int8)
        await fails(buffer.submit(), busy)
        await fails(port.add(1, 2), busy)
        await fails(port.write_scratch(0, b"1234"), busy)
        await fails(port.prepare(StartState(0, 1, 0, 0)), busy)
        await fails(matmul(port, one, one, "INT8"), busy)
        await fails(CompletionRing.enable(port, 0, 3), busy)
        await fails(CommandBuffer.open(port, 0), busy)
        await fails(
            buffer.wait_entry(),
            "wait_entry: given a batch without per_entry, allowed one with it",
        )
        with pytest.raises(RequestError) as error:
            buffer.add(extended)
        assert str(error.value) == (
            "add: given a descriptor while the batch runs, allowed extend, or after wait"
        )
        assert len(await buffer.wait()) == 4

    asyncio.run(check())


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda p: CommandBuffer.open(p, 0x1002),
            "CommandBuffer.base: given 4098, allowed multiples of 4 0 to 4294967168",
        ),
        (
            lambda p: CompletionRing.enable(p, 0x1008, 3),
            "CompletionRing.base: given 4104, allowed multiples of 16 0 to 4294967168",
        ),
        (
            lambda p: CompletionRing.enable(p, 0x1000, 16),
            "CompletionRing.log2_size: given 16, allowed 0 to 15",
        ),
    ],
)
def test_rings(call: Call, line: str) -> None:
    """Places of the two rings."""
    assert refused(call) == line


ONE = np.ones((2, 5), np.int8)
NORMAL = np.full((3, 5), 0x3C00)
"""Codes of numbers in FP16 and BF16."""
FP16 = "allowed codes of zero and finite normal numbers of FP16"


def with_one(value: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a matrix of zeros with one other element."""
    matrix = np.zeros((3, 5), np.int64)
    matrix[1, 2] = value
    return matrix


@pytest.mark.parametrize(
    ("a", "b", "fmt", "more", "line"),
    [
        (
            ONE, ONE, "INT3", {},
            "matmul.fmt: given 'INT3', allowed INT8, INT4, INT2, TERNARY, FP8, SPARSE_INT4, "
            "FP16, BF16",
        ),
        (ONE, ONE, "INT8", {}, "b: given 2 rows, allowed 5, the columns of a"),
        (
            ONE.astype(np.float32), ONE.T, "INT8", {},
            "a: given float32, allowed an array of an integer dtype",
        ),
        ([[1]], ONE, "INT8", {}, "a: given list, allowed an array of an integer dtype"),
        (ONE, ONE.T > 0, "INT8", {}, "b: given bool, allowed an array of an integer dtype"),
        (ONE[0], ONE.T, "INT8", {}, "a: given shape (5,), allowed two dimensions of at least 1"),
        (
            ONE[:0], ONE.T, "INT8", {},
            "a: given shape (0, 5), allowed two dimensions of at least 1",
        ),
        (with_one(128), ONE.T, "INT8", {}, "a[1, 2]: given 128, allowed -128 to 127 for INT8"),
        (with_one(-9), ONE.T, "INT4", {}, "a[1, 2]: given -9, allowed -8 to 7 for INT4"),
        (ONE, with_one(2).T, "INT2", {}, "b[2, 1]: given 2, allowed -2 to 1 for INT2"),
        (with_one(-2), ONE.T, "TERNARY", {}, "a[1, 2]: given -2, allowed -1 to 1 for TERNARY"),
        (
            ONE, with_one(255).T, "FP8", {},
            "b[2, 1]: given 0xff, allowed 0x00-0x7e, 0x80-0xfe for FP8: "
            "0x7f and 0xff are not numbers",
        ),
        (
            with_one(1)[:, [2, 2, 0, 2, 2]], ONE.T, "SPARSE_INT4", {},
            "a[1, 0:4]: given 3 elements other than 0, allowed at most 2 of 4 for SPARSE_INT4",
        ),
        (with_one(0x10000), ONE.T, "FP16", {}, "a[1, 2]: given 0x10000, allowed 0x0000 to 0xffff"),
        (with_one(-1), ONE.T, "BF16", {}, "a[1, 2]: given -0x001, allowed 0x0000 to 0xffff"),
        (with_one(0x7E01), ONE.T, "FP16", {}, f"a[1, 2]: given 0x7e01 (not a number), {FP16}"),
        (with_one(0xFC00), ONE.T, "FP16", {}, f"a[1, 2]: given 0xfc00 (infinity), {FP16}"),
        (NORMAL, with_one(0x03FF).T, "FP16", {}, f"b[2, 1]: given 0x03ff (subnormal), {FP16}"),
        (
            NORMAL, with_one(0x8001).T, "BF16", {"exact": True},
            "b[2, 1]: given 0x8001 (subnormal), "
            "allowed codes of zero and finite normal numbers of BF16",
        ),
        (
            with_one(0x5800), ONE.T, "FP16", {},
            "a[1, 2]: given 0x5800 (128 in Q8.8 is 32768), allowed -32768 to 32767 in Q8.8",
        ),
        (
            with_one(0xC301), ONE.T, "BF16", {},
            "a[1, 2]: given 0xc301 (-129 in Q8.8 is -33024), allowed -32768 to 32767 in Q8.8",
        ),
        (
            ONE, ONE.T, "INT8", {"exact": True},
            "matmul.exact: given True, allowed False but for BF16, FP16",
        ),
        (NORMAL, NORMAL, "FP16", {}, "b: given 3 rows, allowed 5, the columns of a"),
        (
            ONE, ONE.T, "INT8", {"submit": "dma"},
            "matmul.submit: given 'dma', allowed 'register' or 'descriptor'",
        ),
        (
            ONE, ONE.T, "INT8", {"submit": "descriptor"},
            "matmul.arena: given None, allowed (address, size) with descriptors",
        ),
        (
            ONE, ONE.T, "INT8", {"submit": "descriptor", "arena": (8, 4096)},
            "matmul.arena[0]: given 8, allowed multiples of 16 0 to 4294967295",
        ),
        (
            ONE, ONE.T, "INT8", {"submit": "descriptor", "arena": (0, 255)},
            "matmul.arena[1]: given 255, allowed 256 to 4294967296",
        ),
    ],
)  # fmt: skip
def test_matmul(a: Any, b: Any, fmt: str, more: dict[str, Any], line: str) -> None:  # noqa: ANN401
    """Shapes, types, elements, sparsity, arena."""
    assert refused(lambda port: matmul(port, a, b, fmt, **more)) == line


QUADS = np.ones((5, 4), np.int8)
SCALES = np.ones((2, 4), np.int16)


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"kind": "fp8"}, "group_matmul.kind: given 'fp8', allowed q8_8, int8, fp16, bf16"),
        ({"group": 0}, "group_matmul.group: given 0, allowed 1 to 4294967295"),
        ({"group": 2.0}, "group_matmul.group: given 2.0, allowed 1 to 4294967295"),
        ({"a": with_one(-129)}, "a[1, 2]: given -129, allowed -128 to 127 for INT8"),
        ({"q": with_one(8).T}, "q[2, 1]: given 8, allowed -8 to 7 for INT4"),
        ({"q": QUADS[:4]}, "q: given 4 rows, allowed 5, the columns of a"),
        (
            {"group": 2},
            "scales: given shape (2, 4), allowed (3, 4): one for each group and column of q",
        ),
        (
            {"scales": SCALES[:, :3]},
            "scales: given shape (2, 3), allowed (2, 4): one for each group and column of q",
        ),
        (
            {"scales": SCALES * 32768.0},
            "scales: given float64, allowed an array of an integer dtype",
        ),
        (
            {"scales": with_one(32768)[:2, 1:]},
            "scales[1, 1]: given 32768, allowed -32768 to 32767 for q8_8",
        ),
        (
            {"scales": with_one(128)[:2, 1:], "kind": "int8"},
            "scales[1, 1]: given 128, allowed -128 to 127 for int8",
        ),
        (
            {"scales": with_one(0x0040)[:2, 1:], "kind": "bf16"},
            "scales[1, 1]: given 0x0040 (subnormal), "
            "allowed codes of zero and finite normal numbers of BF16",
        ),
        (
            {"scales": with_one(0xFF80)[:2, 1:], "kind": "bf16"},
            "scales[1, 1]: given 0xff80 (infinity), "
            "allowed codes of zero and finite normal numbers of BF16",
        ),
        ({"submit": "dma"}, "group_matmul.submit: given 'dma', allowed 'register' or 'descriptor'"),
        (
            {"submit": "descriptor"},
            "group_matmul.arena: given None, allowed (address, size) with descriptors",
        ),
    ],
)
def test_group_matmul(changed: dict[str, Any], line: str) -> None:
    """Kinds, groups, elements, scales."""
    call: dict[str, Any] = {
        "a": ONE,
        "q": QUADS,
        "scales": SCALES,
        "group": 3,
        "kind": "q8_8",
    } | changed
    assert refused(lambda port: group_matmul(port, **call)) == line


LEFT = Blocks(np.full((2, 33), 1), np.full((2, 2), 127))
RIGHT = Blocks(np.full((33, 3), 1), np.full((2, 3), 127))


def with_code(code: int) -> Blocks:
    """Return the right operand with one other element."""
    codes = RIGHT.codes.copy()
    codes[32, 1] = code
    return Blocks(codes, RIGHT.scales)


@pytest.mark.parametrize(
    ("a", "b", "kind", "line"),
    [
        (
            LEFT, RIGHT, "fp8",
            "mx_matmul.kind: given 'fp8', "
            "allowed mxint8, mxfp8e4, mxfp8e5, mxfp6e3, mxfp6e2, mxfp4",
        ),
        (
            LEFT, with_code(0x7F), "mxfp8e4",
            "b.codes[32, 1]: given 0x7f (not finite), allowed 0x00-0x7e, 0x80-0xfe for mxfp8e4",
        ),
        (
            LEFT, with_code(0xFC), "mxfp8e5",
            "b.codes[32, 1]: given 0xfc (not finite), allowed 0x00-0x7b, 0x80-0xfb for mxfp8e5",
        ),
        (LEFT, with_code(64), "mxfp6e2", "b.codes[32, 1]: given 64, allowed 0 to 63 for mxfp6e2"),
        (LEFT, with_code(-1), "mxint8", "b.codes[32, 1]: given -1, allowed 0 to 255 for mxint8"),
        (
            Blocks(LEFT.codes, LEFT.scales * 2 + 1), RIGHT, "mxfp4",
            "a.scales[0, 0]: given 255, allowed 0 to 254 for E8M0",
        ),
        (
            Blocks(LEFT.codes, RIGHT.scales), RIGHT, "mxfp4",
            "a.scales: given shape (2, 3), allowed (2, 2): one for each row and block of 32",
        ),
        (
            LEFT, Blocks(RIGHT.codes, RIGHT.scales[:1]), "mxfp4",
            "b.scales: given shape (1, 3), allowed (2, 3): one for each block of 32 and column",
        ),
        (
            LEFT, Blocks(RIGHT.codes[:32], RIGHT.scales), "mxfp4",
            "b.codes: given 32 rows, allowed 33, the columns of a.codes",
        ),
        (LEFT.codes, RIGHT, "mxfp4", "a: given ndarray, allowed Blocks"),
    ],
)  # fmt: skip
def test_mx_matmul(a: Any, b: Any, kind: str, line: str) -> None:  # noqa: ANN401
    """Kinds, codes, scales, shapes."""
    assert refused(lambda port: mx_matmul(port, a, b, kind)) == line


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ({ID: 0}, "ID: given 0x00000000, allowed 0x41525354"),
        ({VERSION: 0x0101_0103}, "VERSION.REG_MAP: given 3, allowed 2"),
        (
            {CONFIG: 0},
            "CMD_CONFIG.SCRATCH_BYTES: given 0: the chip has no command port, allowed 64, 128, 256",
        ),
        ({CONFIG: 96}, "CMD_CONFIG.SCRATCH_BYTES: given 96, allowed 64, 128, 256"),
    ],
)
def test_connect(answers: dict[int, int], line: str) -> None:
    """Another chip, another map, no port: nothing is written."""
    with pytest.raises(RequestError) as error:
        asyncio.run(CommandPort.connect(OtherChip(model_bus(), answers)))
    assert str(error.value) == line
