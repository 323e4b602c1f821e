# SPDX-License-Identifier: Apache-2.0
"""The checks that all opcodes share, and the prefix word.

Each raises `ProgramError`. Callers keep the order of the checks: opcode, fields, dimensions, memory
addresses, SRAM ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from golden.machine.operands import Matrix, Operand, up
from golden.machine.state import ADDRESS_LIMIT, WORD, ChipConfig, ProgramError
from npu.isa import ErrorCode, Instruction

DYNAMIC = 0xF000
"""Dimension fields from here on mean a dynamic dimension, which is not built."""
SHIFT_MASK = 0x3F


def refuse_field() -> NoReturn:
    """Refuse an instruction for a field, a combination or a prefix."""
    raise ProgramError(ErrorCode.ILLEGAL_FIELD)


def require(condition: bool) -> None:
    """Refuse with ILLEGAL_FIELD unless the condition holds."""
    if not condition:
        refuse_field()


def require_zero(word: Instruction, *names: str, flags: int = 0, imm: int = 0) -> None:
    """Refuse unless the named fields, and the bits outside the masks `flags` and `imm`, are 0."""
    require(all(getattr(word, name) == 0 for name in names))
    require(word.flags & ~flags == 0 and word.imm & ~imm == 0)


def require_dimension(value: int, most: int = DYNAMIC - 1) -> None:
    """Refuse with BAD_DIMENSION unless 1 <= value <= most."""
    if not 1 <= value <= most:
        raise ProgramError(ErrorCode.BAD_DIMENSION)


def require_sram(config: ChipConfig, *operands: Operand | None) -> None:
    """Refuse with SRAM_RANGE at the first operand, in the given order, that leaves the SRAM."""
    for operand in operands:
        if operand is not None and operand.end > config.sram_bytes:
            raise ProgramError(ErrorCode.SRAM_RANGE, operand.address)


def require_memory(operand: Matrix) -> None:
    """Refuse with BAD_ADDRESS a misaligned memory operand or one that carries out of 32 bits."""
    last = operand.address + (operand.rows - 1) * operand.pitch + operand.row_bytes
    if operand.address % WORD or last > ADDRESS_LIMIT:
        raise ProgramError(ErrorCode.BAD_ADDRESS, operand.address % ADDRESS_LIMIT)


def signed16(value: int) -> int:
    """Return a 16-bit field as a signed number."""
    return value - (1 << 16) if value >> 15 else value


@dataclass(frozen=True, slots=True)
class Prefix:
    """The contents of a PFX word: pitches and addresses in words; `present` False: all zero."""

    cp: int = 0
    ap: int = 0
    bp: int = 0
    d: int = 0
    dp: int = 0
    base: int = 0
    imm: int = 0
    sh: int = 0
    present: bool = False

    def require_only(self, *names: str) -> None:
        """Refuse unless every field that is not named is 0; refuse any prefix for no names."""
        require(bool(names) or not self.present)
        for name in ("cp", "ap", "bp", "d", "dp", "base", "imm", "sh"):
            require(name in names or getattr(self, name) == 0)


def read_prefix(word: Instruction) -> Prefix:
    """Return the contents of a PFX word; ILLEGAL_FIELD if bit 6 or 7 of its flags is set."""
    require(word.flags & ~SHIFT_MASK == 0)
    return Prefix(
        word.dst, word.src0, word.src1, word.m, word.n, word.k, word.imm, word.flags, True
    )


def matrix(address: int, pitch: int, rows: int, row_bytes: int, element: int) -> Matrix:
    """Return an operand from fields: address and pitch in words, pitch 0 = natural."""
    return Matrix(address * WORD, pitch * WORD or up(row_bytes, WORD), rows, row_bytes, element)
