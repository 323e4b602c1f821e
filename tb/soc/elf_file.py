# SPDX-License-Identifier: Apache-2.0
"""Programs as ELF files: what is loaded where, and the names of places."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from npu.commands.files import FileError

FLOAT_ABI = 0x6
"""Bits of e_flags that name the register class of float arguments; 0 is soft."""
SINGLE = 0x2
ABIS = {SINGLE: "float registers (ilp32f)", 0x4: "double registers (ilp32d)", 0x6: "quad registers"}


@dataclass(frozen=True)
class Elf:
    """A program for a RISC-V core of 32 bits.

    Attributes:
        path: of the file.
        segments: address, bytes and size in memory of each part; what has no bytes is zero.
        entry: address of its first instruction.
        symbols: (address, size) of all functions and objects, by name.
        floats: bits of FLOAT_ABI: the float registers that arguments are in, 0 for none.
    """

    path: Path
    segments: list[tuple[int, bytes, int]] = field(repr=False)
    entry: int
    symbols: dict[str, tuple[int, int]] = field(repr=False)
    floats: int

    @classmethod
    def load(
        cls, path: Path, room: int, what: str = "memory", *, float_registers: bool = False
    ) -> Elf:
        """Read a file.

        Args:
            path: of the file.
            room: bytes of memory from address 0 on that it may take.
            what: names that room in messages.
            float_registers: whether the core has some.

        Raises:
            FileError: it cannot be read, is cut off, is for another machine, is not linked, starts
                somewhere else, or is too large; one line with what was given and what is allowed.
        """
        try:
            with path.open("rb") as file:
                elf = ELFFile(file)
                found = cls._of(path, elf)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from None
        except (ELFError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise FileError(f"{path}: given no sound ELF file ({_said(error)})") from None
        found._check(room, what)
        if found.floats and not (float_registers and found.floats == SINGLE):
            raise FileError(
                f"{path}: given a program for {ABIS[found.floats]}, allowed ilp32"
                + (" and ilp32f" if float_registers else ": the core has no float registers")
            )
        return found

    @classmethod
    def _of(cls, path: Path, elf: ELFFile) -> Elf:
        machine = elf["e_machine"]
        if machine != "EM_RISCV" or elf.elfclass != 32 or not elf.little_endian:
            order = "little-endian" if elf.little_endian else "big-endian"
            raise FileError(
                f"{path}: given an ELF file for {machine}, {elf.elfclass} bits, {order}; allowed "
                "EM_RISCV, 32 bits, little-endian"
            )
        if elf["e_type"] != "ET_EXEC":
            raise FileError(f"{path}: given an ELF file of type {elf['e_type']}, allowed ET_EXEC")
        parts = [part for part in elf.iter_segments("PT_LOAD") if part["p_memsz"]]
        for part in parts:
            if len(part.data()) < part["p_filesz"]:
                raise FileError(
                    f"{path}: given a part at {part['p_paddr']:#x} with {len(part.data())} of its "
                    f"{part['p_filesz']} bytes, allowed a whole file: it is cut off"
                )
        segments = [(part["p_paddr"], part.data(), part["p_memsz"]) for part in parts]
        table = elf.get_section_by_name(".symtab")
        symbols = {
            symbol.name: (symbol["st_value"], symbol["st_size"])
            for symbol in (table.iter_symbols() if isinstance(table, SymbolTableSection) else ())
            if symbol.name
            and not symbol.name.startswith((".L", "$"))
            and symbol["st_info"]["type"] in ("STT_FUNC", "STT_OBJECT", "STT_NOTYPE")
            and symbol["st_shndx"] != "SHN_UNDEF"
        }
        floats = elf["e_flags"] & FLOAT_ABI
        return cls(path, segments, elf["e_entry"], symbols, floats)

    def _check(self, room: int, what: str) -> None:
        if not self.segments:
            raise FileError(f"{self.path}: given a program of 0 bytes, allowed 1 and more")
        for address, data, size in self.segments:
            if len(data) > size:
                raise FileError(
                    f"{self.path}: given a part at {address:#x} with {len(data)} bytes in {size}, "
                    f"allowed 0 to {size}"
                )
            if address + size > room:
                raise FileError(
                    f"{self.path}: given a part at {address:#x} to {address + size - 1:#x}, "
                    f"allowed 0 to {room - 1:#x}, {what}"
                )
        if self.entry != 0 or not any(address == 0 for address, _, _ in self.segments):
            raise FileError(
                f"{self.path}: given the entry {self.entry:#x}"
                f"{'' if self.entry else ' without a part there'}, allowed 0x0, where the core "
                "starts (define _start first: firmware/lib/crt0.S)"
            )

    @property
    def end(self) -> int:
        """First address behind all parts."""
        return max(address + size for address, _, size in self.segments)

    def symbol(self, name: str) -> tuple[int, int]:
        """Return address and size of a symbol.

        Raises:
            KeyError: there is none of this name; says so.
        """
        if name not in self.symbols:
            raise KeyError(f"{self.path}: has no symbol {name}")
        return self.symbols[name]

    def place(self, address: int) -> str:
        """Return an address with the name of the symbol that it lies behind."""
        name = self.name_of(address)
        return f"{address:#010x} ({name})" if name else f"{address:#010x}"

    def name_of(self, address: int) -> str:
        """Return the symbol that an address lies behind, and how far: `main+0x8`; "" for none."""
        known = sorted((place, name) for name, (place, _) in self.symbols.items())
        index = bisect_right(known, (address, "\x7f")) - 1
        if index < 0 or address >= self.end:
            return ""
        start, name = known[index]
        return f"{name}+{address - start:#x}"


def _said(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
