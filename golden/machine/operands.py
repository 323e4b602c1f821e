# SPDX-License-Identifier: Apache-2.0
"""Where operands lie: matrices of whole words, K/V tiles, and the access to both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.machine.state import WORD, Bytes

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
        rows: number of rows, at least 1.
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
class Tiles:
    """A K or V operand in tile order.

    Position p, lane c lies at address + ((p/E)*HB + c/E)*E*E + (p mod E)*E + c mod E, with
    HB = up(lanes, E)/E lane blocks.

    Attributes:
        address: byte address, a multiple of 16.
        positions, lanes: extent of the operand.
        edge: E.

    """

    address: int
    positions: int
    lanes: int
    edge: int

    @property
    def blocks(self) -> int:
        """HB, the number of lane blocks."""
        return up(self.lanes, self.edge) // self.edge

    @property
    def end(self) -> int:
        """First byte address past the operand, whole tiles counted."""
        return self.address + up(self.positions, self.edge) * self.blocks * self.edge

    def words(self) -> WordIndex:
        """Return the words that hold existing positions and lanes, (n,) int64."""
        p = np.arange(self.positions, dtype=np.int64)[:, None]
        c = np.arange(0, self.lanes, WORD, dtype=np.int64)[None, :]
        return (self.offsets(p, c) // WORD + self.address // WORD).reshape(-1)

    def offsets(self, p: WordIndex, c: WordIndex) -> WordIndex:
        """Return byte offsets of positions p and lanes c (broadcast)."""
        edge = self.edge
        tile = (p // edge) * self.blocks + c // edge
        return tile * (edge * edge) + (p % edge) * edge + c % edge

    def read(self, space: Bytes) -> npt.NDArray[np.int8]:
        """Return the operand as (positions, lanes) int8."""
        p = np.arange(self.positions, dtype=np.int64)[:, None]
        c = np.arange(self.lanes, dtype=np.int64)[None, :]
        return space[self.address + self.offsets(p, c)].view(np.int8)


Operand = Matrix | Tiles


def block(address: int, size: int) -> Matrix:
    """Return `size` contiguous bytes as a matrix of one row."""
    return Matrix(address, up(size, WORD), 1, size)
