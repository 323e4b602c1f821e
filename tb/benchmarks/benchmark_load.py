# SPDX-License-Identifier: Apache-2.0
"""What a benchmark puts into memory, and the programs that it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from golden.machine import StartState
from spec.isa import Instruction
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM


@dataclass(frozen=True)
class ProgramRun:
    """A program in memory.

    Attributes:
        program: its words, for messages and the timeline.
        start: how it starts.
        timed: False for one that only prepares what is measured.
        expected: address and bytes that it must leave in memory, whatever the model says.
        pieces: address and bytes that the host writes before the start.
    """

    program: Sequence[Instruction]
    start: StartState
    timed: bool = True
    expected: tuple[int, bytes] = (0, b"")
    pieces: Sequence[tuple[int, bytes]] = ()


@dataclass(frozen=True)
class BenchmarkLoad:
    """What a benchmark puts into memory and runs. Other bytes of memory and SRAM are random.

    Attributes:
        pieces: address and bytes.
        runs: in order; the figures are the sums over the timed ones.
    """

    pieces: Sequence[tuple[int, bytes]]
    runs: Sequence[ProgramRun]


def single(
    program: Sequence[Instruction], stream: bytes = b"", inputs: bytes = b""
) -> BenchmarkLoad:
    """Return one program with its parameter stream, and `inputs` at BASE0."""
    image = b"".join(word.encode() for word in program)
    start = StartState(
        PROGRAM, len(program), STREAM, len(stream), bases=(INPUT, OUTPUT, 0, 0, 0, 0, 0, 0)
    )
    pieces = [(PROGRAM, image), (STREAM, stream), (INPUT, inputs)]
    return BenchmarkLoad([piece for piece in pieces if piece[1]], [ProgramRun(program, start)])
