# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/isa.md: the tables of isa.toml set into reference.md.tmpl."""

from pathlib import Path
from string import Template

from spec.isa.emit_python import number_text, set_register_numbers
from spec.isa.fields import WORD_FIELDS
from spec.isa.source import (
    ImmField,
    IsaSource,
    OpcodeSource,
    Value,
    VecOperation,
    WeightFormatSource,
)

TEMPLATE = Path(__file__).with_name("reference.md.tmpl")
KINDS = {
    "sram": "SRAM address in 16-byte words",
    "dim": "dimension, static",
    "dyn": "dimension, may be dynamic",
    "raw": "number",
}


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _bits(lsb: int, width: int) -> str:
    return str(lsb) if width == 1 else f"{lsb + width - 1}:{lsb}"


def _value(value: Value) -> str:
    """Return number, name and, where the name does not say it, the meaning of a value."""
    meaning = "" if value.text.lower() == value.name.lower() else value.text
    return f"{value.number} {value.name}" + (f" ({meaning})" if meaning else "")


def _meaning(isa: IsaSource, field: ImmField) -> str:
    """Return what a field of imm means, with the values that it names."""
    if not field.mode:
        return field.text
    if field.mode == "VEC_OP":
        return f"{field.text}, see [VEC](#vec)"
    return f"{field.text}: {', '.join(_value(v) for v in isa.modes[field.mode].values)}"


def _refused_values(isa: IsaSource, op: OpcodeSource) -> list[str]:
    """Return a line with the numbers that the fields of imm do not take, if there are any."""
    refused = [
        f"{field.name} {', '.join(_spans_text(isa.refused(field)))}"
        for field in op.imm
        if isa.refused(field)
    ]
    return [f"- ILLEGAL_FIELD: {'; '.join(refused)}."] if refused else []


def _spans_text(numbers: list[int]) -> list[str]:
    """Return runs of numbers, as `3` or `1 to 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]


def _vec_row(op: VecOperation) -> list[str]:
    src1 = {"": "0", "operand": "B", "bound": "lower bound", "table": "table, or 0 with stream"}
    k = {"": "0", "scale": "scale", "bound": "upper bound"}
    types = ", ".join(op.types).lower()
    if op.converts:
        types += ", A and C may differ"
    shift = "yes" if op.shift else "0"
    return [str(op.number), op.name, op.text, src1[op.src1], k[op.k], shift, types]


def _weight_format(one: WeightFormatSource) -> list[str]:
    scaled = "q" if one.unit == 1 else f"{one.unit}*q"
    v = " ".join(map(str, one.table)) or one.minifloat or scaled
    return [str(one.number), one.name, one.asm, one.text, str(one.bits), v, one.side.lower()]


def _imm_table(isa: IsaSource, layout: tuple[ImmField, ...]) -> str:
    rows = [[_bits(f.lsb, f.width), f.name, _meaning(isa, f)] for f in layout]
    used = sum(((1 << f.width) - 1) << f.lsb for f in layout)
    spare = [i for i in range(16) if not used >> i & 1]
    if spare:
        rows.append([", ".join(_spans(spare)), "", "must be zero"])
    return _table(["imm bits", "name", "meaning"], rows)


def _spans(bits: list[int]) -> list[str]:
    spans: list[list[int]] = []
    for bit in bits:
        if spans and spans[-1][-1] == bit - 1:
            spans[-1].append(bit)
        else:
            spans.append([bit])
    return [_bits(span[0], len(span)) for span in reversed(spans)]


def _opcode(isa: IsaSource, op: OpcodeSource) -> str:
    parts = [f"### {op.number} {op.name}", "", f"{op.text} Engine: {op.engine.lower()}.", ""]
    rows = [["opcode", "7:0", str(op.number), ""]]
    for name, (lsb, width) in list(WORD_FIELDS.items())[1:]:
        bits = _bits(lsb, width)
        label = name.upper() if name in "mnk" else name
        if name in op.fields:
            kind, text = op.fields[name]
            rows.append([label, bits, text, KINDS[kind]])
        elif name == "flags" and op.flags:
            flags = ", ".join(f"{isa.flags[f]} {f}" for f in op.flags)
            free = _spans([i for i in range(8) if i not in {isa.flags[f] for f in op.flags}])
            rows.append([label, bits, flags, "bits " + ", ".join(free) + " must be zero"])
        elif name == "imm" and op.imm:
            rows.append([label, bits, "see below", ""])
        else:
            rows.append([label, bits, "must be zero", ""])
    parts += [_table(["field", "bits", "holds", "kind"], rows), ""]
    if op.imm_alt:
        parts += ["With flag MODE set (the mode word):", "", _imm_table(isa, op.imm), ""]
        parts += ["With flag MODE clear:", "", _imm_table(isa, op.imm_alt), ""]
    elif op.imm:
        parts += [_imm_table(isa, op.imm), ""]
    if op.name != "PFX":
        parts += ["Prefix operands: " + (", ".join(op.prefix) if op.prefix else "none") + ".", ""]
    if op.illegal:
        refused = [f"- {code}: {text}." for code, text in op.illegal]
        parts += ["Refused:", "", *_refused_values(isa, op), *refused, ""]
    return "\n".join(parts)


def emit(isa: IsaSource) -> str:
    """Return the text of the reference page."""
    registers = []
    for name, number, index in set_register_numbers(isa):
        reg = isa.set_registers[index]
        registers.append(
            [
                str(number),
                name,
                str(reg.granularity),
                _yes(reg.add),
                reg.text,
            ]
        )
    layout = [[n.upper() if n in "mnk" else n, _bits(*b)] for n, b in WORD_FIELDS.items()]
    values = {
        "version": str(isa.version),
        "word": _table(["field", "bits"], layout),
        "engines": _table(
            ["number", "engine", "executes"],
            [[str(e.number), e.name.lower(), e.text] for e in isa.engines],
        ),
        "errors": _table(
            ["code", "name", "meaning"], [[str(e.number), e.name, e.text] for e in isa.errors]
        ),
        "constants": _table(
            ["constant", "number", "meaning"],
            [[c.name, number_text(c), c.text] for c in isa.constants],
        ),
        "registers": _table(["number", "register", "multiple of", "ADD", ""], registers),
        "prefixes": _table(
            ["operand", "field of PFX", "meaning"],
            [[p.name, p.field, p.text] for p in isa.prefixes],
        ),
        "vec_ops": _table(
            ["op", "name", "result", "src1", "K", "sh", "A and C"],
            [_vec_row(v) for v in isa.vec_ops],
        ),
        "format_count": str(len(isa.weight_formats)),
        "weight_formats": _table(
            ["number", "name", "fmt=", "elements", "bits", "v", "side byte"],
            [_weight_format(one) for one in isa.weight_formats],
        ),
        "minifloats": ", ".join(f"{one.top} for {name}" for name, one in isa.minifloats.items()),
        "weight_groups": ", ".join(
            f"{v.number} {v.text}" for v in isa.codes["WEIGHT_GROUP"].mode.values
        ),
        "summary": _table(
            ["number", "opcode", "engine"],
            [[str(o.number), o.name, o.engine.lower()] for o in isa.opcodes],
        ),
        "opcodes": "\n".join(_opcode(isa, op) for op in isa.opcodes),
    }
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(values)
