# SPDX-License-Identifier: Apache-2.0
"""The limit of the parameter stream alone: latency, growth, and the host's setting."""

from __future__ import annotations

from dataclasses import dataclass

import cocotb
import numpy as np

from tb.bench.dut import Dut
from tb.unit.player import Words, play, table
from tb.unit.world import UnitBench

MOST = (16, 5)
"""Of the limits that `unit_stream_limit` has."""
FEWEST, BURST, SLACK = 3, 32, 8
SETTING, LATENCY, WANTS, HELD, MINE, WORD, LOAD = 0, 8, 24, 25, 26, 27, 28
"""Where a signal lies in a row that is driven."""


class LimitError(AssertionError):
    """The stream may have another number of bursts under way than it should."""


@dataclass
class Limit:
    """What the limit is: bursts that cover the latency, and one more each time the bus ran dry.

    Attributes:
        most: bursts that the bus takes.
        extra: bursts added since the last load.
        flowing: words come to a stream that is held back.
    """

    most: int
    extra: int = 0
    flowing: bool = False

    def grown(self, latency: int) -> int:
        """Return the limit while the host has set none."""
        covers = 1 - (latency + SLACK) // -BURST
        return min(max(covers, FEWEST) + self.extra, self.most)

    def step(self, latency: int, row: int) -> None:
        """Let a cycle pass."""
        wants, held, mine, word, load = (row >> at & 1 for at in (WANTS, HELD, MINE, WORD, LOAD))
        dry = self.flowing and held and not word
        if load:
            self.extra = 0
        elif dry and self.grown(latency) < self.most:
            self.extra += 1
        if dry or not wants:
            self.flowing = False
        elif held and mine:
            self.flowing = True


def driven(random: np.random.Generator, cycles: int) -> Words:
    """Return stretches with one latency and setting, in which words come often or seldom."""
    rows = table(cycles, 1)
    at = 0
    while at < cycles:
        stretch = min(int(random.integers(1, 60)), cycles - at)
        wants, held, word, mine = (
            random.random((4, stretch)) < random.choice([0.5, 0.9, 1.0], 4)[:, None]
        )
        load = random.random(stretch) < random.choice([0.0, 0.0, 0.03, 0.5])
        row = np.full(stretch, int(random.choice([0, 0, 0, 1, 3, 16, 31])) << SETTING)
        latency = random.choice([random.integers(512), random.integers(100)])
        row |= int(latency) << LATENCY
        for signal, place in (
            (wants, WANTS),
            (wants & held, HELD),
            (word & mine, MINE),
            (word, WORD),
            (load, LOAD),
        ):
            row |= signal.astype(np.int64) << place
        rows[at : at + stretch, 0] = row
        at += stretch
    return rows


@cocotb.test
async def unit_stream_limit_cycles(dut: Dut) -> None:
    """The limit after every cycle, while latency, setting, words and loads change at random."""
    unit = UnitBench.of(dut)
    rows = driven(unit.random, 30_000)
    shown = await play(unit, rows)
    for index, most in enumerate(MOST):
        limit, grew, expected = Limit(most), 0, FEWEST
        for cycle, (row, seen) in enumerate(
            zip(rows[:, 0].tolist(), shown[:, 0].tolist(), strict=True)
        ):
            setting, latency = row >> SETTING & 31, row >> LATENCY & 511
            actual = seen >> 8 * index & 31
            if actual != expected:
                raise LimitError(
                    f"at most {most}, cycle {cycle}, latency {latency}, setting {setting}: "
                    f"expected {expected}, actual {actual}"
                )
            expected = setting or limit.grown(latency)
            before = limit.extra
            limit.step(latency, row)
            grew += limit.extra > before
        assert grew > 50, f"at most {most}: it grew {grew} times only"


@cocotb.test
async def unit_stream_limit_latencies(dut: Dut) -> None:
    """Every latency, without growth."""
    unit = UnitBench.of(dut)
    rows = table(513, 1)
    rows[:512, 0] = np.arange(512) << LATENCY
    shown = (await play(unit, rows))[1:, 0]
    for index, most in enumerate(MOST):
        actual = (shown >> 8 * index & 31).tolist()
        expected = [Limit(most).grown(latency) for latency in range(512)]
        assert actual == expected, f"at most {most}: expected {expected}, actual {actual}"
