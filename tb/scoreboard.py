# SPDX-License-Identifier: Apache-2.0
"""Compares a run of the chip with the instruction-level model, byte for byte.

Every SRAM write is compared with the model's write of the same instruction, so that values which
later instructions overwrite count too; then the whole SRAM and the whole memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.machine import ErrorReport, RunResult
from npu.asm import disassemble
from npu.isa import Instruction, Opcode
from tb.dut import CLOCK_NS
from tb.logs import Records

WORD = 16

Locate = Callable[[int, int], str]
"""(instruction, SRAM byte address) -> where that is in the model: layer, tensor and index."""


class MismatchError(AssertionError):
    """The chip and the model differ."""


@dataclass(frozen=True)
class Writes:
    """The last write of each instruction to each SRAM word, ordered by instruction and address.

    Attributes:
        keys: (n,) int64, instruction << 16 | word address.
        data: (n, 16) uint8.
        cycle: (n,) int64, when it happened; -1 in the model.
    """

    keys: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    cycle: npt.NDArray[np.int64]

    @classmethod
    def of_log(cls, records: Records) -> Writes:
        """From the bench's log of SRAM writes (`tb.logs.SRAM_WRITE`)."""
        keys = records["instr"].astype(np.int64) << 16 | records["word"].astype(np.int64)
        return cls._last(keys, records["data"], records["cycle"].astype(np.int64))

    @classmethod
    def of_model(cls, result: RunResult) -> Writes:
        """From the model's list of writes."""
        parts = result.sram_writes
        if not parts:
            empty = np.zeros(0, np.int64)
            return cls(empty, np.zeros((0, WORD), np.uint8), empty)
        keys = np.concatenate(
            [
                (part.instr << 16) + part.address + np.arange(len(part.data), dtype=np.int64)
                for part in parts
            ]
        )
        data = np.concatenate([part.data for part in parts])
        return cls._last(keys, data, np.full(keys.size, -1, np.int64))

    @classmethod
    def _last(
        cls,
        keys: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        cycle: npt.NDArray[np.int64],
    ) -> Writes:
        unique, from_end = np.unique(keys[::-1], return_index=True)
        at = keys.size - 1 - from_end
        return cls(unique, data[at], cycle[at])


@dataclass(frozen=True)
class Compared:
    """What was compared and found equal.

    Attributes:
        sram_write_bytes: bytes of logged SRAM writes.
        sram_bytes, memory_bytes: whole images.
    """

    sram_write_bytes: int
    sram_bytes: int
    memory_bytes: int

    @property
    def total(self) -> int:
        """All compared bytes."""
        return self.sram_write_bytes + self.sram_bytes + self.memory_bytes


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


def _explain(
    key: int, how: str, expected: Writes, actual: Writes, name: str, locate: Locate | None
) -> str:
    instr, word = key >> 16, key & 0xFFFF
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
    """Compare every SRAM write of every instruction.

    Raises:
        MismatchError: naming the first difference in program order.
    """
    first = _first_difference(expected, actual)
    if first is not None:
        key, how = first
        name = describe(program, key >> 16)
        raise MismatchError(_explain(key, how, expected, actual, name, locate))


def compare_images(
    expected: npt.NDArray[np.uint8], actual: npt.NDArray[np.uint8], what: str
) -> None:
    """Compare two images of `what` ("SRAM", "memory") byte for byte.

    Raises:
        MismatchError: naming the first address that differs.
    """
    if np.array_equal(expected, actual):
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
