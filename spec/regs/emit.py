# SPDX-License-Identifier: Apache-2.0
"""Texts that come from the register maps: Python module, C header, reference page."""

from spec.regs import emit_descriptors, emit_start
from spec.regs.descriptors import Descriptors
from spec.regs.source import Register, Window

ORIGIN = "Generated from the SystemRDL of spec/regs by `python -m spec.regs.generate`; do not edit."


def field_name(register: Register, field: str) -> str:
    """Name of a field's constant; the only field of a register named VALUE has the register's."""
    return register.name if field == "VALUE" else f"{register.name}_{field}"


def class_name(enumeration: str) -> str:
    """Return the Python name of an enumeration: cmd_op becomes CmdOp."""
    return "".join(part.capitalize() for part in enumeration.split("_"))


def python(windows: tuple[Window, ...], found: Descriptors) -> str:
    """Return the text of spec/regs/generated.py."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f'"""{ORIGIN}"""',
        "",
        "from dataclasses import KW_ONLY, dataclass",
        "from enum import IntEnum",
        "from typing import ClassVar, TypedDict",
        "",
        "from spec.regs.fields import RegField",
        "from spec.regs.layout import WordLayout",
        "from spec.regs.start import StartMembers, StartRegister",
        "",
    ]
    for w in windows:
        cls = f"{w.key.capitalize()}Reg"
        lines += [f"{w.key.upper()}_BASE = 0x{w.base:03X}", "", ""]
        lines += [
            f"class {cls}(IntEnum):",
            f'    """Byte offsets from {w.key.upper()}_BASE."""',
            "",
        ]
        lines += [f"    {r.name} = 0x{r.offset:02X}" for r in w.registers]
        lines += ["", "", f"{w.key.upper()}_FIELDS: dict[str, RegField] = {{"]
        for r in w.registers:
            lines += [
                f'    "{field_name(r, f.name)}": RegField({cls}.{r.name}, {f.lsb}, {f.width}),'
                for f in r.fields
            ]
        lines += ["}", ""]
        for name, members in w.enumerations.items():
            lines += ["", f"class {class_name(name)}(IntEnum):"]
            lines += [f'    """Values of a field of {w.key.upper()}."""', ""]
            for m in members:
                lines += [f"    {m.name} = {m.value}", f'    """{m.text}"""']
            lines += ["", ""]
    lines += ["# Values that never change."]
    for w in windows:
        for r in w.registers:
            lines += [
                f"{w.key.upper()}_{field_name(r, f.name)}_VALUE = 0x{f.reset:X}"
                for f in r.fields
                if f.access == "read" and f.reset is not None
            ]
    return "\n".join([*lines, *emit_start.python(windows), *emit_descriptors.python(found)]) + "\n"


def c_header(windows: tuple[Window, ...]) -> str:
    """Return the text of firmware/include/npu_regs.h."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* {ORIGIN} */",
        "#ifndef NPU_REGS_H",
        "#define NPU_REGS_H",
    ]
    for w in windows:
        prefix = f"NPU_{w.key.upper()}"
        lines += ["", f"/* {w.title}. Offsets count from the window's base. */"]
        lines += [f"#define {prefix}_BASE 0x{w.base:03X}u"]
        for r in w.registers:
            lines.append(f"#define {prefix}_{r.name} 0x{r.offset:02X}u")
            for f in r.fields:
                if f.name != "VALUE":
                    name = f"{prefix}_{r.name}_{f.name}"
                    mask = ((1 << f.width) - 1) << f.lsb
                    lines.append(f"#define {name}_LSB {f.lsb}u")
                    lines.append(f"#define {name}_MASK 0x{mask:08X}u")
                if f.access == "read" and f.reset is not None:
                    name = f"{prefix}_{field_name(r, f.name)}"
                    lines.append(f"#define {name}_VALUE 0x{f.reset:X}u")
        for enumeration, members in w.enumerations.items():
            name = f"NPU_{enumeration.upper()}"
            lines += [f"#define {name}_{m.name} {m.value}u" for m in members]
    return "\n".join([*lines, "", *emit_start.c(windows), "", "#endif", ""])


def markdown(windows: tuple[Window, ...]) -> str:
    """Return the text of docs/reference/registers.md."""
    lines = [
        f"<!-- {ORIGIN} -->",
        "",
        "# Host registers",
        "",
        "Registers are 32 bits wide and reached through the AXI4-Lite slave. Unmapped offsets and "
        "missing windows read 0 and ignore writes; an unaligned access is answered with SLVERR. "
        "Byte strobes are honoured.",
        "",
    ]
    for w in windows:
        lines += [f"## {w.title}: window 0x{w.base:03X}", "", w.text, ""]
        lines += ["| offset | register | bits | field | access | reset | meaning |"]
        lines += ["|---|---|---|---|---|---|---|"]
        for r in w.registers:
            single = len(r.fields) == 1 and r.fields[0].name == "VALUE"
            if not single:
                lines.append(f"| 0x{r.offset:02X} | {r.name} | | | | | {r.text} |")
            for f in r.fields:
                bits = f"{f.lsb}" if f.width == 1 else f"{f.lsb + f.width - 1}:{f.lsb}"
                reset = "" if f.reset is None else (f"0x{f.reset:X}" if f.reset else "0")
                where = f"0x{r.offset:02X} | {r.name}" if single else " | "
                name = "" if single else f.name
                text = r.text if single else f.text
                access = f"{f.access} unless {f.kept}" if f.kept else f.access
                lines.append(f"| {where} | {bits} | {name} | {access} | {reset} | {text} |")
        lines.append("")
        for name, members in w.enumerations.items():
            lines += [f"| {name} | value | meaning |", "|---|---|---|"]
            lines += [f"| {m.name} | {m.value} | {m.text} |" for m in members]
            lines.append("")
    return "\n".join(lines)
