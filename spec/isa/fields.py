# SPDX-License-Identifier: Apache-2.0
"""Types that describe the instruction word; the generated tables are made of them."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Self

# Position and width in bits of each field of the 128-bit instruction word.
WORD_FIELDS: dict[str, tuple[int, int]] = {
    "opcode": (0, 8),
    "flags": (8, 8),
    "dst": (16, 16),
    "src0": (32, 16),
    "src1": (48, 16),
    "m": (64, 16),
    "n": (80, 16),
    "k": (96, 16),
    "imm": (112, 16),
}


class Mode(IntEnum):
    """What a field of imm can name.

    Attributes:
        asm: the value in the text form of a program, "" if another operand says it.

    """

    asm: str

    def __new__(cls, number: int, asm: str = "") -> "Mode":
        """Return a value with its text form."""
        value = int.__new__(cls, number)
        value._value_ = number
        value.asm = asm
        return value

    @classmethod
    def named(cls, asm: str) -> Self:
        """Return the value with this text form. Raises KeyError if there is none."""
        return {value.asm: value for value in cls}[asm]


@dataclass(frozen=True, slots=True)
class BitField:
    """Some bits of a 16-bit field; `values` are those of a field that names something."""

    name: str
    lsb: int
    width: int
    values: type[Mode] | None = None

    @property
    def mask(self) -> int:
        """The bits of this field, in place."""
        return ((1 << self.width) - 1) << self.lsb

    def get(self, value: int) -> int:
        """Return the content of the field in `value`."""
        return (value & self.mask) >> self.lsb

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the values by their text form."""
        return {value.asm: int(value) for value in self.values or () if value.asm}

    def asm(self, content: int) -> str:
        """Return the text form of a value. Raises ValueError if it has none."""
        if self.values is None:
            raise ValueError(f"{self.name} names nothing")
        return self.values(content).asm

    def takes(self, content: int) -> bool:
        """Whether the chip takes `content` in this field."""
        if self.values is None:
            return 0 <= content < 1 << self.width
        return content in set(self.values)

    def put(self, content: int) -> int:
        """`content` moved into place. Raises ValueError if it does not fit."""
        if not 0 <= content < 1 << self.width:
            raise ValueError(f"{self.name}={content}: allowed are 0 to {(1 << self.width) - 1}")
        return content << self.lsb


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """What one field of an opcode holds: `kind` is sram, dim, dyn or raw."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """The encoding of one opcode."""

    engine: int
    fields: dict[str, FieldInfo]
    flags: dict[str, int]  # name -> bit number
    imm: dict[str, BitField]
    imm_alt: dict[str, BitField]  # GEMM with MODE clear
    prefix: tuple[str, ...]
    spare: int  # bits of the 128-bit word that are zero in every form of the opcode


@dataclass(frozen=True, slots=True)
class VecOpInfo:
    """What an operation of VEC uses.

    Attributes:
        src1: "operand" (a second matrix), "bound" (a signed number), "table" or "" (zero).
        k: "scale" or "bound" (signed) or "" (zero).
        shift: whether sh is used.
        converts: whether A and C may differ in type.
        wide: whether A and C may be int16.

    """

    src1: str
    k: str
    shift: bool
    converts: bool
    wide: bool

    @property
    def two(self) -> bool:
        """Whether there is a second matrix B."""
        return self.src1 == "operand"


@dataclass(frozen=True, slots=True)
class SetRegInfo:
    """One register that SET can write."""

    granularity: int
    add: bool


@dataclass(frozen=True, slots=True)
class CopInfo:
    """One instruction of the coprocessor; see coprocessor.toml for what its registers are.

    `funct7` is None where it is ignored; `element` the bytes of an element in memory, or 0.
    """

    opcode: int
    funct3: int
    funct7: int | None
    format: str
    rs1: str
    rs2: str
    rd: str
    element: int

    @property
    def counted(self) -> bool:
        """Whether a register says how many elements there are."""
        return "count" in (self.rs2, self.rd)

    @property
    def register_read(self) -> tuple[bool, bool, bool]:
        """Which of rs1, rs2, x[rd] the host delivers."""
        return self.rs1 != "", self.rs2 not in ("", "vreg"), self.rd == "count"

    @property
    def writeback(self) -> bool:
        """Whether there is a result."""
        return self.rd in ("result", "float")
