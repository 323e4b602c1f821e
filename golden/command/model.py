# SPDX-License-Identifier: Apache-2.0
"""The whole chip as a host sees it: registers, memory and the interrupt line."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from golden.command.memory import FaultyMemory, GuardedRange
from golden.command.port import PortModel
from golden.command.sequencer import Sequencer
from golden.command.state import CYCLE_REGISTERS
from golden.machine import ChipConfig
from spec.isa import ISA_VERSION, LINE
from spec.regs import CHIP_BASE, CHIP_FIELDS, CMD_BASE, COP_BASE, SEQ_BASE, ChipReg

CHIP_VERSION = (0, 1)
"""Major and minor version of the chip."""
AXI_BYTES = 16
REGIONS = 8
REGION_STEP = ChipReg.REGION1_BASE - ChipReg.REGION0_BASE
PAGE_BYTES = 4096
_LOCK = CHIP_FIELDS["REGION0_CTRL_LOCK"].mask
_COUNTERS = range(ChipReg.CYCLES_LO, ChipReg.MEM_TIMEOUT, 4)

CYCLE_ADDRESSES = frozenset(
    {CMD_BASE + register for register in CYCLE_REGISTERS}
    | {CHIP_BASE + offset for offset in _COUNTERS}
)
"""Addresses whose contents depend on cycles or bursts, which this model does not have; they
read 0."""


class CoprocessorWindow(Protocol):
    """What the host sees of the coprocessor: `golden.coprocessor.Coprocessor`."""

    @property
    def has_fault(self) -> bool:
        """STATUS.FAULT."""

    def read(self, offset: int) -> int:
        """Return a register of the window."""

    def write(self, offset: int, value: int) -> None:
        """Write a register of the window."""

    def soft_reset(self) -> object:
        """Clear what instructions work on."""


class NoInterruptError(RuntimeError):
    """A wait for an interrupt that nothing will raise."""


class ModelBus:
    """The chip and its memory, in place of a bus to real ones.

    A write returns when everything that it starts has happened. The regions of the chip's window
    protect what the command port does; programs are not held to them.

    Args:
        memory: the whole address space from 0 on, (n,) uint8, n a multiple of 16; changed in place.
        config: the chip's parameters.
        sram: (config.sram_bytes,) uint8, changed in place; zeros of its own if not given.
        scratch_bytes: size of the command port's scratchpad.
        fifo_bytes: size of the stream buffer, as CONFIG1 tells it.
        faults: the same memory as the command port shall see it; by default one without faults.
        races: a program with races, whose result on a chip is open, raises ValueError.
        coprocessor: what the host sees of it; a chip without one reads 0 in its window. For both to
            obey the regions, its memory is `faults`.

    Attributes:
        faults: the memory as the command port sees it, where faults can be placed.
        port: the command port.

    """

    def __init__(
        self,
        memory: npt.NDArray[np.uint8],
        *,
        config: ChipConfig | None = None,
        sram: npt.NDArray[np.uint8] | None = None,
        scratch_bytes: int = 64,
        fifo_bytes: int = 32768,
        faults: FaultyMemory | None = None,
        races: bool = False,
        coprocessor: CoprocessorWindow | None = None,
    ) -> None:
        """Begin as after a reset."""
        self._config = config or ChipConfig()
        self._coprocessor = coprocessor
        self._memory = memory
        self._fifo_bytes = fifo_bytes
        if sram is None:
            sram = np.zeros(self._config.sram_bytes, np.uint8)
        self._sequencer = Sequencer(self._config, memory, sram, races=races)
        self.faults = FaultyMemory(memory) if faults is None else faults
        self.port = PortModel(
            self.faults, scratch_bytes=scratch_bytes, launch=self._sequencer.launch
        )
        self._chip = {
            int(ChipReg.IRQ_ENABLE): CHIP_FIELDS["IRQ_ENABLE_CMD"].mask,
            int(ChipReg.MEM_TIMEOUT): 0x1000,
        }
        for index in range(REGIONS):
            base = ChipReg.REGION0_BASE + REGION_STEP * index
            opened = CHIP_FIELDS["REGION0_CTRL_READ"].mask | CHIP_FIELDS["REGION0_CTRL_WRITE"].mask
            self._chip |= {base: 0, base + 4: 0xFFFFF000, base + 8: 0 if index else opened}

    async def read32(self, address: int) -> int:
        """Return the register at a byte address; 0 where there is none.

        Raises:
            ValueError: the address is not a multiple of 4 below 0x400.

        """
        window, offset = _decode(address)
        if window == CMD_BASE:
            return self.port.read(offset)
        if window == SEQ_BASE:
            return self._sequencer.read(offset)
        if window == COP_BASE:
            return self._coprocessor.read(offset) if self._coprocessor else 0
        return self._read_chip(offset)

    async def write32(self, address: int, value: int) -> None:
        """Write the register at a byte address; without effect where there is none.

        Raises:
            ValueError: the address is not a multiple of 4 below 0x400, or the value is no word.

        """
        window, offset = _decode(address)
        if not 0 <= value < 1 << 32:
            raise ValueError(f"ModelBus.write32 value: given {value:#x}, allowed 0 to 2^32-1")
        if window == CMD_BASE:
            self.port.write(offset, value)
        elif window == SEQ_BASE:
            if offset == 0 and value & 2:
                self.port.soft_reset()
                if self._coprocessor:
                    self._coprocessor.soft_reset()
            self._sequencer.write(offset, value)
        elif window == COP_BASE:
            if self._coprocessor:
                self._coprocessor.write(offset, value)
        else:
            self._write_chip(offset, value)

    async def wait_interrupt(self) -> None:
        """Return if the interrupt line is high.

        Raises:
            NoInterruptError: it is low, and nothing but a write can change that.

        """
        status, enable = self._interrupts, self._chip[ChipReg.IRQ_ENABLE]
        if not status & enable:
            waiting = ", the ring waits for room in the completion ring" if self.port.busy else ""
            raise NoInterruptError(
                f"IRQ_STATUS is {status:#x}, IRQ_ENABLE is {enable:#x}: nothing will raise the "
                f"line{waiting}"
            )

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        self._check_memory(address, size)
        return self._memory[address : address + size].tobytes()

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self._check_memory(address, len(data))
        self._memory[address : address + len(data)] = np.frombuffer(data, np.uint8)

    def _check_memory(self, address: int, size: int) -> None:
        if address < 0 or size < 0 or address + size > self._memory.size:
            raise ValueError(
                f"ModelBus memory: given {size} bytes at {address:#x}, "
                f"allowed up to {self._memory.size:#x}"
            )

    @property
    def _interrupts(self) -> int:
        """IRQ_STATUS."""
        ended = CHIP_FIELDS["IRQ_STATUS_SEQ_DONE"].put(self._sequencer.has_ended)
        fault = self._coprocessor is not None and self._coprocessor.has_fault
        ended |= CHIP_FIELDS["IRQ_STATUS_COP"].put(fault)
        return ended | CHIP_FIELDS["IRQ_STATUS_CMD"].put(self.port.irq)

    def _read_chip(self, offset: int) -> int:
        """Return a register of the chip's window."""
        config = self._config
        fields = {
            ChipReg.VERSION: {
                "REG_MAP": 2,
                "ISA": ISA_VERSION,
                "CHIP_MINOR": CHIP_VERSION[1],
                "CHIP_MAJOR": CHIP_VERSION[0],
            },
            ChipReg.CONFIG0: {"ARRAY_DIM": config.array_dim, "SRAM_KIB": config.sram_bytes // 1024},
            ChipReg.CONFIG1: {"ACC_ROWS": config.acc_rows, "FIFO_LINES": self._fifo_bytes // LINE},
            ChipReg.CONFIG2: {
                "AXI_BYTES": AXI_BYTES,
                "NARROW_FORMATS": config.narrow_formats,
                "NORM_MAX": config.norm_max,
            },
        }
        if offset == ChipReg.ID:
            return int.from_bytes(b"TSRA", "little")
        if offset == ChipReg.IRQ_STATUS:
            return self._interrupts
        if offset in self._chip:
            return self._chip[offset]
        for register, contents in fields.items():
            if register == offset:
                names = contents.items()
                return sum(CHIP_FIELDS[f"{register.name}_{name}"].put(it) for name, it in names)
        return 0

    def _write_chip(self, offset: int, value: int) -> None:
        """Write a register of the chip's window."""
        if offset == ChipReg.IRQ_STATUS and value & CHIP_FIELDS["IRQ_STATUS_SEQ_DONE"].mask:
            self._sequencer.has_ended = False
        if offset not in self._chip:
            return
        mask = sum(field.mask for field in CHIP_FIELDS.values() if field.register == offset)
        if offset < ChipReg.REGION0_BASE:
            self._chip[offset] = value & mask
            return
        control = offset // REGION_STEP * REGION_STEP + 8
        if not self._chip[control] & _LOCK:
            self._chip[offset] = value & mask
            self.faults.regions = [self._region(index) for index in range(REGIONS)]

    def _region(self, index: int) -> GuardedRange:
        """Return a region as the registers describe it."""
        base = ChipReg.REGION0_BASE + REGION_STEP * index
        first, last, control = (self._chip[base + at] for at in (0, 4, 8))
        readable = bool(control & CHIP_FIELDS["REGION0_CTRL_READ"].mask)
        writable = bool(control & CHIP_FIELDS["REGION0_CTRL_WRITE"].mask)
        return GuardedRange(first, last + PAGE_BYTES - 1, readable, writable)


def _decode(address: int) -> tuple[int, int]:
    """Return window and offset of a register address."""
    if address % 4 or not 0 <= address < 0x400:
        raise ValueError(f"ModelBus: given address {address:#x}, allowed multiples of 4 < 0x400")
    return address & ~0xFF, address & 0xFF
