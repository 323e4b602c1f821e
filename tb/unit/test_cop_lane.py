# SPDX-License-Identifier: Apache-2.0
"""Float32 sums, differences, products and ReLU of the coprocessor's lane, against numpy."""

from __future__ import annotations

import cocotb
import numpy as np
import numpy.typing as npt

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.unit import elements
from tb.unit.elements import ANSWERS, CLEARS, SIGNED, Words, spread
from tb.unit.world import UnitBench, World

ADD, SUB, MUL, RELU = range(4)
NAN = 0x7FC00000
LATENCY = 6


def oracle(op: npt.NDArray[np.uint8], a: Words, b: Words) -> Words:
    """Return float32 results, (n,) bits each; numpy computes them as IEEE 754 says."""
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        relu = np.where(np.isnan(x), x, np.where(a >> 31, np.float32(0), x))
        results = np.choose(op, [x + y, x - y, x * y, relu]).astype(np.float32)
    return np.where(np.isnan(results), np.uint32(NAN), results.view(np.uint32))


def pairs(random: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Return operands: special ones with each other, then random ones that are often near."""
    a, b = np.meshgrid(SIGNED, SIGNED)
    left, right = spread(random, count), spread(random, count)
    # Of nearly the same magnitude, so that sums cancel; products around the smallest float.
    near = left ^ (random.integers(0, 1 << 32, count, np.uint32) & np.uint32(0x8180000F))
    tiny = (left & np.uint32(0x807FFFFF)) | (
        (np.uint32(105) + (right >> 25) - (left >> 23 & np.uint32(0xFF))) % np.uint32(255) << 23
    )
    kind = random.integers(0, 3, count)
    return (
        np.concatenate([a.ravel(), left]),
        np.concatenate([b.ravel(), np.choose(kind, [right, near, tiny])]).astype(np.uint32),
    )


@cocotb.test
async def unit_cop_lane_values(dut: Dut) -> None:
    """All operations on special, near, tiny and random operands give what numpy gives."""
    unit = UnitBench.of(dut.u_elements)
    for op in range(4):
        a, b = pairs(unit.random, 250_000 if full() else 40_000)
        items = elements.elements(a, b, op)
        played = await elements.play(unit, items, cycles=2)
        elements.check(f"op {op}", items, oracle(items["op"], a, b), played.values)
        whole = np.diff(played.given)
        assert int(whole.max()) == 1, f"op {op}: {whole.max()} cycles between two results"
        assert int(played.given[0] - played.taken[0]) == LATENCY, "latency"


@cocotb.test
async def unit_cop_lane_stalls(dut: Dut) -> None:
    """Gaps, back-pressure and a clear lose, double and reorder nothing else."""
    unit = UnitBench.of(dut.u_elements)
    for _ in range(12):
        a, b = (array[-3000:] for array in pairs(unit.random, 3000))
        op = unit.random.integers(0, 4, a.size).astype(np.uint8)
        flags = np.where(unit.random.random(a.size) < 0.01, CLEARS, ANSWERS)
        items = elements.elements(a, b, op, flags)
        played = await elements.play(unit, items, World.draw(unit.random), cycles=10)
        kept = played.given != 0
        lost = np.flatnonzero(~kept & (flags == ANSWERS))
        for index in lost:
            # A clear drops what the lane holds, at most LATENCY elements.
            behind = flags[index + 1 : index + 1 + LATENCY]
            assert (behind == CLEARS).any(), f"element {index} has no result"
        elements.check("stalls", items[kept], oracle(op, a, b)[kept], played.values[kept])
