# SPDX-License-Identifier: Apache-2.0
"""Writes what the coprocessor's instructions are in SystemVerilog, Python and for waveforms."""

from spec.isa.cop_source import CopIsa, CopSource
from spec.isa.emit_python import camel

ORIGIN = "Generated from spec/isa/coprocessor.toml by `python -m spec.isa.generate`; do not edit."


def _bit(value: bool) -> str:
    return f"1'b{int(value)}"


def _properties(item: CopSource) -> list[tuple[str, str]]:
    """Return the members of cop_decoded_t and their values."""
    floats = "".join(str(int(it)) for it in reversed(item.floats))
    reads = "".join(str(int(it)) for it in (item.reads_rd, item.reads_rs2, item.reads_rs1))
    return [
        ("legal", "1'b1"),
        ("op", f"Cop{camel(item.name)}"),
        ("register_read", f"3'b{reads}"),
        ("is_float", f"3'b{floats}"),
        ("writeback", _bit(item.writes_rd)),
        ("counted", _bit(item.counted)),
        ("reads_a", _bit(item.reads_a)),
        ("reads_b", _bit(item.reads_b)),
        ("writes_d", _bit(item.writes_memory)),
        ("element_bytes", f"3'd{item.element}"),
    ]


_STRUCT = """
  // What an instruction is. Bits of register_read and is_float: rs1, rs2, rd.
  typedef struct packed {
    logic legal;
    cop_op_e op;
    logic [2:0] register_read;  // sources that the host delivers
    logic [2:0] is_float;       // f registers on a host that has them
    logic writeback;            // there is a result
    logic counted;              // x[rd], or rs2 where rd is the result, counts elements
    logic reads_a;              // elements are read at rs1
    logic reads_b;              // elements are read at rs2
    logic writes_d;             // elements are written at rs2, or at rs1 by STVEC
    logic [2:0] element_bytes;  // 0, 1 or 4
  } cop_decoded_t;
"""


def _cases(isa: CopIsa, opcode: str) -> list[str]:
    mine = [item for item in isa.instructions if item.opcode == opcode]
    lines = ["        unique case (instr[14:12])", "          3'd0:"]
    lines += ["          unique case (instr[31:25])"]
    lines += [
        f"            7'd{item.funct7}: return Decoded{camel(item.name)};"
        for item in mine
        if item.funct7 is not None
    ]
    lines += ["            default: return '0;", "          endcase"]
    lines += [
        f"          3'd{item.funct3}: return Decoded{camel(item.name)};"
        for item in mine
        if item.funct7 is None
    ]
    return [*lines, "          default: return '0;", "        endcase"]


def systemverilog(isa: CopIsa) -> str:
    """Return the text of build/gen/npu_cop_isa_pkg.sv."""
    lines = ["// SPDX-License-Identifier: Apache-2.0", "//"]
    lines += [
        "// The instructions of the RISC-V coprocessor and their decoder.",
        f"// {ORIGIN}",
        "",
    ]
    lines += ["package npu_cop_isa_pkg;", ""]
    for name, number in isa.opcodes.items():
        lines.append(f"  localparam logic [6:0] CopOpcode{camel(name)} = 7'h{number:02X};")
    width = (len(isa.instructions) - 1).bit_length()
    body = [f"    Cop{camel(name)} = {width}'d{number}" for name, number in isa.numbers.items()]
    lines += ["", f"  typedef enum logic [{width - 1}:0] {{", ",\n".join(body), "  } cop_op_e;"]
    lines += _STRUCT.splitlines()
    lines.append("")
    for item in isa.instructions:
        members = ", ".join(f"{name}: {value}" for name, value in _properties(item))
        lines.append(f"  localparam cop_decoded_t Decoded{camel(item.name)} =")
        lines.append(f"      '{{{members}}};")
    lines += ["", "  // An instruction word; all 0 if it is not one of the coprocessor's."]
    lines += ["  function automatic cop_decoded_t decode(logic [31:0] instr);"]
    lines += ["    unique case (instr[6:0])"]
    for name in isa.opcodes:
        lines += [f"      CopOpcode{camel(name)}:", *_cases(isa, name)]
    lines += ["      default: return '0;", "    endcase", "  endfunction", "", "endpackage", ""]
    return "\n".join(lines)


_PYTHON = f'''# SPDX-License-Identifier: Apache-2.0
"""{ORIGIN}"""

# fmt: off
from enum import IntEnum

from spec.isa.fields import CopInfo

'''


def python(isa: CopIsa) -> str:
    """Return the text of spec/isa/cop_generated.py."""
    lines = ["", "class CopOp(IntEnum):", '    """Instructions of the coprocessor."""', ""]
    lines += [f"    {name} = {number}" for name, number in isa.numbers.items()]
    lines += ["", "", "COP_INSTRUCTIONS: dict[CopOp, CopInfo] = {"]
    for item in isa.instructions:
        code = f"0x{isa.opcodes[item.opcode]:02X}, {item.funct3}, {item.funct7}"
        rest = f'"{item.format}", "{item.rs1}", "{item.rs2}", "{item.rd}", {item.element}'
        lines.append(f"    CopOp.{item.name}: CopInfo({code}, {rest}),")
    return _PYTHON + "\n".join([*lines, "}", ""])


def mnemonics(isa: CopIsa) -> str:
    """Return a waveform viewer's translation of cop_op_e in a byte to names; 0xFF is none."""
    names = "".join(f"{number:02X} {name}\n" for name, number in isa.numbers.items())
    return f"{names}FF -\n"
