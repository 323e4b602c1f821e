# SPDX-License-Identifier: Apache-2.0
"""The registers that hold what belongs to one sequence of a batch: POS and KVBASE."""

from dataclasses import dataclass, field

from npu.compiler.program_builder import ProgramBuilder


@dataclass
class SequenceRegisters:
    """Which sequence of a batch POS and KVBASE stand at; a program begins with number 0.

    Both are moved by differences: a program serves every step of the same sequences.

    Attributes:
        builder: of the program.
        ahead: positions of each sequence, counted from the first one's.
        caches: bytes from the cache that KVBASE names at the start to each sequence's.

    """

    builder: ProgramBuilder
    ahead: tuple[int, ...] = (0,)
    caches: tuple[int, ...] = (0,)
    _at: dict[str, int] = field(default_factory=lambda: {"POS": 0, "KVBASE": 0}, init=False)

    def turn_to(self, sequence: int) -> None:
        """Let what follows be at the position of a sequence, by its number."""
        self._turn("POS", self.ahead, sequence)

    def turn_to_cache(self, sequence: int) -> None:
        """Let what follows be at the position of a sequence and in its cache."""
        self.turn_to(sequence)
        self._turn("KVBASE", self.caches, sequence)

    def _turn(self, register: str, values: tuple[int, ...], sequence: int) -> None:
        difference = values[sequence] - values[self._at[register]]
        if difference:
            self.builder.advance(register, difference)
        self._at[register] = sequence
