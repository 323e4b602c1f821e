# SPDX-License-Identifier: Apache-2.0
"""Writes the SystemVerilog package npu_isa_pkg."""

from spec.isa.emit_python import camel, set_register_numbers
from spec.isa.fields import WORD_FIELDS
from spec.isa.source import Constant, ImmField, IsaSource, OpcodeSource, VecOperation

HEADER = """// SPDX-License-Identifier: Apache-2.0
//
// The microcode instruction set: opcodes, engines, errors, word layouts, what the fields name.
// Generated from spec/isa/isa.toml by `python -m spec.isa.generate`; do not edit.

package npu_isa_pkg;

  // The package declares the whole instruction set; a design uses a part of it.
  // verilator lint_off UNUSEDPARAM
"""


def _enum(name: str, width: int, prefix: str, items: list[tuple[str, int]]) -> list[str]:
    body = [f"    {prefix}{camel(key)} = {width}'d{number}" for key, number in items]
    return [f"  typedef enum logic [{width - 1}:0] {{", ",\n".join(body), f"  }} {name};", ""]


def _constant(item: Constant) -> str:
    kind = f"logic [{item.width - 1}:0]" if item.width else "int unsigned"
    number = f"{item.width}'d{item.number}" if item.width else str(item.number)
    return f"  localparam {kind} {camel(item.name)} = {number};  // {item.text}"


def _modes(isa: IsaSource) -> list[str]:
    """Return an enum of each mode and code."""
    widths = {field.mode: field.width for op in isa.opcodes for field in op.imm}
    lines: list[str] = []
    for mode in isa.modes.values():
        prefix = "Vec" if mode.name == "VEC_OP" else camel(mode.name)
        values = [(value.name, value.number) for value in mode.values]
        lines += _enum(f"{mode.name.lower()}_e", widths[mode.name], prefix, values)
    for name, code in isa.codes.items():
        values = [(value.name, value.number) for value in code.mode.values]
        lines += _enum(f"{name.lower()}_e", code.width, camel(name), values)
    return lines


def _range(width: int) -> str:
    return "logic       " if width == 1 else f"logic [{width - 1:>2}:0]"


def _struct(name: str, comment: str, members: list[tuple[str, str]]) -> list[str]:
    """Return a packed struct; `members` (name, type) from bit 0 upwards."""
    lines = [f"  // {comment}", "  typedef struct packed {"]
    lines += [f"    {kind} {member};" for member, kind in reversed(members)]
    return [*lines, f"  }} {name};", ""]


def _imm_type(field: ImmField) -> str:
    """Return the type of a field: its mode's, but a bit is a switch."""
    named = field.mode and field.width > 1
    return f"{field.mode.lower()}_e" if named else _range(field.width)


def _imm_members(layout: tuple[ImmField, ...]) -> list[tuple[str, str]]:
    members: list[tuple[str, str]] = []
    at = 0
    spare = 0
    for item in sorted(layout, key=lambda f: f.lsb):
        if item.lsb > at:
            members.append((f"reserved{spare}", _range(item.lsb - at)))
            spare += 1
        members.append((item.name, _imm_type(item)))
        at = item.lsb + item.width
    if at < 16:
        members.append((f"reserved{spare}", _range(16 - at)))
    return members


def _imm_structs(isa: IsaSource) -> list[str]:
    lines: list[str] = []
    seen: dict[tuple[tuple[str, int, int], ...], str] = {}
    for op in isa.opcodes:
        if not op.imm or op.name == "PFX":
            continue
        key = tuple((f.name, f.lsb, f.width) for f in op.imm)
        if key in seen:
            continue
        name = "gemm_mode_t" if op.name == "GEMM" else f"{op.name.lower()}_imm_t"
        seen[key] = name
        users = [o.name for o in isa.opcodes if o.imm == op.imm]
        lines += _struct(name, "imm of " + ", ".join(users), _imm_members(op.imm))
        if op.imm_alt:
            lines += _struct(
                "gemm_scale_imm_t", "imm of GEMM with MODE clear", _imm_members(op.imm_alt)
            )
    return lines


def _legal_values(isa: IsaSource, op: OpcodeSource) -> str:
    """Return the condition that every field of imm holds a value that the chip takes."""
    conditions = []
    for field in op.imm:
        if isa.refused(field):
            bits = f"word.imm[{field.lsb + field.width - 1}:{field.lsb}]"
            numbers = ", ".join(
                f"{field.width}'d{n}" for n in sorted(isa.modes[field.mode].numbers())
            )
            conditions.append(f"{bits} inside {{{numbers}}}")
    condition = " && ".join(conditions)
    if condition and op.imm_alt:
        return f"!word.flags[FlagMode] || ({condition})"
    return condition


