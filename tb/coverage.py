# SPDX-License-Identifier: Apache-2.0
"""Which uses of the instruction set the tests have executed: rows of opcode and flag or mode.

The rows follow from the ISA file: for every opcode the plain use, each flag, each value of
each short mode field, and each prefix operand. What the ISA file names but refuses as not yet
built is listed here with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from npu.isa import OPCODES, PREFIX_FIELDS, SET_REGISTERS, Instruction, Opcode, SetReg, VecOp
from tb.logs import DISPATCH, Records

FILE = "coverage.json"
"""Name of the file in a run's folder that holds the rows and how often they were executed."""

WIDEST_MODE_FIELD = 3
"""Fields of more bits are numbers, not modes."""

_MODE_FLAG = 1 << 6

REFUSED: dict[tuple[str, str], set[int]] = {
    ("GEMM", "fmt"): {1, 2, 3, 4, 5, 6, 7},  # reserved for narrow stream formats
    ("GEMM", "b_form"): {3},  # reserved
    ("GEMM", "op"): {3},  # reserved
    ("GEMM", "reserved"): {1},
    ("SOFTMAX", "out"): {3},  # reserved
    ("EMBED", "index"): {3},  # reserved
}


def _fields_of(word: Instruction) -> Iterable[tuple[str, int]]:
    info = OPCODES[Opcode(word.opcode)]
    if word.opcode == Opcode.GEMM and not word.flags & _MODE_FLAG:
        return
    for name, bits in info.imm.items():
        if bits.width <= WIDEST_MODE_FIELD or (word.opcode == Opcode.VEC and name == "op"):
            yield name, word.imm >> bits.lsb & ((1 << bits.width) - 1)


def _value_name(opcode: Opcode, name: str, value: int) -> str:
    if opcode == Opcode.VEC and name == "op":
        return VecOp(value).name
    return f"{name}={value}"


def rows_of(word: Instruction, prefix: Instruction | None) -> set[str]:
    """Return the rows that executing `word` (with the prefix word before it) covers."""
    opcode = Opcode(word.opcode)
    info = OPCODES[opcode]
    rows = {f"{opcode.name}"}
    for name, bit in info.flags.items():
        if word.flags >> bit & 1:
            rows.add(f"{opcode.name} {name}")
    for name, value in _fields_of(word):
        rows.add(f"{opcode.name} {_value_name(opcode, name, value)}")
    if opcode == Opcode.SET:
        rows.add(f"SET {SetReg(word.dst).name}")
    if opcode == Opcode.BARRIER:
        rows.add(f"BARRIER n={word.n}")
        rows |= {f"BARRIER mask[{bit}]" for bit in range(6) if word.m >> bit & 1}
        if not word.m:
            rows.add("BARRIER mask=0")
    if prefix is not None:
        rows.add("PFX")
        for name in info.prefix:
            if name == "sums" and not _takes_sums(word):
                continue
            if name == "mul" and _takes_sums(word):
                continue
            if getattr(prefix, PREFIX_FIELDS[name]):
                rows.add(f"{opcode.name} {name}=")
    return rows


def _takes_sums(word: Instruction) -> bool:
    """Whether the prefix imm of a GEMM is the address of the sums (Q = 3)."""
    q = OPCODES[Opcode.GEMM].imm["q"]
    return bool(word.flags & _MODE_FLAG) and word.imm >> q.lsb & 3 == 3


def required() -> list[str]:
    """Return every row that must be executed by some test, in the order of the opcodes."""
    rows: list[str] = []
    for opcode, info in OPCODES.items():
        name = opcode.name
        rows.append(name)
        rows += [f"{name} {flag}" for flag in info.flags]
        for mode, bits in info.imm.items():
            if opcode == Opcode.PFX:
                continue
            if opcode == Opcode.VEC and mode == "op":
                rows += [f"VEC {op.name}" for op in VecOp]
            elif bits.width <= WIDEST_MODE_FIELD:
                refused = REFUSED.get((name, mode), set())
                rows += [f"{name} {mode}={v}" for v in range(1 << bits.width) if v not in refused]
        rows += [f"{name} {operand}=" for operand in info.prefix]
        if opcode == Opcode.SET:
            rows += [f"SET {register.name}" for register in SET_REGISTERS]
        if opcode == Opcode.BARRIER:
            rows += [f"BARRIER n={n}" for n in range(5)] + ["BARRIER mask=0"]
            rows += [f"BARRIER mask[{bit}]" for bit in range(6)]
    return rows


@dataclass
class Hits:
    """How often each row was executed."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, program: Sequence[Instruction], events: Records) -> None:
        """Count what the event log of one run shows as dispatched."""
        for index in events["instr"][events["kind"] == DISPATCH].tolist():
            word = program[index]
            before = program[index - 1] if index else None
            prefix = before if before is not None and before.opcode == Opcode.PFX else None
            self.counts.update(rows_of(word, prefix))
