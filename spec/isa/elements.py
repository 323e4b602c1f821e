# SPDX-License-Identifier: Apache-2.0
"""What the elements of weight formats are; the generated table of them is made of these types."""

from dataclasses import dataclass
from enum import Enum


class Side(Enum):
    """What a side byte says of the elements that it serves."""

    NONE = "there is none"
    FACTOR = "a factor of a group of rows"
    EXPONENT = "how far the exponent of a block of rows lies below its column's"
    POSITIONS = "which two of four rows are kept"


@dataclass(frozen=True, slots=True)
class Minifloat:
    """Fields of a small float: sign, `exponent` bits, `mantissa` bits.

    `top` is the largest exponent field of a finite number; with `reserved` the code of that
    exponent and an all-ones mantissa is no number (E4M3). Larger exponent fields are none either.
    """

    exponent: int
    mantissa: int
    top: int
    reserved: bool

    @property
    def sign(self) -> int:
        """The code of minus zero."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def largest(self) -> int:
        """The code of the largest number."""
        return (self.top + 1 << self.mantissa) - 1 - self.reserved

    @property
    def integer_bits(self) -> int:
        """Bits of the largest number in units of the smallest, with its sign."""
        return self.top - 1 + self.mantissa + 2


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """What a format's elements are.

    Attributes:
        bits: of a code.
        side: what their side bytes say.
        unit: what codes are multiplied by as signed numbers, if there is no table and no minifloat.
        table: what each code stands for.
        minifloat: the fields of each code.
    """

    bits: int
    side: Side = Side.NONE
    unit: int = 1
    table: tuple[int, ...] = ()
    minifloat: Minifloat | None = None

    @property
    def zero(self) -> int:
        """The code whose value is 0."""
        return self.table.index(0) if self.table else 0

    @property
    def is_plain(self) -> bool:
        """Whether a weight is its code as a signed number."""
        return (self.side, self.unit, self.table, self.minifloat) == (Side.NONE, 1, (), None)
