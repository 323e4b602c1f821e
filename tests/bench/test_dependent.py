# SPDX-License-Identifier: Apache-2.0
"""Programs of dependent instructions: no race, no barrier too many or too strong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from golden.machine import ChipConfig, Machine, RunResult, StartState
from spec.isa import Instruction, Opcode
from tb.bench.environment import PROGRAM, STREAM
from tb.bench.memory import Memory
from tb.bench.scenes import Keep
from tb.stimulus.barriers import MOST
from tb.stimulus.dependent_programs import Dependent, Surroundings, complete, draw, looped
from tb.stimulus.random_case import Case

MEMORY_BYTES = 1 << 24


def _drawn(seed: int, *, loop: bool) -> tuple[Dependent, Surroundings]:
    """Return a program and what it was drawn for."""
    random = np.random.default_rng(seed)
    memory = Memory(random.integers(0, 256, MEMORY_BYTES, np.uint8))
    sram = random.integers(0, 256, ChipConfig().sram_bytes, np.uint8)
    around = Surroundings(ChipConfig(), memory, sram)
    return draw(random, around, loop=loop), around


def _run(around: Surroundings, program: Dependent, words: Sequence[Instruction]) -> RunResult:
    """Run words on the model with its race detector, with all else as the program has it."""
    image = Memory(around.memory.snapshot())
    image.stage(PROGRAM, b"".join(word.encode() for word in words))
    image.stage(STREAM, program.stream)
    draft = program.draft
    start = StartState(
        PROGRAM,
        len(words),
        STREAM,
        len(program.stream),
        **draft.registers,
    )
    return Machine(around.config, image.data, around.sram.copy()).run(start)


def _weakened(words: Sequence[Instruction], at: int) -> list[Instruction]:
    """Return the program with one barrier that waits for less; one that cannot is a NOP."""
    barrier = words[at]
    weaker = replace(barrier, n=barrier.n + 1) if barrier.n < MOST else Instruction(Opcode.NOP)
    return [*words[:at], weaker, *words[at + 1 :]]


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_barriers_are_the_weakest(seed: int, loop: bool) -> None:
    """The program has no race, and has one as soon as any of its barriers waits for less."""
    program, around = _drawn(seed, loop=loop)
    result = _run(around, program, program.words)
    assert (result.error, result.races) == (None, [])
    places = [at for at, word in enumerate(program.words) if word.opcode == Opcode.BARRIER]
    assert places
    for at in places:
        assert program.words[at].m.bit_count() == 1
        for words in (
            _weakened(program.words, at),
            [*program.words[:at], Instruction(Opcode.NOP), *program.words[at + 1 :]],
        ):
            assert _run(around, program, words).races, f"barrier {at} may be weaker"


def test_loops_go_round() -> None:
    """A LOOP has words dispatched more than once."""
    for seed in range(6):
        program, around = _drawn(seed, loop=True)
        indices = [index for index, _ in _run(around, program, program.words).dispatched]
        assert len(set(indices)) < len(indices)


def test_a_loop_over_nothing_but_refused_words_goes_elsewhere() -> None:
    """A program that was asked for with a LOOP has one."""
    program, around = _drawn(2, loop=True)
    refused = Case([Instruction(200)])
    draft = replace(program.draft, cases=(refused, *program.draft.cases), loop=(0, 1))
    assert complete(around, draft).draft.loop is None
    found = looped(np.random.default_rng(1), around, draft)
    assert refused not in found.draft.cases
    indices = [index for index, _ in _run(around, found, found.words).dispatched]
    assert len(set(indices)) < len(indices)


def test_a_program_with_some_of_its_cases() -> None:
    """The others are gone, what is left is legal and has barriers of its own."""
    program, around = _drawn(1, loop=True)
    kept = program.draft.keeping(Keep(0, ("p1", "p4")))
    cases = program.draft.cases
    assert kept.cases == (cases[1], cases[4])
    assert program.draft.keeping(Keep(0)) == program.draft
    shorter = complete(around, kept)
    assert len(shorter.words) < len(program.words)
    assert _run(around, shorter, shorter.words).error is None
