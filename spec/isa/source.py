# SPDX-License-Identifier: Apache-2.0
"""Reads isa.toml into plain objects for the generators, and checks it for consistency."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spec.isa.elements import Side
from spec.isa.fields import WORD_FIELDS

SOURCE = Path(__file__).with_name("isa.toml")


@dataclass(frozen=True)
class Named:
    """A named number with a sentence."""

    name: str
    number: int
    text: str


@dataclass(frozen=True)
class Constant(Named):
    """A number that the whole tree shares; `width` of the field that it is compared with, or 0."""

    width: int = 0


@dataclass(frozen=True)
class Value:
    """A named value of a mode; `asm` is its text form, "" if another operand says it."""

    name: str
    number: int
    asm: str
    text: str


@dataclass(frozen=True)
class ModeSource:
    """What a field of imm can name."""

    name: str
    values: tuple[Value, ...]

    def numbers(self) -> set[int]:
        """Return the numbers that the chip takes."""
        return {value.number for value in self.values}


@dataclass(frozen=True)
class CodeSource:
    """What some bits in several fields name together."""

    width: int
    text: str
    mode: ModeSource


@dataclass(frozen=True)
class WeightFormatSource:
    """What the elements of a weight format are; see isa.toml."""

    name: str
    number: int
    asm: str
    text: str
    bits: int
    side: str = "NONE"
    unit: int = 1
    table: Sequence[int] = ()
    minifloat: str = ""


@dataclass(frozen=True)
class MinifloatSource:
    """Fields of a float of few bits; see isa.toml."""

    exponent: int
    mantissa: int
    top: int
    reserved: bool = False


@dataclass(frozen=True)
class VecOperation:
    """What an operation of VEC uses; see isa.toml."""

    name: str
    number: int
    text: str
    src1: str = ""
    k: str = ""
    shift: bool = False
    converts: bool = False
    types: tuple[str, ...] = ("INT8", "INT16")


@dataclass(frozen=True)
class ImmField:
    """Some bits of imm; `mode` names what they can hold, "" for a number or a switch."""

    name: str
    lsb: int
    width: int
    text: str
    mode: str = ""


@dataclass(frozen=True)
class SetRegisterSource:
    """A register of SET, or `count` of them with consecutive numbers."""

    name: str
    number: int
    granularity: int
    add: bool
    text: str
    count: int


@dataclass(frozen=True)
class PrefixSource:
    """An operand of the PFX word and the field that holds it."""

    name: str
    field: str
    text: str


@dataclass(frozen=True)
class OpcodeSource:
    """One opcode as isa.toml describes it."""

    name: str
    number: int
    engine: str
    text: str
    fields: dict[str, tuple[str, str]]
    flags: tuple[str, ...]
    imm: tuple[ImmField, ...]
    imm_alt: tuple[ImmField, ...]
    prefix: tuple[str, ...]
    illegal: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class IsaSource:
    """The whole of isa.toml."""

    version: int
    engines: tuple[Named, ...]
    errors: tuple[Named, ...]
    flags: dict[str, int]
    constants: tuple[Constant, ...]
    modes: dict[str, ModeSource]
    codes: dict[str, CodeSource]
    weight_formats: tuple[WeightFormatSource, ...]
    minifloats: dict[str, MinifloatSource]
    set_registers: tuple[SetRegisterSource, ...]
    vec_ops: tuple[VecOperation, ...]
    prefixes: tuple[PrefixSource, ...]
    opcodes: tuple[OpcodeSource, ...]

    def refused(self, field: ImmField) -> list[int]:
        """Numbers that a field could hold, and the chip refuses."""
        if not field.mode:
            return []
        return sorted(set(range(1 << field.width)) - self.modes[field.mode].numbers())

    def spare(self, op: OpcodeSource) -> int:
        """Bits of the 128-bit word that are zero in every form of `op`."""
        used = 0xFF
        for name in op.fields:
            lsb, width = WORD_FIELDS[name]
            used |= ((1 << width) - 1) << lsb
        for flag in op.flags:
            used |= 1 << (WORD_FIELDS["flags"][0] + self.flags[flag])
        for item in op.imm + op.imm_alt:
            used |= ((1 << item.width) - 1) << (WORD_FIELDS["imm"][0] + item.lsb)
        if op.name == "PFX":
            used &= ~(0xC0 << WORD_FIELDS["flags"][0])
        return ((1 << 128) - 1) & ~used


def _mode(name: str, values: list[list[Any]], width: int) -> ModeSource:
    mode = ModeSource(name, tuple(Value(*value) for value in values))
    if {value.number for value in mode.values} - set(range(1 << width)):
        raise ValueError(f"isa.toml: {name}: a value does not fit into {width} bits")
    for what in ("name", "number", "asm"):
        if len({getattr(value, what) for value in mode.values}) != len(mode.values):
            raise ValueError(f"isa.toml: {name}: two values have the same {what}")
    return mode


def _modes(data: dict[str, Any], operations: tuple[VecOperation, ...]) -> dict[str, ModeSource]:
    """Return the modes by name; those of VEC are its operations."""
    raw = {mode["name"]: mode["values"] for mode in data["mode"]}
    raw["VEC_OP"] = [[op.name, op.number, op.name.lower(), op.text] for op in operations]
    widths = {item[4]: item[2] for op in data["opcode"] for item in op.get("imm", []) if item[4:]}
    if raw.keys() ^ widths.keys():
        raise ValueError(f"isa.toml: modes without a field: {sorted(raw.keys() ^ widths.keys())}")
    return {name: _mode(name, values, widths[name]) for name, values in raw.items()}


def _code(raw: dict[str, Any]) -> CodeSource:
    values = [value[:4] for value in raw["values"]]
    return CodeSource(raw["width"], raw["text"], _mode(raw["name"], values, raw["width"]))


def _weight_format(value: list[Any], minifloats: dict[str, MinifloatSource]) -> WeightFormatSource:
    *names, elements = value
    found = WeightFormatSource(*names, **elements)
    kind = minifloats[found.minifloat] if found.minifloat else None
    if found.side not in Side.__members__:
        raise ValueError(f"isa.toml: {found.name}: unknown side {found.side}")
    if found.bits not in (2, 4, 6, 8) or (found.bits == 6 and found.side == "POSITIONS"):
        raise ValueError(f"isa.toml: {found.name}: no tile has elements of {found.bits} bits")
    if found.table and len(found.table) != 1 << found.bits:
        raise ValueError(f"isa.toml: {found.name}: the table has {len(found.table)} entries")
    if kind and 1 + kind.exponent + kind.mantissa != found.bits:
        raise ValueError(f"isa.toml: {found.name}: {found.minifloat} is not of {found.bits} bits")
    return found


def _vec_operation(raw: dict[str, Any]) -> VecOperation:
    operation = VecOperation(**raw)
    if operation.src1 not in ("", "operand", "bound", "table"):
        raise ValueError(f"isa.toml: VEC {operation.name}: unknown src1 {operation.src1}")
    if operation.k not in ("", "scale", "bound"):
        raise ValueError(f"isa.toml: VEC {operation.name}: unknown k {operation.k}")
    return operation


def _opcode(
    raw: dict[str, Any], errors: set[str], flags: set[str], prefixes: set[str]
) -> OpcodeSource:
    name = raw["name"]
    imm = tuple(ImmField(*item) for item in raw.get("imm", []))
    imm_alt = tuple(ImmField(*item) for item in raw.get("imm_alt", []))
    op = OpcodeSource(
        name=name,
        number=raw["number"],
        engine=raw["engine"],
        text=raw["text"],
        fields={key: (kind, text) for key, (kind, text) in raw.get("fields", {}).items()},
        flags=tuple(raw.get("flags", [])),
        imm=imm,
        imm_alt=imm_alt,
        prefix=tuple(raw.get("prefix", [])),
        illegal=tuple((code, text) for code, text in raw.get("illegal", [])),
    )
    for field in op.fields:
        if field not in WORD_FIELDS:
            raise ValueError(f"isa.toml: {name}: unknown field {field}")
    for code, _ in op.illegal:
        if code not in errors:
            raise ValueError(f"isa.toml: {name}: unknown error {code}")
    for flag in op.flags:
        if flag not in flags:
            raise ValueError(f"isa.toml: {name}: unknown flag {flag}")
    for prefix in op.prefix:
        if prefix not in prefixes:
            raise ValueError(f"isa.toml: {name}: unknown prefix field {prefix}")
    for layout in (imm, imm_alt):
        seen = 0
        for item in layout:
            mask = ((1 << item.width) - 1) << item.lsb
            if seen & mask or mask >> 16:
                raise ValueError(f"isa.toml: {name}: imm field {item.name} overlaps or is too high")
            seen |= mask
    return op


def parse(data: dict[str, Any]) -> IsaSource:
    """Return what isa.toml says. Raises ValueError if it contradicts itself."""
    errors = tuple(Named(e["name"], e["number"], e["text"]) for e in data["error"])
    flags = {flag["name"]: flag["bit"] for flag in data["flag"]}
    prefixes = tuple(PrefixSource(p["name"], p["field"], p["text"]) for p in data["prefix"])
    opcodes = tuple(
        _opcode(raw, {e.name for e in errors}, set(flags), {p.name for p in prefixes})
        for raw in data["opcode"]
    )
    vec_ops = tuple(_vec_operation(v) for v in data["vec_op"])
    minifloats = {name: MinifloatSource(**raw) for name, raw in data["minifloat"].items()}
    codes = {raw["name"]: raw for raw in data["code"]}
    numbers = [op.number for op in opcodes]
    if len(set(numbers)) != len(numbers):
        raise ValueError("isa.toml: two opcodes have the same number")
    return IsaSource(
        version=data["isa"]["version"],
        engines=tuple(Named(e["name"], e["number"], e["text"]) for e in data["engine"]),
        errors=errors,
        flags=flags,
        constants=tuple(Constant(**c) for c in data["constant"]),
        modes=_modes(data, vec_ops),
        codes={name: _code(raw) for name, raw in codes.items()},
        weight_formats=tuple(
            _weight_format(value, minifloats) for value in codes["WEIGHT_FORMAT"]["values"]
        ),
        minifloats=minifloats,
        set_registers=tuple(
            SetRegisterSource(
                r["name"],
                r["number"],
                r["granularity"],
                r["add"],
                r["text"],
                r.get("count", 1),
            )
            for r in data["set_register"]
        ),
        vec_ops=vec_ops,
        prefixes=prefixes,
        opcodes=opcodes,
    )


def load(path: Path = SOURCE) -> IsaSource:
    """Return the contents of isa.toml; errors as `parse`."""
    return parse(tomllib.loads(path.read_text(encoding="utf-8")))