def _values_function(isa: IsaSource) -> list[str]:
    checked = [(op.name, _legal_values(isa, op)) for op in isa.opcodes]
    return [
        "  // Whether every field of imm that names something holds a value that the chip takes.",
        "  function automatic logic has_legal_values(instr_t word);",
        "    unique case (word.opcode)",
        *[
            f"      Op{camel(name)}: return {condition};"
            for name, condition in checked
            if condition
        ],
        "      default: return 1'b1;",
        "    endcase",
        "  endfunction",
        "",
    ]


def _vec_function(name: str, comment: str, operations: list[VecOperation]) -> list[str]:
    names = ", ".join(f"Vec{camel(op.name)}" for op in operations)
    return [
        f"  // {comment}",
        f"  function automatic logic vec_{name}(vec_op_e op);",
        f"    return op inside {{{names}}};",
        "  endfunction",
        "",
    ]


def _vec_functions(isa: IsaSource) -> list[str]:
    """Return a function for each attribute of the operations of VEC."""
    ops = isa.vec_ops
    src1 = {kind: [op for op in ops if op.src1 == kind] for kind in ("operand", "bound", "table")}
    return [
        *_vec_function("two", "There is a second matrix B.", src1["operand"]),
        *_vec_function("bound", "src1 is a bound.", src1["bound"]),
        *_vec_function("table", "Results come from a table.", src1["table"]),
        *_vec_function("k", "K is used.", [op for op in ops if op.k]),
        *_vec_function("shift", "sh is used.", [op for op in ops if op.shift]),
        *_vec_function(
            "converts", "A and C may differ in type.", [op for op in ops if op.converts]
        ),
        *_vec_function("wide", "A and C may be int16.", [op for op in ops if "INT16" in op.types]),
    ]


def _weight_functions(isa: IsaSource) -> list[str]:
    """Return a function for each attribute of the weight formats."""

    def names(*sides: str) -> str:
        found = [one.name for one in isa.weight_formats if one.side in sides or not sides]
        return ", ".join(f"WeightFormat{camel(name)}" for name in found)

    bits: dict[int, list[str]] = {}
    for one in isa.weight_formats:
        kept = one.bits // 2 if one.side == "POSITIONS" else one.bits
        bits.setdefault(kept, []).append(f"WeightFormat{camel(one.name)}")
    lines: list[str] = []
    for name, comment, members in (
        ("exists", "There is such a format.", names()),
        ("multiplied", "Side bytes are factors.", names("FACTOR")),
        ("halved", "Side bytes are exponents.", names("EXPONENT")),
        ("sparse", "Side bytes are positions.", names("POSITIONS")),
    ):
        lines += [
            f"  // {comment}",
            f"  function automatic logic weight_{name}(weight_format_e format);",
            f"    return format inside {{{members}}};",
            "  endfunction",
            "",
        ]
    return [
        *lines,
        "  // Bits of the stream that a weight takes in its tile",
        "  function automatic logic [3:0] weight_bits(weight_format_e format);",
        "    unique case (format)",
        *[f"      {', '.join(bits[n])}: return 4'd{n};" for n in sorted(bits) if n != 4],
        "      default: return 4'd4;",
        "    endcase",
        "  endfunction",
        "",
    ]


def _set_function(
    isa: IsaSource, name: str, result: str, comment: str, arms: dict[str, str], default: str
) -> list[str]:
    """Return a function of a SET register; `arms` says what it returns for each."""
    by_value: dict[str, list[str]] = {}
    for register, _, _ in set_register_numbers(isa):
        by_value.setdefault(arms[register], []).append(f"Set{camel(register)}")
    cases = [
        f"    if (register inside {{{', '.join(names)}}}) return {value};"
        for value, names in by_value.items()
        if value != default
    ]
    return [
        f"  // {comment}",
        f"  function automatic {result} {name}(logic [15:0] register);",
        *cases,
        f"    return {default};",
        "  endfunction",
        "",
    ]


