# SPDX-License-Identifier: Apache-2.0
"""Which uses of the instruction set the tests have executed: rows of opcode and flag or mode.

The rows follow from the ISA file: for every opcode the plain use, each flag, each value of
each short mode field that the chip takes, and each prefix operand; for GEMM each format of weights
in the stream with each group that it may have.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spec.isa import (
    BARRIER_MOST,
    OPCODES,
    PREFIX_FIELDS,
    SET_REGISTERS,
    BitField,
    Flag,
    GemmQ,
    Instruction,
    Opcode,
    SetReg,
    VecOp,
    WeightFormat,
    WeightGroup,
)
from spec.isa.gemm import GemmForm
from spec.isa.weight_formats import GROUPED
from tb.bench.logs import DISPATCH, Records

WIDEST_MODE_FIELD = 3
"""Fields of more bits are numbers, unless their values have names."""

MUST_BE_ZERO = {("GEMM", "reserved")}
"""Fields of imm without a use."""

BITS_OF_FORMAT = {("GEMM", "fmt")}
"""Fields of imm that say something only together with others: formats have rows of their own."""


def rows_file(folder: Path, test: str) -> Path:
    """Return the file in a run's folder that says which rows a test has executed.

    JSON: for each row, how often, and in how many programs.
    """
    return folder / f"{test}.rows.json"


def _mode_fields(opcode: Opcode) -> list[BitField]:
    """Return the fields of imm that name something or are short numbers."""
    return [
        bits
        for name, bits in OPCODES[opcode].imm.items()
        if (bits.values is not None or bits.width <= WIDEST_MODE_FIELD)
        and (opcode.name, name) not in BITS_OF_FORMAT
    ]


def _has_mode_word(word: Instruction) -> bool:
    return word.opcode != Opcode.GEMM or bool(word.flags >> Flag.MODE & 1)


def _value_row(opcode: Opcode, bits: BitField, value: int) -> str:
    if bits.values is VecOp:
        return f"{opcode.name} {VecOp(value).name}"
    return f"{opcode.name} {bits.name}={bits.values(value).name if bits.values else value}"


def _format_row(fmt: WeightFormat, group: WeightGroup) -> str:
    return f"GEMM {fmt.name} {group.name}" if fmt in GROUPED else f"GEMM {fmt.name}"


def rows_of(word: Instruction, prefix: Instruction | None) -> set[str]:
    """Return the rows that executing `word` (with the prefix word before it) covers."""
    opcode = Opcode(word.opcode)
    info = OPCODES[opcode]
    rows = {f"{opcode.name}"}
    for name, bit in info.flags.items():
        if word.flags >> bit & 1:
            rows.add(f"{opcode.name} {name}")
    if _has_mode_word(word):
        for bits in _mode_fields(opcode):
            rows.add(_value_row(opcode, bits, bits.get(word.imm)))
    if opcode == Opcode.GEMM:
        form = GemmForm.of(word)
        if form.stream:  # where the bit of a transposed B belongs to the group
            rows.discard(f"GEMM {Flag.TRANSPOSE_B.name}")
            rows.add(_format_row(WeightFormat(form.format), WeightGroup(form.group)))
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
    """Whether the prefix imm of a GEMM is the address of the sums (q ROW)."""
    q = OPCODES[Opcode.GEMM].imm["q"].get(word.imm)
    return _has_mode_word(word) and q == GemmQ.ROW


def required() -> list[str]:
    """Return every row that must be executed by some test, in the order of the opcodes."""
    rows: list[str] = []
    for opcode, info in OPCODES.items():
        name = opcode.name
        rows.append(name)
        rows += [f"{name} {flag}" for flag in info.flags]
        for bits in _mode_fields(opcode):
            values = [value for value in range(1 << bits.width) if bits.takes(value)]
            if (name, bits.name) in MUST_BE_ZERO:
                values = [0]
            rows += [_value_row(opcode, bits, value) for value in values]
        rows += [f"{name} {operand}=" for operand in info.prefix]
        if opcode == Opcode.GEMM:
            pairs = ((fmt, group) for fmt in WeightFormat for group in WeightGroup)
            rows += dict.fromkeys(_format_row(*pair) for pair in pairs)
        if opcode == Opcode.SET:
            rows += [f"SET {register.name}" for register in SET_REGISTERS]
        if opcode == Opcode.BARRIER:
            rows += [f"BARRIER n={n}" for n in range(BARRIER_MOST + 1)] + ["BARRIER mask=0"]
            rows += [f"BARRIER mask[{bit}]" for bit in range(6)]
    return rows


@dataclass
class Hits:
    """What was executed.

    Attributes:
        counts: how often each row.
        programs: in how many programs each row; what a host gives to a port at once counts as one.
    """

    counts: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)

    def add(self, program: Sequence[Instruction], events: Records) -> None:
        """Count what the event log of one run shows as dispatched."""
        rows: Counter[str] = Counter()
        for index in events["instr"][events["kind"] == DISPATCH].tolist():
            word = program[index]
            before = program[index - 1] if index else None
            prefix = before if before is not None and before.opcode == Opcode.PFX else None
            rows.update(rows_of(word, prefix))
        self.add_rows(rows)

    def add_rows(self, rows: Iterable[str]) -> None:
        """Count the rows of one program, each as often as it is there."""
        counts = Counter(rows)
        self.counts.update(counts)
        self.programs.update(counts.keys())

    def as_json(self) -> str:
        """Return the text of `rows_file`."""
        both = {row: (times, self.programs[row]) for row, times in sorted(self.counts.items())}
        return json.dumps(both)
