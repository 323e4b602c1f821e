# SPDX-License-Identifier: Apache-2.0
"""The memory behind the command port: errors, silence, protection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

BEAT = 16
"""Bytes of a memory word; an error strikes whole ones."""
ADDRESS_LIMIT = 1 << 32


class MemoryFaultError(Exception):
    """An access was answered with an error, or no region permits it."""


class MemorySilenceError(Exception):
    """The memory does not answer."""


class PortMemory(Protocol):
    """What the port asks of its memory. Addresses wrap modulo 2^32."""

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes; raises MemoryFaultError or MemorySilenceError."""

    def write(self, address: int, data: bytes) -> None:
        """Store bytes; raises MemoryFaultError or MemorySilenceError."""

    def settle(self) -> None:
        """Return when no answer is owed any more; raises MemorySilenceError."""


class GuardedRange(NamedTuple):
    """What the chip may do from the first to the last byte, itself included."""

    first: int
    last: int
    read: bool
    write: bool


OPEN = GuardedRange(0, ADDRESS_LIMIT - 1, True, True)


def pieces(address: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the (address, size) of an access in each memory word, in ascending order."""
    while size:
        address %= ADDRESS_LIMIT
        taken = min(size, BEAT - address % BEAT)
        yield address, taken
        address, size = address + taken, size - taken


@dataclass
class FaultyMemory:
    """An array as memory, with faults that a test can place.

    An access beyond the array is answered with an error. A refused or failed access changes
    nothing in the word that it meets; the words before it are written.

    Attributes:
        data: (n,) uint8 from address 0 on, n a multiple of 16; changed in place.
        read_errors: (first, last) bytes whose words answer reads with an error.
        write_errors: the same for writes.
        silent_reads: reads are not answered.
        silent_writes: writes are not acknowledged and do not arrive.
        silent: (first, last) bytes whose words answer neither reads nor writes.
        regions: what is permitted; an access needs one region that permits it.
        stream: (first, last) bytes of the parameter stream in use, which must not be written.

    """

    data: npt.NDArray[np.uint8]
    read_errors: list[tuple[int, int]] = field(default_factory=list)
    write_errors: list[tuple[int, int]] = field(default_factory=list)
    silent_reads: bool = False
    silent_writes: bool = False
    silent: list[tuple[int, int]] = field(default_factory=list)
    regions: Sequence[GuardedRange] = (OPEN,)
    stream: tuple[int, int] | None = None
    _owed: list[tuple[int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse an array that is not whole memory words."""
        given = f"{self.data.dtype}{self.data.shape}"
        if self.data.dtype != np.uint8 or self.data.ndim != 1 or self.data.size % BEAT:
            raise ValueError(f"FaultyMemory.data: given {given}, allowed (16 * n,) uint8")

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes.

        Raises:
            MemoryFaultError: a word is not permitted, faulty, or beyond the array.
            MemorySilenceError: a word is not answered.

        """
        taken = bytearray()
        for at, count in pieces(address, size):
            self._admit(at, write=False)
            self._answer(at, write=False)
            taken += self.data[at : at + count].tobytes()
        return bytes(taken)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes.

        Raises:
            MemoryFaultError: a word is not permitted, faulty, or beyond the array.
            MemorySilenceError: a word is not answered.

        """
        done = 0
        for at, count in pieces(address, len(data)):
            self._admit(at, write=True)
            self._answer(at, write=True)
            self.data[at : at + count] = np.frombuffer(data[done : done + count], np.uint8)
            done += count

    def settle(self) -> None:
        """Answer what is owed.

        Raises:
            MemorySilenceError: what is owed is still withheld.

        """
        for address, write in self._owed:
            if self._is_silent(address, write=write):
                raise MemorySilenceError(f"an earlier access at {address:#x} is not answered")
        self._owed.clear()

    def _is_silent(self, address: int, *, write: bool) -> bool:
        """Whether an access of one word is not answered."""
        return (self.silent_writes if write else self.silent_reads) or _meets(address, self.silent)

    def _admit(self, address: int, *, write: bool) -> None:
        """Stop an access that must not reach the bus; regions are whole memory words."""
        permitted = any(
            region.first <= address <= region.last and (region.write if write else region.read)
            for region in self.regions
        )
        if not permitted:
            raise MemoryFaultError(f"no region permits the access at {address:#x}")
        if write and self.stream is not None and _meets(address, [self.stream]):
            raise MemoryFaultError(f"the write at {address:#x} meets the stream in use")

    def _answer(self, address: int, *, write: bool) -> None:
        """Stop an access of one word that is not answered, or with an error."""
        if self._is_silent(address, write=write):
            self._owed.append((address, write))
            raise MemorySilenceError(f"{'write' if write else 'read'} at {address:#x}")
        errors = self.write_errors if write else self.read_errors
        if address >= self.data.size or _meets(address, errors):
            raise MemoryFaultError(f"the memory answers {address:#x} with an error")


def _meets(address: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether the memory word of an address has a byte in one of the ranges."""
    first = address - address % BEAT
    return any(first <= last and start <= first + BEAT - 1 for start, last in ranges)
