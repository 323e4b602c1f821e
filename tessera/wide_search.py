# SPDX-License-Identifier: Apache-2.0
"""Which results of a network get 16 bits, so that its outputs are as near as somebody wants."""

from __future__ import annotations

from npu.graph.form import Graph
from npu.graph.inputs import Samples
from npu.planner.build_plan import Choose, Tried, has_wide
from tessera.accuracy import measured

AUTO = "auto"
"""What stands for the names that are chosen so."""
TRIES = 12
"""Names that are left out again, one at a time, as far as the outputs stay near enough."""


def wide_until(most: float) -> Choose:
    """Return the function that chooses names for `build_plan`.

    What loses most over what it is made of comes first; twice as many with each measurement.

    Args:
        most: how far outputs may be off, as a share of the largest value.
    """

    def choose(tried: Tried, samples: Samples | str | None) -> list[str]:
        names: list[str] = []
        best: tuple[float, list[str]] | None = None
        asked: set[str] = set()
        count = 1
        while True:
            passes = tried(names)
            names = [one for one in names if has_wide(passes, one)]
            loss = measured(passes, samples)
            if best is None or loss.output < best[0]:
                best = loss.output, list(names)
            left = [name for name, _ in loss.tensors if name not in asked]
            if loss.output <= most or not left:
                break
            asked.update(left[:count])
            added = (_name(passes["place"], one) for one in left[:count])
            names += [one for one in dict.fromkeys(added) if one not in names]
            count *= 2
        error, names = best
        return _fewest(tried, names, most, samples) if error <= most else names

    return choose


def _name(graph: Graph, tensor: str) -> str:
    maker = graph.producers().get(tensor)
    return tensor if maker is None else maker.name


def _fewest(
    tried: Tried, names: list[str], most: float, samples: Samples | str | None
) -> list[str]:
    """Leave out what the outputs do not need, what was added last first."""
    for name in names[::-1][:TRIES]:
        rest = [one for one in names if one != name]
        if measured(tried(rest), samples).output <= most:
            names = rest
    return names
