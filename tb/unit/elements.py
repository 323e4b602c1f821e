# SPDX-License-Identifier: Apache-2.0
"""Lists of elements that `unit_elements` plays through a unit of the coprocessor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb.bench.environment import PROGRAM, STREAM
from tb.unit.world import UnitBench, World

ELEMENT = np.dtype(
    [("a", "<u4"), ("b", "<u4"), ("op", "u1"), ("flags", "u1"), ("unused", "u1", (6,))]
)
"""An element as `unit_pkg::element_t` has it."""
ANSWERS, WAITS, CLEARS = 1, 2, 4
"""Flags: the element has a result; it is offered when none is inside; it drops what is inside."""
RESULT = np.dtype([("value", "<u8"), ("given", "<u4"), ("taken", "<u4")])
"""Result, and the cycles in which it was given and its element was taken; all 0 if it has none."""
MOST = (STREAM - PROGRAM) // ELEMENT.itemsize
"""Elements of a list."""

Elements = npt.NDArray[np.void]
Words = npt.NDArray[np.uint32]


class WrongResultError(AssertionError):
    """A unit and its oracle differ."""


@dataclass(frozen=True)
class Played:
    """What became of a list: `values` (n,) uint64, `given` and `taken` (n,) cycles."""

    values: npt.NDArray[np.uint64]
    given: Words
    taken: Words


def elements(
    a: npt.ArrayLike, b: npt.ArrayLike = 0, op: npt.ArrayLike = 0, flags: npt.ArrayLike = ANSWERS
) -> Elements:
    """Return a list of elements from arrays of equal shape (n,), or numbers for all of them."""
    list_of = np.zeros(np.broadcast(a, b, op, flags).size, ELEMENT)
    list_of["a"], list_of["b"], list_of["op"], list_of["flags"] = a, b, op, flags
    return list_of


async def play(
    unit: UnitBench, items: Elements, world: World | None = None, cycles: int = 100
) -> Played:
    """Play a list in runs of at most `MOST`; `cycles` is the most that an element may take."""
    parts = []
    slow = 1 if world is None or world == World() else 20
    for at in range(0, items.size, MOST):
        part = items[at : at + MOST]
        unit.memory.stage(PROGRAM, part)
        unit.memory.stage(STREAM, np.zeros(part.size, RESULT))
        limit = 1000 + part.size * cycles * slow
        await unit.run(world or World(), limit, words=part.size)
        parts.append(unit.memory.read(STREAM, part.size * RESULT.itemsize))
    notes = np.frombuffer(b"".join(parts), RESULT)
    return Played(notes["value"], notes["given"], notes["taken"])


def check(what: str, items: Elements, expected: npt.ArrayLike, actual: npt.ArrayLike) -> None:
    """Compare results with those of an oracle.

    Raises:
        WrongResultError: they differ; names the first one.
    """
    expected, actual = np.asarray(expected, np.uint64), np.asarray(actual, np.uint64)
    wrong = np.flatnonzero(expected != actual)
    if wrong.size:
        first = int(wrong[0])
        item = items[first]
        raise WrongResultError(
            f"{what}: {wrong.size} of {items.size} differ; element {first}, op {item['op']}, "
            f"a {item['a']:#010x}, b {item['b']:#010x}: expected {int(expected[first]):#x}, "
            f"actual {int(actual[first]):#x}"
        )


SPECIAL = np.array(
    [
        0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007FFFFE, 0x007FFFFF,
        0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x33800000, 0x3F000000, 0x3F7FFFFF,
        0x3F800000, 0x3F800001, 0x40000000, 0x4B7FFFFF, 0x4B800000, 0x7F000000, 0x7F7FFFFE,
        0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF,
    ],
    np.uint32,
)  # fmt: skip
"""Bits of floats at the ends of what there is, without sign."""
SIGNED = np.concatenate([SPECIAL, SPECIAL | np.uint32(1 << 31)])
"""The same with both signs."""


def spread(random: np.random.Generator, count: int) -> Words:
    """Return bits of floats: a third of any bits, a third near 1, a third of few set bits."""
    bits = random.integers(0, 1 << 32, count, np.uint32)
    near = bits & np.uint32(0x807FFFFF) | (
        random.integers(100, 155, count).astype(np.uint32) << np.uint32(23)
    )
    sparse = bits & random.integers(0, 1 << 32, count, np.uint32) & np.uint32(0xFF801003)
    return np.choose(random.integers(0, 3, count), [bits, near, sparse]).astype(np.uint32)
