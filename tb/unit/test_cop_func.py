# SPDX-License-Identifier: Apache-2.0
"""exp and GELU of the coprocessor against golden, and against the model of their datapath."""

from __future__ import annotations

import cocotb
import numpy as np
import numpy.typing as npt

from golden.coprocessor import arrays
from golden.coprocessor.boundaries import NEAREST
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop_datapath import model
from tb.unit import elements
from tb.unit.elements import ANSWERS, CLEARS, SIGNED, Words
from tb.unit.world import UnitBench, World

EXP, FIXED, GELU = range(3)
PERIODS = {EXP: 6, FIXED: 6, GELU: 15}
"""Cycles of an element in a long list."""
LOW = np.uint64(0xFFFFFFFF)
"""Of a result: the rest is what was rounded to it."""
LATENCIES = {EXP: 34, FIXED: 34, GELU: 46}
"""Most cycles from operand to result of a unit that was idle."""
NAMES = ("exp_float32", "exp_q16_16", "gelu_float32")
GOLDEN = (arrays.exp_float32, arrays.exp_q16_16, arrays.gelu_float32)
EDGES = {
    EXP: [0x42B17217, 0x42B17218, 0xC2CFF1B4, 0xC2CFF1B5, 0xC2AEAC4F, 0xC2AEAC50, 0x33000000],
    GELU: [0x41800000, 0x417FFFFF, 0xC165B274, 0xC165B275, 0xC1800000, 0x30000000, 0x2FFFFFFF],
}
"""Where the first or last operand of a kind of result is."""


def floats(func: int, random: np.random.Generator, count: int) -> Words:
    """Return operands: special ones, near boundaries, all exponents, edges, most that compute."""
    exponents = np.arange(256, dtype=np.uint32) << np.uint32(23)
    ends = [exponents | np.uint32(m) for m in (0, 1, 0x2AAAAA, 0x400000, 0x7FFFFF)]
    near = np.array(EDGES[func], np.uint32)[:, None] + np.arange(-3, 4).astype(np.uint32)
    first, last = (0x32000000, 0x42D00000) if func == EXP else (0x2F800000, 0x41810000)
    drawn = random.integers(first, last, count, np.uint32)
    drawn |= random.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
    large = random.integers(last - 0x02000000, last, count // 2, np.uint32)
    large |= random.integers(0, 2, count // 2).astype(np.uint32) << np.uint32(31)
    closest = np.array(NEAREST[NAMES[func]], np.uint32)
    every = [SIGNED, closest, *ends, *(end | np.uint32(1 << 31) for end in ends), near.ravel()]
    return np.concatenate([*every, drawn, large])


async def compare(
    unit: UnitBench, func: int, x: Words, world: World | None = None
) -> elements.Played:
    """Play operands of one function; compare the results, and what was rounded with the model's."""
    items = elements.elements(x, 0, func)
    played = await elements.play(unit, items, world, cycles=20)
    elements.check(f"func {func}", items, GOLDEN[func](x), played.values & LOW)
    bits, raw = model.compute(NAMES[func], x)
    elements.check(f"model of func {func}", items, bits, played.values & LOW)
    computes = raw != 0
    assert computes.any()
    elements.check(
        f"datapath of func {func}",
        items[computes],
        raw[computes] & LOW,
        played.values[computes] >> np.uint64(32),
    )
    return played


@cocotb.test
async def unit_cop_func_exp(dut: Dut) -> None:
    """Exp of floats of all exponents and around each edge is rounded correctly."""
    unit = UnitBench.of(dut.u_elements)
    await compare(unit, EXP, floats(EXP, unit.random, 700_000 if full() else 20_000))


@cocotb.test
async def unit_cop_func_gelu(dut: Dut) -> None:
    """GELU of floats of all exponents, all pieces and around each edge is rounded correctly."""
    unit = UnitBench.of(dut.u_elements)
    await compare(unit, GELU, floats(GELU, unit.random, 700_000 if full() else 12_000))


@cocotb.test
async def unit_cop_func_fixed(dut: Dut) -> None:
    """Exp of Q16.16 numbers from the first one that is not zero to saturation, and beyond."""
    unit = UnitBench.of(dut.u_elements)
    x = np.arange(-772_300, 681_450).astype(np.int32)
    if not full():
        x = np.concatenate([x[:200], x[-200:], x[772_200:772_400], unit.random.choice(x, 15_000)])
    powers = np.int64(1) << np.arange(32)
    wide = np.concatenate([powers, powers - 1, -powers]).astype(np.uint32)
    await compare(unit, FIXED, np.concatenate([x.view(np.uint32), wide]))


@cocotb.test
async def unit_cop_func_pace(dut: Dut) -> None:
    """How long an element takes, alone and in a list."""
    unit = UnitBench.of(dut.u_elements)
    for func, first in ((EXP, 0x3F800000), (FIXED, 0), (GELU, 0x3F800000)):
        x = (first + np.arange(64) * 12_345).astype(np.uint32)
        played = await compare(unit, func, x)
        pace = int(played.given[-1] - played.given[0]) / 63
        assert pace <= PERIODS[func] + 0.2, f"func {func}: {pace} cycles for each element"
        items = elements.elements(x, 0, func, ANSWERS | elements.WAITS)
        played = await elements.play(unit, items, cycles=60)
        latency = int((played.given - played.taken).max())
        assert latency <= LATENCIES[func], f"func {func}: {latency} cycles for one element"


@cocotb.test
async def unit_cop_func_stalls(dut: Dut) -> None:
    """Functions mixed at random, with gaps, back-pressure and clears: all in order, and right."""
    unit = UnitBench.of(dut.u_elements)
    for turn in range(8):
        count = 1500
        runs = np.repeat(unit.random.integers(0, 3, count), unit.random.integers(1, 9, count))
        func = runs[:count].astype(np.uint8)
        x = unit.random.integers(0x38000000, 0x41800000, count, np.uint32)
        x |= unit.random.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
        fixed = unit.random.integers(-780_000, 690_000, count).astype(np.int32).view(np.uint32)
        x = np.where(func == FIXED, fixed, x)
        clears = unit.random.random(count) < (0.02 if turn % 2 else 0)
        # Some come when the unit has become empty, so that what was in it goes around for long.
        alone = unit.random.random(count) < unit.random.choice([0, 0.3, 0.9])
        flags = np.where(clears, CLEARS, ANSWERS)
        items = elements.elements(x, 0, func, flags | np.where(alone, elements.WAITS, 0))
        played = await elements.play(unit, items, World.draw(unit.random), cycles=100)
        expected: npt.NDArray[np.uint32] = np.choose(func, [golden(x) for golden in GOLDEN])
        kept = played.given != 0
        for index in np.flatnonzero(~kept & (flags == ANSWERS)):
            assert (flags[index : index + 20] == CLEARS).any(), f"element {index} has no result"
        values = played.values & LOW
        elements.check("mixed", items[kept], expected[kept], values[kept])
