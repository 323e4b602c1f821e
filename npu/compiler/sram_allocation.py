# SPDX-License-Identifier: Apache-2.0
"""Places buffers in SRAM by the time during which they hold something."""

from collections.abc import Sequence
from dataclasses import dataclass

from spec.isa.operands import up


@dataclass(frozen=True, slots=True)
class SramBuffer:
    """Bytes that hold something from phase `first` to phase `last`, both included."""

    name: str
    size: int
    first: int
    last: int


def place(buffers: Sequence[SramBuffer]) -> dict[str, int]:
    """Return byte addresses (multiples of 16), first fit, in the order of first use.

    Buffers whose phases overlap never share a byte.
    """
    placed: list[tuple[SramBuffer, int]] = []
    for buffer in sorted(buffers, key=lambda b: (b.first, -b.size)):
        busy = sorted(
            (at, at + up(other.size))
            for other, at in placed
            if other.first <= buffer.last and buffer.first <= other.last
        )
        address = 0
        for start, end in busy:
            if address + up(buffer.size) <= start:
                break
            address = max(address, end)
        placed.append((buffer, address))
    return {buffer.name: address for buffer, address in placed}


def top(buffers: Sequence[SramBuffer], addresses: dict[str, int]) -> int:
    """Return the first byte past all buffers."""
    return max((addresses[b.name] + up(b.size) for b in buffers), default=0)
