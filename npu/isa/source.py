# SPDX-License-Identifier: Apache-2.0
"""Reads isa.toml into plain objects for the generators, and checks it for consistency."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npu.isa.fields import WORD_FIELDS

SOURCE = Path(__file__).with_name("isa.toml")


@dataclass(frozen=True)
class Named:
    """A named number with a sentence."""

    name: str
    number: int
    text: str


@dataclass(frozen=True)
class ImmField:
    """Some bits of imm."""

    name: str
    lsb: int
    width: int
    text: str


@dataclass(frozen=True)
class SetRegister:
    """A register of SET, or `count` of them with consecutive numbers."""

    name: str
    number: int
    granularity: int
    add: bool
    text: str
    count: int


@dataclass(frozen=True)
class Prefix:
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
    set_registers: tuple[SetRegister, ...]
    vec_ops: tuple[Named, ...]
    prefixes: tuple[Prefix, ...]
    opcodes: tuple[OpcodeSource, ...]

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


def load(path: Path = SOURCE) -> IsaSource:
    """Return the contents of isa.toml. Raises ValueError if it contradicts itself."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    errors = tuple(Named(e["name"], e["number"], e["text"]) for e in data["error"])
    flags = {flag["name"]: flag["bit"] for flag in data["flag"]}
    prefixes = tuple(Prefix(p["name"], p["field"], p["text"]) for p in data["prefix"])
    opcodes = tuple(
        _opcode(raw, {e.name for e in errors}, set(flags), {p.name for p in prefixes})
        for raw in data["opcode"]
    )
    numbers = [op.number for op in opcodes]
    if len(set(numbers)) != len(numbers):
        raise ValueError("isa.toml: two opcodes have the same number")
    return IsaSource(
        version=data["isa"]["version"],
        engines=tuple(Named(e["name"], e["number"], e["text"]) for e in data["engine"]),
        errors=errors,
        flags=flags,
        set_registers=tuple(
            SetRegister(
                r["name"],
                r["number"],
                r["granularity"],
                r["add"],
                r["text"],
                r.get("count", 1),
            )
            for r in data["set_register"]
        ),
        vec_ops=tuple(Named(v["name"], v["number"], v["text"]) for v in data["vec_op"]),
        prefixes=prefixes,
        opcodes=opcodes,
    )
