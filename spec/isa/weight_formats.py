# SPDX-License-Identifier: Apache-2.0
"""The weight formats of the parameter stream; docs/reference/isa.md, "Weight formats".

What their elements and side bytes are, and how many lines of the stream a GEMM's weights take.
"""

from dataclasses import dataclass
from enum import Enum

from spec.isa.generated import LINE, WeightFormat, WeightGroup

MX_BLOCK = 32
"""Rows of K that share a scale in the MX formats."""
GROUP_ROWS = {group: int(group.asm) for group in WeightGroup}
GROUPS = tuple(sorted(GROUP_ROWS.values()))
"""Rows of a group that GROUPED formats can have."""
QUAD = 4
"""Rows of which SPARSE formats keep two."""


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
    reserved: bool = False

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
        minifloat: their fields, None if they are integers or stand in a table.
    """

    bits: int
    side: Side = Side.NONE
    minifloat: Minifloat | None = None


E2M1, E3M2, E2M3 = Minifloat(2, 1, 3), Minifloat(3, 2, 7), Minifloat(2, 3, 3)
E4M3, E5M2 = Minifloat(4, 3, 15, reserved=True), Minifloat(5, 2, 30)
"""The float elements of OCP Microscaling Formats (MX) v1.0, section 5.3."""
FORMATS = {
    WeightFormat.INT8: FormatInfo(8),
    WeightFormat.INT4: FormatInfo(4),
    WeightFormat.INT4G: FormatInfo(4, Side.FACTOR),
    WeightFormat.INT4S: FormatInfo(4, Side.POSITIONS),
    WeightFormat.INT2: FormatInfo(2),
    WeightFormat.INT8S: FormatInfo(8, Side.POSITIONS),
    WeightFormat.NF4G: FormatInfo(4, Side.FACTOR),
    WeightFormat.FP4G: FormatInfo(4, Side.FACTOR, E2M1),
    WeightFormat.MXINT8: FormatInfo(8, Side.EXPONENT),
    WeightFormat.MXFP8E4: FormatInfo(8, Side.EXPONENT, E4M3),
    WeightFormat.MXFP8E5: FormatInfo(8, Side.EXPONENT, E5M2),
    WeightFormat.MXFP6E3: FormatInfo(6, Side.EXPONENT, E3M2),
    WeightFormat.MXFP6E2: FormatInfo(6, Side.EXPONENT, E2M3),
    WeightFormat.MXFP4: FormatInfo(4, Side.EXPONENT, E2M1),
}
NARROW = tuple(fmt for fmt in WeightFormat if fmt != WeightFormat.INT8)
"""The formats that a chip without narrow formats lacks."""
GROUPED = frozenset(fmt for fmt in FORMATS if FORMATS[fmt].side is Side.FACTOR)
"""Formats whose groups the instruction names."""
MX = frozenset(fmt for fmt in FORMATS if FORMATS[fmt].side is Side.EXPONENT)
SPARSE = frozenset(fmt for fmt in FORMATS if FORMATS[fmt].side is Side.POSITIONS)


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """What an n-tile of weights consists of.

    Attributes:
        format: of its elements.
        group: rows of K that a side byte serves, 0 for formats without groups.
        edge: tile edge E.
    """

    format: WeightFormat
    group: int
    edge: int

    @classmethod
    def of(cls, fmt: WeightFormat, group: WeightGroup, edge: int) -> "StreamLayout":
        """Return the layout of a format with the group code of an instruction."""
        if fmt in GROUPED:
            return cls(fmt, GROUP_ROWS[group], edge)
        return cls(fmt, MX_BLOCK if fmt in MX else 0, edge)

    @property
    def element_bits(self) -> int:
        """Bits of an element as it lies in a tile."""
        return FORMATS[self.format].bits

    @property
    def tile_lines(self) -> int:
        """Lines of 64 bytes of one tile, side lines apart."""
        kept = self.edge * self.edge // (2 if self.format in SPARSE else 1)
        return kept * self.element_bits // 8 // LINE

    @property
    def tiles_per_side(self) -> int:
        """Tiles that a side line serves, 0 for formats without side lines.

        With positions and E = 32 a tile has two side lines; that counts as 1.
        """
        if self.group:
            return LINE * self.group // (self.edge * self.edge)
        if self.format in SPARSE:
            return max(1, LINE * 8 // (self.edge * self.edge))
        return 0

    @property
    def lines_per_side(self) -> int:
        """Side lines in front of the tiles that they serve: 1, or 2 (positions with E = 32)."""
        if self.format in SPARSE:
            return max(1, self.edge * self.edge // (LINE * 8))
        return 1

    def bits(self, k: int) -> int:
        """Bits of a column of K rows that the format cannot do without: elements, side bytes."""
        if self.format in SPARSE:
            return -(-k // 4) * (2 * self.element_bits + 4)
        return k * self.element_bits + (-(-k // self.group) * 8 if self.group else 0)

    def lines(self, k: int) -> int:
        """Lines of an n-tile of K rows: its tiles and their side lines."""
        tiles = -(-k // self.edge)
        sides = -(-tiles // self.tiles_per_side) if self.tiles_per_side else 0
        return tiles * self.tile_lines + sides * self.lines_per_side
