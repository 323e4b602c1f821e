# SPDX-License-Identifier: Apache-2.0
"""Types that describe the instruction word; the generated tables are made of them."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class BitField:
    """Some bits of a 16-bit field."""

    name: str
    lsb: int
    width: int

    @property
    def mask(self) -> int:
        """The bits of this field, in place."""
        return ((1 << self.width) - 1) << self.lsb

    def get(self, value: int) -> int:
        """Return the content of the field in `value`."""
        return (value & self.mask) >> self.lsb

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
class SetRegInfo:
    """One register that SET can write."""

    granularity: int
    add: bool
