# SPDX-License-Identifier: Apache-2.0
"""The coprocessor's instructions: codes against the published ones, encoder, decoder, headers."""

import re
from pathlib import Path

import pytest

from spec.isa import cop_source
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, decode, disassemble, encode, offset
from spec.paths import ROOT

# The published codes: by opcode, those of funct3 = 0 by funct7, then the others by funct3.
INTEGER = "MACC VMAC VEXP VRSQRT VMUL VREDUCE VMAX"
INTEGER_FUNCT3 = {1: "RELU", 2: "QMUL", 3: "CLAMP", 4: "GELU", 5: "RSTACC", 6: "LDVEC", 7: "STVEC"}
FLOAT = (
    "FMACC FVMAC FVEXP FVRSQRT FVMUL FVREDUCE FVMAX FVADD FVSUB FVRELU FVGELU FVDIV FVSUB_SCALAR"
)
FLOAT_FUNCT3 = {1: "FRELU", 4: "FGELU", 5: "FRSTACC"}


def _published(opcode: int, funct3: int, funct7: int) -> str | None:
    names, others = {0x0B: (INTEGER, INTEGER_FUNCT3), 0x2B: (FLOAT, FLOAT_FUNCT3)}[opcode]
    if funct3:
        return others.get(funct3)
    if (opcode, funct7) == (0x2B, 19):
        return "FRSQRT"
    return dict(enumerate(names.split())).get(funct7)


@pytest.mark.parametrize("opcode", [0x0B, 0x2B])
@pytest.mark.parametrize("registers", [0, 0x1F << 7 | 0x15 << 15 | 0x0A << 20])
def test_every_code_is_what_was_published(opcode: int, registers: int) -> None:
    """All funct3 and funct7 of both opcodes are the published instruction, or none."""
    for code in range(1 << 10):
        funct3, funct7 = code & 7, code >> 3
        found = decode(opcode | funct3 << 12 | funct7 << 25 | registers)
        name = found.name if found is not None else None
        assert name == _published(opcode, funct3, funct7), (opcode, funct3, funct7)


def test_other_opcodes_are_refused() -> None:
    """No word of another opcode is an instruction of the coprocessor."""
    for opcode in set(range(128)) - {0x0B, 0x2B}:
        for code in range(1 << 10):
            assert decode(opcode | (code & 7) << 12 | code >> 3 << 25) is None


@pytest.mark.parametrize("op", CopOp)
def test_encoded_words_decode_to_themselves(op: CopOp) -> None:
    """Instruction, registers and offset survive encoding, at their limits too."""
    for rd, rs1, rs2, imm in ((0, 0, 0, -2048), (31, 30, 29, 2047), (5, 10, 21, -1)):
        shown = imm if COP_INSTRUCTIONS[op].format != "R" else 0
        word = encode(op, rd, rs1, rs2, shown)
        assert (decode(word), offset(word), word >> 15 & 31) == (op, shown, rs1)
        assert COP_INSTRUCTIONS[op].format == "S" or word >> 7 & 31 == rd
        assert COP_INSTRUCTIONS[op].format == "I" or word >> 20 & 31 == rs2


def test_texts() -> None:
    """The disassembler writes registers by their kind, and words that are none of ours as data."""
    assert disassemble(encode(CopOp.VMAC, 10, 11, 12)) == "npu.vmac x10, x11, x12"
    assert disassemble(encode(CopOp.FRSTACC, 4)) == "npu.frstacc f4"
    assert disassemble(encode(CopOp.FVREDUCE, 4, 5, 6)) == "npu.fvreduce f4, x5, x6"
    assert disassemble(encode(CopOp.LDVEC, 3, 11, imm=-4)) == "npu.ldvec v3, -4(x11)"
    assert disassemble(encode(CopOp.STVEC, 0, 11, 2, imm=8)) == "npu.stvec v2, 8(x11)"
    assert disassemble(0x0000000B | 7 << 25) == ".word 0x0e00000b"


@pytest.mark.parametrize(
    ("operands", "message"),
    [
        ({"rd": 32}, "rd is 32, allowed are 0 to 31"),
        ({"rs2": -1}, "rs2 is -1, allowed are 0 to 31"),
        ({"imm": 4}, "imm is 4, allowed are 0 to 0"),
    ],
)
def test_operands_out_of_range_are_refused(operands: dict[str, int], message: str) -> None:
    """The encoder names what was given and what is allowed."""
    with pytest.raises(ValueError, match=message):
        encode(CopOp.VMAC, **operands)
    with pytest.raises(ValueError, match="imm is 2048, allowed are -2048 to 2047"):
        encode(CopOp.LDVEC, imm=2048)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("funct7 = 2\n", "funct7 = 1\n", "VEXP has the code of VMAC"),
        ('rs2 = "count"', 'rs2 = "counter"', "VREDUCE: rs2 is 'counter', allowed are"),
        ("funct3 = 1\n", "funct3 = 0\n", "RELU: funct7 tells"),
    ],
)
def test_contradictions_in_the_source_are_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """A data file that contradicts itself is refused by instruction and value."""
    file = tmp_path / "coprocessor.toml"
    text = cop_source.SOURCE.read_text(encoding="utf-8")
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        cop_source.load(file)


def test_headers_have_an_intrinsic_for_every_instruction() -> None:
    """Every instruction is in one C header, with its code."""
    for op, info in COP_INSTRUCTIONS.items():
        name = "npu.h" if info.opcode == 0x0B else "npu_fp.h"
        text = (ROOT / "firmware/include" / name).read_text(encoding="utf-8")
        code = f".insn {info.format.lower()} 0x{info.opcode:02x}, {info.funct3}, "
        code += f"{info.funct7 or 0}, " if info.format == "R" else ""
        assert re.search(
            rf"NPU_{op.name}\([^{{}}]*?{re.escape(code)}|"
            rf"NPU_{op.name}\([^{{]*{{[^}}]*{re.escape(code)}",
            text,
        ), op.name
