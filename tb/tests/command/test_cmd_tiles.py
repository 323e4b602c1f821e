# SPDX-License-Identifier: Apache-2.0
"""Operations on the scratchpad: tiles of every shape and place, and those that are refused."""

from __future__ import annotations

from collections.abc import Iterator

import cocotb

from spec.regs import CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.command.command_session import CommandSession
from tb.command.descriptor_words import TILES, TileWords
from tb.command.random_descriptors import any_tile, legal_gemm, legal_tile, legal_vrelu

TAGS = ("cmd", "random", "long")

SCRATCH_BYTES = (64, 128, 256)
ON_SCRATCHPAD = (*TILES, CmdOp.VRELU_S8)


async def _tile(session: CommandSession, op: CmdOp, tile: TileWords, fresh: int = 4) -> bool:
    """Run one tile on a scratchpad with some fresh words; compare all of it afterwards."""
    await session.fill_scratch(fresh)
    right = await session.operate(op, session.word(), session.word(), session.word(), tile)
    await session.compare_scratch()
    return right


@cocotb.test
async def test_cmd_tiles_legal(dut: Dut) -> None:
    """Random tiles that are accepted: odd strides, odd nibbles, rows of C that meet."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for op in TILES:
        for _ in range(400 if full() else 60):
            tile = legal_gemm(session.random, op, session.scratch_bytes)
            assert await _tile(session, op, tile), f"{op.name} {tile} was refused"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_any(dut: Dut) -> None:
    """Random bits in shape, places and strides: what is refused changes nothing."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for op in ON_SCRATCHPAD:
        accepted = 0
        turns = 400 if full() else 60
        for _ in range(turns):
            tile = any_tile(session.random, op, session.scratch_bytes)
            accepted += await _tile(session, op, tile, fresh=1)
        assert turns // 10 < accepted < turns, f"{op.name}: {accepted} of {turns}"
    await session.compare()


def _shapes(scratch_bytes: int) -> Iterator[tuple[int, int, int]]:
    """Yield shapes (M, N, K) at the ends of their fields, also those that never fit."""
    most = (3, 3, 7) if scratch_bytes == 64 else (16, 16, 24)
    for m in (0, 1, 2, most[0]):
        for n in (0, 1, most[1]):
            for k in (0, 1, 2, most[2]):
                yield m, n, k