def _set_functions(isa: IsaSource) -> list[str]:
    """Return what SET may do with each register."""
    registers = {name: isa.set_registers[i] for name, _, i in set_register_numbers(isa)}
    exists = dict.fromkeys(registers, "1'b1")
    adds = {name: "1'b1" if reg.add else "1'b0" for name, reg in registers.items()}
    masks = {name: f"32'd{reg.granularity - 1}" for name, reg in registers.items()}
    return [
        *_set_function(isa, "is_set_register", "logic", "Whether SET knows it.", exists, "1'b0"),
        *_set_function(isa, "set_adds", "logic", "Whether SET can add to it.", adds, "1'b0"),
        *_set_function(
            isa,
            "set_spare_bits",
            "logic [31:0]",
            "Bits of the value that must be zero.",
            masks,
            "32'd0",
        ),
    ]


def _function(name: str, result: str, comment: str, arms: list[tuple[str, str]]) -> list[str]:
    default = next(value for key, value in arms if key == "default")
    return [
        f"  // {comment}",
        f"  function automatic {result} {name}(logic [7:0] opcode);",
        "    unique case (opcode)",
        *[f"      {key}: return {value};" for key, value in arms if key != "default"],
        f"      default: return {default};",
        "    endcase",
        "  endfunction",
        "",
    ]


def _prefix_mask(isa: IsaSource, op: OpcodeSource) -> int:
    order = ["dst", "src0", "src1", "m", "n", "k", "imm", "flags"]
    used = {p.field for p in isa.prefixes if p.name in op.prefix}
    return sum(1 << i for i, name in enumerate(order) if name in used)


def emit(isa: IsaSource) -> str:
    """Return the text of the package."""
    opcodes = [(op.name, op.number) for op in isa.opcodes]
    lines = ["", f"  localparam logic [7:0] IsaVersion = 8'd{isa.version};", ""]
    lines += _enum("opcode_e", 8, "Op", opcodes)
    lines += _enum("engine_e", 3, "Eng", [(e.name, e.number) for e in isa.engines])
    lines += _enum("error_e", 4, "Err", [(e.name, e.number) for e in isa.errors])
    lines += _modes(isa)
    lines += [f"  localparam int unsigned VecOps = {len(isa.vec_ops)};", "", "  // SET registers"]
    lines += [
        f"  localparam logic [15:0] Set{camel(name)} = 16'd{number};"
        for name, number, _ in set_register_numbers(isa)
    ]
    lines += ["", "  // Flag bit positions"]
    lines += [
        f"  localparam int unsigned Flag{camel(name)} = {bit};" for name, bit in isa.flags.items()
    ]
    lines += ["", *[_constant(item) for item in isa.constants], ""]
    word = [(name, _range(width)) for name, (_, width) in WORD_FIELDS.items()]
    lines += _struct("instr_t", "The instruction word", word)
    lines += _struct(
        "prefix_t",
        "The PFX word; mul is also sums",
        [("opcode", _range(8)), ("sh", _range(6)), ("reserved", _range(2))]
        + [(name, _range(16)) for name in ("cp", "ap", "bp", "d", "dp", "base", "mul")],
    )
    lines += _imm_structs(isa)
    named = [(f"Op{camel(op.name)}", op) for op in isa.opcodes]
    lines += _function(
        "is_opcode",
        "logic",
        "Whether this chip executes the opcode.",
        [(key, "1'b1") for key, _ in named] + [("default", "1'b0")],
    )
    lines += _function(
        "engine_of",
        "engine_e",
        "The engine that executes the opcode.",
        [(key, f"Eng{camel(op.engine)}") for key, op in named if op.engine != "SEQ"]
        + [("default", "EngSeq")],
    )
    lines += _function(
        "spare_bits",
        "logic [127:0]",
        "Bits that must be zero in every form of the opcode.",
        [(key, f"128'h{isa.spare(op):032x}") for key, op in named] + [("default", "'0")],
    )
    lines += _function(
        "takes_prefix",
        "logic",
        "Whether a PFX may come before the opcode.",
        [(key, "1'b1") for key, op in named if op.prefix] + [("default", "1'b0")],
    )
    lines += _function(
        "prefix_fields",
        "logic [7:0]",
        "PFX fields that some form of the opcode uses: {sh, mul/sums, base, dp, d, bp, ap, cp}.",
        [(key, f"8'b{_prefix_mask(isa, op):08b}") for key, op in named if op.prefix]
        + [("default", "8'b00000000")],
    )
    lines += _values_function(isa) + _vec_functions(isa)
    lines += _weight_functions(isa) + _set_functions(isa)
    return HEADER + "\n".join(lines) + "  // verilator lint_on UNUSEDPARAM\n\nendpackage\n"
