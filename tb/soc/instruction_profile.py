# SPDX-License-Identifier: Apache-2.0
"""What a program executes: its instructions, counted by function and by mnemonic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import capstone
import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.markup import escape

from npu.tables import FitTable
from spec.isa.coprocessor import disassemble
from tb.soc.elf_file import Elf

_LONGEST = 4
"""Bytes of an instruction."""


@dataclass
class InstructionProfile:
    """What a program has executed.

    Attributes:
        elf: the program.
        memory: uint8, from address 0 on.
        executed: instructions by address.
        cycles: of the clock by address; empty where the core has none.
    """

    elf: Elf
    memory: npt.NDArray[np.uint8]
    executed: Counter[int] = field(default_factory=Counter)
    cycles: Counter[int] = field(default_factory=Counter)

    def function(self, address: int) -> str:
        """Return the function that an instruction is of, by the ELF file's symbols."""
        return self.elf.name_of(address).partition("+")[0] or f"{address:#010x}"

    def mnemonic(self, address: int) -> str:
        """Return what an instruction is called; a compressed one like the one that it means."""
        decoder = capstone.Cs(
            capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC
        )
        data = self.memory[address : address + _LONGEST].tobytes()
        for known in decoder.disasm(data, address, count=1):
            # The text of a line may be an alias: `mv` is addi.
            return str(known.insn_name())
        return disassemble(int.from_bytes(data, "little")).partition(" ")[0]

    def print(self, console: Console) -> None:
        """Print the tables of functions and of mnemonics."""
        console.print(self._table("Functions", "function", self.function))
        console.print(self._table("Instructions", "mnemonic", self.mnemonic))

    def _table(self, title: str, head: str, name: Callable[[int], str]) -> FitTable:
        """Return a table of what has a name in common, what takes most in front."""
        executed, cycles = summed(self.executed, name), summed(self.cycles, name)
        shared = cycles or executed
        result = FitTable(title=title, box=box.SIMPLE_HEAD)
        result.name(head)
        for figure in ("instructions", *(["cycles", "each"] if cycles else []), "share"):
            result.figure(figure)

        def row(what: str, count: int, spent: int, of_all: int) -> None:
            timed = [f"{spent:,}", f"{spent / max(count, 1):.1f}"] if cycles else []
            share = f"{of_all / shared.total():.1%}"
            result.add_row(escape(what), f"{count:,}", *timed, share)

        for what, share in sorted(shared.items(), key=lambda one: (-one[1], one[0])):
            row(what, executed[what], cycles[what], share)
        result.add_section()
        row("all", executed.total(), cycles.total(), shared.total())
        return result


def summed(counts: Counter[int], name: Callable[[int], str]) -> Counter[str]:
    """Return counts by address as counts by what an address is called."""
    found: Counter[str] = Counter()
    for address, count in counts.items():
        found[name(address)] += count
    return found
