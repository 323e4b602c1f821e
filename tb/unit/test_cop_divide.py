# SPDX-License-Identifier: Apache-2.0
"""Quotients by one divisor, against numpy."""

from __future__ import annotations

import cocotb
import numpy as np
import numpy.typing as npt

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.unit import elements
from tb.unit.elements import ANSWERS, CLEARS, SIGNED, WAITS, Elements, Words, spread
from tb.unit.world import UnitBench, World

DIVIDE, LOAD = range(2)
NAN = 0x7FC00000
RECIPROCAL = 30
"""Cycles until the first element of a divisor is taken."""
LATENCY = 6


def vector(divisor: int, a: Words) -> Elements:
    """Return a divisor and its elements."""
    items = elements.elements(np.concatenate([[np.uint32(divisor)], a]))
    items[0]["op"], items[0]["flags"] = LOAD, WAITS
    return items


def oracle(items: Elements) -> npt.NDArray[np.uint64]:
    """Return the quotients, (n,) bits; 0 for a divisor."""
    loads = items["op"] == LOAD
    last = np.maximum.accumulate(np.where(loads, np.arange(items.size), 0))
    a, s = items["a"].view(np.float32), items["a"][last].view(np.float32)
    with np.errstate(all="ignore"):
        quotient = a / s
    bits = np.where(np.isnan(quotient), np.uint32(NAN), quotient.view(np.uint32))
    return np.where(loads, 0, bits).astype(np.uint64)


def exact_and_near(random: np.random.Generator, divisor: int, count: int) -> Words:
    """Return dividends whose quotients are floats or ties, or next to such ones.

    Of the divisor times a short number the quotient is short; times one of 25 bits it is a tie, if
    the product fits a float. Their neighbours have the smallest and largest remainders there are.
    """
    factors = random.integers(1, 1 << random.integers(1, 25, count), count)
    scale = np.exp2(random.integers(-30, 30, count).astype(np.float64))
    with np.errstate(all="ignore"):
        value = np.array([divisor], np.uint32).view(np.float32).astype(np.float64)
        bits = (value * factors * scale).astype(np.float32).view(np.uint32)
    return bits + random.integers(-1, 2, count).astype(np.uint32)


def tiny_ties(random: np.random.Generator) -> Elements:
    """Return a divisor and dividends whose quotients lie between two subnormals, or just beside.

    Only there can a quotient be a tie: (2k + 1) * 2^-150 times a divisor of few bits is a float.
    """
    short = int(random.integers(1, 1 << 10))
    scale = np.exp2(float(random.integers(-9, 100)))
    odd = 2 * random.integers(0, 1 << random.integers(1, 14, 60), 60) + 1
    signs = random.choice([-1.0, 1.0], 60)
    dividends = (odd * 2.0**-150 * short * scale * signs).astype(np.float32).view(np.uint32)
    divisor = np.array([short * scale], np.float32).view(np.uint32)
    beside = dividends + random.choice([0, 0, 1, -1], 60).astype(np.uint32)
    return vector(int(divisor[0]), beside)


def divisors(random: np.random.Generator, count: int) -> list[int]:
    """Return divisors: special ones, short ones, extreme ones, random ones."""
    short = random.integers(0, 1 << 9, count, np.uint32) << np.uint32(14)
    one = np.uint32(127 << 23)
    edges = [0x3F800000, 0x3F800001, 0x3FFFFFFF, 0x3FFFFFFE, 0x3FC00000]
    return [*SIGNED.tolist(), *edges, *(one + short).tolist(), *spread(random, count).tolist()]


@cocotb.test
async def unit_cop_divide_values(dut: Dut) -> None:
    """Quotients are rounded once: exact ones, ties and near ones, subnormals, special values."""
    unit = UnitBench.of(dut.u_elements)
    for _ in range(20 if full() else 1):
        vectors = [tiny_ties(unit.random) for _ in range(80)]
        for divisor in divisors(unit.random, 80):
            drawn = spread(unit.random, 150)
            # Quotients around the smallest floats
            exponent = max((divisor >> 23 & 0xFF) - 127, 0)
            tiny = drawn & np.uint32(0x80FFFFFF) | np.uint32(exponent << 23)
            vectors.append(vector(divisor, np.concatenate([SIGNED, drawn, tiny[:75]])))
            vectors.append(vector(divisor, exact_and_near(unit.random, divisor, 250)))
        items = np.concatenate(vectors)
        played = await elements.play(unit, items, cycles=4)
        elements.check("quotient", items, oracle(items), played.values)


@cocotb.test
async def unit_cop_divide_stalls(dut: Dut) -> None:
    """Gaps, back-pressure and clears; without them an element is taken in each cycle."""
    unit = UnitBench.of(dut.u_elements)
    for divisor in divisors(unit.random, 4)[-9:]:
        items = vector(divisor, spread(unit.random, 1000))
        played = await elements.play(unit, items, World.draw(unit.random), cycles=10)
        elements.check("stalls", items, oracle(items), played.values)

    items = vector(0x40490FDB, spread(unit.random, 64))
    played = await elements.play(unit, items, cycles=20)
    taken, given = (int(times[1]) for times in (played.taken, played.given))
    assert given - taken == LATENCY, f"latency: expected {LATENCY}, actual {given - taken}"
    assert int(played.given[-1]) == given + 63, "an element a cycle"
    # The divisor is offered a few cycles after the start of the run.
    assert taken <= 12 + RECIPROCAL, f"the reciprocal takes until cycle {taken}"

    parts = [vector(divisor, spread(unit.random, 60)) for divisor in divisors(unit.random, 40)]
    items = np.concatenate(parts)
    # A clear loses the divisor as well: it comes before one.
    for at in np.flatnonzero(items["op"] == LOAD)[1::3] - 1:
        items[at]["flags"] = CLEARS
    played = await elements.play(unit, items, cycles=4)
    kept = played.given != 0
    lost = np.flatnonzero(~kept & (items["flags"] == ANSWERS))
    assert all((items["flags"][at : at + 9] == CLEARS).any() for at in lost), "a result is missing"
    elements.check("clears", items[kept], oracle(items)[kept], played.values[kept])
