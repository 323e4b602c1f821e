# SPDX-License-Identifier: Apache-2.0
"""The memory operands of one instruction: where an access fails first, and elements in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from golden.command.memory import ADDRESS_LIMIT
from golden.coprocessor.faults import FaultCode, Uncertain
from golden.coprocessor.memory import CoprocessorMemory
from golden.coprocessor.operations import Elements


@dataclass(frozen=True, slots=True)
class AccessFailure:
    """An access that fails.

    Attributes:
        index: number of the element.
        code: why.
        address: byte address of the element.

    """

    index: int
    code: FaultCode
    address: int


@dataclass(frozen=True)
class Arrays:
    """Arrays of `count` elements of `size` bytes; element i is handled before element i + 1.

    For each element the sources are read in their order, then the destination is written.

    Attributes:
        memory: where they lie.
        count: elements, 0 and more.
        size: bytes of an element, 1 or 4.
        sources: byte addresses of arrays that are read.
        destination: byte address of the array that is written, None if there is none.

    """

    memory: CoprocessorMemory
    count: int
    size: int
    sources: tuple[int, ...]
    destination: int | None = None

    def first_failure(self) -> tuple[AccessFailure | None, int]:
        """Find the access that fails first.

        Returns:
            It, and how many elements the coprocessor may have begun to write: behind a write that
            is answered badly or not at all, all up to the first that it cannot read or must not
            write; else those before the failure.

        """
        tried = [search(base) for base in self.sources for search in (self._denied, self._failed)]
        bad_write = None
        if self.destination is not None:
            tried.append(self._denied(self.destination, write=True))
            bad_write = self._failed(self.destination, write=True)
        # In the order of one element's accesses; of equals, min takes the first.
        stop = min(filter(None, tried), default=None, key=lambda failure: failure.index)
        end = self.count if stop is None else stop.index
        if bad_write is not None and bad_write.index < end:
            return bad_write, end
        return stop, end

    def read(self) -> list[Elements]:
        """Return all elements of the sources, each (count,) of uint8 or uint32."""
        return [self._load(base, 0, self.count) for base in self.sources]

    def write(self, apply: Callable[..., Elements], first: int, last: int) -> None:
        """Write the elements from `first` to before `last`.

        As many at once as do not read what one of them writes: a destination that begins inside a
        source reaches an element as many places behind as it begins behind.

        Args:
            apply: returns elements of the destination from those of the sources.
            first: number of an element.
            last: number of an element.

        """
        assert self.destination is not None
        behind = [self.destination - base for base in self.sources]
        reach = [distance for distance in behind if 0 < distance < self.count * self.size]
        run = max(1, min(reach, default=self.count * self.size) // self.size)
        for start in range(first, last, run):
            count = min(run, last - start)
            written = apply(*(self._load(base, start, count) for base in self.sources))
            self.memory.store(self.destination + start * self.size, written.tobytes())

    def write_uncertain(self, apply: Callable[..., Elements], first: int, last: int) -> Uncertain:
        """Return what writing elements would do, and leave memory as it is.

        Where memory ends, so do the bytes that are open.
        """
        assert self.destination is not None
        address, size = self.destination + first * self.size, (last - first) * self.size
        old = self.memory.load(address, size)
        self.write(apply, first, last)
        new = self.memory.load(address, size)
        self.memory.store(address, old)
        return Uncertain(address, old, new)

    def _load(self, base: int, first: int, count: int) -> Elements:
        """Return elements of an array."""
        if not count:
            return np.zeros(0, np.uint8 if self.size == 1 else np.uint32)
        raw = self.memory.load(base + first * self.size, count * self.size)
        return np.frombuffer(raw, np.uint8 if self.size == 1 else np.uint32)

    def _denied(self, base: int, *, write: bool = False) -> AccessFailure | None:
        """Return the first access to an array that the coprocessor does not make."""
        inside = self._inside(base)
        byte = self.memory.first_denied(base, inside, write=write) if inside else None
        if byte is None and inside < self.count * self.size:
            byte = ADDRESS_LIMIT
        return None if byte is None else self._failure(base, byte, FaultCode.DENIED)

    def _failed(self, base: int, *, write: bool = False) -> AccessFailure | None:
        """Return the first access to an array that is answered with an error or not at all."""
        inside = self._inside(base)
        found = self.memory.first_failed(base, inside, write=write) if inside else None
        return None if found is None else self._failure(base, *found)

    def _inside(self, base: int) -> int:
        """Return how many bytes of an array lie below 2^32."""
        return min(self.count * self.size, ADDRESS_LIMIT - base)

    def _failure(self, base: int, byte: int, code: FaultCode) -> AccessFailure:
        """Return the failure of the element with a byte."""
        index = (byte - base) // self.size
        return AccessFailure(index, code, (base + index * self.size) % ADDRESS_LIMIT)
