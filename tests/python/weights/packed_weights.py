# SPDX-License-Identifier: Apache-2.0
"""Narrow weights packed byte by byte as the stream layout says, and expanded cell by cell.

Plain loops over the specification; neither golden's arrays nor the compiler's packer take part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.formats import GROUPED, MX, SPARSE, decode, element_bits, factor
from spec.isa import WeightFormat
from tests.python.golden.golden_support import Rng


def weight(fmt: WeightFormat, code: int, b: int) -> int:
    """Return w of a code by the formula, in Python integers."""
    (v, t), f = decode(fmt, code), factor(fmt, b)
    return (v * f + (1 << (7 + t))) >> (8 + t)


@dataclass(frozen=True)
class Cells:
    """A narrow matrix before it is packed: codes and side bytes; positions of the sparse formats.

    Attributes:
        codes: (K, N), or (quads, N, 2) of a format that keeps two of four.
        side: (groups, N) side bytes, or (quads, N) p0 + 4 * p1; (0, N) for the rest.

    """

    codes: npt.NDArray[np.uint8]
    side: npt.NDArray[np.uint8]


def rows_of_side(fmt: WeightFormat, group: int) -> int:
    """Return how many rows of K share a side byte, or the positions of a quad; 0: none."""
    return 4 if fmt in SPARSE else 32 if fmt in MX else group if fmt in GROUPED else 0


def random_cells(rng: Rng, fmt: WeightFormat, k: int, n: int, group: int) -> Cells:
    """Return any codes and positions, and the side bytes of MX blocks that leave something."""
    limit = 1 << element_bits(fmt)
    rows = rows_of_side(fmt, group)
    count = -(-k // rows) if rows else 0
    codes = rng.integers(0, limit, (count, n, 2) if fmt in SPARSE else (k, n))
    side = rng.integers(0, 16 if fmt in SPARSE else 10 if fmt in MX else 256, (count, n))
    return Cells(codes.astype(np.uint8), side.astype(np.uint8))


def expected(fmt: WeightFormat, cells: Cells, k: int, n: int, group: int) -> list[list[int]]:
    """Return the weights cell by cell."""
    rows = rows_of_side(fmt, group)

    def cell(row: int, column: int) -> int:
        if fmt in SPARSE:
            values, positions = cells.codes[row // 4, column], int(cells.side[row // 4, column])
            if positions >> 2 == row % 4:
                return weight(fmt, int(values[1]), 0)
            return weight(fmt, int(values[0]), 0) if positions & 3 == row % 4 else 0
        b = int(cells.side[row // rows, column]) if rows else 0
        return weight(fmt, int(cells.codes[row, column]), b)

    return [[cell(row, column) for column in range(n)] for row in range(k)]


class Packer:
    """Packs a matrix of cells; what is not there is zero."""

    def __init__(self, fmt: WeightFormat, cells: Cells, edge: int, group: int) -> None:
        self.fmt, self.cells, self.edge, self.group = fmt, cells, edge, group

    @staticmethod
    def _at(array: npt.NDArray[np.uint8], *index: int) -> int:
        inside = all(i < size for i, size in zip(index, array.shape, strict=True))
        return int(array[index]) if inside else 0

    def _bytes(self, count: int, per_byte: int, code: Callable[[int], int]) -> bytes:
        """Return `count` bytes of `per_byte` fields each, the first field in the low bits."""
        bits = 8 // per_byte
        return bytes(
            sum(code(per_byte * at + i) << (bits * i) for i in range(per_byte))
            for at in range(count)
        )

    def tile(self, i: int, j: int) -> bytes:
        """Return the tile of rows i * E and columns j * E."""
        e, codes, at = self.edge, self.cells.codes, self._at
        if self.fmt in SPARSE:

            def kept(which: int) -> int:
                cell, v = divmod(which, 2)
                return at(codes, i * e // 4 + cell // e, j * e + cell % e, v)

            return self._bytes(
                *((e * e // 2, 1) if element_bits(self.fmt) == 8 else (e * e // 4, 2)), kept
            )

        def code(cell: int) -> int:
            return at(codes, i * e + cell // e, j * e + cell % e)

        match element_bits(self.fmt):
            case 8:
                return self._bytes(e * e, 1, code)
            case 6:
                upper = self._bytes(e * e // 4, 4, lambda cell: code(cell) >> 4)
                return upper + self._bytes(e * e // 2, 2, lambda cell: code(cell) & 15)
            case 4:
                return self._bytes(e * e // 2, 2, code)
            case _:
                return self._bytes(e * e // 4, 4, code)

    def before(self, i: int, j: int) -> bytes:
        """Return the side beats that stand before tile i, j."""
        e, side, at = self.edge, self.cells.side, self._at
        if self.fmt in SPARSE:
            beats, tiles = (1, 2) if e == 16 else (2, 1)

            def positions(cell: int) -> int:
                return at(side, i * e // 4 + cell // e, j * e + cell % e)

            return self._bytes(64 * beats, 2, positions) if i % tiles == 0 else b""
        rows = rows_of_side(self.fmt, self.group)
        if not rows or i % (64 * rows // (e * e)):
            return b""
        first = i * e // rows
        return self._bytes(64, 1, lambda cell: at(side, first + cell // e, j * e + cell % e))

    def is_side(self, k: int) -> list[bool]:
        """Return which beats of a column tile are side beats."""
        beats: list[bool] = []
        for i in range(-(-k // self.edge)):
            beats += [True] * (len(self.before(i, 0)) // 64) + [False] * (
                len(self.tile(i, 0)) // 64
            )
        return beats

    def share(self, k: int, n: int) -> bytes:
        """Return all column tiles."""
        e = self.edge
        return b"".join(
            self.before(i, j) + self.tile(i, j)
            for j in range(-(-n // e))
            for i in range(-(-k // e))
        )


def forms(edge: int) -> list[tuple[WeightFormat, int]]:
    """Return every format with every group that it has."""
    groups = [group for group in (16, 32, 64, 128) if group % edge == 0]
    return [(fmt, group) for fmt in WeightFormat for group in (groups if fmt in GROUPED else [32])]


def period(fmt: WeightFormat, edge: int, group: int) -> int:
    """Return how many tiles a side beat serves."""
    if fmt in SPARSE:
        return 2 if edge == 16 else 1
    return 64 * rows_of_side(fmt, group) // (edge * edge) or 1
