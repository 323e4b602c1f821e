# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/coprocessor.md: the table of coprocessor.toml set into its template."""

from pathlib import Path
from string import Template

from spec.isa.cop_source import CopIsa, CopSource

TEMPLATE = Path(__file__).with_name("coprocessor.md.tmpl")


def _operands(item: CopSource) -> str:
    """Return the operands as they are written, with what is special about each."""
    count = "n = x[rd]" if item.rd == "count" else ""
    rd = {"result": "rd", "float": "rd (f)", "vreg": "vrd", "count": count, "": ""}[item.rd]
    names = {
        "value": "{}",
        "float": "{} (f)",
        "source": "{}: a" if item.rs2 != "source" else "{}",
        "destination": "{}: d",
        "both": "{}: b",
        "count": "n = {}",
        "vreg": "vrs2",
    }
    first = names.get(item.rs1, "").format("rs1")
    second = names.get(item.rs2, "").format("rs2")
    if item.rs2 == "source":
        first, second = "rs1: a", "rs2: b"
    if item.format != "R":
        first = "imm(rs1)"
    parts = [rd, first, second] if item.format != "S" else [second, first]
    return ", ".join(part for part in parts if part)


def _row(item: CopSource) -> str:
    code = str(item.funct7) if item.funct7 is not None else "-"
    if item.format != "R":
        code = f"{item.format}-type"
    cells = [item.name, str(item.funct3), code, _operands(item), item.does, item.cycles]
    return "| " + " | ".join(cells) + " |"


def _table(isa: CopIsa, opcode: str) -> str:
    head = [
        "| instruction | funct3 | funct7 | operands | does | cycles |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join(head + [_row(it) for it in isa.instructions if it.opcode == opcode])


def emit(isa: CopIsa) -> str:
    """Return the text of the page."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(integer=_table(isa, "INT"), floating=_table(isa, "FLOAT"))
