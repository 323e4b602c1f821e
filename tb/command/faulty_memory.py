# SPDX-License-Identifier: Apache-2.0
"""The model's memory, which has the faults that `Knobs` give the simulated one."""

from __future__ import annotations

from dataclasses import dataclass, field

from golden.command.memory import FaultyMemory, pieces
from tb.bench.knobs import Knobs


@dataclass
class ModelMemory(FaultyMemory):
    """A memory whose errors and silence follow from `Knobs`.

    Attributes:
        knobs: those of the simulated memory; what concerns time has no effect.
    """

    knobs: Knobs = field(default_factory=Knobs)

    def obey(self, knobs: Knobs) -> None:
        """Take over errors and silence."""
        self.knobs = knobs
        errors = [(knobs.error_first, knobs.error_last)]
        self.read_errors = errors if knobs.read_error else []
        self.write_errors = errors if knobs.write_error else []

    def _is_quiet(self, address: int) -> bool:
        first = address & -16
        return self.knobs.silent_first <= first + 15 and first <= self.knobs.silent_last

    def read(self, address: int, size: int) -> bytes:
        """Return bytes; silent only where the knobs say so."""
        taken = b""
        for at, count in pieces(address, size):
            self.silent_reads = bool(self.knobs.read_silent) and self._is_quiet(at)
            taken += super().read(at, count)
        return taken

    def write(self, address: int, data: bytes) -> None:
        """Store bytes; silent only where the knobs say so."""
        done = 0
        for at, count in pieces(address, len(data)):
            self.silent_writes = bool(self.knobs.write_silent) and self._is_quiet(at)
            super().write(at, data[done : done + count])
            done += count

    def settle(self) -> None:
        """Answer what is owed, if the memory is not silent any more."""
        self.silent_reads = bool(self.knobs.read_silent)
        self.silent_writes = bool(self.knobs.write_silent)
        super().settle()
