# SPDX-License-Identifier: Apache-2.0
"""Writes spec/isa/generated.py."""

from spec.isa.source import Constant, ImmField, IsaSource, ModeSource, Named

HEADER = '''# SPDX-License-Identifier: Apache-2.0
"""Generated from spec/isa/isa.toml by `python -m spec.isa.generate`; do not edit."""

# fmt: off
# ruff: noqa: E501
from enum import IntEnum

from spec.isa.elements import FormatInfo, Minifloat, Side
from spec.isa.fields import BitField, FieldInfo, Mode, OpcodeInfo, SetRegInfo, VecOpInfo

'''


def camel(name: str) -> str:
    """DMA_LOAD -> DmaLoad; digits keep their place."""
    return "".join(part.capitalize() for part in name.split("_"))


def _enum(name: str, doc: str, items: list[tuple[str, int]]) -> list[str]:
    lines = ["", f"class {name}(IntEnum):", f'    """{doc}"""', ""]
    return lines + [f"    {key} = {number}" for key, number in items] + [""]


def _named(items: tuple[Named, ...]) -> list[tuple[str, int]]:
    return [(item.name, item.number) for item in items]


def _mode(mode: ModeSource, doc: str) -> list[str]:
    lines = ["", f"class {camel(mode.name)}(Mode):", f'    """{doc}"""', ""]
    for value in mode.values:
        lines.append(f'    {value.name} = {value.number}, "{value.asm}"')
    return [*lines, ""]


def _modes(isa: IsaSource) -> list[str]:
    """Return an enum of each mode, which says where it stands."""
    lines = []
    for mode in isa.modes.values():
        users = ", ".join(
            f"{field.name} of {op.name}"
            for op in isa.opcodes
            for field in op.imm
            if field.mode == mode.name
        )
        lines += _mode(mode, f"Values of {users}.")
    for code in isa.codes.values():
        lines += _mode(code.mode, f"Values of {code.text}.")
    return lines


def _vec_ops(isa: IsaSource) -> list[str]:
    lines = ["", "VEC_OPS: dict[VecOp, VecOpInfo] = {"]
    for op in isa.vec_ops:
        wide = "INT16" in op.types
        fields = f'"{op.src1}", "{op.k}", {op.shift}, {op.converts}, {wide}'
        lines.append(f"    VecOp.{op.name}: VecOpInfo({fields}),")
    return [*lines, "}"]


def _weight_formats(isa: IsaSource) -> list[str]:
    """Return the elements of each weight format, in the fewest words."""
    lines = ["", "WEIGHT_FORMATS: dict[WeightFormat, FormatInfo] = {"]
    for one in isa.weight_formats:
        parts = [str(one.bits), f"Side.{one.side}"]
        parts += [f"unit={one.unit}"] if one.unit != 1 else []
        parts += [f"table={tuple(one.table)}"] if one.table else []
        if one.minifloat:
            kind = isa.minifloats[one.minifloat]
            fields = f"{kind.exponent}, {kind.mantissa}, {kind.top}, {kind.reserved}"
            parts.append(f"minifloat=Minifloat({fields})")
        lines.append(f"    WeightFormat.{one.name}: FormatInfo({', '.join(parts)}),")
    return [*lines, "}"]


def _bit_field(field: ImmField) -> str:
    values = f", {camel(field.mode)}" if field.mode else ""
    return f'BitField("{field.name}", {field.lsb}, {field.width}{values})'


def _imm(layout: tuple[ImmField, ...]) -> str:
    return "{" + ", ".join(f'"{f.name}": {_bit_field(f)}' for f in layout) + "}"


def number_text(item: Constant) -> str:
    """Return the number of a constant, long ones in hexadecimal."""
    return f"0x{item.number:X}" if item.number > 0xFFF else str(item.number)


def _constant(item: Constant) -> list[str]:
    return [f"{item.name} = {number_text(item)}", f'"""{item.text[0].upper()}{item.text[1:]}."""']


def set_register_numbers(isa: IsaSource) -> list[tuple[str, int, int]]:
    """(name, number, index into isa.set_registers) with arrays of registers written out."""
    result = []
    for index, reg in enumerate(isa.set_registers):
        for i in range(reg.count):
            name = reg.name if reg.count == 1 else f"{reg.name}{i}"
            result.append((name, reg.number + i, index))
    return result


def emit(isa: IsaSource) -> str:
    """Return the text of the generated module."""
    registers = set_register_numbers(isa)
    lines = [f"ISA_VERSION = {isa.version}"]
    lines += [line for item in isa.constants for line in _constant(item)] + [""]
    lines += _enum("Opcode", "Opcode numbers.", [(o.name, o.number) for o in isa.opcodes])
    lines += _enum("Engine", "Engines; 0 to 5 are also barrier bits.", _named(isa.engines))
    lines += _enum("ErrorCode", "Codes of the error status.", _named(isa.errors))
    lines += _enum("Flag", "Flag bit numbers.", list(isa.flags.items()))
    lines += _enum("SetReg", "Registers of SET.", [(n, number) for n, number, _ in registers])
    lines += _modes(isa)
    lines += ["", "OPCODES: dict[Opcode, OpcodeInfo] = {"]
    for op in isa.opcodes:
        fields = ", ".join(
            f'"{name}": FieldInfo("{kind}", "{text}")' for name, (kind, text) in op.fields.items()
        )
        flags = ", ".join(f'"{flag}": {isa.flags[flag]}' for flag in op.flags)
        prefix = ", ".join(f'"{name}"' for name in op.prefix)
        prefix += "," if len(op.prefix) == 1 else ""
        lines += [
            f"    Opcode.{op.name}: OpcodeInfo(",
            f"        engine=Engine.{op.engine},",
            f"        fields={{{fields}}},",
            f"        flags={{{flags}}},",
            f"        imm={_imm(op.imm)},",
            f"        imm_alt={_imm(op.imm_alt)},",
            f"        prefix=({prefix}),",
            f"        spare=0x{isa.spare(op):032X},",
            "    ),",
        ]
    lines += ["}", "", "# Prefix operand -> the field of the PFX word that holds it."]
    lines += ["PREFIX_FIELDS: dict[str, str] = {"]
    lines += [f'    "{p.name}": "{p.field}",' for p in isa.prefixes]
    lines += ["}", "", "SET_REGISTERS: dict[SetReg, SetRegInfo] = {"]
    for name, _, index in registers:
        reg = isa.set_registers[index]
        lines.append(f"    SetReg.{name}: SetRegInfo({reg.granularity}, {reg.add}),")
    lines += ["}", *_vec_ops(isa), *_weight_formats(isa)]
    return HEADER + "\n".join(lines) + "\n"
