# SPDX-License-Identifier: Apache-2.0
"""The race detector: every kind of conflict, the barrier that removes it, and one that does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.machine import Race
from spec.isa import Instruction, Opcode, VecOp
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import END, ProgramBench, barrier, pfx
from tests.python.golden.golden_support import random_model, seeded

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
    result = ProgramBench([*words, END]).run()
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
    bench = ProgramBench([load(0), copy(4, 0), END])
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
    bench = ProgramBench([store(0), END], bytes(64), bases=(0, 0, 0, 0, 0, 0, 0, 0))
    assert [race.kind for race in bench.run().races] == ["PROGRAM"]
    bench = ProgramBench([store(0), END], bytes(64), bases=(gp.STREAM_BASE + 48, *[0] * 7))
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
    bench = ProgramBench(program, stream)
    bench.put(gp.X, np.zeros((rows, 64), np.int16))
    assert bench.run().races == []
    chosen = barriers[:-1] if rows == 17 else barriers[:-1:4]
    for index in chosen:
        shorter = ProgramBench(program[:index] + program[index + 1 :], stream)
        result = shorter.run()
        assert result.error is None
        assert result.races, f"no race without the barrier at {index}"


ROWS = Instruction(Opcode.KV_APPEND, src0=4, n=16, k=1)
"""From SRAM word 4 to the first word of the cache."""
STAGED = replace(ROWS, flags=gp.STAGE, dst=0x40)
READ = Instruction(Opcode.KV_READ, dst=0x40, n=16, k=1)
GATHER = Instruction(Opcode.EMBED, 0, 0, 8, 0, 1, 16, 0, 0x10)
"""A list in SRAM word 8 that names row 0 of the memory at BASE0."""
EMBED = Instruction(Opcode.EMBED, 0, 0, 0, 0, 1, 16, 0, 0x00)
ROPE = Instruction(Opcode.ROPE, 0, 0, 4, 8, 1, 16, 1)
RMS = Instruction(Opcode.RMSNORM, 0, 0, 4, 8, 1, 8)
"""C in word 0, A in word 4, angles or parameters from word 8 on."""
PEEK = [pfx(imm=1), gp.gemm(0, 4, 8, 1, 16, 16, gp.ARGMAX | gp.OUT_NONE, gp.REQUANT)]
ARGMAX = Instruction(Opcode.ARGMAX)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    ("older", "younger", "kind", "mask", "needs"),
    [
        (copy(4, 0), ROWS, "RAW", VEC, None),
        (ROWS, copy(4, 0), "WAR", ST, None),
        (STAGED, copy(0, 0x40), "RAW", ST, None),
        (copy(0, 0x40), STAGED, "WAR", VEC, None),
        (READ, copy(0, 0x40), "RAW", LD, None),
        (STAGED, READ, "WAW", ST, None),
        (ROWS, READ, "RAW", ST, None),
        (READ, ROWS, "WAR", LD, None),
        (copy(0x300, 0), READ, "RAW", VEC, False),
        (ROWS, copy(0, 0x300), "RAW", ST, False),
        (load(0, 0x8000), ROWS, "WAR", LD, True),
        (store(0, 0x8000), READ, "RAW", ST, True),
        (copy(8, 0), GATHER, "RAW", VEC, None),
        (GATHER, copy(8, 0), "WAR", LD, None),
        (store(4), GATHER, "RAW", ST, None),
        (store(4), EMBED, "RAW", ST, None),
        (EMBED, store(4), "WAR", LD, None),
        (EMBED, copy(4, 0), "RAW", LD, None),
        (ROPE, copy(0x20, 0), "RAW", NRM, None),
        (copy(4, 0x20), ROPE, "RAW", VEC, None),
        (copy(8, 0x20), ROPE, "RAW", VEC, None),
        (ROPE, copy(9, 0x20), "WAR", NRM, None),
        (ROPE, replace(ROPE, dst=0x10, src0=0), "RAW", NRM, None),
        (RMS, copy(0x20, 0), "RAW", NRM, None),
        (copy(11, 0x20), RMS, "RAW", VEC, None),
    ],
)
def test_conflicts_of_caches_and_rows(
    older: Instruction,
    younger: Instruction,
    kind: str,
    mask: int,
    needs: bool | None,
    in_memory: bool,
) -> None:
    """As above; `needs` says whether the conflict needs the cache in memory, or in SRAM."""
    state = {"kv_cap": 9, "kv_in_memory": in_memory, "kv_base": 0x28000 if in_memory else 0x3000}

    def found(*words: Instruction) -> list[tuple[str, int, int]]:
        bench = ProgramBench([*words, END], registers=state)
        bench.sram[:0x100] = 0
        result = bench.run()
        assert result.error is None
        return [(race.kind, race.older, race.younger) for race in result.races]

    if needs is not None and needs != in_memory:
        assert found(older, younger) == []
        return
    assert (kind, 0, 1) in found(older, younger)
    assert found(older, barrier(mask), younger) == []
    assert (kind, 0, 2) in found(older, barrier(0x3F & ~mask), younger)


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        ([ROPE], True),
        ([replace(ROPE, dst=4)], True),
        ([pfx(cp=2, ap=2), replace(ROPE, dst=4, m=2)], True),
        ([pfx(cp=1, ap=2), replace(ROPE, dst=4, m=2)], False),
        ([replace(ROPE, dst=8)], False),
        ([replace(RMS, dst=4)], False),
        ([replace(GATHER, dst=8)], False),
        ([replace(STAGED, dst=4)], False),
        ([replace(STAGED, imm=0x100)], False),
        ([replace(STAGED, imm=0x100, src1=0x10)], True),
        ([replace(STAGED, dst=0x300)], False),
        ([replace(READ, dst=0x300)], False),
        ([pfx(cp=1), replace(READ, imm=0x100, k=2)], False),
        ([pfx(cp=2), replace(READ, imm=0x100, k=2)], True),
        ([PEEK[0], replace(PEEK[1], src0=0)], True),
    ],
)
def test_outputs_of_caches_and_rows(words: list[Instruction], clean: bool) -> None:
    """ROPE may work in place; staging tiles, heads and lists must lie apart."""
    state = {"kv_cap": 9, "kv_in_memory": False, "kv_base": 0x3000, "kv_head": 0x100}
    bench = ProgramBench([*words, END], registers=state)
    bench.sram[:0x100] = 0
    result = bench.run()
    assert result.error is None
    assert [race.kind for race in result.races] == ([] if clean else ["SELF"])


def test_heads_of_the_cache_must_lie_apart() -> None:
    """Two heads at one place in memory, and an append over the program or the stream."""
    state = {"kv_cap": 9, "kv_base": 0x30000}
    bench = ProgramBench([replace(ROWS, imm=0x100), END], registers=state)
    assert [race.kind for race in bench.run().races] == ["SELF"]
    for base, kind in ((0, "PROGRAM"), (gp.STREAM_BASE, "STREAM")):
        bench = ProgramBench([ROWS, END], bytes(64), registers=state | {"kv_base": base})
        assert [race.kind for race in bench.run().races] == [kind]


def test_argmax_waits_for_gemm() -> None:
    """What GEMM has read and written is finished for the instructions behind ARGMAX."""
    wide = [PEEK[0], gp.gemm(0x20, 4, 8, 1, 16, 16, gp.ARGMAX, gp.REQUANT)]
    assert kinds(*wide, copy(4, 0)) == [("WAR", 1, 2)]
    assert kinds(*wide, copy(0, 0x20)) == [("RAW", 1, 2)]
    assert kinds(*wide, ARGMAX, copy(4, 0)) == []
    assert kinds(*wide, ARGMAX, copy(0, 0x20)) == []
    assert kinds(*wide, ARGMAX, load(0x40)) == [("RAW", 2, 3)]
    assert kinds(*wide, ARGMAX, barrier(ST), load(0x40)) == []
    assert kinds(*wide, ARGMAX, *PEEK, ARGMAX) == []


def test_a_dropped_instruction_is_not_the_youngest() -> None:
    """With n = 1 the load before it may still be open."""
    nothing = replace(READ, dst=0x80, k=gp.length(16, 1))
    assert kinds(load(0), nothing, barrier(LD, 1), copy(4, 0)) == [("RAW", 0, 3)]
    assert kinds(load(0), load(1), barrier(LD, 1), copy(4, 0)) == []


def test_races_run_across_a_loop() -> None:
    """The turn before is older, whatever the word's index."""
    program = [load(0), barrier(LD), copy(4, 0), Instruction(Opcode.LOOP), END]
    state = {"loop_left": 2, "kv_cap": 9}
    result = ProgramBench(program, registers=state).run()
    assert [(race.kind, race.older, race.younger) for race in result.races] == [("WAR", 2, 0)] * 2
    program[3:3] = [barrier(VEC)]
    assert ProgramBench(program, registers=state).run().races == []


def test_only_what_a_dynamic_operand_reads_counts() -> None:
    """Keys beyond LEN, and rows beyond M, may be written at the same time."""
    words = [load(0x40 + 32), load(0x20 + 3)]
    mode = gp.B_TILES | gp.OUT_INT32
    word = gp.gemm(0x1000, 0x20, 0x40, gp.length(16), gp.length(48), 16, mode, gp.TRANSPOSE)
    for pos, expected in ((2, []), (3, ["RAW"]), (31, ["RAW"]), (32, ["RAW", "RAW"])):
        bench = ProgramBench([*words, word, END], pos=pos)
        assert [race.kind for race in bench.run().races] == expected
