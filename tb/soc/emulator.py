# SPDX-License-Identifier: Apache-2.0
"""The second host of the coprocessor: an emulated RISC-V core, with float registers if wanted.

`unicorn` (an optional package, `pip install -e .[emulator]`) executes rv32imf; what it does not
know goes to a coprocessor: the reference, or the RTL. Programs are those of the machine, and what
they print is the same. From Python they are loaded, stepped, and given and asked for arrays.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import unicorn as uc
from unicorn import riscv_const as reg

from golden.coprocessor import RD, RS1, RS2, ArrayMemory, Coprocessor, OfferAnswer
from tb.soc.elf_file import Elf
from tb.soc.trap_names import TrapNames

Core: TypeAlias = Any
"""unicorn's `Uc`, which has no types."""
RAM_BYTES = 16 << 20
"""Memory from address 0 on."""
LIMIT = 50_000_000
"""Instructions after which a run is given up unless the caller says otherwise."""
UART, EXIT, CYCLES = 0x0, 0x4, 0xC
DEVICES, COP_ALIAS, CHIP = 0x1000_0000, 0x2000_0000, 0x4000_0000
COP_WINDOW = range(0x200, 0x300)
PAGE = 1 << 12
ILLEGAL = 2
"""Trap cause of an instruction that nobody knows."""
BOX = 0xFFFF_FFFF_0000_0000
"""What is above a float32 in a register of 64 bits."""
MPIE_MPP = 0x1880
MIE = 0x8


class EmulatorError(RuntimeError):
    """A program that does not end, or that the emulator cannot run."""


class InstructionResult(Protocol):
    """What an instruction hands back: `golden.coprocessor.Result`, or the RTL's."""

    @property
    def we(self) -> bool:
        """Whether rd is written."""

    @property
    def data(self) -> int:
        """What is written."""


class Port(Protocol):
    """A coprocessor as the emulator uses it; `golden.coprocessor.Coprocessor` is one."""

    def offer(self, word: int) -> OfferAnswer:
        """Return the answer to a word that the core does not know."""

    def execute(self, word: int, rs1: int = 0, rs2: int = 0, rs3: int = 0) -> InstructionResult:
        """Execute an accepted instruction."""

    def read(self, offset: int) -> int:
        """Return a register of the coprocessor's window."""

    def write(self, offset: int, value: int) -> None:
        """Write a register of the coprocessor's window."""


@dataclass(frozen=True)
class CoreState:
    """The registers of the core.

    Attributes:
        pc: address of the next instruction.
        x: integer registers.
        f: float registers, as bit patterns of float32.
    """

    pc: int
    x: tuple[int, ...]
    f: tuple[int, ...]


def golden(ram: npt.NDArray[np.uint8]) -> Port:
    """Return the reference as coprocessor of a core with this memory."""
    return Coprocessor(ArrayMemory(ram))


