# SPDX-License-Identifier: Apache-2.0
"""Reciprocal square roots against integer square roots and the datapath's model."""

from __future__ import annotations

import math

import cocotb
import numpy as np
import numpy.typing as npt

from golden.coprocessor.boundaries import NEAREST
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop_datapath import model
from tb.unit import elements
from tb.unit.elements import ANSWERS, CLEARS, SIGNED, Words
from tb.unit.world import UnitBench, World

FLOAT, FIXED = range(2)
NAN, INF = 0x7FC00000, 0x7F800000
PERIOD = 30
"""Cycles from one result to the next one."""


def float_root(bits: int) -> int:
    """Return the bits of 1/sqrt of a float32, decided by an integer square root."""
    magnitude = bits & 0x7FFFFFFF
    if magnitude == 0:
        return INF
    if bits >> 31 or magnitude > INF:
        return NAN
    if magnitude == INF:
        return 0
    exponent, significand = max(bits >> 23, 1) - 150, bits & 0x7FFFFF | (bits >= 1 << 23) << 23
    if exponent % 2:
        exponent, significand = exponent - 1, 2 * significand
    # Twice the result's significand with 40 bits more; its square root is never a tie.
    scaled = math.isqrt((1 << 200) // significand)  # 2^100 / sqrt(significand)
    shift = scaled.bit_length() - 25
    rounded = ((scaled >> shift) + 1) >> 1
    return (shift + 1 - 100 - exponent // 2 + 149 << 23) + rounded


def fixed_root(bits: int) -> int:
    """Return rint(2^24 / sqrt(x)) of an s32 x, 0x7FFFFFFF where it is not positive."""
    if bits == 0 or bits >> 31:
        return 0x7FFFFFFF
    return (math.isqrt((1 << 50) // bits) + 1) >> 1


def expected(op: npt.NDArray[np.uint8], x: Words) -> npt.NDArray[np.uint64]:
    """Return the result of each operand."""
    roots = (float_root, fixed_root)
    return np.array([roots[o](v) for o, v in zip(op.tolist(), x.tolist(), strict=True)], np.uint64)


async def compare(
    unit: UnitBench, op: int | npt.NDArray[np.uint8], x: Words, world: World | None = None
) -> elements.Played:
    """Play operands and compare the results."""
    items = elements.elements(x, 0, op)
    played = await elements.play(unit, items, world, cycles=40)
    elements.check("root", items, expected(items["op"], x), played.values)
    names = ("rsqrt_float32", "rsqrt_q16_16")
    modelled = [model.compute(name, x)[0] for name in names]
    elements.check("model", items, np.choose(items["op"], modelled), played.values)
    return played


@cocotb.test
async def unit_cop_root_float(dut: Dut) -> None:
    """1/sqrt of floats: special values, all exponents with extreme significands, random ones."""
    unit = UnitBench.of(dut.u_elements)
    exponents = np.arange(0, 255, dtype=np.uint32) << np.uint32(23)
    edges = [exponents | np.uint32(m) for m in (0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF)]
    powers = np.uint32(1) << np.arange(23, dtype=np.uint32)
    count = 1_000_000 if full() else 15_000
    drawn = unit.random.integers(0, 0x7F800000, count, np.uint32)
    near = np.array(NEAREST["rsqrt_float32"], np.uint32) & np.uint32(0xFFFFFF)
    closest = (np.arange(0, 127, dtype=np.uint32)[:, None] << np.uint32(24) | near).ravel()
    x = np.concatenate([SIGNED, closest, *edges, powers, powers - np.uint32(1), drawn])
    played = await compare(unit, FLOAT, x)
    assert int(np.diff(played.given[: elements.MOST]).max()) <= PERIOD, "cycles between two results"


@cocotb.test
async def unit_cop_root_fixed(dut: Dut) -> None:
    """2^24/sqrt of integers: all powers of two and their neighbours, squares, random ones."""
    unit = UnitBench.of(dut.u_elements)
    powers = np.uint32(1) << np.arange(32, dtype=np.uint32)
    near = [powers + np.uint32(k) for k in (0, 1, (1 << 32) - 1)]
    squares = np.arange(1, 46340, 41 if not full() else 1, dtype=np.uint32) ** np.uint32(2)
    count = 1_000_000 if full() else 10_000
    drawn = unit.random.integers(0, 1 << 32, count, np.uint32)
    drawn >>= unit.random.integers(0, 31, count).astype(np.uint32)
    x = np.concatenate([*near, np.arange(3000, dtype=np.uint32), squares, drawn])
    await compare(unit, FIXED, x.astype(np.uint32))


@cocotb.test
async def unit_cop_root_stalls(dut: Dut) -> None:
    """Gaps, back-pressure and clears: each result is given once, in order, and stays right."""
    unit = UnitBench.of(dut.u_elements)
    for _ in range(6):
        count = 400
        x = unit.random.integers(0, 0x7F800000, count, np.uint32)
        op = unit.random.integers(0, 2, count).astype(np.uint8)
        await compare(unit, op, x, World.draw(unit.random))
        flags = np.where(unit.random.random(count) < 0.2, CLEARS, ANSWERS)
        items = elements.elements(x, 0, op, flags)
        played = await elements.play(unit, items, cycles=50)
        kept = played.given != 0
        lost = np.flatnonzero(~kept & (flags == ANSWERS))
        assert lost.size < count, "nothing is left"
        assert (flags[lost + 1] == CLEARS).all(), "a result is missing"
        elements.check("clears", items[kept], expected(op, x)[kept], played.values[kept])
