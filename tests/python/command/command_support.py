# SPDX-License-Identifier: Apache-2.0
"""Chips for tests of the command port's driver."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from golden.command import ModelBus
from npu.asm import assemble
from npu.driver.bus import Bus
from spec.regs import CHIP_BASE, CMD_BASE, CMD_FIELDS, ChipReg, CmdReg

MEMORY = 1 << 16
START = CMD_FIELDS["CTRL_STATUS_START"].mask
BUSY = CMD_FIELDS["CTRL_STATUS_BUSY"].mask
STATUS = CMD_BASE + CmdReg.CTRL_STATUS


def model_bus(scratch_bytes: int = 64, seed: int = 1) -> ModelBus:
    """Return a chip whose 64 KiB of memory hold noise."""
    memory = np.random.default_rng(seed).integers(0, 256, MEMORY, np.uint8)
    return ModelBus(memory, scratch_bytes=scratch_bytes)


@dataclass
class RecordingBus:
    """Keeps a record of everything that reaches a chip.

    Attributes:
        chip: what answers.
        log: accesses in order: (what, address, value or bytes).
    """

    chip: Bus
    log: list[tuple[str, int, int | bytes]] = field(default_factory=list)

    async def read32(self, address: int) -> int:
        """Return a register."""
        value = await self.chip.read32(address)
        self.log.append(("read", address, value))
        return value

    async def write32(self, address: int, value: int) -> None:
        """Write a register."""
        self.log.append(("write", address, value))
        await self.chip.write32(address, value)

    async def wait_interrupt(self) -> None:
        """Wait."""
        self.log.append(("interrupt", 0, 0))
        await self.chip.wait_interrupt()

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes."""
        data = self.chip.read_memory(address, size)
        self.log.append(("read memory", address, data))
        return data

    def write_memory(self, address: int, data: bytes) -> None:
        """Store bytes."""
        self.log.append(("write memory", address, data))
        self.chip.write_memory(address, data)

    @property
    def changes(self) -> list[tuple[str, int, int | bytes]]:
        """The accesses that change something."""
        return [access for access in self.log if access[0].startswith("write")]


@dataclass
class SlowBus:
    """A model whose starts take effect only when the host waits for the interrupt.

    Until then the port looks busy, so that a host can do what it does while the ring runs.
    """

    chip: ModelBus
    started: bool = False

    async def read32(self, address: int) -> int:
        """Return a register."""
        value = await self.chip.read32(address)
        return BUSY if self.started and address == STATUS else value

    async def write32(self, address: int, value: int) -> None:
        """Write a register."""
        if address == STATUS and value & START:
            assert not self.started, "a start while busy"
            self.started = True
        else:
            await self.chip.write32(address, value)

    async def wait_interrupt(self) -> None:
        """Wait."""
        if self.started:
            self.started = False
            await self.chip.write32(STATUS, START)
        await self.chip.wait_interrupt()

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes."""
        return self.chip.read_memory(address, size)

    def write_memory(self, address: int, data: bytes) -> None:
        """Store bytes."""
        self.chip.write_memory(address, data)


@dataclass
class OtherChip:
    """Answers some registers otherwise than the model."""

    chip: ModelBus
    answers: dict[int, int]

    async def read32(self, address: int) -> int:
        """Return a register."""
        return self.answers.get(address, await self.chip.read32(address))

    async def write32(self, address: int, value: int) -> None:
        """Write a register."""
        raise AssertionError(f"wrote {value:#x} to {address:#x}")

    async def wait_interrupt(self) -> None:
        """Wait."""
        raise AssertionError("waited")

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes."""
        raise AssertionError(f"read {size} bytes at {address:#x}")

    def write_memory(self, address: int, data: bytes) -> None:
        """Store bytes."""
        raise AssertionError(f"wrote {len(data)} bytes at {address:#x}")


ID, VERSION = CHIP_BASE + ChipReg.ID, CHIP_BASE + ChipReg.VERSION
CONFIG = CMD_BASE + CmdReg.CMD_CONFIG


def copy_program(blocks: int = 1) -> bytes:
    """Return a program that copies rows of 64 bytes from BASE0 to BASE1."""
    return assemble(
        f"DMA_LOAD dst=0 off=0 M={blocks} N=64 b=0\nBARRIER ld\n"
        f"DMA_STORE dst=0 off=0 M={blocks} N=64 b=1\nEND"
    ).image()
