# SPDX-License-Identifier: Apache-2.0
"""The memory behind the chip, as tests see it.

`Memory` is a window on bytes that the simulated memory also works on: what a test stages is there
for the chip at once, and what the chip has written (with its response) can be read at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class MemoryMismatchError(AssertionError):
    """Memory does not hold what was expected."""


def as_bytes(data: bytes | npt.NDArray[Any]) -> Bytes:
    """Return `data` as a flat uint8 array, little-endian as the chip sees it."""
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, dtype=np.uint8)
    array = np.ascontiguousarray(data)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)


def equal(left: Bytes, right: Bytes) -> bool:
    """Whether two images are equal, compared eight bytes at a time; their size divides by eight."""
    if left.size != right.size:
        return False
    return bool((left.view(np.uint64) == right.view(np.uint64)).all())


@dataclass(frozen=True)
class Memory:
    """Memory from address 0.

    Attributes:
        data: (size,) uint8, shared with the simulator.
    """

    data: Bytes

    @classmethod
    def map(cls, path: Path) -> Memory:
        """Share the bytes of the file `path` with the simulator."""
        return cls(np.memmap(path, dtype=np.uint8, mode="r+"))

    def _check(self, address: int, size: int) -> None:
        if address < 0 or address + size > self.data.size:
            last = address + size - 1
            raise IndexError(
                f"memory: given {address:#x}..{last:#x}, allowed 0..{self.data.size - 1:#x}"
            )

    def stage(self, address: int, data: bytes | npt.NDArray[Any]) -> int:
        """Put `data` at `address`; return the address past its end."""
        flat = as_bytes(data)
        self._check(address, flat.size)
        self.data[address : address + flat.size] = flat
        return address + int(flat.size)

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes from `address`."""
        return self.view(address, size).tobytes()

    def view(self, address: int, size: int) -> Bytes:
        """Return the `size` bytes from `address`, shared with the simulator."""
        self._check(address, size)
        return self.data[address : address + size]

    def array(self, address: int, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return a copy of the row-major array of `shape` and `dtype` at `address`."""
        kind = np.dtype(dtype).newbyteorder("<")
        size = int(np.prod(shape)) * kind.itemsize
        return np.frombuffer(self.read(address, size), dtype=kind).reshape(shape).copy()

    def snapshot(self) -> Bytes:
        """Return a private copy of all bytes."""
        return np.array(self.data)

    def compare(self, expected: Bytes, what: str = "memory") -> None:
        """Compare all bytes with `expected`.

        Raises:
            MemoryMismatchError: naming the first difference and the number of them.
        """
        if equal(self.data, expected):
            return
        wrong = np.flatnonzero(self.data != expected)
        first = int(wrong[0])
        raise MemoryMismatchError(
            f"{what} differs in {wrong.size} of {expected.size} bytes, first at {first:#x}: "
            f"expected {int(expected[first]):#04x}, actual {int(self.data[first]):#04x}"
        )
