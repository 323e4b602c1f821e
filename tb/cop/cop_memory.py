# SPDX-License-Identifier: Apache-2.0
"""The model's memory, which has the faults that `Knobs` give the simulated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from golden.coprocessor import ArrayMemory
from golden.coprocessor.memory import Range
from tb.bench.knobs import Knobs


@dataclass
class CopMemory(ArrayMemory):
    """A memory whose errors and silence follow from `Knobs`.

    Attributes:
        knobs: those of the simulated memory; what concerns time has no effect.
    """

    knobs: Knobs = field(default_factory=Knobs)

    def errors(self, *, write: bool) -> Sequence[Range]:
        """Return where the memory answers with an error."""
        knobs = self.knobs
        placed = knobs.write_error if write else knobs.read_error
        inside = [(knobs.error_first, knobs.error_last)] if placed else []
        return [*inside, *super().errors(write=write)]

    def silence(self, *, write: bool) -> Sequence[Range]:
        """Return where the memory does not answer."""
        quiet = self.knobs.write_silent if write else self.knobs.read_silent
        return [(self.knobs.silent_first, self.knobs.silent_last)] if quiet else []
