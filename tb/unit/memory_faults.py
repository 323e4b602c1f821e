# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in the AXI memory behind a block, `unit_axi_memory`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb.bench.environment import PROGRAM
from tb.unit.requests import SLOT_BYTES
from tb.unit.world import UnitBench

SLOT = 9


@dataclass(frozen=True)
class MemoryFaults:
    """What goes wrong in the memory of a run, and the time-out of the block.

    Attributes:
        timeout: cycles of one wait; 0: for ever.
        errors: bytes whose words are answered with an error.
        silent: bytes whose words are not answered; all of them: not even an address is taken.
        writes: whether writes meet errors and silence, else reads.
        no_words: whether no word of a write is taken.
    """

    timeout: int = 0
    errors: range = range(0)
    silent: range = range(0)
    writes: bool = False
    no_words: bool = False

    def stage(self, unit: UnitBench) -> None:
        """Put it where `unit_axi_memory` reads it: the fields of memory_faults_t from the end."""
        flags = [self.no_words]
        for place in (self.silent, self.errors):
            flags += [bool(place) and self.writes, bool(place) and not self.writes]
        ends = [at for each in (self.silent, self.errors) for at in (each.stop - 1, each.start)]
        bits = sum(int(flag) << index for index, flag in enumerate(flags))
        words = [end % (1 << 32) for end in ends] + [self.timeout, bits]
        unit.memory.stage(PROGRAM + SLOT * SLOT_BYTES, np.array(words, np.uint32))
