# SPDX-License-Identifier: Apache-2.0
"""What each benchmark must reach: a ratchet on the figures that have landed.

`landed.toml` holds the cycles of every benchmark; a run may take `1 / MARGIN` more. `make
bench-docs` writes lower figures and new benchmarks into it by itself, a higher one only if told so
by name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LANDED = Path(__file__).with_name("landed.toml")
MARGIN = 500
"""A run may take one in so many cycles more than have landed: 0.2 %."""
HEAD = """\
# Cycles of each benchmark; `make bench` allows 0.2 % more. Written by `make bench-docs`, which
# lowers them by itself and raises those that RAISE=name,... names.
"""


class RaiseError(ValueError):
    """A bar that is to rise and does not exist."""


@dataclass(frozen=True)
class Bar:
    """What a figure must reach.

    Attributes:
        limit: the figure itself may be equal.
        least: True if the figure must not be smaller, False if it must not be larger.
        cycles: True if the figure is the number of cycles, False if it is the ratio.
    """

    limit: float
    least: bool = False
    cycles: bool = False

    def met(self, ratio: float, cycles: int) -> bool:
        """Whether a benchmark with these results is good enough."""
        value: float = cycles if self.cycles else ratio
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        """As in a table: `>= 0.8`, `<= 5,000 cycles`."""
        unit = " cycles" if self.cycles else ""
        return f"{'>=' if self.least else '<='} {self.limit:,}{unit}"


BENCH = {
    "fast_vs_cpp": Bar(0.8, least=True),
    "callbacks": Bar(1),
    "soc_macc_loop": Bar(5),
    "soc_generate": Bar(1.01),
    "soc_bytelm_int8": Bar(6, least=True),
    "soc_bytelm_fp32": Bar(25, least=True),
}
"""What the bench itself and the machine must reach; these are no cycles of the chip alone."""
NIGHTLY = {"net_resnet50": Bar(1.2)}
"""What the benchmarks of `make nightly` must reach."""


def landed(path: Path = LANDED) -> dict[str, int]:
    """Return the cycles of every benchmark that has landed, by name."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def limit(cycles: int) -> int:
    """Return the most cycles that a benchmark with `cycles` landed may take."""
    return cycles + cycles // MARGIN


def bars(figures: Mapping[str, int]) -> dict[str, Bar]:
    """Return the bar of every benchmark in `figures`, (name, landed cycles), and of the bench."""
    return (
        {name: Bar(limit(cycles), cycles=True) for name, cycles in figures.items()}
        | BENCH
        | NIGHTLY
    )


def ratchet(
    figures: Mapping[str, int], entries: Iterable[Mapping[str, Any]], raised: Collection[str] = ()
) -> dict[str, int]:
    """Return the landed cycles after a run.

    Args:
        figures: those before it, by name.
        entries: the records of bench.json, all benchmarks.
        raised: names whose figure may become higher.

    Raises:
        RaiseError: `raised` names no benchmark of the run.
    """
    cycles = {entry["name"]: int(entry["cycles"]) for entry in entries}
    cycles = {name: value for name, value in cycles.items() if name not in BENCH}
    unknown = sorted(set(raised) - cycles.keys())
    if unknown:
        raise RaiseError(f"no benchmark of the last run is called {', '.join(unknown)}")
    return {
        name: value if name in raised else min(value, figures.get(name, value))
        for name, value in cycles.items()
    }


def write(figures: Mapping[str, int], path: Path = LANDED) -> None:
    """Write landed cycles, (name, cycles), in their order."""
    lines = [f"{name} = {cycles:_}\n" for name, cycles in figures.items()]
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
