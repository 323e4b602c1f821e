# SPDX-License-Identifier: Apache-2.0
"""The weight formats of the parameter stream; docs/reference/isa.md, "Weight formats".

How many lines of the stream a GEMM's weights take. What their elements and side bytes are says
`spec/isa/isa.toml`.
"""

from dataclasses import dataclass

from spec.isa.elements import Side
from spec.isa.generated import LINE, WEIGHT_FORMATS, WeightFormat, WeightGroup

MX_BLOCK = 32
"""Rows of K that share a scale in the MX formats."""
GROUP_ROWS = {group: int(group.asm) for group in WeightGroup}
GROUPS = tuple(sorted(GROUP_ROWS.values()))
"""Rows of a group that GROUPED formats can have."""
QUAD = 4
"""Rows of which SPARSE formats keep two."""
NARROW = tuple(fmt for fmt in WeightFormat if fmt != WeightFormat.INT8)
"""The formats that a chip without narrow formats lacks."""


def _having(side: Side) -> frozenset[WeightFormat]:
    return frozenset(fmt for fmt, info in WEIGHT_FORMATS.items() if info.side is side)


GROUPED = _having(Side.FACTOR)
"""Formats whose groups the instruction names."""
MX = _having(Side.EXPONENT)
SPARSE = _having(Side.POSITIONS)


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
        return WEIGHT_FORMATS[self.format].bits

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
