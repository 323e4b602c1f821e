# SPDX-License-Identifier: Apache-2.0
"""Points of functional coverage that are crossed, and the text by which a sample travels.

A run only writes down which bins it has met together, each once with how often (`rows_file` of
`tb.bench.isa_coverage`); `dev.functional` makes points and crosses of it, for all tests at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Pattern = tuple[str | None, ...]
"""A bin of each point, None for any."""


@dataclass(frozen=True)
class Group:
    """Points that are sampled together.

    Attributes:
        name: of the group.
        points: the bins of each point.
        crosses: names of points that are crossed.
        illegal: combinations that the design does not have, over all points.
    """

    name: str
    points: Mapping[str, Sequence[str]]
    crosses: Sequence[tuple[str, ...]]
    illegal: Sequence[Pattern] = ()

    def row(self, *bins: str) -> str:
        """Return the text of a sample, a bin of each point."""
        return f"{self.name}: {' | '.join(bins)}"

    def ignored(self, cross: tuple[str, ...]) -> list[Pattern]:
        """Return the illegal combinations that concern no point outside of a cross."""
        places = [list(self.points).index(point) for point in cross]
        return [
            tuple(pattern[place] for place in places)
            for pattern in self.illegal
            if all(bin_ is None or at in places for at, bin_ in enumerate(pattern))
        ]


def outside(
    first: Sequence[str], legal: Mapping[str, Sequence[str]], at: int, of: int
) -> list[Pattern]:
    """Return patterns of what is not legal between the first point and another one.

    Args:
        first: bins of the first point.
        legal: what each of these goes together with, of the bins that the last entry names.
        at: place of the other point.
        of: how many points there are.
    """
    every = dict.fromkeys(bin_ for bins in legal.values() for bin_ in bins)
    return [
        (one, *(other if place == at else None for place in range(1, of)))
        for one in first
        for other in every
        if other not in legal[one]
    ]
