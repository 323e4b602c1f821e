# SPDX-License-Identifier: Apache-2.0
"""Random lists with everything around them: a hostile memory, closed pages, errors, silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb.bench.bursts import PAGE
from tb.bench.knobs import Knobs
from tb.bench.memory_regions import OPEN, RegionRegisters
from tb.cop.cop_session import ListScene
from tb.cop.random_offers import BORDER, MANNERS, OfferMaker

PATIENCE = 700
"""MEM_TIMEOUT in cycles: more than the slowest of these memories ever needs."""
LIMITS = (256, 256, 256, 64, 17, 1000, 0)
KINDS = ("plain", "plain", "closed", "errors", "closed errors", "silence")
"""What may go wrong in a list, beside counts and addresses that cannot work."""
MOST = (1 << 32) - 1


def temper(random: np.random.Generator) -> Knobs:
    """Return the usual memory, or a hostile one."""
    return Knobs() if random.random() < 0.3 else Knobs.hostile(random)


def _range(random: np.random.Generator, reach: int) -> tuple[int, int]:
    """Return first and last byte of a few bus words where the arrays lie."""
    first = (BORDER - reach + int(random.integers(2 * reach))) & -16
    return first, first + 16 * int(random.choice((1, 1, 2, 8))) - 1


def _closed(random: np.random.Generator) -> tuple[RegionRegisters, ...]:
    """Return regions that forbid something of a page at the border."""
    rest = (
        RegionRegisters(0, BORDER - PAGE - 1, True, True),
        RegionRegisters(BORDER + PAGE, MOST, True, True),
    )
    kinds = [(False, False), (True, False), (False, True), (True, True)]
    below, above = (kinds[int(random.integers(4))] for _ in range(2))
    return (
        *rest,
        RegionRegisters(BORDER - PAGE, BORDER - 1, *below),
        RegionRegisters(BORDER, BORDER + PAGE - 1, *above),
    )


def draw_scene(random: np.random.Generator, length: int) -> ListScene:
    """Return a random list of `length` instructions in random surroundings."""
    kind = KINDS[int(random.integers(len(KINDS)))]
    limit = LIMITS[int(random.integers(len(LIMITS)))]
    manner = MANNERS[int(random.integers(len(MANNERS)))]
    # What a failed write leaves is open, and so is what others read there: none come behind it, nor
    # behind a time-out, while the memory is silent.
    trap = kind not in ("plain", "closed") or bool(random.integers(2))
    maker = OfferMaker(random, limit=limit, manner=manner, cuts=trap)
    offers = maker.list(length)
    knobs = temper(random)
    regions: tuple[RegionRegisters, ...] = (OPEN,)
    first, last = _range(random, maker.reach)
    if "closed" in kind:
        regions = _closed(random)
    if "errors" in kind:
        both = (1, 1) if random.random() < 0.5 else (int(random.integers(2)), 1)
        knobs = replace(
            knobs, read_error=both[0], write_error=both[1], error_first=first, error_last=last
        )
    if kind == "silence":
        reads = int(random.integers(2))
        knobs = replace(
            knobs,
            interleave=1,  # else the other operand's answers may have to wait behind the silence
            read_silent=reads,
            write_silent=1 - reads or int(random.integers(2)),
            silent_first=first,
            silent_last=last,
        )
    return ListScene(offers, dict(maker.pieces), limit, trap, knobs, regions, PATIENCE)