@cocotb.test
async def test_cmd_tiles_shapes(dut: Dut) -> None:
    """Shapes at the ends of their fields, 0 included, with rows side by side."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for op in TILES:
        per_byte = 2 if op == CmdOp.GEMM_S4 else 1
        for m, n, k in _shapes(session.scratch_bytes):
            behind_a = m * k
            bytes_ab = -(-(m * k + k * n) // per_byte)
            place = (0, behind_a, -(-bytes_ab // 4) * 4)
            if max(place) >= session.scratch_bytes or (
                place[1] > 63 and session.scratch_bytes == 64
            ):
                continue
            strides = (min(k, 15) if session.scratch_bytes == 64 else k, n, 4 * n)
            right = await _tile(session, op, TileWords.gemm(m, n, k, place, strides))
            if 0 in (m, n, k):
                assert not right, f"{op.name} {m}x{n}x{k}: a size of 0 was accepted"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_edges(dut: Dut) -> None:
    """A, B and C end at the last byte of the scratchpad, and one element behind it."""
    session = await CommandSession.start(dut)
    size = session.scratch_bytes
    most_a = 63 if size == 64 else 255
    await session.fill_scratch(size // 4)
    for op in TILES:
        elements = size * (2 if op == CmdOp.GEMM_S4 else 1)
        m, k = 2, 3
        for over in (0, 1):
            for stride in (3, 5, 15):
                at = elements - (m - 1) * stride - k + over
                if at > most_a:  # nibbles: a field cannot name the last ones
                    stride_far = min(at - most_a + stride, 15 if size == 64 else 255)
                    at, stride = elements - stride_far - k + over, stride_far
                if at > most_a:
                    continue
                right = await _tile(
                    session, op, TileWords.gemm(m, 1, k, (at, 0, 4), (stride, 1, 4))
                )
                assert right == (not over), f"{op.name} A at {at} stride {stride}"
                right = await _tile(
                    session, op, TileWords.gemm(1, k, m, (0, at, 8), (2, stride, 4))
                )
                assert right == (not over), f"{op.name} B at {at} stride {stride}"
        for n in (1, 2, 3):
            for c in range(size - 4 * n - 4, min(size - 4 * n + 8, most_a + 1)):
                right = await _tile(session, op, TileWords.gemm(1, n, 1, (0, 1, c), (1, 1, 0)))
                assert right == (c % 4 == 0 and c + 4 * n <= size), f"{op.name} C at {c}"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_overlap(dut: Dut) -> None:
    """C against A and B at every distance: ranges that are apart are accepted, no others."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for op in TILES:
        per_byte = 2 if op == CmdOp.GEMM_S4 else 1
        for _ in range(3 if full() else 1):
            c, far = 4 * int(session.random.integers(5, 8)), 0
            m, n, stride_c = 2, 1, 8  # C has a hole, which belongs to its range
            for first in range(per_byte * (c - 3), per_byte * (c + 14)):
                if first > 63:
                    break
                last = first + 3  # two rows of two, side by side
                meets = first // per_byte < c + 12 and last // per_byte >= c
                for which in range(2):
                    place = (first, far, c) if which == 0 else (far, first, c)
                    tile = TileWords.gemm(m, n, 2, place, (2, 1, stride_c))
                    if which == 1:  # B is two rows of one element
                        tile = TileWords.gemm(m, n, 2, place, (2, 3, stride_c))
                    right = await _tile(session, op, tile)
                    assert right == (not meets), f"{op.name} {place}: {right}"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_rows_of_c(dut: Dut) -> None:
    """Every strideC: multiples of 4 unless there is one row; the last row wins."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for op in TILES:
        for m in (1, 2, 3):
            for stride in range(16):
                tile = TileWords.gemm(m, 2, 2, (0, 4, 16), (2, 2, stride))
                right = await _tile(session, op, tile)
                assert right == (m == 1 or stride % 4 == 0), f"{op.name} M={m} strideC={stride}"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_vrelu(dut: Dut) -> None:
    """Random VRELU, mostly onto itself, forwards and backwards; then every short distance."""
    session = await CommandSession.start(dut)
    await session.fill_scratch(session.scratch_bytes // 4)
    for _ in range(300 if full() else 50):
        tile = legal_vrelu(session.random, session.scratch_bytes)
        assert await _tile(session, CmdOp.VRELU_S8, tile, fresh=session.scratch_bytes // 8)
    for distance in range(-10, 11):
        source = 16 + int(session.random.integers(8))
        tile = TileWords.vrelu(21, source, source + distance)
        assert await _tile(session, CmdOp.VRELU_S8, tile, fresh=16)
    await session.compare()


@cocotb.test
async def test_cmd_tiles_vrelu_edges(dut: Dut) -> None:
    """VRELU of every length at the end of the scratchpad, and one byte too far."""
    session = await CommandSession.start(dut)
    size = session.scratch_bytes
    for length in (0, 1, 2, 7, 8, 9, 31, size - 1, size, size + 1):
        if length > 127 and size == 64:
            continue
        await session.fill_scratch(size // 4)
        for over in (0, 1):
            at = size - length + over
            if not 0 <= at < min(size, 256):
                continue
            for source, destination in ((at, 0), (0, at)):
                right = await _tile(
                    session, CmdOp.VRELU_S8, TileWords.vrelu(length, source, destination)
                )
                fits = length > 0 and max(source, destination) + length <= size
                assert right == fits, f"{length} bytes from {source} to {destination}"
    await session.compare()


@cocotb.test
async def test_cmd_tiles_keep_result(dut: Dut) -> None:
    """Tiles leave RESULT, RESULT_HI and the operand registers alone, refused or not."""
    session = await CommandSession.start(dut)
    for op in ON_SCRATCHPAD:
        await session.operate(CmdOp.MUL_LO, session.word() | 1 << 31, session.word() | 1 << 31)
        kept = await session.read(CmdReg.RESULT), await session.read(CmdReg.RESULT_HI)
        await _tile(session, op, legal_tile(session.random, op, session.scratch_bytes))
        await _tile(session, op, TileWords())
        assert kept == (await session.read(CmdReg.RESULT), await session.read(CmdReg.RESULT_HI))
    await session.compare()
