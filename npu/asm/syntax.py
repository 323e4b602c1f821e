# SPDX-License-Identifier: Apache-2.0
"""The operands of each opcode in text, as one table that assembler and disassembler share.

An operand knows how to put its value into the raw fields of an instruction (`parse`) and how to
print it from them (`text`, None if it says nothing).
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npu.asm.errors import OperandError
from npu.asm.expressions import evaluate
from spec.isa.fields import BitField
from spec.isa.generated import DYNAMIC, GEMM_LINES, WORD
from spec.isa.operands import LINE_WORDS, MORE_LINES, extent, is_dynamic

# Raw field values of the word being built; prefix fields have the key "pfx." + field.
Fields = dict[str, int]
Symbols = Mapping[str, int]

_DYNAMIC = re.compile(r"len(-1)?<=(.+)")


class TextOperand(ABC):
    """A key=value operand."""

    needed = False

    @abstractmethod
    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`. Raises OperandError."""

    @abstractmethod
    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None where the default says the same."""


def _put(fields: Fields, name: str, bits: BitField | None, value: int) -> None:
    if bits is None:
        fields[name] = value
    else:
        fields[name] = (fields.get(name, 0) & ~bits.mask) | bits.put(value)


@dataclass(frozen=True)
class Bytes(TextOperand):
    """A byte address or pitch that the field holds in words."""

    field: str
    needed: bool = False
    always: bool = False

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        value = evaluate(text, symbols)
        if value % WORD or not 0 <= value < WORD << 16:
            raise OperandError(f"{value:#x}: allowed are multiples of 16 from 0 to 0xFFFF0")
        fields[self.field] = value // WORD

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = fields.get(self.field, 0)
        return hex(value * WORD) if value or self.needed or self.always else None


@dataclass(frozen=True)
class Number(TextOperand):
    """A number in a field or in some bits of it."""

    field: str
    bits: BitField | None = None
    signed: bool = False
    needed: bool = False

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        value = evaluate(text, symbols)
        width = self.bits.width if self.bits else 16
        low, high = (-(1 << width - 1), 1 << width - 1) if self.signed else (0, 1 << width)
        if not low <= value < high:
            raise OperandError(f"{value}: allowed are {low} to {high - 1}")
        _put(fields, self.field, self.bits, value & ((1 << width) - 1))

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = fields.get(self.field, 0)
        value = self.bits.get(value) if self.bits else value
        if self.signed and value >= 1 << 15:
            value -= 1 << 16
        return str(value) if value or self.needed else None


@dataclass(frozen=True)
class Wide(TextOperand):
    """A 32-bit number in src0 (low half) and src1."""

    needed: bool = False

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        value = evaluate(text, symbols)
        if not -(1 << 31) <= value < 1 << 32:
            raise OperandError(f"{value}: allowed are -2^31 to 2^32-1")
        fields["src0"], fields["src1"] = value & 0xFFFF, value >> 16 & 0xFFFF

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = fields.get("src0", 0) | fields.get("src1", 0) << 16
        return hex(value) if value or self.needed else None


@dataclass(frozen=True)
class Dim(TextOperand):
    """A dimension; `len<=cap` and `len-1<=cap` where it may be dynamic."""

    field: str
    dynamic: bool = False
    needed: bool = True

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        match = _DYNAMIC.fullmatch(text)
        if match is None:
            value = evaluate(text, symbols)
            if not 1 <= value < DYNAMIC:
                raise OperandError(f"{value}: allowed are 1 to {DYNAMIC - 1}")
            fields[self.field] = value
            return
        if not self.dynamic:
            raise OperandError("this dimension is not allowed to be dynamic")
        cap = evaluate(match[2], symbols)
        if cap % 16 or not 16 <= cap <= 16 * 2048:
            raise OperandError(f"cap {cap}: allowed are multiples of 16 from 16 to 32768")
        fields[self.field] = DYNAMIC | (0x800 if match[1] else 0) | (cap // 16 & 0x7FF)

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = fields.get(self.field, 0)
        if is_dynamic(value):
            return f"len{'-1' if value & 0x800 else ''}<={extent(value)}"
        return str(value)


@dataclass(frozen=True)
class ChoiceOperand(TextOperand):
    """A value of some bits by its name; the value 0 is the default unless `needed`."""

    field: str
    bits: BitField
    needed: bool = False

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        numbers = self.bits.numbers
        if text not in numbers:
            raise OperandError(f"{text}: allowed are {', '.join(numbers)}")
        _put(fields, self.field, self.bits, numbers[text])

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = self.bits.get(fields.get(self.field, 0))
        return self.bits.asm(value) if value or self.needed else None


@dataclass(frozen=True)
class Requantisation(TextOperand):
    """q= of GEMM: sets REQUANT as well."""

    bits: BitField
    flag: int

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        ChoiceOperand("imm", self.bits).parse(text, fields, symbols)
        fields["flags"] = fields.get("flags", 0) | 1 << self.flag

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        if not fields.get("flags", 0) >> self.flag & 1:
            return None
        return self.bits.asm(self.bits.get(fields.get("imm", 0)))


@dataclass(frozen=True)
class HeadsOperand(TextOperand):
    """first..last in imm."""

    first: BitField
    count: BitField
    needed: bool = True

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        low, dots, high = text.partition("..")
        if not dots:
            raise OperandError(f"{text}: write first..last")
        first, last = evaluate(low, symbols), evaluate(high, symbols)
        if not 0 <= first <= last or first > 255 or last - first > 255:
            raise OperandError(f"{first}..{last}: allowed are 0..0 to 255..510, first to last")
        fields["imm"] = self.first.put(first) | self.count.put(last - first)

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        first = self.first.get(fields.get("imm", 0))
        return f"{first}..{first + self.count.get(fields.get('imm', 0))}"


@dataclass(frozen=True)
class LinesOperand(TextOperand):
    """Lines of a row of A and the bytes of one, as in 3x48."""

    field: str

    def parse(self, text: str, fields: Fields, symbols: Symbols) -> None:
        """Put the value of `text` into `fields`."""
        count, times, size = text.partition("x")
        if not times:
            raise OperandError(f"{text}: write lines x bytes of one, as in 3x48")
        lines, line = evaluate(count, symbols), evaluate(size, symbols)
        most = LINE_WORDS.mask * WORD
        if not 2 <= lines <= GEMM_LINES or line % WORD or not WORD <= line <= most:
            allowed = f"2 to {GEMM_LINES} lines of multiples of 16 from 16 to {most}"
            raise OperandError(f"{text}: allowed are {allowed}")
        fields[self.field] = MORE_LINES.put(lines - 1) | LINE_WORDS.put(line // WORD)

    def text(self, fields: Fields) -> str | None:
        """Return the value in text, or None."""
        value = fields.get(self.field, 0)
        return f"{MORE_LINES.get(value) + 1}x{LINE_WORDS.get(value) * WORD}" if value else None


@dataclass(frozen=True)
class Switch:
    """A bare word that sets bits of a field."""

    field: str
    mask: int

    def set(self, fields: Fields) -> None:
        """Set the bits."""
        fields[self.field] = fields.get(self.field, 0) | self.mask

    def is_set(self, fields: Fields) -> bool:
        """Whether the bits are set."""
        return bool(fields.get(self.field, 0) & self.mask)


Predicate = Callable[[Fields], bool]


@dataclass(frozen=True)
class Syntax:
    """The text form of an opcode.

    `only` limits an operand to the instructions for which the predicate holds: it decides between
    two names of one field when printing.
    """

    operands: dict[str, TextOperand]
    switches: dict[str, Switch]
    only: dict[str, Predicate]
