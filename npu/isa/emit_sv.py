# SPDX-License-Identifier: Apache-2.0
"""Writes the SystemVerilog package npu_isa_pkg."""

from npu.isa.emit_python import set_register_numbers
from npu.isa.fields import WORD_FIELDS
from npu.isa.source import ImmField, IsaSource, OpcodeSource

HEADER = """// SPDX-License-Identifier: Apache-2.0
//
// The microcode instruction set: opcodes, engines, errors, word layouts.
// Generated from npu/isa/isa.toml by `python -m npu.isa.generate`; do not edit.

package npu_isa_pkg;

  // The package declares the whole instruction set; a design uses a part of it.
  // verilator lint_off UNUSEDPARAM
"""


def camel(name: str) -> str:
    """DMA_LOAD -> DmaLoad; digits keep their place."""
    return "".join(part.capitalize() for part in name.split("_"))


def _enum(name: str, width: int, prefix: str, items: list[tuple[str, int]]) -> list[str]:
    body = [f"    {prefix}{camel(key)} = {width}'d{number}" for key, number in items]
    return [f"  typedef enum logic [{width - 1}:0] {{", ",\n".join(body), f"  }} {name};", ""]


def _range(width: int) -> str:
    return "logic       " if width == 1 else f"logic [{width - 1:>2}:0]"


def _struct(name: str, comment: str, members: list[tuple[str, int]]) -> list[str]:
    """Return a packed struct; `members` from bit 0 upwards."""
    lines = [f"  // {comment}", "  typedef struct packed {"]
    lines += [f"    {_range(width)} {member};" for member, width in reversed(members)]
    return [*lines, f"  }} {name};", ""]


def _imm_members(layout: tuple[ImmField, ...]) -> list[tuple[str, int]]:
    members: list[tuple[str, int]] = []
    at = 0
    spare = 0
    for item in sorted(layout, key=lambda f: f.lsb):
        if item.lsb > at:
            members.append((f"reserved{spare}", item.lsb - at))
            spare += 1
        members.append((item.name, item.width))
        at = item.lsb + item.width
    if at < 16:
        members.append((f"reserved{spare}", 16 - at))
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
    lines += _enum("vec_op_e", 4, "Vec", [(v.name, v.number) for v in isa.vec_ops])
    lines += ["  // SET registers"]
    lines += [
        f"  localparam logic [15:0] Set{camel(name)} = 16'd{number};"
        for name, number, _ in set_register_numbers(isa)
    ]
    lines += ["", "  // Flag bit positions"]
    lines += [
        f"  localparam int unsigned Flag{camel(name)} = {bit};" for name, bit in isa.flags.items()
    ]
    lines += ["", "  // A dimension field at or above this is dynamic."]
    lines += ["  localparam logic [15:0] DynamicDim = 16'hf000;", ""]
    word = [(name, width) for name, (_, width) in WORD_FIELDS.items()]
    lines += _struct("instr_t", "The instruction word", word)
    lines += _struct(
        "prefix_t",
        "The PFX word; mul is also sums",
        [("opcode", 8), ("sh", 6), ("reserved", 2)]
        + [(name, 16) for name in ("cp", "ap", "bp", "d", "dp", "base", "mul")],
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
    return HEADER + "\n".join(lines) + "  // verilator lint_on UNUSEDPARAM\n\nendpackage\n"
