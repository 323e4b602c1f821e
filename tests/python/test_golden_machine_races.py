# SPDX-License-Identifier: Apache-2.0
"""The race detector: every kind of conflict, the barrier that removes it, and one that does not."""

from __future__ import annotations

import numpy as np
import pytest

from golden.machine import Race
from npu.isa import Instruction, Opcode, VecOp
from tests.python import golden_programs as gp
from tests.python.golden_programs import END, Bench, barrier, pfx
from tests.python.golden_support import random_model, seeded

LD, ST, GEMM, SMX, NRM, VEC = (1 << engine for engine in range(6))


def load(dst: int, offset: int = 0, size: int = 16) -> Instruction:
    """Return a load of one row; dst in words."""
    return Instruction(Opcode.DMA_LOAD, 0, dst, offset, 0, 1, size)


def store(src: int, offset: int = 0, size: int = 16) -> Instruction:
    """Return a store of one row; src in words."""
    return Instruction(Opcode.DMA_STORE, 0, src, offset, 0, 1, size)


def copy(dst: int, src: int, n: int = 16) -> Instruction:
    """Return a VEC COPY2D of one row; addresses in words."""
    return Instruction(Opcode.VEC, 0, dst, src, 0, 1, n, 0, VecOp.COPY2D)


def races(*words: Instruction) -> list[Race]:
    """Run a program and return its races."""
    result = Bench([*words, END]).run()
    assert result.error is None
    return result.races


def kinds(*words: Instruction) -> list[tuple[str, int, int]]:
    """Return kind, older and younger instruction of each race."""
    return [(race.kind, race.older, race.younger) for race in races(*words)]


@pytest.mark.parametrize(
    ("older", "younger", "kind", "mask"),
    [
        (load(0), copy(4, 0), "RAW", LD),
        (copy(4, 0), load(0), "WAR", VEC),
        (load(0), copy(0, 4), "WAW", LD),
        (copy(4, 0), copy(8, 4), "RAW", VEC),
        (copy(4, 0), store(4), "RAW", VEC),
        (store(4), copy(4, 0), "WAR", ST),
        (store(4, 0x100), load(0, 0x100), "RAW", ST),
        (load(0, 0x100), store(4, 0x100), "WAR", LD),
        (load(0, 0x100, 8), store(4, 0x100, 4), "WAR", LD),
    ],
)
def test_a_conflict_and_its_barrier(
    older: Instruction, younger: Instruction, kind: str, mask: int
) -> None:
    """The barrier of the older engine removes the race; those of the others do not."""
    assert kinds(older, younger) == [(kind, 0, 1)]
    assert kinds(older, barrier(mask), younger) == []
    assert kinds(older, barrier(), younger) == []
    assert kinds(older, barrier(0x3F & ~mask), younger) == [(kind, 0, 2)]
    assert kinds(barrier(), older, younger) == [(kind, 1, 2)]


@pytest.mark.parametrize(
    ("older", "younger"),
    [
        (copy(4, 0), copy(0, 8)),
        (copy(4, 0), copy(4, 8)),
        (copy(4, 0), load(8)),
        (copy(4, 0), store(0)),
        (load(0, 0x100), load(4, 0x100)),
        (store(0, 0x100), store(4, 0x100)),
        (load(0, 0x100), store(4, 0x110)),
    ],
)
def test_no_conflict(older: Instruction, younger: Instruction) -> None:
    """Write-after-read and write-after-write on one engine, and two reads, are safe."""
    assert kinds(older, younger) == []


def test_a_barrier_leaves_the_youngest_n_open() -> None:
    """With n = 1 all but the last load are complete."""
    two = [load(0), load(1)]
    assert kinds(*two, barrier(LD, 1), copy(4, 0)) == []
    assert kinds(*two, barrier(LD, 1), copy(4, 1)) == [("RAW", 1, 3)]
    assert kinds(*two, barrier(LD, 2), copy(4, 0)) == [("RAW", 0, 3)]
    three = [load(0), barrier(LD, 1), load(1), copy(4, 0)]
    assert kinds(*three) == [("RAW", 0, 3)]
    assert kinds(load(0), barrier(LD), load(1), barrier(LD, 4), copy(4, 0)) == []


