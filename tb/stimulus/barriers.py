# SPDX-License-Identifier: Apache-2.0
"""The weakest barriers that make a program free of races, put in by the model's race detector.

What a program touches does not depend on its barriers, so the model runs it once; then the record
of that run goes through the detector again and again. A barrier waits for one engine, down to as
many instructions of it as may still be at work. In the end none is left that could go, or let one
instruction more be unfinished, without a race.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from golden.machine import ChipConfig, Race, RunResult, StartState
from golden.machine.operands import block
from golden.machine.operations import Accesses, Barrier
from golden.machine.races import RaceDetector
from spec.isa import OPCODES, WORD, Engine, Instruction, Opcode

MOST = 4
"""The largest number of unfinished instructions that a barrier can name."""
ORDERED = ("RAW", "WAR", "WAW")
"""Kinds of race that a barrier removes."""

Place = tuple[int, Engine]
"""Index of the word that a barrier stands before, and the engine that it waits for."""
Hazard = tuple[str, Engine, Engine]
"""Kind of a hazard, engines of the older and of the younger instruction."""


@dataclass(frozen=True)
class Recorded:
    """A program without barriers and what the model has dispatched of it.

    Attributes:
        words: the program.
        start: how it was started.
        result: what the model returned.
        config: the chip.
    """

    words: Sequence[Instruction]
    start: StartState
    result: RunResult
    config: ChipConfig

    @cached_property
    def memory_words(self) -> int:
        """The word of memory from which on no instruction touches any."""
        touched = [
            operand.words().max(initial=-1)
            for _, operation in self.result.dispatched
            if isinstance(operation, Accesses)
            for operand in (*operation.memory_reads, *operation.memory_writes)
        ]
        return 1 + int(max(touched, default=-1))

    def place(self, index: int) -> int:
        """Return where a barrier goes that instruction `index` waits at: before its prefix."""
        prefixed = index > 0 and self.words[index - 1].opcode == Opcode.PFX
        return index - prefixed

    def engine(self, index: int) -> Engine:
        """Return the engine that executes instruction `index`."""
        return Engine(OPCODES[Opcode(self.words[index].opcode)].engine)

    def races(self, barriers: dict[Place, int], *, all_of_them: bool = False) -> Found:
        """Return the races that are left with these barriers: all, or those of the first word."""
        start = self.start
        stream = block(start.stream_base, start.stream_len) if start.stream_len else None
        detector = RaceDetector(
            self.config.sram_bytes // WORD,
            self.memory_words,
            block(start.ucode_base, start.ucode_len * WORD),
            stream,
        )
        before: dict[int, list[Barrier]] = {}
        for (place, engine), most in barriers.items():
            before.setdefault(place, []).append(Barrier((engine,), most))
        for step, (index, operation) in enumerate(self.result.dispatched):
            for barrier in before.get(self.place(index), ()):
                detector.barrier(barrier)
            if isinstance(operation, Accesses):
                detector.add(index, operation)
            if detector.races and not all_of_them:
                return Found(detector.races, step)
        return Found(detector.races, len(self.result.dispatched))

    def issued_between(self, older: int, step: int) -> int:
        """Return how many instructions its engine got after `older`, before dispatch `step`."""
        engine, count = self.engine(older), 0
        for index, operation in reversed(self.result.dispatched[:step]):
            if index == older:
                return count
            count += isinstance(operation, Accesses) and self.engine(index) == engine
        raise ValueError(f"instruction {older} is not dispatched before step {step}")


@dataclass(frozen=True)
class Found:
    """Races, and the number of the dispatch at which the search ended."""

    races: list[Race]
    step: int


def hazards(recorded: Recorded) -> Counter[Hazard]:
    """Count the pairs of accesses that only a barrier orders."""
    found = recorded.races({}, all_of_them=True).races
    return Counter(
        (race.kind, recorded.engine(race.older), recorded.engine(race.younger)) for race in found
    )


def weakest(recorded: Recorded) -> dict[Place, int]:
    """Return the barriers of a program: where, for which engine, how many may be unfinished.

    Raises:
        ValueError: a race that no barrier removes.
    """
    barriers: dict[Place, int] = {}
    while (found := recorded.races(barriers)).races:
        for place, most in _needed(recorded, found).items():
            # Where a word has several reports, or turns, the number may have to fall further.
            barriers[place] = min(most, barriers.get(place, MOST + 1) - 1)
    for place in sorted(barriers):
        _weaken(recorded, barriers, place)
    return barriers


def _needed(recorded: Recorded, found: Found) -> dict[Place, int]:
    """Return the barriers that the races of one word ask for."""
    needed: dict[Place, int] = {}
    for race in found.races:
        if race.kind not in ORDERED:
            raise ValueError(str(race))
        place = recorded.place(race.younger), recorded.engine(race.older)
        most = min(recorded.issued_between(race.older, found.step), MOST)
        needed[place] = min(most, needed.get(place, MOST))
    return needed


def _weaken(recorded: Recorded, barriers: dict[Place, int], place: Place) -> None:
    """Raise the number of one barrier as far as no race appears, and drop it if it can go."""
    while place in barriers:
        most = barriers.pop(place)
        if most < MOST:
            barriers[place] = most + 1
        if recorded.races(barriers).races:
            barriers[place] = most
            return


def insert(words: Sequence[Instruction], barriers: dict[Place, int]) -> list[Instruction]:
    """Return the program with the barriers; what jumps to a word jumps to its barriers."""
    result: list[Instruction] = []
    moved: dict[int, int] = {}
    for index, word in enumerate(words):
        moved[index] = len(result)
        for (place, engine), most in sorted(barriers.items()):
            if place == index:
                result.append(Instruction(Opcode.BARRIER, m=1 << engine, n=most))
        result.append(word)
    for index, word in enumerate(result):
        if word.opcode == Opcode.LOOP:
            target = moved[word.src0]
            result[index] = replace(word, src0=target & 0xFFFF, src1=target >> 16)
    return result
