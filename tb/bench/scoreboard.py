# SPDX-License-Identifier: Apache-2.0
"""Compares a run of the chip with the instruction-level model, byte for byte.

Every SRAM write is compared with the model's write of the same instruction in the same turn of a
loop, so that values which later instructions or turns overwrite count too; then the whole SRAM and
the whole memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.machine import ErrorReport, RunResult
from npu.asm import disassemble
from spec.isa import WORD, Instruction, Opcode
from tb.bench.dut import CLOCK_NS
from tb.bench.logs import Records
from tb.bench.memory import equal

Locate = Callable[[int, int], str]
"""(instruction, SRAM byte address) -> where that is in the model: layer, tensor and index."""


class MismatchError(AssertionError):
    """The chip and the model differ.

    Attributes:
        instr: index of the instruction whose write is wrong, -1 where no single one is.
        cycle: that of the wrong write, -1 without one.
    """

    def __init__(self, text: str, instr: int = -1, cycle: int = -1) -> None:
        super().__init__(text)
        self.instr = instr
        self.cycle = cycle


WORD_BITS, TURN_BITS = 16, 20
"""Of a key: the word address, and above it how often the instruction wrote that word before."""


class RunMismatchError(MismatchError):
    """A run differs from the model's; says the first difference and keeps what has happened.

    Attributes:
        execution: the whole run (an `Execution` of tb.bench.environment), its count of differences
            included.
    """

    def __init__(self, text: str, execution: object) -> None:
        super().__init__(text)
        self.execution = execution


@dataclass(frozen=True)
class Writes:
    """Every write to SRAM, ordered by instruction, turn and address.

    An instruction writes each word of its output once; in a loop, once in every turn. So the n-th
    write of an instruction to a word belongs to its n-th turn, whatever the order within a turn.

    Attributes:
        keys: (n,) int64, unique: instruction, turn and word address, see `WORD_BITS`.
        data: (n, 16) uint8.
        cycle: (n,) int64, when it happened; -1 in the model.
    """

    keys: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    cycle: npt.NDArray[np.int64]

    @property
    def instrs(self) -> npt.NDArray[np.int64]:
        """Return the instruction of each write, (n,)."""
        return self.keys >> (TURN_BITS + WORD_BITS)

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """Return the word address of each write, (n,)."""
        return self.keys & ((1 << WORD_BITS) - 1)

    @classmethod
    def of_log(cls, records: Records) -> Writes:
        """From the bench's log of SRAM writes (`tb.bench.logs.SRAM_WRITE`)."""
        instrs, words = records["instr"].astype(np.int64), records["word"].astype(np.int64)
        return cls._in_turns(instrs, words, records["data"], records["cycle"].astype(np.int64))

    @classmethod
    def of_model(cls, result: RunResult) -> Writes:
        """From the model's list of writes."""
        parts = result.sram_writes
        if not parts:
            empty = np.zeros(0, np.int64)
            return cls(empty, np.zeros((0, WORD), np.uint8), empty)
        instrs = np.repeat([part.instr for part in parts], [len(part.data) for part in parts])
        words = np.concatenate([part.address + np.arange(len(part.data)) for part in parts])
        data = np.concatenate([part.data for part in parts])
        return cls._in_turns(instrs.astype(np.int64), words, data, np.full(words.size, -1))

    @classmethod
    def _in_turns(
        cls,
        instrs: npt.NDArray[np.int64],
        words: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        cycle: npt.NDArray[np.int64],
    ) -> Writes:
        """Order writes that are given in order of time; equal ones are numbered by turns."""
        keys = instrs << (TURN_BITS + WORD_BITS) | words
        unique, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
        if unique.size < keys.size:
            by_key = np.argsort(where, kind="stable")
            turns = np.arange(keys.size) - np.repeat(np.cumsum(counts) - counts, counts)
            keys[by_key] |= turns << WORD_BITS
        order = np.argsort(keys)
        return cls(keys[order], data[order], cycle[order])


