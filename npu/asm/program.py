# SPDX-License-Identifier: Apache-2.0
"""An assembled program."""

from dataclasses import dataclass, field

from spec.isa.instruction import Instruction, encode_image


@dataclass(frozen=True)
class Program:
    """Words of a program, prefix words included, and where they come from.

    `lines[i]` is the source line of word i, counted from 1. `labels` maps names to word indices.
    """

    instructions: list[Instruction]
    lines: list[int]
    labels: dict[str, int] = field(default_factory=dict)

    def image(self) -> bytes:
        """Return the program as it lies in memory, 16 bytes a word."""
        return encode_image(self.instructions)
