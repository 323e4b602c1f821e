# SPDX-License-Identifier: Apache-2.0
"""One 128-bit instruction word as raw field values."""

from dataclasses import dataclass

from spec.isa.fields import WORD_FIELDS
from spec.isa.generated import WORD

_FIELDS = tuple((name, lsb, (1 << width) - 1) for name, (lsb, width) in WORD_FIELDS.items())
"""Name, lowest bit and largest value of each field."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Raw field values without interpretation; a PFX is an instruction of its own.

    `opcode` and `flags` hold 8 bits, all other fields 16. Raises ValueError for a value outside.
    """

    opcode: int
    flags: int = 0
    dst: int = 0
    src0: int = 0
    src1: int = 0
    m: int = 0
    n: int = 0
    k: int = 0
    imm: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        for name, _, most in _FIELDS:
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise ValueError(f"instruction field {name}={value}: allowed are 0 to {most}")

    def to_int(self) -> int:
        """Return the word as a 128-bit number, opcode in the lowest bits."""
        word = 0
        for name, lsb, _ in _FIELDS:
            word |= int(getattr(self, name)) << lsb
        return word

    def encode(self) -> bytes:
        """Return the word as 16 bytes, little-endian, as it lies in memory."""
        return self.to_int().to_bytes(WORD, "little")

    @classmethod
    def from_int(cls, word: int) -> "Instruction":
        """Return the instruction of a 128-bit number."""
        return cls(**{name: word >> lsb & most for name, lsb, most in _FIELDS})

    @classmethod
    def decode(cls, data: bytes) -> "Instruction":
        """Return the instruction of 16 bytes. Raises ValueError for any other length."""
        if len(data) != WORD:
            raise ValueError(f"an instruction is {WORD} bytes, given were {len(data)}")
        return cls.from_int(int.from_bytes(data, "little"))


def decode_image(image: bytes) -> list[Instruction]:
    """Return the instructions of a program image. Raises ValueError unless it is whole words."""
    if len(image) % WORD:
        raise ValueError(f"a program is a multiple of {WORD} bytes, given were {len(image)} bytes")
    return [Instruction.decode(image[at : at + WORD]) for at in range(0, len(image), WORD)]


def encode_image(instructions: list[Instruction]) -> bytes:
    """Return the bytes of a program."""
    return b"".join(instruction.encode() for instruction in instructions)
