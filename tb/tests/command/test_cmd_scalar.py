# SPDX-License-Identifier: Apache-2.0
"""Scalar operations of the command port: by register and descriptor, corners and whole spaces."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import cocotb
import numpy as np

from spec.regs import CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.command.command_session import TERNARY, CommandSession
from tb.command.descriptor_words import ENTRIES, SCALARS, DescriptorWords, Extension
from tb.command.random_descriptors import AREA, TARGET, Maker, allowed, operand

TAGS = ("cmd", "long")

SCRATCH_BYTES = (64, 128, 256)
RECORDS_LOG2 = 12
"""Records of the completion ring through which whole spaces of operands are compared."""
CORNERS = (0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x7F7F_7F7F, 0x8080_8080, 0x7777_8888)

Operands = tuple[int, int, int]


async def _all_of(session: CommandSession, op: CmdOp, operands: Iterable[Operands]) -> int:
    """Run an operation on many operands, seven descriptors at a time; compare all records.

    Every result stands in the completion record of its descriptor. A descriptor that fails ends
    the ring; the rest of the seven goes on behind it.

    Returns:
        the number of operations.
    """
    await session.use_records(RECORDS_LOG2)
    room, count = 1 << RECORDS_LOG2, 0
    waiting = iter(operands)
    while batch := list(itertools.islice(waiting, ENTRIES - 1)):
        room -= len(batch)
        if room < 0:
            session.bus.compare_memory()
            await session.consume_records()
            room = (1 << RECORDS_LOG2) - len(batch)
        session.put(*(DescriptorWords(op, a, b, acc) for a, b, acc in batch))
        count += len(batch)
        await session.begin()
        while not await session.finish():
            await session.skip()
            if not session.pending:
                break
            await session.begin()
    await session.compare()
    return count


@cocotb.test
async def test_cmd_scalar_by_register(dut: Dut) -> None:
    """Every scalar operation by register, on random operands and on corners."""
    session = await CommandSession.start(dut)
    for op in SCALARS:
        cases = [tuple(operand(session.random) for _ in range(3)) for _ in range(30)]
        cases += [(a, b, session.word()) for a, b in itertools.product(CORNERS[:5], CORNERS[:5])]
        for a, b, acc in cases:
            await session.operate(op, a, b, acc)
    await session.compare()


@cocotb.test
async def test_cmd_scalar_by_descriptor(dut: Dut) -> None:
    """Every scalar operation by descriptor, every result in its completion record."""
    session = await CommandSession.start(dut)
    for op in SCALARS:
        corners = itertools.product(CORNERS, CORNERS, (0, 0x8000_0000))
        cases: list[Operands] = [(a, b, acc) for a, b, acc in corners]
        for _ in range(40):
            cases.append((operand(session.random), operand(session.random), session.word()))
        await _all_of(session, op, cases)


@cocotb.test
async def test_cmd_scalar_by_extended_descriptor(dut: Dut) -> None:
    """Every scalar operation by extended descriptor, both words of the result written back."""
    session = await CommandSession.start(dut)
    for op in SCALARS:
        maker = Maker(session.random, session.scratch_bytes)
        for _ in range(4):
            assert await session.run(*(maker.extended(op) for _ in range(3)))
            session.bus.compare_memory()
        before = session.bus.rtl.read_memory(TARGET, AREA)
        a, b = (allowed(op, session.word(), ternary=False) for _ in range(2))
        made = DescriptorWords(
            op, a, b, session.word(), writeback=True, extension=Extension(TARGET + 4)
        )
        assert await session.run(made)
        after = session.bus.read_memory(TARGET, AREA)
        assert after[:4] == before[:4] and after[12:] == before[12:], "not the eight bytes"
        result = await session.read(CmdReg.RESULT), await session.read(CmdReg.RESULT_HI)
        assert after[4:12] == b"".join(word.to_bytes(4, "little") for word in result)
    await session.compare()


@cocotb.test
async def test_cmd_scalar_exp2(dut: Dut) -> None:
    """All 256 exponents, with random bits above them, by register."""
    session = await CommandSession.start(dut)
    results = set()
    for exponent in range(256):
        await session.operate(CmdOp.EXP2_NEG_Q0_8, session.word() & ~0xFF | exponent, 0, 0)
        results.add(await session.read(CmdReg.RESULT))
    assert results == {256 >> shift for shift in range(9)}
    await session.compare()


@cocotb.test
async def test_cmd_scalar_fp8(dut: Dut) -> None:
    """Pairs of FP8 codes in each lane; FULL: all 65,536 in one lane."""
    session = await CommandSession.start(dut)
    pairs = np.arange(1 << 16) if full() else session.random.integers(0, 1 << 16, 1200)
    others = session.random.integers(0, 120, (pairs.size, 2, 4), np.uint8)
    lanes = np.full(pairs.size, 2) if full() else session.random.integers(0, 4, pairs.size)
    codes = others.astype(np.uint8)
    turns = np.arange(pairs.size)
    codes[turns, 0, lanes], codes[turns, 1, lanes] = pairs >> 8, pairs & 0xFF
    words = codes.reshape(pairs.size, 8).view("<u4")
    accs = session.random.integers(0, 1 << 32, pairs.size)
    operands = ((int(a), int(b), int(acc)) for (a, b), acc in zip(words, accs, strict=True))
    assert await _all_of(session, CmdOp.DOT4_FP8_E4M3, operands) == pairs.size


@cocotb.test
async def test_cmd_scalar_fp8_codes(dut: Dut) -> None:
    """Every FP8 code against one, against the largest and against itself, in every lane."""
    session = await CommandSession.start(dut)
    one, largest = 0x38, 0x7E
    operands = [
        (code << 8 * lane, other << 8 * lane, 0)
        for lane in range(4)
        for code in range(lane, 256, 1 if full() else 4)
        for other in (one, largest, code)
    ]
    await _all_of(session, CmdOp.DOT4_FP8_E4M3, operands)


@cocotb.test
async def test_cmd_scalar_ternary_pairs(dut: Dut) -> None:
    """All pairs of 2-bit codes in every lane, as numbers and as ternary; the others rest."""
    session = await CommandSession.start(dut)
    operands = []
    for lane in range(16):
        for one, other in itertools.product(range(4), range(4)):
            operands.append((one << 2 * lane, other << 2 * lane, session.word()))
    for ternary in (0, TERNARY):
        session.param = ternary
        await _all_of(session, CmdOp.DOT16_S2, operands)
    extension = Extension(0, (0, 0, 0))
    for _ in range(3):
        words = [allowed(CmdOp.DOT16_S2, session.word(), ternary=True) for _ in range(4)]
        assert await session.run(
            DescriptorWords(CmdOp.DOT16_S2, words[0], words[1], extension=extension),
            DescriptorWords(CmdOp.DOT16_S2, words[2], words[3]),
        )
        assert await session.operate(CmdOp.DOT16_S2, words[0], words[3], session.word())
    session.param = 0
    await session.compare()


@cocotb.test
async def test_cmd_scalar_sparse_positions(dut: Dut) -> None:
    """All 256 positions of 2:4 sparse lanes, with bits above them that count for nothing."""
    session = await CommandSession.start(dut)
    operands = [
        (operand(session.random), operand(session.random), session.word() & ~0xFF | positions)
        for positions in session.random.permutation(256).tolist()
    ]
    await _all_of(session, CmdOp.SDOT4_S4_2_4, operands)


@cocotb.test
async def test_cmd_scalar_lanes(dut: Dut) -> None:
    """The most negative and the most positive value in every single lane of the dot products."""
    session = await CommandSession.start(dut)
    for op, bits in (
        (CmdOp.DOT4_S8, 8),
        (CmdOp.DOT8_S4, 4),
        (CmdOp.DOT16_S2, 2),
        (CmdOp.SDOT4_S4_2_4, 4),
        (CmdOp.MAC_S16, 16),
    ):
        ends = 1 << bits - 1, (1 << bits - 1) - 1
        operands = [
            (one << shift, other << shift, acc)
            for shift in range(0, 32, bits)
            for one, other in itertools.product(ends, ends)
            for acc in (0, 0xFF)
        ]
        await _all_of(session, op, operands)


@cocotb.test
async def test_cmd_scalar_reserved_lanes(dut: Dut) -> None:
    """A reserved lane keeps RESULT and is an error, counted as its way of submission says."""
    session = await CommandSession.start(dut)
    cases = [
        (CmdOp.DOT4_FP8_E4M3, code << 8 * lane, which)
        for lane in range(4)
        for code in (0x7F, 0xFF)
        for which in range(2)
    ]
    cases += [(CmdOp.DOT16_S2, 3 << 2 * lane, which) for lane in range(16) for which in range(2)]
    for op, lane, which in cases:
        session.param = TERNARY
        assert await session.operate(
            CmdOp.MUL_LO, session.word() | 1 << 31, session.word() | 1 << 31
        )
        a, b = (0x0101_0101 | (lane if which == n else 0) for n in range(2))
        kept = await session.read(CmdReg.RESULT), await session.read(CmdReg.RESULT_HI)
        refused = await session.read(CmdReg.PERF_UNSUPPORTED_OPS)
        assert not await session.operate(op, a, b, session.word())
        assert await session.read(CmdReg.PERF_UNSUPPORTED_OPS) == refused
        assert not await session.run(DescriptorWords(op, a, b, session.word()))
        assert await session.read(CmdReg.PERF_UNSUPPORTED_OPS) == refused + 1
        assert kept == (await session.read(CmdReg.RESULT), await session.read(CmdReg.RESULT_HI))
        await session.drop()
    await session.compare()
