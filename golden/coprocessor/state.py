# SPDX-License-Identifier: Apache-2.0
"""What the coprocessor remembers for its instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.coprocessor import functions
from golden.coprocessor.floats import float32_of_double

MASK32 = 0xFFFF_FFFF
MASK64 = 0xFFFF_FFFF_FFFF_FFFF
VREGS = 4


@dataclass
class CopState:
    """The accumulators and vector registers, as bit patterns; zero after reset.

    Attributes:
        acc: the integer accumulator, 64 bits.
        facc: the float accumulator, a double.
        vreg: four registers of four bytes, the first byte lowest.

    """

    acc: int = 0
    facc: int = 0
    vreg: list[int] = field(default_factory=lambda: [0] * VREGS)

    @property
    def factor(self) -> int:
        """The lower half of acc as a signed integer."""
        return functions.signed32(self.acc & MASK32)

    @property
    def scalar(self) -> int:
        """The float accumulator rounded to float32."""
        return float32_of_double(self.facc)

    def add(self, amount: int) -> None:
        """Add a signed integer to acc, modulo 2^64."""
        self.acc = (self.acc + amount) & MASK64