def test_every_pair_is_reported_with_its_first_word() -> None:
    """A read of three words of which two come from different loads."""
    found = races(load(0), load(2), copy(8, 0, 48))
    assert [str(race) for race in found] == [
        "RAW race in sram at byte 0x0: instruction 0, then 2 without the barrier between",
        "RAW race in sram at byte 0x20: instruction 1, then 2 without the barrier between",
    ]


def test_detection_can_be_switched_off() -> None:
    """The result is the same, the list is empty."""
    bench = Bench([load(0), copy(4, 0), END])
    assert bench.run(races=False).races == []


ADD = Instruction(Opcode.VEC, 0, 0, 0, 0, 4, 32, 0, VecOp.ADD)


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        ([ADD], True),
        ([pfx(3, 3, 3), ADD], True),
        ([pfx(4, 3, 3), ADD], False),
        ([Instruction(Opcode.VEC, 0, 1, 0, 0x40, 4, 32)], False),
        ([Instruction(Opcode.VEC, 0, 0, 0, 0, 1, 16, 0, VecOp.SCALE_SHIFT | 1 << 5)], False),
        ([pfx(cp=1), Instruction(Opcode.VEC, 0, 0x40, 0, 0, 4, 32)], False),
        ([Instruction(Opcode.SOFTMAX, 0, 0, 0, 0x100, 4, 16, 0, 2)], True),
        ([Instruction(Opcode.SOFTMAX, 0, 0, 0, 0x100, 4, 16, 0, 1)], False),
        ([Instruction(Opcode.SOFTMAX, 0, 0, 0x40, 3, 4, 16, 0, 2)], False),
        ([Instruction(Opcode.SOFTMAX, 0, 0, 0x40, 0x42, 4, 16, 0, 2)], False),
        ([Instruction(Opcode.LAYERNORM, 0, 0, 0, 0x40, 4, 16, 0, 2)], False),
        ([Instruction(Opcode.GEMM, 0, 0, 0, 0x40, 4, 16, 16)], False),
        ([Instruction(Opcode.GEMM, gp.ACCUMULATE, 0x80, 0, 0x40, 4, 16, 16)], True),
        ([pfx(d=0x81), Instruction(Opcode.GEMM, gp.ACCUMULATE, 0x80, 0, 0x40, 4, 16, 16)], False),
    ],
)
def test_outputs_on_inputs(words: list[Instruction], clean: bool) -> None:
    """Only the in-place form of the ISA may lay an output over an input, or over itself."""
    found = races(*words)
    assert [race.kind for race in found] == ([] if clean else ["SELF"])


def test_stores_into_program_and_stream() -> None:
    """Fetch and streamer run ahead of the program, so such a store has no defined effect."""
    bench = Bench([store(0), END], bytes(64), bases=(0, 0, 0, 0, 0, 0, 0, 0))
    assert [race.kind for race in bench.run().races] == ["PROGRAM"]
    bench = Bench([store(0), END], bytes(64), bases=(gp.STREAM_BASE + 48, *[0] * 7))
    assert [race.kind for race in bench.run().races] == ["STREAM"]


@pytest.mark.parametrize("rows", [3, 17, 128])
def test_every_barrier_of_a_block_is_needed(rows: int) -> None:
    """A GPT-2 block has no race; without any one of its barriers but the last it has."""
    model = random_model(510, layers=1)
    params = model.blocks[0]
    program, stream = gp.block_program(rows, params), gp.block_stream(params)
    seeded(511)
    barriers = [i for i, word in enumerate(program) if word.opcode == Opcode.BARRIER]
    assert program[barriers[-1] + 1] == END
    bench = Bench(program, stream)
    bench.put(gp.X, np.zeros((rows, 64), np.int16))
    assert bench.run().races == []
    chosen = barriers[:-1] if rows == 17 else barriers[:-1:4]
    for index in chosen:
        shorter = Bench(program[:index] + program[index + 1 :], stream)
        result = shorter.run()
        assert result.error is None
        assert result.races, f"no race without the barrier at {index}"
