# SPDX-License-Identifier: Apache-2.0
"""What the driver needs of a chip: registers, interrupt, and shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class RegisterAccess:
    """One access of the register port.

    Attributes:
        address: byte address, a multiple of 4.
        value: what is written, None for a read.
    """

    address: int
    value: int | None = None

    def __str__(self) -> str:
        """Return "read of register 0x104"."""
        kind = "read" if self.value is None else "write"
        return f"{kind} of register {self.address:#05x}"


class Bus(Protocol):
    """A chip as its host sees it: RTL, model, or hardware."""

    async def read32(self, address: int) -> int:
        """Return the register at a byte address, a multiple of 4.

        Raises:
            BusError: the port answered with an error, or not at all.
        """

    async def write32(self, address: int, value: int) -> None:
        """Write all 32 bits of a register.

        Raises:
            BusError: the port answered with an error, or not at all.
        """

    async def wait_interrupt(self) -> None:
        """Return when the chip's interrupt line is high, at once if it is.

        Raises:
            DeviceError: it has not come in the time that the bus gives it.
        """

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""


@runtime_checkable
class BatchBus(Protocol):
    """A bus that makes several accesses in one go, for which each call costs time of its own."""

    async def access(self, several: Sequence[RegisterAccess]) -> list[int]:
        """Make accesses one after the other; the first error ends it.

        Returns:
            the value of the register at each read, the given one at each write.

        Raises:
            BusError: the port answered with an error, or not at all.
        """


async def access(bus: Bus, several: Sequence[RegisterAccess]) -> list[int]:
    """Make accesses one after the other, in one go where the bus can; returns as `BatchBus`."""
    if isinstance(bus, BatchBus):
        return await bus.access(several)
    values = []
    for one in several:
        if one.value is None:
            values.append(await bus.read32(one.address))
        else:
            await bus.write32(one.address, one.value)
            values.append(one.value)
    return values
