# SPDX-License-Identifier: Apache-2.0
"""What a program executes: its instructions, counted by function and by mnemonic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import capstone
from rich import box
from rich.markup import escape

from npu.tables import FitTable
from spec.isa.coprocessor import disassemble
from tb.soc.emulator import Emulator

SHORTEST, LONGEST = 2, 4
"""Bytes of an instruction."""


class InstructionProfile:
    """Counts what an emulator executes from now on.

    Attributes:
        executed: instructions by address.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.executed: Counter[int] = Counter()
        self._emulator = emulator
        emulator.watch(self._count)

    def _count(self, address: int) -> bool:
        self.executed[address] += 1
        return False

    def by_function(self) -> Counter[str]:
        """Return the instructions of each function, by the ELF file's symbols."""
        return self._summed(lambda address: self._emulator.elf.name_of(address).partition("+")[0])

    def by_mnemonic(self) -> Counter[str]:
        """Return how often each instruction was executed; compressed ones count as theirs."""
        decoder = capstone.Cs(
            capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC
        )
        memory = self._emulator.ram

        def mnemonic(address: int) -> str:
            data = memory[address : address + LONGEST].tobytes()
            for known in decoder.disasm(data, address, count=1):
                # The text of a line may be an alias: `mv` is addi.
                return str(known.insn_name())
            return disassemble(int.from_bytes(data, "little")).partition(" ")[0]

        return self._summed(mnemonic)

    def _summed(self, name: Callable[[int], str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for address, count in self.executed.items():
            found[name(address) or f"{address:#010x}"] += count
        return found


def table(title: str, head: str, counts: Mapping[str, int]) -> FitTable:
    """Return a table of counts, the largest first."""
    result = FitTable(title=title, box=box.SIMPLE_HEAD)
    result.name(head)
    result.figure("instructions")
    result.figure("share")
    total = sum(counts.values())
    for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])):
        result.add_row(escape(name), f"{count:,}", f"{count / total:.1%}")
    result.add_section()
    result.add_row("all", f"{total:,}", "100.0%")
    return result
