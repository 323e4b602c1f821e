# SPDX-License-Identifier: Apache-2.0
"""The parameter streamer alone: shares, drops, seeks and wraps in the order of their tickets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import cocotb
import numpy as np

from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.unit.requests import OBSERVED, REQUEST, SLOT_BYTES, slot
from tb.unit.world import UnitBench, World

LINE, BASE = 64, 0x10_0000
ENGINES = 6
LINES = 900
"""Most lines that a run hands out; what is noted of them has as much room."""


class Op(IntEnum):
    """What a ticket asks for."""

    SHARE, DROP, SEEK, WRAP = range(4)


class StreamError(AssertionError):
    """The streamer handed out something else."""


@dataclass(frozen=True)
class Ticket:
    """A ticket: its engine, and bytes of a share or the offset to go on at."""

    op: Op
    engine: int
    size: int

    def payload(self) -> list[int]:
        """Return it as the bytes of a request."""
        word = self.size | self.engine << 32 | self.op << 35
        return list(word.to_bytes(14, "little"))


def draw(random: np.random.Generator, length: int) -> tuple[list[Ticket], list[tuple[int, int]]]:
    """Return random tickets for a stream of so many bytes, and (engine, offset) of each line."""
    tickets: list[Ticket] = []
    lines: list[tuple[int, int]] = []
    offset = 0
    while len(lines) < LINES - 40:
        engine, kind = int(random.integers(ENGINES)), random.random()
        size = LINE * int(min(random.choice([1, 1, 2, 5, 33]), (length - offset) // LINE))
        if offset == length or kind < 0.08:
            goal = LINE * int(random.integers(0, length // LINE)) if kind < 0.04 else 0
            if goal == offset:
                continue
            op = Op.WRAP if goal == 0 and offset == length else Op.SEEK
            tickets.append(Ticket(op, engine, goal))
            offset = goal
        elif kind < 0.2:
            tickets.append(Ticket(Op.DROP, engine, size))
            offset += size
        else:
            tickets.append(Ticket(Op.SHARE, engine, size))
            lines += [(engine, offset + at) for at in range(0, size, LINE)]
            offset += size
    while tickets[-1].op is not Op.SHARE:
        tickets.pop()
    return tickets, lines


async def run(unit: UnitBench, length: int) -> None:
    """Play random tickets; every line must be the right one and go to the right engine.

    Raises:
        StreamError: with the first line that is not.
    """
    tickets, lines = draw(unit.random, length)
    requests = np.zeros(len(tickets), REQUEST)
    requests["payload"] = [ticket.payload() for ticket in tickets]
    requests["wait"] = unit.random.choice([0, 0, 0, 3, 90], len(tickets))
    unit.memory.stage(PROGRAM, requests.tobytes())
    unit.memory.stage(OBSERVED, bytes(4 * SLOT_BYTES))
    await unit.run(World.draw(unit.random), 200_000, words=len(tickets), stream_bytes=length)
    engines = slot(unit, 1, len(lines), np.dtype([("engine", "<u8"), ("zero", "<u8")]))["engine"]
    shown = unit.memory.array(OBSERVED + 2 * SLOT_BYTES, (len(lines), LINE), np.uint8)
    stream = unit.memory.view(BASE, length)
    for index, (engine, offset) in enumerate(lines):
        if engines[index] != engine or not np.array_equal(
            shown[index], stream[offset : offset + LINE]
        ):
            raise StreamError(
                f"line {index}, of offset {offset:#x} for engine {engine}: went to engine "
                f"{engines[index]} as {shown[index][:16].tobytes().hex()}"
            )


@cocotb.test
async def unit_streamer_tickets(dut: Dut) -> None:
    """Random tickets through streams from one line to longer than the FIFO, in random worlds."""
    unit = UnitBench.of(dut)
    for lines in (1, 2, 3, 8, 63, 64, 65, 200, 500) * 4:
        await run(unit, lines * LINE)
