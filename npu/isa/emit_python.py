# SPDX-License-Identifier: Apache-2.0
"""Writes npu/isa/generated.py."""

from npu.isa.source import ImmField, IsaSource, Named

HEADER = '''# SPDX-License-Identifier: Apache-2.0
"""Generated from npu/isa/isa.toml by `python -m npu.isa.generate`; do not edit."""

# fmt: off
# ruff: noqa: E501
from enum import IntEnum

from npu.isa.fields import BitField, FieldInfo, OpcodeInfo, SetRegInfo

'''


def _enum(name: str, doc: str, items: list[tuple[str, int]]) -> list[str]:
    lines = ["", f"class {name}(IntEnum):", f'    """{doc}"""', ""]
    return lines + [f"    {key} = {number}" for key, number in items] + [""]


def _named(items: tuple[Named, ...]) -> list[tuple[str, int]]:
    return [(item.name, item.number) for item in items]


def _imm(layout: tuple[ImmField, ...]) -> str:
    body = ", ".join(f'"{f.name}": BitField("{f.name}", {f.lsb}, {f.width})' for f in layout)
    return "{" + body + "}"


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
    lines = [f"ISA_VERSION = {isa.version}", ""]
    lines += _enum("Opcode", "Opcode numbers.", [(o.name, o.number) for o in isa.opcodes])
    lines += _enum("Engine", "Engines; 0 to 5 are also barrier bits.", _named(isa.engines))
    lines += _enum("ErrorCode", "Codes of the error status.", _named(isa.errors))
    lines += _enum("Flag", "Flag bit numbers.", list(isa.flags.items()))
    lines += _enum("SetReg", "Registers of SET.", [(n, number) for n, number, _ in registers])
    lines += _enum("VecOp", "Operations of VEC.", _named(isa.vec_ops))
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
    lines.append("}")
    return HEADER + "\n".join(lines) + "\n"
