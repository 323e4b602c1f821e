# SPDX-License-Identifier: Apache-2.0
"""Places operands in SRAM: at random, apart from each other, now and then at the very end.

Or all of them in one bank, so that everybody meets there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spec.isa import WORD
from spec.isa.operands import up


class NoRoomError(Exception):
    """An operand does not fit any more; make a smaller one or start a new group."""


@dataclass(frozen=True)
class Place:
    """Where a matrix lies.

    Attributes:
        word: word address.
        pitch: words from row to row.
        explicit: whether the pitch must be named by a prefix word.
        rows: number of rows.
        row_bytes: bytes of a row that carry elements.
    """

    word: int
    pitch: int
    explicit: bool
    rows: int
    row_bytes: int

    @property
    def prefix_pitch(self) -> int:
        """What the prefix word says: 0 for the natural pitch."""
        return self.pitch if self.explicit else 0

    @property
    def byte(self) -> int:
        """Byte address."""
        return self.word * WORD


@dataclass
class Space:
    """The SRAM of one group of instructions that may overlap in time.

    Attributes:
        random: source of places.
        words: size of the SRAM.
        taken: sorted (first word, past the last word) of what is in use.
    """

    random: np.random.Generator
    words: int
    taken: list[tuple[int, int]] = field(default_factory=list)

    def take(self, words: int) -> int:
        """Return the address of `words` free words and note them as taken.

        Raises:
            NoRoomError: there is no such gap.
        """
        edges = [(0, 0), *sorted(self.taken), (self.words, self.words)]
        gaps = [
            (left[1], right[0] - words)
            for left, right in pairwise(edges)
            if right[0] - left[1] >= words
        ]
        if not gaps:
            raise NoRoomError(f"no room for {words} words")
        low, high = gaps[int(self.random.integers(len(gaps)))]
        kind = self.random.random()
        if kind < 0.1:
            start = gaps[-1][1]
        elif kind < 0.5:
            start = low
        else:
            start = int(self.random.integers(low, high + 1))
        self.taken.append((start, start + words))
        return start

    def matrix(self, rows: int, row_bytes: int, *, pitch: bool = True) -> Place:
        """Place a matrix; if `pitch` is allowed, sometimes with a pitch wider than needed."""
        natural = up(row_bytes) // WORD
        explicit = pitch and self.random.random() < 0.4
        wide = natural + int(self.random.choice([0, 1, 2, 5])) if explicit else natural
        return self.at_pitch(rows, row_bytes, wide, explicit)

    def at_pitch(self, rows: int, row_bytes: int, pitch: int, explicit: bool) -> Place:
        """Place a matrix with a given pitch in words."""
        size = (rows - 1) * pitch + up(row_bytes) // WORD
        return Place(self.take(size), pitch, explicit, rows, row_bytes)

    def block(self, size: int) -> Place:
        """Place `size` contiguous bytes."""
        return self.matrix(1, size, pitch=False)


BANKS = 16
_ONE_BANK_PITCHES = (0x0F, 0x11, 0xF0, 0xFF, 0x101, 0x110)
"""Pitches that can stay in one bank for many rows: two of the folded digits change together."""


def bank_of(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the SRAM bank of word addresses: their four hexadecimal digits folded by XOR."""
    return (words ^ words >> 4 ^ words >> 8 ^ words >> 12) & (BANKS - 1)


@dataclass
class OneBank(Space):
    """A space in which every row begins in the same bank, so that whoever uses it waits in line.

    Rows of more than one word run through the other banks; a row of a word is in this bank alone.

    Attributes:
        bank: the bank.
    """

    bank: int = 0

    def __post_init__(self) -> None:
        """Note all words as free."""
        self._free = np.ones(self.words, np.bool_)
        self._home = bank_of(np.arange(self.words)) == self.bank

    def matrix(self, rows: int, row_bytes: int, *, pitch: bool = True) -> Place:
        """Place a matrix, with a pitch that keeps its rows in the bank if `pitch` is allowed."""
        length = up(row_bytes) // WORD
        explicit = pitch and rows > 1
        pitches = self.random.permutation(_ONE_BANK_PITCHES) if explicit else np.array([length])
        for step in pitches[pitches >= length].tolist():
            first = np.flatnonzero(self._home)
            first = first[first + (rows - 1) * step + length <= self.words]
            starts = first[:, None] + np.arange(rows) * step
            fits = self._home[starts].all(axis=1) if explicit else np.ones(first.size, np.bool_)
            for word in range(length):
                fits &= self._free[starts + word].all(axis=1)
            if fits.any():
                start = int(first[fits][0])
                for row in range(rows):
                    self._free[start + row * step : start + row * step + length] = False
                return Place(start, step, explicit, rows, row_bytes)
        raise NoRoomError(f"no room for {rows} rows of {row_bytes} bytes in bank {self.bank}")
