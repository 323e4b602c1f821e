# SPDX-License-Identifier: Apache-2.0
"""FIFOs alone, against queues: order, full and empty, both at once, flush, several readers.

Also a queue whose reader sees all entries, a skid buffer, and the clock of a block that sleeps,
against a count of its edges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import cocotb
import numpy as np

from tb.bench.dut import Dut
from tb.unit.player import Words, play, table
from tb.unit.world import UnitBench

DEPTHS = (1, 2, 3, 4, 8, 5)
"""Of the FIFOs with one reader, as `unit_cells` has them; the last one has no flush."""
SHARED_DEPTH, READERS, THROUGH = 4, 3, 1
"""Of the FIFO with several readers, and the one that sees an entry while it is pushed."""
WINDOW_DEPTH = 8
REST = 4
"""Cycles for which the clock of a block runs on when the block has gone to sleep."""
WORDS = 3
"""Words of a row of `unit_cells`."""


class QueueError(AssertionError):
    """A queue of the RTL is not what a queue is."""


@dataclass
class Queue:
    """What a FIFO is: entries in order, at most `depth` of them.

    Attributes:
        depth: entries that have room.
        entries: those that have not been taken.
    """

    depth: int
    entries: deque[int] = field(default_factory=deque)

    @property
    def ready(self) -> bool:
        """Whether one more entry has room."""
        return len(self.entries) < self.depth

    def step(self, push: int | None, pop: bool, flush: bool) -> None:
        """Let a cycle pass: both sides act on what was there before it; a flush undoes both."""
        takes = self.ready
        if pop and self.entries:
            self.entries.popleft()
        if push is not None and takes:
            self.entries.append(push)
        if flush:
            self.entries.clear()


class SharedQueue:
    """What a FIFO with several readers is: each takes all entries, the slowest one makes room.

    Attributes:
        ready: whether one more entry has room; what is taken makes it a cycle later.
        readers: the entries that each reader has still to take.
    """

    def __init__(self) -> None:
        self.ready = True
        self.readers: list[list[int]] = [[] for _ in range(READERS)]

    def seen(self, push: int | None) -> list[list[int]]:
        """Return the entries that each reader sees in a cycle in which one is offered."""
        new = self._taken(push)
        return [
            entries + new if reader == THROUGH else entries
            for reader, entries in enumerate(self.readers)
        ]

    def step(self, push: int | None, pops: list[bool]) -> None:
        """Let a cycle pass."""
        seen, new = self.seen(push), self._taken(push)
        self.ready = all(len(entries + new) < SHARED_DEPTH for entries in self.readers)
        self.readers = [
            (entries + new)[bool(pop and sees) :]
            for entries, sees, pop in zip(self.readers, seen, pops, strict=True)
        ]

    def _taken(self, push: int | None) -> list[int]:
        return [push] if push is not None and self.ready else []


def driven(random: np.random.Generator, cycles: int) -> Words:
    """Return stretches in which either side is fast, slow or absent, so that queues fill and drain.

    Column 0: bit 0 valid, 1 flush, 2 to 4 readiness of the readers, 16 to 31 the entry.
    """
    rows = table(cycles, WORDS)
    at = 0
    while at < cycles:
        stretch = min(int(random.integers(1, 40)), cycles - at)
        odds = random.choice([0.0, 0.1, 0.5, 0.9, 1.0], 1 + READERS)
        bits = random.random((stretch, 1 + READERS)) < odds
        flush = random.random(stretch) < random.choice([0.0, 0.05, 0.3])
        word = bits[:, 0] | flush << 1
        for reader in range(READERS):
            word = word | bits[:, 1 + reader] << (2 + reader)
        entries = random.integers(1 << 16, size=stretch)
        rows[at : at + stretch, 0] = word | entries << 16
        at += stretch
    return rows


def check(name: str, cycle: int, ready: bool, entries: Sequence[int], word: int) -> None:
    """Compare what a FIFO shows, ready, valid and the oldest entry, with what there is.

    Raises:
        QueueError: they differ.
    """
    actual = (word >> 23 & 1, word >> 22 & 1, word & 0xFFFF)
    expected = (int(ready), int(bool(entries)), entries[0] if entries else actual[2])
    if actual != expected:
        raise QueueError(
            f"{name}, cycle {cycle}: expected ready, valid, entry {expected}, actual {actual}"
        )


def pushed(word: int) -> int | None:
    """Return the entry that a row offers, None if it offers none."""
    return word >> 16 if word & 1 else None


@cocotb.test
async def unit_cells_queues(dut: Dut) -> None:
    """Every FIFO shows in every cycle what a queue would show."""
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 20_000)
    shown = await play(unit, rows)
    for index, depth in enumerate(DEPTHS):
        # The last one is the plain FIFO, which can neither flush nor count.
        queue, flushes = Queue(depth), depth != DEPTHS[-1]
        full = empty = 0
        for cycle, (word, seen) in enumerate(
            zip(rows[:, 0].tolist(), shown[:, index].tolist(), strict=True)
        ):
            count = len(queue.entries)
            if flushes and seen >> 16 & 0x3F != count:
                raise QueueError(f"depth {depth}, cycle {cycle}: expected count {count}")
            full += count == depth
            empty += count == 0
            check(f"depth {depth}", cycle, queue.ready, queue.entries, seen)
            queue.step(pushed(word), bool(word >> 2 & 1), flushes and bool(word & 2))
        assert full > 100, f"depth {depth} was full in {full} cycles only"
        assert empty > 100, f"depth {depth} was empty in {empty} cycles only"


@cocotb.test
async def unit_cells_multicast(dut: Dut) -> None:
    """Three readers at their own pace get all entries; the slowest one decides what has room."""
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 20_000)
    shown = (await play(unit, rows))[:, len(DEPTHS) : len(DEPTHS) + READERS]
    queue = SharedQueue()
    full = 0
    for cycle, (word, seen) in enumerate(zip(rows[:, 0].tolist(), shown.tolist(), strict=True)):
        push = pushed(word)
        for reader, entries in enumerate(queue.seen(push)):
            check(f"multicast, reader {reader}", cycle, queue.ready, entries, seen[reader])
        full += not queue.ready
        queue.step(push, [bool(word >> (2 + reader) & 1) for reader in range(READERS)])
    assert full > 100, f"it was full in {full} cycles only"


@cocotb.test
async def unit_cells_window(dut: Dut) -> None:
    """A queue shows the entry that is asked for, and drops as many as it is told."""
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 20_000)
    shown = (await play(unit, rows))[:, len(DEPTHS) + READERS + 1]
    entries: deque[int] = deque()
    full = 0
    for cycle, (word, seen) in enumerate(zip(rows[:, 0].tolist(), shown.tolist(), strict=True)):
        at, data, ready = word >> 16 & 7, seen & 0xFFFF, len(entries) < WINDOW_DEPTH
        actual = (seen >> 23 & 1, seen >> 22 & 1, seen >> 16 & 0x3F, data)
        entry = entries[at] if at < len(entries) else data
        expected = (int(ready), int(bool(entries)), len(entries), entry)
        if actual != expected:
            raise QueueError(
                f"window, cycle {cycle}: expected ready, valid, count, entry {expected}, "
                f"actual {actual}"
            )
        for _ in range(min(word >> 2 & 7, len(entries))):
            entries.popleft()
        if word & 1 and ready:
            entries.append(word >> 16)
        full += not ready
    assert full > 100, f"the window was full in {full} cycles only"


@cocotb.test
async def unit_cells_skid(dut: Dut) -> None:
    """What comes goes straight on; where it is not taken one waits, and nothing is lost."""
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 20_000)
    shown = (await play(unit, rows))[:, len(DEPTHS) + READERS + 2]
    waits: list[int] = []
    full = through = 0
    for cycle, (word, seen) in enumerate(zip(rows[:, 0].tolist(), shown.tolist(), strict=True)):
        push, takes, flush = pushed(word), bool(word >> 2 & 1), bool(word & 2)
        entries = waits or ([] if push is None else [push])
        check("skid buffer", cycle, not waits, entries, seen)
        full += bool(waits)
        through += not waits and push is not None and takes
        waits = [] if takes or flush else entries
    assert full > 1_000, f"an entry waited in {full} cycles only"
    assert through > 1_000, f"{through} entries only went straight on"


@cocotb.test
async def unit_cells_block_clock(dut: Dut) -> None:
    """The clock of a block has an edge in each cycle awake and in those of its rest, and no other.

    The first cycles belong to the rest after reset.
    """
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 20_000)
    shown = (await play(unit, rows))[:, len(DEPTHS) + READERS] & 0xFFFF
    awake = rows[:, 0] & 1
    runs = np.convolve(awake, np.ones(1 + REST, int))[: len(awake)] > 0
    edges = np.diff(shown.astype(int)) % (1 << 16)
    wrong = REST + np.flatnonzero((edges != runs[:-1])[REST:])
    assert not wrong.size, (
        f"cycle {wrong[0]}: {edges[wrong[0]]} edges, awake before {runs[wrong[0]]}"
    )
    assert 1_000 < runs.sum() < len(runs) - 1_000, "it has to run and to stand still"