class Emulator:
    """A core with memory, UART and coprocessor.

    Attributes:
        elf: the program.
        ram: (RAM_BYTES,) uint8, shared with the program.
        port: the coprocessor.
        output: what the program has printed.
        exit_code: None before the program has ended.
    """

    def __init__(
        self,
        program: Path,
        coprocessor: Callable[[npt.NDArray[np.uint8]], Port] = golden,
        text: bytes = b"",
        ram: npt.NDArray[np.uint8] | None = None,
        floats_in_f: bool | None = None,
    ) -> None:
        """Load a program.

        Args:
            program: an ELF file.
            coprocessor: makes one for the memory.
            text: what the program reads from the UART.
            ram: memory to use, (RAM_BYTES,) uint8 from a page on; by default its own.
            floats_in_f: whether the core hands over f registers as float operands; by default as
                the program's float ABI says.

        Raises:
            FileError: the file cannot be used; says why.
        """
        self.elf = Elf.load(program, RAM_BYTES, float_registers=True)
        self.ram = np.frombuffer(mmap.mmap(-1, RAM_BYTES), np.uint8) if ram is None else ram
        for address, data, _ in self.elf.segments:
            self.ram[address : address + len(data)] = np.frombuffer(data, np.uint8)
        self.port = coprocessor(self.ram)
        self.output = bytearray()
        self.exit_code: int | None = None
        self._floats_in_f = bool(self.elf.floats) if floats_in_f is None else floats_in_f
        self._text = list(text)
        self._executed = 0
        self._watched = False
        self._core = self._made()

    def _made(self) -> Core:
        core = uc.Uc(uc.UC_ARCH_RISCV, uc.UC_MODE_RISCV32)
        pointer = self.ram.ctypes.data
        core.mem_map_ptr(0, RAM_BYTES, uc.UC_PROT_ALL, pointer)
        places = ((DEVICES, self._device), (COP_ALIAS, self._alias), (CHIP, self._chip))
        for base, act in places:
            core.mmio_map(base, PAGE, self._reads(act), None, self._writes(act), None)
        core.hook_add(uc.UC_HOOK_INTR, self._trapped)
        core.reg_write(reg.UC_RISCV_REG_PC, self.elf.entry)
        return core

    # ---------------------------------------------------------------------------------------------
    # Running
    # ---------------------------------------------------------------------------------------------
    def run(self, limit: int = LIMIT) -> int:
        """Run to the end; return the exit code.

        Raises:
            EmulatorError: no exit within `limit` instructions; says where the core was.
        """
        while self.exit_code is None and self._executed < limit:
            self._start(limit - self._executed)
        if self.exit_code is None:
            raise EmulatorError(
                f"{self.elf.path}: no exit within {limit:,} instructions: the core was at "
                f"{self.elf.place(self.state.pc)}"
            )
        return self.exit_code

    def step(self) -> CoreState:
        """Execute one instruction; return the state behind it."""
        self.go(1)
        return self.state

    def go(self, count: int) -> None:
        """Execute up to `count` instructions; fewer where the program or a watcher ends it.

        Raises:
            EmulatorError: the core cannot go on; says where it is.
        """
        if self.exit_code is None:
            self._start(count)

    def watch(self, told: Callable[[int], bool]) -> None:
        """Tell the address of each instruction before it is executed; true ends `go` there.

        From then on the program's counter of cycles counts every instruction at once.
        """

        def watcher(core: Core, address: int, _size: int, _data: object) -> None:
            if told(address):
                core.emu_stop()
            else:
                self._executed += 1

        self._watched = True
        self._core.hook_add(uc.UC_HOOK_CODE, watcher)

    def _start(self, count: int) -> None:
        try:
            self._core.emu_start(self.state.pc, 0xFFFF_FFFF, count=count)
        except uc.UcError as error:
            raise EmulatorError(
                f"{self.elf.path}: {error} at {self.elf.place(self.state.pc)}"
            ) from None
        if not self._watched:
            self._executed += count

    @property
    def state(self) -> CoreState:
        """The registers of the core."""
        read = self._core.reg_read
        return CoreState(
            read(reg.UC_RISCV_REG_PC),
            tuple(read(reg.UC_RISCV_REG_X0 + i) for i in range(32)),
            tuple(read(reg.UC_RISCV_REG_F0 + i) & 0xFFFF_FFFF for i in range(32)),
        )

    def register(self, name: str) -> int:
        """Return a register: pc, x0 to x31, f0 to f31, or a CSR such as mepc."""
        return int(self._core.reg_read(_number(name)))

    def set_register(self, name: str, value: int) -> None:
        """Write a register: pc, x1 to x31, f0 to f31, or a CSR; x0 stays 0."""
        if name != "x0":
            self._core.reg_write(_number(name), value | (BOX if name[0] == "f" else 0))

    @property
    def text(self) -> str:
        """What the program has printed, with the names of places in lines about traps."""
        return TrapNames(self.elf).added(bytes(self.output)).decode(errors="replace")

    # ---------------------------------------------------------------------------------------------
    # Memory by name
    # ---------------------------------------------------------------------------------------------
    def address(self, place: str | int) -> int:
        """Return the address of a symbol, or the address itself.

        Raises:
            KeyError: the program has no such symbol.
        """
        return place if isinstance(place, int) else self.elf.symbol(place)[0]

    def put(self, place: str | int, values: npt.NDArray[Any]) -> None:
        """Put an array into memory, row by row, at a symbol or an address."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        address = self.address(place)
        self.ram[address : address + data.size] = data
        # The core keeps what it has translated: these may be instructions.
        self._core.ctl_remove_cache(address, address + max(data.size, 1))

    def get(
        self, place: str | int, shape: int | tuple[int, ...], dtype: npt.DTypeLike
    ) -> npt.NDArray[Any]:
        """Return a copy of the array of `shape` and `dtype` at a symbol or an address."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self.address(place)
        return self.ram[address : address + size].copy().view(dtype).reshape(shape)

    # ---------------------------------------------------------------------------------------------
    # What the core asks for
    # ---------------------------------------------------------------------------------------------
    def _trapped(self, core: Core, cause: int, _: object) -> None:
        """Carry out an instruction that the core does not know, or let the program handle it."""
        pc = core.reg_read(reg.UC_RISCV_REG_PC)
        # The program counter stands behind the instruction.
        place = pc - 4 if cause == ILLEGAL else pc
        if cause == ILLEGAL and self._offloaded(core, self._word(place)):
            return
        status = core.reg_read(reg.UC_RISCV_REG_MSTATUS)
        core.reg_write(reg.UC_RISCV_REG_MEPC, place)
        core.reg_write(reg.UC_RISCV_REG_MCAUSE, cause)
        core.reg_write(reg.UC_RISCV_REG_MSTATUS, status & ~MIE | MPIE_MPP)
        core.reg_write(reg.UC_RISCV_REG_PC, core.reg_read(reg.UC_RISCV_REG_MTVEC) & ~3)

    def _word(self, address: int) -> int:
        return int.from_bytes(self.ram[address : address + 4].tobytes(), "little")

    def _offloaded(self, core: Core, word: int) -> bool:
        """Give an instruction to the coprocessor; return whether it has accepted it."""
        offer = self.port.offer(word)
        if not offer.accept:
            return False
        rd = word >> 7 & 31
        floats = offer.floats if self._floats_in_f else 0
        fields = ((RS1, word >> 15 & 31), (RS2, word >> 20 & 31), (RD, rd))
        operands = [
            self._register(core, number, of_float=bool(floats & bit and bit != RD))
            if offer.register_read & bit
            else 0
            for bit, number in fields
        ]
        answer = self.port.execute(word, *operands)
        if answer.we:
            if floats & RD:
                core.reg_write(reg.UC_RISCV_REG_F0 + rd, BOX | answer.data)
            elif rd:
                core.reg_write(reg.UC_RISCV_REG_X0 + rd, answer.data)
        return True

    def _register(self, core: Core, number: int, *, of_float: bool) -> int:
        first = reg.UC_RISCV_REG_F0 if of_float else reg.UC_RISCV_REG_X0
        return int(core.reg_read(first + number)) & 0xFFFF_FFFF

    def _reads(self, act: Callable[[int, int | None], int]) -> Callable[..., int]:
        return lambda _core, offset, _size, _data: act(offset, None)

    def _writes(self, act: Callable[[int, int | None], int]) -> Callable[..., None]:
        def write(_core: object, offset: int, _size: int, value: int, _data: object) -> None:
            act(offset, value)

        return write

    def _device(self, offset: int, value: int | None) -> int:
        if value is None:
            if offset == UART:
                return self._text.pop(0) if self._text else 0xFFFF_FFFF
            return self._executed if offset == CYCLES else self._executed // 100
        if offset == UART:
            self.output.append(value & 0xFF)
        elif offset == EXIT:
            self.exit_code = value & 0xFF
            self._core.emu_stop()
        return 0

    def _alias(self, offset: int, value: int | None) -> int:
        return self._chip(COP_WINDOW.start + offset, value)

    def _chip(self, offset: int, value: int | None) -> int:
        """Access a register of the chip; only the coprocessor is there."""
        if offset not in COP_WINDOW:
            return 0
        if value is None:
            return self.port.read(offset - COP_WINDOW.start)
        self.port.write(offset - COP_WINDOW.start, value)
        return 0


def _number(name: str) -> int:
    return int(getattr(reg, f"UC_RISCV_REG_{name.upper()}"))
