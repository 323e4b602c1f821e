# SPDX-License-Identifier: Apache-2.0
"""What a benchmark is: its work, and what of it is timed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from npu.compiler.attention_plan import BLOCK, row_blocks
from npu.compiler.ideal import LeastWork
from npu.compiler.shape import first_key
from spec.configurations import USUAL, ChipParameters
from spec.isa import Opcode
from tb.bench.knobs import Knobs
from tb.bench.memory_kinds import CEILING, MemoryKind
from tb.benchmarks.benchmark_load import BenchmarkLoad
from tb.command.command_session import CommandSession
from tb.cop.cop_session import CopSession
from tb.run.registry import MEMORY_MIB

LONG_CYCLES = 1_000_000
"""A benchmark with more ideal cycles than these is a long one."""


def met_keys(rows: int, past: int = 0, window: int = 0) -> int:
    """Return how many keys the rows of a pass meet on the usual chip, those of all rows together.

    A block of rows meets the keys of its last row; they begin on a tile boundary.
    """
    return sum(
        count * (past + first + count - first_key(window, past + first, USUAL.array_dim))
        for first, count in row_blocks(rows, BLOCK)
    )


class Interval(Enum):
    """What is timed; both ends count from the cycle of the one event to that of the other."""

    PROGRAM = "start to interrupt"
    INSTRUCTION = "the instruction's command taken by its engine to its done"
    DISPATCHED = "dispatch of the instruction to its done"
    CHAIN = "first dispatch to last done of the instructions of this kind"
    TURNS = "first dispatch of the instruction to its last, which a LOOP repeats"
    OPERATION = "strobe of a start of the command port to its interrupt, the slowest of all"
    RESULT = "issue of an instruction of the coprocessor to its result, the slowest of all"
    LAUNCH = "end of a program to the first dispatch of the next one, the slowest of all"


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: as in bench.json.
        parameters: its shape, for bench.json.
        work: what must be done within the timed interval.
        load: makes programs and data; None for a benchmark of command port or coprocessor.
        counted: multiplications that the chip counts, if they are not those of `work`: it counts
            both passes of a 16-bit operand, and all keys of a GEMM, also those that no row sees; a
            function where they follow from what a model writes.
        interval: what is timed.
        opcode: of the timed instruction where the interval is not the whole program.
        share: the ratio is ideal / cycles, the share of the bus, and not cycles / ideal.
        knobs: the memory.
        limit: cycles that it may take at all.
        traced: whether there is a timeline.
        pictured: whether it stands in the roofline.
        memory_bytes: size of the memory behind the chip.
        drive: for a benchmark of the command port, all that is done there, on chip and model.
        run: the same of the coprocessor; returns the cycles.
        chip: which it runs on.
    """

    name: str
    parameters: Mapping[str, int]
    work: LeastWork
    load: Callable[[np.random.Generator], BenchmarkLoad] | None = None
    share: bool = False
    interval: Interval = Interval.PROGRAM
    opcode: Opcode = Opcode.END
    knobs: Knobs = field(default_factory=Knobs)
    limit: int = 600_000
    traced: bool = False
    pictured: bool = True
    counted: int | Callable[[], int] | None = None
    memory_bytes: int = MEMORY_MIB << 20
    drive: Callable[[CommandSession], Awaitable[None]] | None = None
    run: Callable[[CopSession], Awaitable[int]] | None = None
    chip: ChipParameters = USUAL

    @property
    def ideal_cycles(self) -> int:
        """Cycles that the work takes at least; a DRAM gives the part of the bus that it has."""
        return round(self.work.ideal_cycles / CEILING.get(MemoryKind(self.knobs.memory), 1.0))

    def ratio(self, cycles: int) -> float:
        """Return the figure of bench.json for a run of `cycles`."""
        return self.ideal_cycles / cycles if self.share else cycles / self.ideal_cycles

    @property
    def long(self) -> bool:
        """Whether the smoke tier leaves it out: it takes long, or to build its chip does."""
        return self.work.ideal_cycles > LONG_CYCLES or not self.chip.smoke

    @property
    def counted_macs(self) -> int:
        """Multiplications that the chip must have counted."""
        given = self.counted() if callable(self.counted) else self.counted
        return self.work.macs if given is None else given
