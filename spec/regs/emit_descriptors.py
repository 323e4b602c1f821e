# SPDX-License-Identifier: Apache-2.0
"""Texts of descriptors and records: SystemVerilog package, Python, C header, tables of the page."""

import re

from spec.regs.descriptors import WORD_BITS, Descriptors, LayoutField, LayoutSource
from spec.regs.source import Window

ORIGIN = "Generated from spec/regs/descriptors.toml by `python -m spec.regs.generate`; do not edit."


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _c_name(layout: LayoutSource, field: LayoutField) -> str:
    return f"NPU_{layout.name}_{field.name}".upper()


def _members(layout: LayoutSource) -> list[str]:
    """Return the members of a packed struct, from the highest bit of the last word down."""
    lines = []
    for word in reversed(range(layout.first, layout.first + layout.words)):
        above = WORD_BITS
        fields = [field for field in layout.fields if field.word == word]
        for field in sorted(fields, key=lambda it: -it.lsb):
            lines += _reserved(word, above, field.lsb + field.width)
            lines.append(f"    {_vector(field.width)} {field.name};")
            above = field.lsb
        lines += _reserved(word, above, 0)
    return lines


def _vector(width: int) -> str:
    return f"logic [{width - 1}:0]" if width > 1 else "logic"


def _reserved(word: int, above: int, low: int) -> list[str]:
    """Return the member that fills the bits from `low` up to below `above`, if there are any."""
    return [f"    {_vector(above - low)} reserved{word}_{low};"] if above > low else []


def _narrow(window: Window) -> list[str]:
    """Return address and bits of the registers that are narrower with a small scratchpad."""
    lines = [
        "",
        f"  // Registers of window 0x{window.base:03X} with fields of a larger scratchpad only:",
    ]
    lines += ["  // byte offset, and the bits that the others have"]
    for register in window.registers:
        narrow = [field for field in register.fields if not field.name.endswith("_WIDE")]
        if len(narrow) < len(register.fields):
            mask = sum(((1 << field.width) - 1) << field.lsb for field in narrow)
            name = _camel(register.name)
            lines.append(f"  localparam logic [7:0] {name}Addr = 8'h{register.offset:02X};")
            lines.append(f"  localparam logic [31:0] {name}Narrow = 32'h{mask:08x};")
    return lines


def systemverilog(found: Descriptors, window: Window) -> str:
    """Return the text of build/gen/regs/npu_desc_pkg.sv."""
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//", f"// {ORIGIN}", ""]
    lines += ["package npu_desc_pkg;", "", "  // DESC_STATUS[7:0]"]
    for code in found.status:
        lines += [f"  // 0x{code.value:02X}: {code.text}"]
        lines += [f"  localparam logic [7:0] Code{_camel(code.name)} = 8'h{code.value:02X};"]
    for layout in found.layouts:
        last = layout.first + layout.words - 1
        lines += ["", f"  // {layout.text}: words {layout.first} to {last}, the first lowest"]
        lines += ["  typedef struct packed {", *_members(layout), f"  }} desc_{layout.name}_t;"]
    return "\n".join([*lines, *_narrow(window), "", "endpackage", ""])


def python(found: Descriptors) -> list[str]:
    """Return the lines of spec/regs/generated.py."""
    lines = ["", "", "class RingStatus(IntEnum):"]
    lines += ['    """How a descriptor, and with it the ring, ends: DESC_STATUS[7:0]."""', ""]
    lines += ["    NONE = 0x00", '    """running, or cleared"""']
    for code in found.status:
        lines += [f"    {code.name} = 0x{code.value:02X}", f'    """{code.text}"""']
    lines += ["", "", "RING_STATUS_TEXT = {", '    RingStatus.NONE: "running, or cleared",']
    lines += [f'    RingStatus.{code.name}: "{code.text}",' for code in found.status]
    lines += ["}"]
    for layout in found.layouts:
        lines += ["", f"DESC_{layout.name.upper()} = WordLayout("]
        lines += [f'    "{layout.name}",', f"    {layout.first},", f"    {layout.words},", "    {"]
        lines += [
            f'        "{f.name}": RegField({f.word}, {f.lsb}, {f.width}),' for f in layout.fields
        ]
        lines += ["    },", ")", f'"""{layout.text}."""']
    return lines


def c_header(found: Descriptors) -> str:
    """Return the text of firmware/include/npu_descriptors.h."""
    lines = [
        "/* SPDX-License-Identifier: Apache-2.0 */",
        f"/* {ORIGIN} */",
        "#ifndef NPU_DESCRIPTORS_H",
        "#define NPU_DESCRIPTORS_H",
        "",
        "/* DESC_STATUS[7:0], and the first byte of a completion record. */",
    ]
    lines += [f"#define NPU_STATUS_{code.name} 0x{code.value:02X}u" for code in found.status]
    for layout in found.layouts:
        lines += ["", f"/* {layout.text}. _WORD is the index of a field's word of 32 bits. */"]
        for field in layout.fields:
            name = _c_name(layout, field)
            lines.append(f"#define {name}_WORD {field.word}u")
            lines.append(f"#define {name}_LSB {field.lsb}u")
            lines.append(f"#define {name}_MASK 0x{field.mask:08X}u")
    return "\n".join([*lines, "", "#endif", ""])


def _layout_table(layout: LayoutSource) -> list[str]:
    lines, word = ["| word | bits | field | meaning |", "|---|---|---|---|"], -1
    for field in layout.fields:
        shown = str(field.word) if field.word != word else ""
        word = field.word
        lines.append(f"| {shown} | {field.bits} | {field.name} | {field.text} |")
    return lines


def tables(found: Descriptors) -> dict[str, list[str]]:
    """Return the lines of each table of the page, by its name there."""
    status = ["| DESC_STATUS[7:0] | name | when |", "|---|---|---|"]
    status += [f"| 0x{code.value:02X} | {code.name} | {code.text} |" for code in found.status]
    return {"status": status, **{it.name: _layout_table(it) for it in found.layouts}}


def filled(page: str, found: Descriptors) -> str:
    """Return the page with its tables as they are now, between the markers of each.

    Raises:
        ValueError: the page lacks the markers of a table, or has unknown ones.
    """
    pattern = r"^(<!-- begin (\w+) -->\n).*?^(<!-- end \2 -->\n)"
    made = tables(found)
    names = [match[2] for match in re.finditer(pattern, page, flags=re.M | re.S)]
    if sorted(names) != sorted(made):
        raise ValueError(f"command-port.md: given tables {names}, allowed each of {[*made]} once")

    def replaced(match: re.Match[str]) -> str:
        return match[1] + "\n".join(["", *made[match[2]], "", ""]) + match[3]

    return re.sub(pattern, replaced, page, flags=re.M | re.S)
