# SPDX-License-Identifier: Apache-2.0
"""What the command port's driver needs of a chip: registers, interrupt, and shared memory."""

from __future__ import annotations

from typing import Protocol


class Bus(Protocol):
    """A chip as its host sees it: RTL, model, or hardware."""

    async def read32(self, address: int) -> int:
        """Return the register at a byte address, a multiple of 4."""

    async def write32(self, address: int, value: int) -> None:
        """Write all 32 bits of a register."""

    async def wait_interrupt(self) -> None:
        """Return when the chip's interrupt line is high, at once if it is."""

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