@dataclass(frozen=True)
class Count:
    """Bytes that were compared, and how many of them differ."""

    compared: int = 0
    wrong: int = 0

    def __add__(self, other: Count) -> Count:
        """Return both together."""
        return Count(self.compared + other.compared, self.wrong + other.wrong)

    def __str__(self) -> str:
        """Return "3 of 1,000"."""
        return f"{self.wrong:,} of {self.compared:,}"


Image = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Compared:
    """How much of a run was compared with the model.

    Attributes:
        written: bytes that instructions wrote: each logged write of an SRAM word, and the words of
            memory that were stored to. A word that only one of the two wrote is wrong as a whole.
        untouched: all other bytes of SRAM and memory.
    """

    written: Count
    untouched: Count

    @property
    def differs(self) -> bool:
        """Whether any byte was wrong."""
        return self.written.wrong + self.untouched.wrong > 0

    @classmethod
    def of(
        cls,
        writes: tuple[Writes, Writes],
        sram: tuple[Image, Image],
        memory: tuple[Image, Image],
        stored: npt.NDArray[np.int64],
    ) -> Compared:
        """Count, without stopping at a difference: what is expected, and what the chip did.

        `stored` are the words of memory that the model wrote to.
        """
        log = count_writes(*writes)
        keys = np.concatenate([part.keys for part in writes])
        in_sram, sram_rest = _count_image(*sram, np.unique(keys & 0xFFFF))
        in_memory, memory_rest = _count_image(*memory, stored)
        # The SRAM holds what has been compared as a write already, unless it has changed since.
        changed = Count(0, 0 if log.wrong else in_sram.wrong)
        return cls(log + changed + in_memory, sram_rest + memory_rest)


def count_bytes(expected: npt.NDArray[Any], actual: npt.NDArray[Any]) -> Count:
    """Count the bytes of a tensor; of another shape or type it is wrong as a whole."""
    size = int(expected.nbytes)
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return Count(size, size)
    left, right = (np.ascontiguousarray(one).view(np.uint8) for one in (expected, actual))
    return Count(size, int(np.count_nonzero(left != right)))


def count_writes(expected: Writes, actual: Writes) -> Count:
    """Count the bytes of all writes."""
    common, left, right = np.intersect1d(
        expected.keys, actual.keys, assume_unique=True, return_indices=True
    )
    alone = expected.keys.size + actual.keys.size - 2 * common.size
    wrong = int(np.count_nonzero(expected.data[left] != actual.data[right]))
    return Count(WORD * (common.size + alone), wrong + WORD * alone)


def _count_image(
    expected: Image, actual: Image, words: npt.NDArray[np.int64]
) -> tuple[Count, Count]:
    """Count the bytes of an image that are in `words`, and those that are not."""
    size = WORD * words.size
    if equal(expected, actual):  # as always; counting takes many times as long
        return Count(size), Count(expected.size - size)
    wrong = np.count_nonzero((expected != actual).reshape(-1, WORD), axis=1)
    inside = Count(size, int(wrong[words].sum()))
    whole = Count(expected.size, int(wrong.sum()))
    return inside, Count(whole.compared - inside.compared, whole.wrong - inside.wrong)


def describe(program: Sequence[Instruction], instr: int) -> str:
    """Return `instruction 7 (GEMM ...)` for messages, with its prefix operands folded in."""
    if not 0 <= instr < len(program):
        return f"instruction {instr} (outside the program)"
    first = instr - 1 if instr and program[instr - 1].opcode == Opcode.PFX else instr
    try:
        text = disassemble(list(program[first : instr + 1])).strip()
    except ValueError as error:
        text = f"{program[instr]} ({error})"
    return f"instruction {instr} ({text})"


