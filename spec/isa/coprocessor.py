# SPDX-License-Identifier: Apache-2.0
"""Instruction words of the RISC-V coprocessor: encoder, decoder, disassembler."""

from spec.isa.cop_generated import COP_INSTRUCTIONS, CopOp
from spec.isa.fields import CopInfo

__all__ = ["COP_INSTRUCTIONS", "CopInfo", "CopOp", "decode", "disassemble", "encode", "offset"]

_CODES = {(info.opcode, info.funct3, info.funct7): op for op, info in COP_INSTRUCTIONS.items()}
_OFFSET_BITS = 12


def _checked(name: str, given: int, least: int, most: int) -> int:
    if not least <= given <= most:
        raise ValueError(f"{name} is {given}, allowed are {least} to {most}")
    return given


def encode(op: CopOp, rd: int = 0, rs1: int = 0, rs2: int = 0, imm: int = 0) -> int:
    """Return the word of an instruction, 32 bits.

    Args:
        op: the instruction.
        rd: number of the rd field, 0 to 31 (LDVEC: the vector register).
        rs1: number of the rs1 field, 0 to 31.
        rs2: number of the rs2 field, 0 to 31 (STVEC: the vector register).
        imm: offset of LDVEC and STVEC in bytes, -2048 to 2047; 0 for all others.

    Raises:
        ValueError: a number is out of range.
    """
    info = COP_INSTRUCTIONS[op]
    for name, number in (("rd", rd), ("rs1", rs1), ("rs2", rs2)):
        _checked(name, number, 0, 31)
    half = 1 << _OFFSET_BITS - 1 if info.format != "R" else 0
    bits = _checked("imm", imm, -half, max(half - 1, 0)) & 0xFFF
    word = info.opcode | info.funct3 << 12 | rs1 << 15
    if info.format == "I":
        return word | rd << 7 | bits << 20
    if info.format == "S":
        return word | (bits & 31) << 7 | rs2 << 20 | bits >> 5 << 25
    return word | rd << 7 | rs2 << 20 | (info.funct7 or 0) << 25


def decode(word: int) -> CopOp | None:
    """Return the instruction of a word of 32 bits, None if the coprocessor refuses it."""
    opcode, funct3, funct7 = word & 0x7F, word >> 12 & 7, word >> 25 & 0x7F
    return _CODES.get((opcode, funct3, None if funct3 else funct7))


def offset(word: int) -> int:
    """Return the offset of an LDVEC or STVEC in bytes, 0 for any other word."""
    op = decode(word)
    form = COP_INSTRUCTIONS[op].format if op is not None else "R"
    bits = {"R": 0, "I": word >> 20 & 0xFFF, "S": word >> 7 & 31 | (word >> 25 & 0x7F) << 5}[form]
    return bits - ((bits & 0x800) << 1)


def disassemble(word: int) -> str:
    """Return a word of 32 bits as text, `.word 0x...` if it is no instruction of ours."""
    op = decode(word)
    if op is None:
        return f".word 0x{word:08x}"
    info = COP_INSTRUCTIONS[op]
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    name = f"npu.{op.name.lower().replace('_', '.')}"
    if info.format == "I":
        return f"{name} v{rd % 4}, {offset(word)}(x{rs1})"
    if info.format == "S":
        return f"{name} v{rs2 % 4}, {offset(word)}(x{rs1})"
    kinds = ((info.rd, rd), (info.rs1, rs1), (info.rs2, rs2))
    shown = [("f" if kind == "float" else "x") + str(number) for kind, number in kinds if kind]
    return f"{name} {', '.join(shown)}".rstrip()
