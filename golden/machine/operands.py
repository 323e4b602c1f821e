# SPDX-License-Identifier: Apache-2.0
"""Where operands lie: matrices of whole words, K/V tiles, gathered rows, and the access to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.machine.state import Bytes
from spec.isa import WORD

WordIndex = npt.NDArray[np.int64]


def up(value: int, multiple: int) -> int:
    """Return `value` rounded up to a multiple of `multiple`."""
    return -(-value // multiple) * multiple


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of elements at a start address and a pitch, each row in whole words.

    Attributes:
        address: byte address of row 0, a multiple of 16.
        pitch: bytes from row to row, a multiple of 16.
        rows: number of rows.
        row_bytes: bytes of a row that carry elements.
        element: bytes of an element.

    """

    address: int
    pitch: int
    rows: int
    row_bytes: int
    element: int = 1

    @property
    def padded(self) -> int:
        """Bytes of a row in whole words."""
        return up(self.row_bytes, WORD)

    @property
    def end(self) -> int:
        """First byte address past the operand."""
        return self.address + (self.rows - 1) * self.pitch + self.padded

    @property
    def overlaps_itself(self) -> bool:
        """Whether two rows share a word."""
        return self.rows > 1 and self.pitch < self.padded

    def words(self) -> WordIndex:
        """Return the addresses in words of all words, row by row, (n,) int64."""
        if not self.rows * self.row_bytes:
            return np.zeros(0, np.int64)
        if self.rows == 1 or self.pitch == self.padded:
            return np.arange(self.address // WORD, self.end // WORD, dtype=np.int64)
        starts = np.arange(self.rows, dtype=np.int64) * (self.pitch // WORD)
        row = np.arange(self.padded // WORD, dtype=np.int64) + self.address // WORD
        return (starts[:, None] + row).reshape(-1)

    def coincides(self, other: Matrix) -> bool:
        """Whether the two are the same place in the sense of an in-place operation."""
        same = self.address == other.address and self.element == other.element
        return same and self.rows == other.rows and (self.rows == 1 or self.pitch == other.pitch)

    def read(self, space: Bytes, dtype: type[np.generic] = np.uint8) -> npt.NDArray[Any]:
        """Return a copy of the elements, (rows, row_bytes / itemsize), little-endian."""
        if not self.rows * self.row_bytes:
            return np.zeros((self.rows, self.row_bytes // np.dtype(dtype).itemsize), dtype)
        view = np.lib.stride_tricks.as_strided(
            space[self.address :], (self.rows, self.row_bytes), (self.pitch, 1), writeable=False
        )
        little = np.dtype(dtype).newbyteorder("<")
        return np.ascontiguousarray(view).view(little).astype(dtype, copy=False)

    def write(self, space: Bytes, values: npt.NDArray[Any]) -> None:
        """Write (rows, n) elements as whole words, the lanes past a row's end as zero."""
        little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
        raw = little.view(np.uint8).reshape(self.rows, -1)
        if raw.shape[1] != self.row_bytes:
            raise ValueError(f"Matrix.write: given rows of {raw.shape[1]}, needs {self.row_bytes}")
        lines = np.zeros((self.rows, self.padded), np.uint8)
        lines[:, : self.row_bytes] = raw
        if self.overlaps_itself:
            for row, line in enumerate(lines):
                start = self.address + row * self.pitch
                space[start : start + self.padded] = line
            return
        view = np.lib.stride_tricks.as_strided(
            space[self.address :], lines.shape, (self.pitch, 1), writeable=True
        )
        view[...] = lines


@dataclass(frozen=True, slots=True)
class Lines(Matrix):
    """Several matrices of one form, whose starts are a pitch apart.

    Attributes:
        lines: how many.
        line_pitch: bytes from line to line, a multiple of 16.

    """

    lines: int = 1
    line_pitch: int = 0

    @property
    def end(self) -> int:
        """First byte address past the last line."""
        last = self.address + (self.lines - 1) * self.line_pitch
        return last + (self.rows - 1) * self.pitch + self.padded

    def _each(self) -> list[Matrix]:
        """Return the lines."""
        starts = [self.address + line * self.line_pitch for line in range(self.lines)]
        return [Matrix(at, self.pitch, self.rows, self.row_bytes, self.element) for at in starts]

    def words(self) -> WordIndex:
        """Return the addresses in words of all words, line by line, (n,) int64."""
        return np.concatenate([line.words() for line in self._each()])

    def read(self, space: Bytes, dtype: type[np.generic] = np.uint8) -> npt.NDArray[Any]:
        """Return a copy of the elements, (lines, rows, row_bytes / itemsize)."""
        return np.stack([line.read(space, dtype) for line in self._each()])


@dataclass(frozen=True, slots=True)
class Tiles:
    """Positions of one or several K/V heads in tile order.

    Lane c of position p of head h lies at
    address + h*pitch + ((p/E)*HB + c/E)*E*E + (p mod E)*E + c mod E, HB = up(lanes, E)/E.

    Attributes:
        address: byte address of position 0 of the first head, a multiple of 16.
        positions: how many positions.
        lanes: lanes of a position.
        edge: E.
        first: the first of the positions.
        heads: how many heads.
        pitch: bytes from head to head, a multiple of 16.

    """

    address: int
    positions: int
    lanes: int
    edge: int
    first: int = 0
    heads: int = 1
    pitch: int = 0

    @property
    def end(self) -> int:
        """First byte address past the last head's tiles, whole tile rows counted."""
        edge = self.edge
        piece = up(self.first + self.positions, edge) * up(self.lanes, edge)
        return self.address + (self.heads - 1) * self.pitch + piece

    @property
    def overlaps_itself(self) -> bool:
        """Whether two heads share a word."""
        words = self.words()
        return self.heads > 1 and np.unique(words).size < words.size

    def words(self) -> WordIndex:
        """Return the addresses in words, (heads * positions * words of a position,) int64."""
        return self._grid().reshape(-1)

    def _grid(self) -> WordIndex:
        """Return the addresses in words, (heads, positions, words of a position) int64."""
        edge = self.edge
        blocks = up(self.lanes, edge) // edge
        head = self.address + np.arange(self.heads, dtype=np.int64) * self.pitch
        p = self.first + np.arange(self.positions, dtype=np.int64)[:, None]
        c = np.arange(0, self.lanes, WORD, dtype=np.int64)
        offset = ((p // edge) * blocks + c // edge) * (edge * edge) + (p % edge) * edge + c % edge
        return (head[:, None, None] + offset) // WORD

    def read(self, space: Bytes) -> npt.NDArray[np.int8]:
        """Return a copy of the lanes, (heads, positions, lanes) int8."""
        grid = self._grid()
        data = space.reshape(-1, WORD)[grid].view(np.int8)
        return data.reshape(*grid.shape[:2], grid.shape[2] * WORD)[:, :, : self.lanes]

    def write(self, space: Bytes, values: npt.NDArray[np.int8]) -> None:
        """Write (heads, positions, n) int8; the lanes n..lanes-1 become 0.

        Where heads share a word the last one counts.
        """
        lines = np.zeros((self.heads, self.positions, up(self.lanes, WORD)), np.uint8)
        lines[:, :, : values.shape[2]] = values.view(np.uint8)
        words = space.reshape(-1, WORD)
        for grid, head in zip(self._grid(), lines, strict=True):
            words[grid.reshape(-1)] = head.reshape(-1, WORD)


@dataclass(frozen=True, slots=True, eq=False)
class Scattered:
    """Rows of bytes at any multiples of 16, in memory.

    Attributes:
        addresses: (rows,) int64, byte address of each row.
        row_bytes: bytes of a row.

    """

    addresses: npt.NDArray[np.int64]
    row_bytes: int

    def words(self) -> WordIndex:
        """Return the addresses in words of all words, row by row, (n,) int64."""
        row = np.arange(up(self.row_bytes, WORD) // WORD, dtype=np.int64)
        return (self.addresses[:, None] // WORD + row).reshape(-1)

    def read(self, space: Bytes) -> Bytes:
        """Return a copy of the rows, (rows, row_bytes) uint8."""
        data = space.reshape(-1, WORD)[self.words()]
        return data.reshape(self.addresses.size, -1)[:, : self.row_bytes]


Operand = Matrix | Tiles
MemoryOperand = Matrix | Tiles | Scattered


def block(address: int, size: int) -> Matrix:
    """Return `size` contiguous bytes as a matrix of one row."""
    return Matrix(address, up(size, WORD), 1, size)
