# SPDX-License-Identifier: Apache-2.0
"""The barriers that the compiler puts in: the ordering rules, and what a BARRIER counts."""

import pytest

from npu.asm import assemble
from npu.compiler import ProgramBuilder
from npu.compiler.attention_plan import UnitStep, schedule
from npu.compiler.hazards import Board, Footprint, footprint, words
from npu.runtime.account import word_costs
from spec.isa import Engine, Instruction, Opcode
from spec.isa.operands import Limits

A, B = 0b0011, 0b0110


@pytest.mark.parametrize(
    ("rows", "row_bytes", "pitch"),
    [(1, 5, 16), (7, 40, 48), (5, 40, 96), (9, 64, 32), (130, 1, 16)],
)
def test_words(rows: int, row_bytes: int, pitch: int) -> None:
    """A set of words has a bit for each word that a row touches."""
    want = 0
    for row in range(rows):
        first = (160 + row * pitch) // 16
        for word in range(first, first + -(-row_bytes // 16)):
            want |= 1 << word
    assert words(160, rows, row_bytes, pitch) == want


@pytest.mark.parametrize(
    ("older", "younger", "same", "waits"),
    [
        (Footprint(writes=A), Footprint(reads=B), False, True),
        (Footprint(writes=A), Footprint(reads=B), True, True),
        (Footprint(reads=A), Footprint(writes=B), False, True),
        (Footprint(reads=A), Footprint(writes=B), True, False),
        (Footprint(writes=A), Footprint(writes=B), False, True),
        (Footprint(writes=A), Footprint(writes=B), True, False),
        (Footprint(reads=A), Footprint(reads=B), False, False),
        (Footprint(writes=1), Footprint(reads=2), False, False),
        (Footprint(tiles=A), Footprint(tiles=B), False, False),
        (Footprint(tiles=A), Footprint(reads=B), False, True),
        (Footprint(tiles=A), Footprint(writes=B), False, True),
        (Footprint(writes=A), Footprint(tiles=B), False, True),
        (Footprint(reads=A), Footprint(tiles=B), False, True),
    ],
)
def test_rules(older: Footprint, younger: Footprint, same: bool, waits: bool) -> None:
    """Write-after-read and write-after-write are safe on one engine; read-after-write never is."""
    assert older.before(younger, same_engine=same) == waits


@pytest.mark.parametrize("edge", [16, 32])
def test_lines_of_a_depthwise_gemm(edge: int) -> None:
    """It reads each line with its three further rows, and not what lies between the lines."""
    text = f"dst=0x8000 src0=0x100 M=3 N=20 K={3 * edge} B=stream out=i32 depthwise ap=48 bp=0x200"
    prefix, word = assemble(f"GEMM {text}", limits=Limits(array_dim=edge)).instructions
    one = words(0x100, 6, 20, 48)
    touched = footprint(word, prefix, edge)
    assert touched == Footprint(reads=one | one << 32 | one << 64, writes=words(0x8000, 3, 80, 80))
    (cost,) = word_costs([prefix, word], Limits(array_dim=edge))[1:]
    assert (cost.macs, cost.tiles) == (4 * 3 * 3 * 20, -(-20 // edge) * 3)


def test_rows_in_lines() -> None:
    """A GEMM with A in lines reads each line, and not what lies between them."""
    prefix = Instruction(Opcode.PFX, src0=1, src1=32, m=2 << 14 | 3)
    text = "GEMM dst=0x8000 src0=0x100 M=4 N=20 K=140 B=stream out=i32"
    (word,) = assemble(text).instructions
    one = words(0x100, 4, 48, 16)
    touched = footprint(word, prefix, 16)
    assert touched == Footprint(reads=one | one << 32 | one << 64, writes=words(0x8000, 4, 80, 80))
    (cost,) = word_costs([prefix, word], Limits())[1:]
    assert (cost.macs, cost.tiles) == (4 * 20 * 140, 2 * 9)


def test_younger_ones_may_stay() -> None:
    """A barrier waits for the youngest that matters, and remembers what is complete."""
    board = Board()
    for bit in range(7):
        board.issue(Engine.GEMM, Footprint(writes=1 << bit))
    assert board.needed(Engine.SMX, Footprint(reads=0b0100000)) == {Engine.GEMM: 1}
    assert board.needed(Engine.SMX, Footprint(reads=0b0101000)) == {Engine.GEMM: 1}
    assert board.needed(Engine.SMX, Footprint(reads=0b0000001)) == {Engine.GEMM: 4}
    board.wait(Engine.GEMM, 4)
    assert board.needed(Engine.SMX, Footprint(reads=0b0000111)) == {}
    assert (board.complete(Engine.GEMM), board.issued[Engine.GEMM]) == (3, 7)
    assert board.needed(Engine.SMX, Footprint(reads=0b0001000)) == {Engine.GEMM: 3}


def test_dropped_ones_do_not_count() -> None:
    """An instruction that may be dropped while an older one runs is not one that may stay."""
    board = Board()
    board.issue(Engine.GEMM, Footprint(writes=1), dropped_to=0)
    board.issue(Engine.GEMM, Footprint(writes=2), dropped_to=16)
    board.issue(Engine.GEMM, Footprint(writes=4), dropped_to=32)
    assert board.needed(Engine.SMX, Footprint(reads=1)) == {Engine.GEMM: 0}
    board.issue(Engine.GEMM, Footprint(writes=8), dropped_to=16)
    assert board.needed(Engine.SMX, Footprint(reads=2)) == {Engine.GEMM: 1}
    board.wait(Engine.GEMM, 1)
    assert board.needed(Engine.SMX, Footprint(reads=2)) == {}
    assert board.needed(Engine.SMX, Footprint(reads=1)) == {Engine.GEMM: 0}


@pytest.mark.parametrize(
    ("older", "younger", "stay"), [(5, 5, 1), (5, 9, 1), (5, 0, 1), (0, 0, 1), (9, 5, 0), (0, 9, 0)]
)
def test_a_narrower_window_may_drop_more(older: int, younger: int, stay: int) -> None:
    """What ran in one window says nothing of LEN in a narrower one; 0 is the widest."""
    board = Board(window=older)
    board.issue(Engine.LD, Footprint(writes=1), dropped_to=1)
    board.window = younger
    board.issue(Engine.LD, Footprint(writes=2), dropped_to=1)
    assert board.needed(Engine.GEMM, Footprint(reads=1)) == {Engine.LD: stay}


def test_the_builder_knows_the_window() -> None:
    """From its start on, and behind a SET."""
    builder = ProgramBuilder(Limits(), window=7)
    assert builder.board.window == 7
    builder.set("POS", 3)
    builder.set("WINDOW", 0)
    builder.advance("POS", -5)
    assert builder.board.window == 0
    assert builder.program()[1].splitlines() == [
        "SET POS v=3",
        "SET WINDOW v=0",
        "SET POS v=4294967291 add",
    ]


def test_builder_waits_once() -> None:
    """Engines of equal n share a barrier, and nothing is waited for twice."""
    builder = ProgramBuilder(Limits())
    copy: dict[str, int | str | None] = {"op": "copy2d", "M": 1, "N": 16}
    builder.emit("DMA_LOAD", dst=0, M=1, N=16, b=0)
    builder.emit("VEC", more=copy, dst=0x20, src0=0x100)
    builder.emit("VEC", more=copy, dst=0x30, src0=0x100)
    builder.emit("GEMM", dst=0x40, src0=0, src1=0x20, M=1, N=1, K=1)
    builder.emit("VEC", more=copy, dst=0x50, src0=0x20)
    builder.emit("DMA_STORE", dst=0x30, M=1, N=16, b=1)
    builder.emit("DMA_STORE", dst=0x0, M=1, N=16, b=1)
    builder.fence()
    _, text = builder.program()
    barriers = [line for line in text.splitlines() if line.startswith("BARRIER")]
    assert barriers == [
        "BARRIER n=1 vec",
        "BARRIER ld",
        "BARRIER n=1 vec",
        "BARRIER st gemm vec",
    ]


@pytest.mark.parametrize("slots", [1, 2, 3, 5])
@pytest.mark.parametrize("units", [1, 2, 3, 5])
def test_schedule(units: int, slots: int) -> None:
    """Every step of every unit once, in its order, and never in a buffer that is in use."""
    slots = min(units, slots)
    busy: dict[int, int] = {}
    done: dict[int, list[UnitStep]] = {unit: [] for unit in range(units)}
    for step, unit in schedule(units, slots):
        done[unit].append(step)
        if step == UnitStep.SCORES:
            assert unit % slots not in busy
            busy[unit % slots] = unit
        elif step == UnitStep.CONTEXT:
            assert busy.pop(unit % slots) == unit
    assert all(steps == list(UnitStep) for steps in done.values())
