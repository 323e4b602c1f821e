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

from spec.configurations import CHIPS
from spec.isa import (
    BARRIER_MOST,
    OPCODES,
    PREFIX_FIELDS,
    SET_REGISTERS,
    BitField,
    Engine,
    ErrorCode,
    ErrorReport,
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
from spec.isa.operands import ARRAY_DIMS, Prefix, is_dynamic, sram_operands, up
from spec.isa.weight_formats import GROUP_ROWS, GROUPED
from tb.bench.coverage_group import Group, outside
from tb.bench.knobs import Knobs
from tb.bench.logs import DISPATCH, Records
from tb.bench.memory_kinds import MemoryKind

WIDEST_MODE_FIELD = 3
"""Fields of more bits are numbers, unless their values have names."""

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
        else:
            rows.discard("GEMM GROUP_LOW")
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
            if name in ("d", "lines") and GemmForm.of(word).takes_lines != (name == "lines"):
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


# --------------------------------------------------------------------------------------------------
# Crosses
# --------------------------------------------------------------------------------------------------
_PITCHES = {"cp", "ap", "bp", "dp"}
_USES: dict[Opcode, tuple[str, ...]] = {
    opcode: (opcode.name, *(f"{opcode.name} {flag}" for flag in info.flags))
    for opcode, info in OPCODES.items()
    if opcode != Opcode.PFX  # which is a part of the word behind it
}


def _dimensions(opcode: Opcode) -> dict[str, str]:
    """Return the kind of each field that is a dimension."""
    fields = OPCODES[opcode].fields
    return {name: info.kind for name, info in fields.items() if info.kind in ("dim", "dyn")}


def _shapes(opcode: Opcode) -> list[str]:
    """Return the classes of shape that an opcode can have."""
    kinds = _dimensions(opcode)
    there = {
        "none": not kinds,
        "row": "m" in kinds,
        "whole": bool(kinds),
        "ragged": bool(kinds),
        "dynamic": "dyn" in kinds.values(),
    }
    return [name for name, has in there.items() if has]


def _places(opcode: Opcode) -> list[str]:
    """Return the manners in which the operands of an opcode can lie in SRAM."""
    info = OPCODES[opcode]
    has = any(each.kind == "sram" for each in info.fields.values())
    there = {
        "none": not has,
        "packed": has,
        "pitched": bool(_PITCHES & {*info.prefix}),
        "in place": {"cp", "ap"} <= {*info.prefix},
    }
    return [name for name, has in there.items() if has]


def _isa() -> Group:
    uses = [use for each in _USES.values() for use in each]
    shapes = {use: _shapes(opcode) for opcode, each in _USES.items() for use in each}
    places = {use: _places(opcode) for opcode, each in _USES.items() for use in each}
    points = {
        "use": uses,
        "shape": ("none", "row", "whole", "ragged", "dynamic"),
        "place": ("none", "packed", "pitched", "in place"),
        "stall": ("usual", "late", "stalled"),
    }
    illegal = [*outside(uses, shapes, 1, 4), *outside(uses, places, 2, 4)]
    return Group("isa", points, (("use", "shape", "place", "stall"),), illegal)


ISA = _isa()
"""Opcode with flag, class of shape, place of operands, behaviour of the memory."""

UNGROUPED = "ungrouped"
WEIGHTS = Group(
    "weights",
    {
        "format": [fmt.name for fmt in WeightFormat],
        "group": [UNGROUPED, *(group.name for group in WeightGroup)],
        "array": [f"a{edge}" for edge in sorted({chip.array_dim for chip in CHIPS.values()})],
    },
    (("format", "group", "array"),),
    [
        *(
            (fmt.name, group, None)
            for fmt in WeightFormat
            for group in (UNGROUPED, *(group.name for group in WeightGroup))
            if (group == UNGROUPED) == (fmt in GROUPED)
        ),
        *(
            (None, group.name, f"a{edge}")
            for group in WeightGroup
            for edge in ARRAY_DIMS
            if GROUP_ROWS[group] < edge
        ),
    ],
)
"""Format of weights in the stream, its group, edge of the array."""

_FROM_MEMORY = (Engine.LD, Engine.SEQ, Engine.STREAM)
_REPORTED_BY: dict[ErrorCode, tuple[Engine, ...]] = {
    ErrorCode.READ_ERROR: _FROM_MEMORY,
    ErrorCode.WRITE_ERROR: (Engine.ST,),
    ErrorCode.TIMEOUT: (*_FROM_MEMORY, Engine.ST),
    ErrorCode.REGION: (*_FROM_MEMORY, Engine.ST),
    ErrorCode.BAD_ADDRESS: (Engine.SEQ, Engine.LD),
}
"""Who can meet an error; all others are the sequencer's."""
_CODES = [code for code in ErrorCode if code != ErrorCode.NONE]
ERRORS = Group(
    "errors",
    {
        "code": [code.name for code in _CODES],
        "engine": [
            engine.name
            for engine in Engine
            if any(engine in _REPORTED_BY.get(code, (Engine.SEQ,)) for code in _CODES)
        ],
    },
    (("code", "engine"),),
    [
        (code.name, engine.name)
        for code in _CODES
        for engine in Engine
        if engine not in _REPORTED_BY.get(code, (Engine.SEQ,))
    ],
)
"""Error code, engine that the chip blames."""


def error_row(error: ErrorReport) -> str:
    """Return the sample of an error."""
    return ERRORS.row(error.code.name, error.engine.name)


def _stall(knobs: Knobs) -> str:
    """Return how a memory behaves."""
    slow = ("read_gap", "write_gap", "ar_stall", "aw_stall", "w_stall")
    if any(getattr(knobs, name) for name in slow):
        return "stalled"
    return "usual" if knobs.as_late_as_usual and knobs.memory == MemoryKind.FIXED else "late"


def _shape(word: Instruction) -> str:
    """Return the class of shape of an instruction."""
    kinds = _dimensions(Opcode(word.opcode))
    sizes = {name: getattr(word, name) for name in kinds}
    if not sizes:
        return "none"
    if any(is_dynamic(sizes[name]) for name, kind in kinds.items() if kind == "dyn"):
        return "dynamic"
    if sizes.pop("m", 0) == 1:
        return "row"
    return "ragged" if any(size % 16 for size in sizes.values()) else "whole"


def _place(word: Instruction, prefix: Instruction | None, edge: int) -> str:
    """Return how the operands of an instruction lie in SRAM."""
    if "none" in _places(Opcode(word.opcode)):
        return "none"
    operands = sram_operands(word, Prefix.of(prefix), edge)
    written = {one.address for one in operands if one.writes}
    if any(one.address in written for one in operands if not one.writes):
        return "in place"
    pitched = any(one.pitch > up(one.row_bytes) for one in operands)
    return "pitched" if pitched else "packed"


def samples_of(
    word: Instruction, prefix: Instruction | None, edge: int, array: int, knobs: Knobs
) -> set[str]:
    """Return the samples of the crosses that executing `word` makes.

    Args:
        word: the instruction.
        prefix: the prefix word before it.
        edge: of a tile.
        array: edge of the array.
        knobs: the memory.
    """
    opcode = Opcode(word.opcode)
    where = _shape(word), _place(word, prefix, edge), _stall(knobs)
    samples = {ISA.row(use, *where) for use in rows_of(word, prefix).intersection(_USES[opcode])}
    if opcode == Opcode.GEMM and (form := GemmForm.of(word)).stream:
        group = WeightGroup(form.group).name if form.grouped else UNGROUPED
        samples.add(WEIGHTS.row(WeightFormat(form.format).name, group, f"a{array}"))
    return samples


@dataclass
class Hits:
    """What was executed.

    Attributes:
        counts: how often each row or sample.
        programs: in how many programs each; what a host gives to a port at once counts as one.
    """

    counts: Counter[str] = field(default_factory=Counter)
    programs: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        program: Sequence[Instruction],
        events: Records,
        edge: int,
        array: int,
        knobs: Knobs,
    ) -> None:
        """Count what the event log of one run shows as dispatched; see `samples_of`."""
        rows: Counter[str] = Counter()
        for index, times in Counter(events["instr"][events["kind"] == DISPATCH].tolist()).items():
            word = program[index]
            before = program[index - 1] if index else None
            prefix = before if before is not None and before.opcode == Opcode.PFX else None
            seen = rows_of(word, prefix) | samples_of(word, prefix, edge, array, knobs)
            rows.update(dict.fromkeys(seen, times))
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