def _first_difference(expected: Writes, actual: Writes) -> tuple[int, str] | None:
    """Return the smallest key that differs and how: "missing", "unexpected" or "data"."""
    found: list[tuple[int, str]] = []
    missing = np.setdiff1d(expected.keys, actual.keys, assume_unique=True)
    if missing.size:
        found.append((int(missing.min()), "missing"))
    extra = np.setdiff1d(actual.keys, expected.keys, assume_unique=True)
    if extra.size:
        found.append((int(extra.min()), "unexpected"))
    common, left, right = np.intersect1d(
        expected.keys, actual.keys, assume_unique=True, return_indices=True
    )
    wrong = np.flatnonzero((expected.data[left] != actual.data[right]).any(axis=1))
    if wrong.size:
        found.append((int(common[wrong[0]]), "data"))
    return min(found) if found else None


def _split(key: int) -> tuple[int, int, int]:
    """Return instruction, turn and word address of a key."""
    turn = key >> WORD_BITS & ((1 << TURN_BITS) - 1)
    return key >> (TURN_BITS + WORD_BITS), turn, key & ((1 << WORD_BITS) - 1)


def _explain(
    key: int, how: str, expected: Writes, actual: Writes, name: str, locate: Locate | None
) -> str:
    instr, turn, word = _split(key)
    at_expected = np.searchsorted(expected.keys, key)
    at_actual = np.searchsorted(actual.keys, key)
    byte = word * WORD
    if how == "missing":
        detail = f"never wrote SRAM word {byte:#x}"
    elif how == "unexpected":
        cycle = int(actual.cycle[at_actual])
        detail = f"wrote SRAM word {byte:#x}, which it must not, at cycle {cycle}"
    else:
        want, have = expected.data[at_expected], actual.data[at_actual]
        lane = int(np.flatnonzero(want != have)[0])
        byte += lane
        cycle = int(actual.cycle[at_actual])
        detail = (
            f"SRAM byte {byte:#x}: expected {int(want[lane]):#04x}, actual {int(have[lane]):#04x} "
            f"(word: expected {want.tobytes().hex()}, actual {have.tobytes().hex()}) "
            f"at cycle {cycle}, {cycle * CLOCK_NS} ns"
        )
    place = f" {locate(instr, byte)}:" if locate is not None else ""
    if turn:
        place = f" turn {turn}:{place}"
    alone = int(np.setxor1d(expected.keys, actual.keys, assume_unique=True).size)
    common, left, right = np.intersect1d(
        expected.keys, actual.keys, assume_unique=True, return_indices=True
    )
    wrong = alone + int((expected.data[left] != actual.data[right]).any(axis=1).sum())
    total = alone + common.size
    return f"{name}:{place} {detail}; {wrong} of {total} written words differ"


def compare_writes(
    expected: Writes,
    actual: Writes,
    program: Sequence[Instruction],
    locate: Locate | None = None,
) -> None:
    """Compare every SRAM write of every instruction, in a loop of every turn.

    Raises:
        MismatchError: naming the first difference in program order.
    """
    first = _first_difference(expected, actual)
    if first is not None:
        key, how = first
        instr = _split(key)[0]
        text = _explain(key, how, expected, actual, describe(program, instr), locate)
        cycle = -1 if how == "missing" else int(actual.cycle[np.searchsorted(actual.keys, key)])
        raise MismatchError(text, instr, cycle)


def compare_images(
    expected: npt.NDArray[np.uint8], actual: npt.NDArray[np.uint8], what: str
) -> None:
    """Compare two images of `what` ("SRAM", "memory") byte for byte.

    Raises:
        MismatchError: naming the first address that differs.
    """
    if equal(expected, actual):
        return
    wrong = np.flatnonzero(expected != actual)
    first = int(wrong[0])
    raise MismatchError(
        f"{what} differs in {wrong.size} of {expected.size} bytes, first at {first:#x}: "
        f"expected {int(expected[first]):#04x}, actual {int(actual[first]):#04x}"
    )


def compare_errors(expected: ErrorReport | None, actual: ErrorReport | None) -> None:
    """Compare how two runs ended.

    Raises:
        MismatchError: saying both.
    """
    if expected != actual:
        raise MismatchError(f"the program's end: expected {expected}, actual {actual}")
