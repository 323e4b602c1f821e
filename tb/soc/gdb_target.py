# SPDX-License-Identifier: Apache-2.0
"""The emulated core as GDB sees it: its registers, those of the coprocessor, and memory."""

from __future__ import annotations

import numpy as np

from spec.regs import CopReg
from tb.soc.emulator import CHIP, COP_ALIAS, COP_WINDOW, RAM_BYTES, Emulator

WORD = 4
CORE = (*(f"x{i}" for i in range(32)), "pc")
FLOATS = tuple(f"f{i}" for i in range(32))
CSRS = ("mstatus", "mtvec", "mepc", "mcause")
COPROCESSOR = {
    "acc": ("int64", CopReg.ACC_LO),
    "facc": ("ieee_double", CopReg.FACC_LO),
    **{f"vreg{i}": ("v4i8", CopReg.VREG0 + WORD * i) for i in range(4)},
}
"""Type and offset in the coprocessor's window of what it remembers."""
WINDOWS = tuple(
    range(base, base + len(COP_WINDOW)) for base in (COP_ALIAS, CHIP + COP_WINDOW.start)
)
"""Where the registers of the coprocessor are in memory."""


class EmulatedTarget:
    """An emulator that a debugger drives.

    Attributes:
        description: its registers in GDB's XML.
        general: x registers and pc, which go out together.
        stops: addresses in front of which `go` ends.
    """

    general = len(CORE)

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._names = (*CORE, *(FLOATS if emulator.elf.floats else ()), *CSRS)
        self.description = _described(floats=bool(emulator.elf.floats))
        self.stops: set[int] = set()
        self._begun = False
        emulator.watch(self._ends_at)

    @property
    def exit_code(self) -> int | None:
        """What the program has ended with; None before."""
        return self._emulator.exit_code

    @property
    def pc(self) -> int:
        """Address of the next instruction."""
        return self._emulator.register("pc")

    def register(self, number: int) -> bytes:
        """Return a register. Raises ValueError: there is none of this number."""
        if number < len(self._names):
            value = self._emulator.register(self._names[number]) & 0xFFFF_FFFF
            return value.to_bytes(WORD, "little")
        entry = tuple(COPROCESSOR.values())[number - len(self._names) :][:1]
        if not entry:
            raise ValueError(f"no register {number}")
        kind, offset = entry[0]
        return b"".join(
            self._emulator.port.read(place).to_bytes(WORD, "little")
            for place in range(offset, offset + (WORD if kind == "v4i8" else 2 * WORD), WORD)
        )

    def set_register(self, number: int, data: bytes) -> None:
        """Write a register of the core. Raises ValueError: no such one, or not of 4 bytes."""
        if number >= len(self._names) or len(data) != WORD:
            raise ValueError(f"register {number} of {len(data)} bytes")
        self._emulator.set_register(self._names[number], int.from_bytes(data, "little"))

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory. Raises ValueError: a debugger cannot read there.

        Reading the UART would take what the program reads.
        """
        if address + size <= RAM_BYTES:
            return self._emulator.ram[address : address + size].tobytes()
        first = _window(address, size)
        words = range(first - first % WORD, first + size, WORD)
        data = b"".join(self._emulator.port.read(one).to_bytes(WORD, "little") for one in words)
        return data[first % WORD :][:size]

    def write(self, address: int, data: bytes) -> None:
        """Write bytes of memory. Raises ValueError: a debugger cannot write there."""
        if address + len(data) <= RAM_BYTES:
            self._emulator.put(address, np.frombuffer(data, np.uint8))
            return
        offset = _window(address, len(data))
        if (offset | len(data)) % WORD:
            raise ValueError("given part of a register, allowed whole ones")
        for place in range(0, len(data), WORD):
            word = int.from_bytes(data[place : place + WORD], "little")
            self._emulator.port.write(offset + place, word)

    def go(self, count: int) -> None:
        """Execute up to `count` instructions, at least one, until one of `stops` is next.

        Raises:
            EmulatorError: the core cannot go on; says why.
        """
        self._begun = False
        self._emulator.go(count)

    def _ends_at(self, address: int) -> bool:
        """Whether the core stands in front of an instruction; never of the first."""
        first, self._begun = not self._begun, True
        return not first and address in self.stops


def _window(address: int, size: int) -> int:
    """Return the offset of a place in the coprocessor's window. Raises ValueError elsewhere."""
    for window in WINDOWS:
        if address in window and address + size <= window.stop:
            return address - window.start
    raise ValueError(f"nothing at {address:#x}")


def _described(*, floats: bool) -> str:
    """Return the registers in GDB's XML, in the order of their numbers."""
    core = [_register(name, "code_ptr" if name == "pc" else "int") for name in CORE]
    parts = {"org.gnu.gdb.riscv.cpu": core}
    if floats:
        parts["org.gnu.gdb.riscv.fpu"] = [_register(name, "ieee_single") for name in FLOATS]
    parts["org.gnu.gdb.riscv.csr"] = [_register(name, "int") for name in CSRS]
    parts["org.tessera.coprocessor"] = [
        '<vector id="v4i8" type="int8" count="4"/>',
        *(_register(name, kind) for name, (kind, _) in COPROCESSOR.items()),
    ]
    features = (f'<feature name="{one}">{"".join(each)}</feature>' for one, each in parts.items())
    return (
        '<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">'
        f"<architecture>riscv:rv32</architecture>{''.join(features)}</target>"
    )


def _register(name: str, kind: str) -> str:
    bits = 64 if kind in ("int64", "ieee_double") else 32
    return f'<reg name="{name}" bitsize="{bits}" type="{kind}"/>'
