# SPDX-License-Identifier: Apache-2.0
"""The memory behind the coprocessor: bytes, and where an access to them fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from golden.command.memory import ADDRESS_LIMIT, BEAT, FaultyMemory, GuardedRange
from golden.coprocessor.faults import FaultCode

Range = tuple[int, int]
"""First and last byte."""


class CoprocessorMemory(Protocol):
    """What the coprocessor asks of its memory. Nothing of it passes the end at 2^32."""

    def load(self, address: int, size: int) -> bytes:
        """Return bytes; of those that memory does not have, which lie behind all others, none."""

    def store(self, address: int, data: bytes) -> None:
        """Put bytes, but for those that memory does not have."""

    def first_denied(self, address: int, size: int, *, write: bool) -> int | None:
        """Return the first of `size` bytes that the chip does not ask for, None if it asks."""

    def first_failed(self, address: int, size: int, *, write: bool) -> tuple[int, FaultCode] | None:
        """Return the first of `size` bytes whose bus word is not answered well, and how not.

        BUS: with an error. TIMEOUT: not at all.
        """


@dataclass
class ArrayMemory(FaultyMemory):
    """An array as memory, from address 0 on; what lies behind it answers with an error.

    The command port's memory with its faults, asked in another way: one object serves both.
    Silence of a direction is everywhere; override `silence` for a finer one.
    """

    @classmethod
    def of(cls, data: bytearray | memoryview) -> ArrayMemory:
        """Return the memory of bytes that others hold as well; a multiple of 16."""
        return cls(np.frombuffer(data, np.uint8))

    def load(self, address: int, size: int) -> bytes:
        """Return bytes, of those behind the array none."""
        return self.data[address : address + size].tobytes()

    def store(self, address: int, data: bytes) -> None:
        """Put bytes; those behind the array are lost."""
        place = self.data[address : address + len(data)]
        place[:] = np.frombuffer(data, np.uint8)[: place.size]

    def first_denied(self, address: int, size: int, *, write: bool) -> int | None:
        """Return the first byte that no region permits, or that would change the stream in use."""
        last = address + size - 1
        outside = _first_outside(address, last, self.regions, write=write)
        met = _first_inside(address, last, [self.stream] if write and self.stream else [])
        return min((byte for byte in (outside, met) if byte is not None), default=None)

    def first_failed(self, address: int, size: int, *, write: bool) -> tuple[int, FaultCode] | None:
        """Return the first byte of a word that is answered with an error or not at all."""
        last = address + size - 1
        quiet = _first_inside(address, last, self.silence(write=write))
        wrong = _first_inside(address, last, self.errors(write=write))
        if quiet is not None and (wrong is None or quiet <= wrong):
            return quiet, FaultCode.TIMEOUT
        return None if wrong is None else (wrong, FaultCode.BUS)

    def errors(self, *, write: bool) -> Sequence[Range]:
        """Return where the memory answers with an error."""
        placed = self.write_errors if write else self.read_errors
        return [*placed, (self.data.size, ADDRESS_LIMIT - 1)]

    def silence(self, *, write: bool) -> Sequence[Range]:
        """Return where the memory does not answer."""
        everywhere = self.silent_writes if write else self.silent_reads
        return [(0, ADDRESS_LIMIT - 1)] if everywhere else self.silent


def _first_outside(
    first: int, last: int, regions: Iterable[GuardedRange], *, write: bool
) -> int | None:
    """Return the first byte that no region permits."""
    permitting = sorted(
        (region.first, region.last)
        for region in regions
        if (region.write if write else region.read)
    )
    for start, end in permitting:
        if start <= first <= end:
            first = end + 1
    return first if first <= last else None


def _first_inside(first: int, last: int, ranges: Iterable[Range]) -> int | None:
    """Return the first byte in a bus word that has a byte in one of the ranges."""
    words = [(start & -BEAT, end | BEAT - 1) for start, end in ranges if start <= end]
    met = [max(first, start) for start, end in words if start <= last and first <= end]
    return min(met, default=None)
