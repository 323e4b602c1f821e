# SPDX-License-Identifier: Apache-2.0
"""What the single sources say, as tables of the form that `published.py` is typed in.

A table has sections, a section has entries by name, and an entry is one line of words. Two tables
are compared entry by entry, so that what has changed is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spec.isa.cop_source import CopIsa
from spec.isa.emit_python import set_register_numbers
from spec.isa.fields import WORD_FIELDS
from spec.isa.source import ImmField, IsaSource, ModeSource
from spec.regs.descriptors import Descriptors
from spec.regs.source import Field, Register, Window

Tables = dict[str, dict[str, str]]
"""Section to name to the rest of the entry."""
ACCESS = {
    "read, write": "rw",
    "read": "r",
    "write": "w",
    "write 1, reads 0": "w1",
    "read, write 1 to clear": "rc",
    "read, write 1 to set": "rs",
}


def parsed(published: Mapping[str, str]) -> Tables:
    """Return typed tables; entries end at a comma or at the end of a line.

    Raises:
        ValueError: a name is there twice.
    """
    return {
        section: _section(section, text.replace(",", "\n").split("\n"))
        for section, text in published.items()
    }


def _section(title: str, entries: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries:
        if words := entry.split():
            if words[0].strip(";") in found:
                raise ValueError(f"{title}: {words[0]} is there twice")
            found[words[0].strip(";")] = " ".join(words[1:])
    return found


def differences(published: Tables, source: Tables) -> list[str]:
    """Return a line for every section and entry that differs."""
    lines = []
    for section in published | source:
        typed, found = published.get(section, {}), source.get(section, {})
        lines += [
            f"{section}: {name}: published {typed.get(name, 'nowhere')!r}, "
            f"the source has {found.get(name, 'none')!r}"
            for name in typed | found
            if typed.get(name) != found.get(name)
        ]
    return lines


def _bits(lsb: int, width: int) -> str:
    return f"{lsb + width - 1}:{lsb}" if width > 1 else f"{lsb}"


def _hex(number: int) -> str:
    return f"0x{number:X}" if number else "0"


def _values(mode: ModeSource) -> list[str]:
    return [f"{value.name} {value.number} {value.asm}" for value in mode.values]


def _imm(fields: Iterable[ImmField]) -> str:
    return " ".join(f"{f.name} {_bits(f.lsb, f.width)} {f.mode}" for f in fields)


def isa(source: IsaSource) -> Tables:
    """Return the numbers of the instruction set."""
    constants = [
        f"{c.name} {_hex(c.number) if c.number > 0xFFF else c.number}"
        + (f" in {c.width} bits" if c.width else "")
        for c in source.constants
    ]
    registers = [
        f"{name} {number} {source.set_registers[index].granularity}"
        + (" ADD" if source.set_registers[index].add else "")
        for name, number, index in set_register_numbers(source)
    ]
    operations = [
        f"{op.name} {op.src1 or '-'} {op.k or '-'} {'sh' if op.shift else '-'} {' '.join(op.types)}"
        + (" differ" if op.converts else "")
        for op in source.vec_ops
    ]
    sections = {
        "version": [f"ISA {source.version}"],
        "constants": constants,
        "instruction word": [f"{name} {_bits(*place)}" for name, place in WORD_FIELDS.items()],
        "engines": [f"{one.name} {one.number}" for one in source.engines],
        "errors": [f"{one.name} {one.number}" for one in source.errors],
        "flags": [f"{name} {bit}" for name, bit in source.flags.items()],
        "registers of SET: number, granularity, whether ADD": registers,
        "prefix: field of PFX": [f"{one.name} {one.field}" for one in source.prefixes],
        "VEC: src1, K, sh, A and C": operations,
        "opcodes": [f"{op.name} {op.number} {op.engine}" for op in source.opcodes],
        "fields": [
            f"{op.name} {' '.join(f'{name} {kind}' for name, (kind, _) in op.fields.items())}"
            for op in source.opcodes
        ],
        "flags of opcodes": [f"{op.name} {' '.join(op.flags)}" for op in source.opcodes],
        "imm of opcodes": [
            f"{op.name} {_imm(op.imm)}" + (f" or {_imm(op.imm_alt)}" if op.imm_alt else "")
            for op in source.opcodes
        ],
        "prefixes of opcodes": [f"{op.name} {' '.join(op.prefix)}" for op in source.opcodes],
    }
    sections["weight formats: bits, side byte, unit, table, minifloat"] = [
        f"{one.name} {one.bits} {one.side} {one.unit} {' '.join(map(str, one.table))} "
        f"{one.minifloat}"
        for one in source.weight_formats
    ]
    sections["minifloats: exponent, mantissa, top"] = [
        f"{name} {one.exponent} {one.mantissa} {one.top}{' reserved' if one.reserved else ''}"
        for name, one in source.minifloats.items()
    ]
    sections |= {mode.name: _values(mode) for mode in source.modes.values()}
    sections |= {
        f"{code.mode.name} in {code.width} bits": _values(code.mode)
        for code in source.codes.values()
    }
    return {title: _section(title, entries) for title, entries in sections.items()}


def coprocessor(source: CopIsa) -> Tables:
    """Return the numbers of the coprocessor's instructions."""
    codes = [
        f"{one.name} {one.opcode} {one.funct3} {'-' if one.funct7 is None else one.funct7} "
        f"{one.format}; {one.rs1 or '-'} {one.rs2 or '-'} {one.rd or '-'} {one.element}"
        for one in source.instructions
    ]
    sections = {
        "opcodes": [f"{name} 0x{code:02X}" for name, code in source.opcodes.items()],
        "opcode, funct3, funct7, format; rs1, rs2, rd; bytes of an element": codes,
        "cycles": [f"{one.name} {one.cycles}" for one in source.instructions],
    }
    return {title: _section(title, entries) for title, entries in sections.items()}


def descriptors(source: Descriptors) -> Tables:
    """Return the codes of the ring and the layouts of what lies in memory."""
    sections = {"status": [f"{code.name} 0x{code.value:02X}" for code in source.status]}
    for layout in source.layouts:
        title = f"{layout.name}: words {layout.first} to {layout.first + layout.words - 1}"
        sections[title] = [f"{f.name} {f.word} {_bits(f.lsb, f.width)}" for f in layout.fields]
    return {title: _section(title, entries) for title, entries in sections.items()}


def _field(field: Field, *, named: bool) -> str:
    words = [_bits(field.lsb, field.width), field.name if named else "", ACCESS[field.access]]
    words.append("" if field.reset is None else _hex(field.reset))
    words.append(f"unless {field.kept}" if field.kept else "")
    return " ".join(word for word in words if word)


def _register(register: Register) -> str:
    named = len(register.fields) > 1 or register.fields[0].name != "VALUE"
    parts = [f"{register.name} 0x{register.offset:02X}"]
    parts += [_field(field, named=named) for field in register.fields]
    if (start := register.start) is not None:
        parts.append(f"starts {start.order} {start.group}.{start.member}")
    return "; ".join(parts)


def registers(windows: Iterable[Window]) -> Tables:
    """Return all registers, their fields and the values that have names."""
    sections = {}
    for window in windows:
        title = f"{window.key}: window 0x{window.base:03X}"
        sections[title] = [_register(register) for register in window.registers]
        for name, members in window.enumerations.items():
            sections[name] = [f"{member.name} {member.value}" for member in members]
    return {title: _section(title, entries) for title, entries in sections.items()}
