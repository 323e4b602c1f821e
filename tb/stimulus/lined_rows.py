# SPDX-License-Identifier: Apache-2.0
"""What a GEMM with A in lines multiplies: rows gathered from their lines, and its exact sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spec.isa import WORD
from spec.isa.operands import Operand, Prefix, sram_operands, up
from tb.stimulus.random_case import Case, Generator
from tb.stimulus.sram_space import Space

Sums = npt.NDArray[np.int64]


def operands(case: Case, edge: int) -> list[Operand]:
    """Return the operands of the instruction of a case."""
    *before, word = case.words
    return sram_operands(word, Prefix.of(before[-1] if before else None), edge)


def _rows(case: Case, lines: list[Operand]) -> npt.NDArray[Any]:
    """Return A (M, K) whose lines are these, from what the case fills their place with."""
    word, a = case.words[-1], case.data["A"]
    first = lines[0]
    raw = np.frombuffer(a.tobytes() + bytes(WORD * up(first.row_bytes)), np.uint8)
    starts = first.pitch * np.arange(first.rows)[:, None]
    parts = [
        raw[starts + (line.address - first.address) + np.arange(line.row_bytes)] for line in lines
    ]
    return np.concatenate(parts, axis=1).view(a.dtype)[:, : word.k]


def sums_of(case: Case, edge: int, *, whole: bool = False) -> Sums:
    """Return A * B (M, N) of a GEMM of the stream with A in lines.

    `whole`: as if the rows began where they do, but were in one piece.
    """
    lines = [one for one in operands(case, edge) if one.name == "src0"]
    if whole:
        size = sum(line.row_bytes for line in lines)
        lines = [Operand("src0", lines[0].address, lines[0].rows, size, lines[0].pitch)]
    return _rows(case, lines).astype(np.int64) @ case.data["B"].astype(np.int64)


def written_sums(case: Case, edge: int, sram: npt.NDArray[np.uint8]) -> Sums:
    """Return the int32 sums (M, N) that a GEMM has written; of a 16-bit A both planes as one."""
    dst = next(one for one in operands(case, edge) if one.writes)
    at = dst.address + dst.pitch * np.arange(dst.rows)[:, None] + np.arange(dst.row_bytes)
    sums: Sums = sram[at].view("<i4").astype(np.int64)
    if case.data["A"].dtype.itemsize == 1:
        return sums
    rows = dst.rows // 2
    both: Sums = (sums[:rows] << 8) + sums[rows:]
    return both


def with_effect(make: Generator, edge: int) -> Generator:
    """Return the generator of a GEMM in lines, which raises ValueError if they have no effect."""

    def made(random: np.random.Generator, space: Space) -> Case:
        case = make(random, space)
        if np.array_equal(sums_of(case, edge), sums_of(case, edge, whole=True)):
            raise ValueError("the sums are those of rows in one piece")
        return case

    return made
