# SPDX-License-Identifier: Apache-2.0
"""The coprocessor's double accumulator, term by term against Python's doubles."""

from __future__ import annotations

import itertools
import struct

import cocotb
import numpy as np
import numpy.typing as npt

from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.unit import elements
from tb.unit.elements import ANSWERS, CLEARS, SIGNED, Elements, Words, spread
from tb.unit.world import UnitBench, World

TERM, LOAD, NARROW = range(3)
LATENCY = 5
CANONICAL = 0x7FF8000000000000


def bits_of(value: float) -> int:
    """Return the bits of a double, of NaN the canonical ones."""
    if value != value:
        return CANONICAL
    return int.from_bytes(struct.pack(">d", value))


def oracle(items: Elements) -> npt.NDArray[np.uint64]:
    """Return the sum after each element, narrowed where the element asks for it."""
    with np.errstate(all="ignore"):
        # Both factors have 24 bits: the product of their doubles is exact.
        left, right = (items[name].view(np.float32).astype(np.float64) for name in ("a", "b"))
        products = (left * right).tolist()
    sums, total = [], 0.0
    raw = (items["a"].astype(np.uint64) | items["b"].astype(np.uint64) << np.uint64(32)).tolist()
    for op, flags, product, value in zip(
        items["op"].tolist(), items["flags"].tolist(), products, raw, strict=True
    ):
        if flags & CLEARS:
            total = 0.0
        elif op == LOAD:
            total = struct.unpack("<d", value.to_bytes(8, "little"))[0]
        elif op == TERM:
            total += product
        sums.append(bits_of(total))
    results = np.array(sums, np.uint64)
    narrowed = items["op"] == NARROW
    with np.errstate(all="ignore"):
        floats = results[narrowed].view(np.float64).astype(np.float32)
    words = np.where(np.isnan(floats), np.uint32(0x7FC00000), floats.view(np.uint32))
    results[narrowed] = words
    return results


def doubles(random: np.random.Generator, count: int) -> npt.NDArray[np.uint64]:
    """Return bits of sums as products of floats have them, at all exponents; some special."""
    fraction = random.integers(0, 1 << 52, count, np.uint64)
    sparse = random.random(count) < 0.5
    fraction[sparse] &= random.integers(0, 1 << 52, sparse.sum(), np.uint64) & np.uint64(
        0xFFF0000000001
    )
    exponent = random.integers(1023 - 240, 1023 + 256, count).astype(np.uint64)
    sign = random.integers(0, 2, count).astype(np.uint64)
    bits: npt.NDArray[np.uint64] = sign << np.uint64(63) | exponent << np.uint64(52) | fraction
    special = np.array([0, 0x7FF0000000000000, 0xFFF0000000000000, CANONICAL], np.uint64)
    chosen = random.random(count) < 0.03
    bits[chosen] = random.choice(special, chosen.sum())
    return bits


def load(values: npt.NDArray[np.uint64]) -> Elements:
    """Return elements that set the sum."""
    low, high = values & np.uint64(0xFFFFFFFF), values >> np.uint64(32)
    return elements.elements(low, high, LOAD, 0)


def factor_for(random: np.random.Generator, sums: npt.NDArray[np.uint64]) -> tuple[Words, Words]:
    """Return factors whose product is within some places of the sum, often its opposite."""
    count = sums.size
    a = spread(random, count)
    with np.errstate(all="ignore"):
        value = sums.view(np.float64) / a.view(np.float32).astype(np.float64)
        shift = np.exp2(random.choice([0, 0, 0, 1, -1, 2, -2, 24, -30, 50, -53, 54], count))
        b = (value * shift * random.choice([1, -1], count)).astype(np.float32).view(np.uint32)
    return a, np.where(random.random(count) < 0.3, spread(random, count), b).astype(np.uint32)


@cocotb.test
async def unit_cop_facc_single(dut: Dut) -> None:
    """A term added to any sum is rounded once: distances, cancellation, ties, special values."""
    unit = UnitBench.of(dut.u_elements)
    count = 300_000 if full() else 30_000
    sums = doubles(unit.random, count)
    a, b = factor_for(unit.random, sums)
    left, right = np.meshgrid(SIGNED, SIGNED)
    a[: left.size], b[: right.size] = left.ravel(), right.ravel()
    items = np.empty(2 * count, elements.ELEMENT)
    items[0::2], items[1::2] = load(sums), elements.elements(a, b, TERM)
    played = await elements.play(unit, items, cycles=12)
    elements.check("single", items[1::2], oracle(items)[1::2], played.values[1::2])


@cocotb.test
async def unit_cop_facc_narrow(dut: Dut) -> None:
    """Sums become float32 with one more rounding: normals, subnormals, ties, overflow."""
    unit = UnitBench.of(dut.u_elements)
    count = 20_000
    sums = doubles(unit.random, count)
    near = unit.random.random(count) < 0.7
    exponent = unit.random.integers(860, 1155, count).astype(np.uint64) << np.uint64(52)
    tied = unit.random.integers(0, 1 << 25, count, np.uint64) << np.uint64(27)
    tied += unit.random.integers(0, 3, count).astype(np.uint64)
    sums[near] = (exponent | tied % np.uint64(1 << 52))[near]
    # Around each subnormal's last bit
    powers = np.exp2(np.arange(-152, -120).astype(np.float64))
    around = [powers * (1 + k * 2.0**-52) for k in (-1, 0, 1)] + [powers * 1.5]
    edge = np.concatenate(around).view(np.uint64)
    sums[: edge.size] = edge
    items = np.empty(2 * count, elements.ELEMENT)
    items[0::2], items[1::2] = load(sums), elements.elements(0, 0, [NARROW] * count)
    played = await elements.play(unit, items, cycles=10)
    elements.check("narrow", items[1::2], oracle(items)[1::2], played.values[1::2])


@cocotb.test
async def unit_cop_facc_vectors(dut: Dut) -> None:
    """Sums of vectors in index order with gaps and clears; without, three cycles a term."""
    unit = UnitBench.of(dut.u_elements)
    for turn, kind in itertools.product(range(6 if full() else 3), range(3)):
        count = 6000
        a, b = spread(unit.random, count), spread(unit.random, count)
        if kind == 0:  # like those of a network: sums of similar terms
            a, b = (unit.random.standard_normal((2, count)).astype(np.float32)).view(np.uint32)
        elif kind == 1:  # subnormal factors
            a &= np.uint32(0x807FFFFF)
        items = elements.elements(a, b, TERM, 0)
        items["flags"] = np.where(unit.random.random(count) < 0.02, ANSWERS, 0)
        clears = unit.random.random(count) < 0.002
        items["flags"][clears] = CLEARS
        items["flags"][-1] = ANSWERS
        world = World() if turn == 0 else World.draw(unit.random)
        played = await elements.play(unit, items, world, cycles=8)
        answered = played.given != 0
        assert answered[-1]
        elements.check("vector", items[answered], oracle(items)[answered], played.values[answered])

    for factor in (0x3F800001, 0x00000003):
        items = elements.elements([factor] * 500, 0x3F800003, TERM, 0)
        items["flags"][[0, -1]] = ANSWERS
        played = await elements.play(unit, items, cycles=8)
        assert int(played.given[-1] - played.given[0]) <= 3 * 499 + 3, "three cycles for each term"
        assert int(played.given[0] - played.taken[0]) == LATENCY, "latency"
