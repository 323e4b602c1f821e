# SPDX-License-Identifier: Apache-2.0
"""The checks that all opcodes share, the prefix word and dynamic dimensions.

Each check raises `ProgramError`. Callers keep the order: opcode, fields, dimensions, CONTEXT_FULL,
memory addresses, SRAM ranges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from golden.machine.operands import Matrix, Operand, up
from golden.machine.registers import Registers
from golden.machine.state import ADDRESS_LIMIT, ChipConfig, ProgramError
from spec.isa import DYNAMIC, SHIFT_MAX, WORD, ErrorCode, Instruction

DYNAMIC_V = 1 << 11
CAP_MASK, CAP_UNIT, CAP_OF_ZERO = 0x7FF, 16, 2048
LINE_WORDS_BITS = 14
"""Bits of the prefix that say the words of a line of A; those above say how many lines."""


def refuse_field() -> NoReturn:
    """Refuse an instruction for a field, a combination or a prefix."""
    raise ProgramError(ErrorCode.ILLEGAL_FIELD)


def require(condition: bool) -> None:
    """Refuse with ILLEGAL_FIELD unless the condition holds."""
    if not condition:
        refuse_field()


def require_dimension(condition: bool) -> None:
    """Refuse with BAD_DIMENSION unless the condition holds."""
    if not condition:
        raise ProgramError(ErrorCode.BAD_DIMENSION)


def require_room(condition: bool) -> None:
    """Refuse with CONTEXT_FULL unless the condition holds."""
    if not condition:
        raise ProgramError(ErrorCode.CONTEXT_FULL)


def require_memory(operand: Matrix) -> None:
    """Refuse with BAD_ADDRESS a misaligned memory operand or one that carries out of 32 bits."""
    last = operand.address + (operand.rows - 1) * operand.pitch + operand.row_bytes
    if operand.address % WORD or last > ADDRESS_LIMIT:
        raise ProgramError(ErrorCode.BAD_ADDRESS, operand.address % ADDRESS_LIMIT)


def signed16(value: int) -> int:
    """Return a 16-bit field as a signed number."""
    return value - (1 << 16) if value >> 15 else value


@dataclass(frozen=True, slots=True)
class HeldPrefix:
    """The contents of a PFX word: pitches and addresses in words; `present` False: all zero.

    `d` is the address of D, or says how A is cut into lines.
    """

    cp: int = 0
    ap: int = 0
    bp: int = 0
    d: int = 0
    dp: int = 0
    base: int = 0
    imm: int = 0
    sh: int = 0
    present: bool = False

    @property
    def lines(self) -> int:
        """Lines of a row of A, where `d` says so."""
        return (self.d >> LINE_WORDS_BITS) + 1

    @property
    def line_words(self) -> int:
        """Words of a line of A, where `d` says so."""
        return self.d & ((1 << LINE_WORDS_BITS) - 1)


def read_prefix(word: Instruction) -> HeldPrefix:
    """Return the contents of a PFX word; ILLEGAL_FIELD if bit 6 or 7 of its flags is set."""
    require(word.flags & ~SHIFT_MAX == 0)
    return HeldPrefix(
        word.dst, word.src0, word.src1, word.m, word.n, word.k, word.imm, word.flags, True
    )


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension as it is at dispatch.

    Attributes:
        value: what counts for the instruction.
        cap: the largest value of the field; footprints and natural pitches follow it.
        overflow: whether a dynamic dimension was cut to its cap.

    """

    value: int
    cap: int
    overflow: bool = False


@dataclass(frozen=True, slots=True)
class Dispatch:
    """An instruction word with everything that its checks look at.

    Attributes:
        word: the instruction, not PFX.
        prefix: its prefix.
        config: the chip.
        registers: the machine's registers.

    """

    word: Instruction
    prefix: HeldPrefix
    config: ChipConfig
    registers: Registers

    def require_zero(self, *names: str, flags: int = 0, imm: int = 0) -> None:
        """Refuse unless the named fields, and the bits outside `flags` and `imm`, are 0."""
        require(all(getattr(self.word, name) == 0 for name in names))
        require(self.word.flags & ~flags == 0 and self.word.imm & ~imm == 0)

    def require_prefix(self, *names: str) -> None:
        """Refuse unless every prefix field that is not named is 0; refuse any prefix for no names.

        A base must be a multiple of E.
        """
        require(bool(names) or not self.prefix.present)
        for name in ("cp", "ap", "bp", "d", "dp", "base", "imm", "sh"):
            require(name in names or getattr(self.prefix, name) == 0)
        require(self.prefix.base % self.config.tile == 0)

    def static(self, field: str, most: int = DYNAMIC - 1) -> int:
        """Return a static dimension; BAD_DIMENSION unless 1 <= value <= most."""
        value: int = getattr(self.word, field)
        require_dimension(1 <= value <= most)
        return value

    def dimension(self, field: str, most: int | None = None) -> Dimension:
        """Return a dimension that may be dynamic; BAD_DIMENSION if it is 0 or may exceed `most`."""
        value: int = getattr(self.word, field)
        require_dimension(value != 0)
        if value < DYNAMIC:
            result = Dimension(value, value)
        else:
            cap = CAP_UNIT * (value & CAP_MASK or CAP_OF_ZERO)
            keys = self.registers.length - bool(value & DYNAMIC_V) - self.prefix.base
            result = Dimension(min(max(keys, 0), cap), cap, keys > cap)
        require_dimension(most is None or result.cap <= most)
        return result

    def is_dynamic(self, *fields: str) -> bool:
        """Whether any of the named dimension fields is dynamic."""
        return any(getattr(self.word, field) >= DYNAMIC for field in fields)

    def require_sram(self, *operands: Operand | None) -> None:
        """Refuse with SRAM_RANGE at the first operand, in the given order, that leaves the SRAM."""
        for operand in operands:
            if operand is not None and operand.end > self.config.sram_bytes:
                raise ProgramError(ErrorCode.SRAM_RANGE, operand.address % ADDRESS_LIMIT)


def natural(pitch: int, row_bytes: int) -> int:
    """Return a pitch in bytes from a field in words, 0 = whole words of a row."""
    return pitch * WORD or up(row_bytes, WORD)


def matrix(address: int, pitch: int, rows: int, row_bytes: int, element: int) -> Matrix:
    """Return an operand from fields: address and pitch in words, pitch 0 = natural."""
    return Matrix(address * WORD, natural(pitch, row_bytes), rows, row_bytes, element)


def cut(operand: Matrix, rows: int, row_bytes: int) -> Matrix:
    """Return the part of an operand, laid out by its caps, that the values name."""
    return Matrix(operand.address, operand.pitch, rows, row_bytes, operand.element)
