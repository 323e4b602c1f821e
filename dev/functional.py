# SPDX-License-Identifier: Apache-2.0
"""Functional coverage: points and crosses of the plan, over all tests and workers of a regression.

What the tests executed lies in the results as rows (`tb.bench.isa_coverage.Hits`); here they are
sampled into the points and crosses of cocotb-coverage. Nothing runs in the simulator for it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from cocotb_coverage.coverage import CoverCross, CoverPoint, coverage_db, coverage_section

from dev.report.executed import areas
from spec.paths import REPORTS, ROOT
from tb.bench import graph_coverage, isa_coverage
from tb.bench.coverage_group import Group
from tb.command import command_coverage
from tb.cop import cop_coverage
from tb.run.registry import near

EXCLUSIONS = Path(__file__).parent / "coverage_exclusions.toml"
REPORT = REPORTS / "functional.json"
GROUPS = (
    *(Group(f"uses of {area}", {"use": rows}, ()) for area, rows in areas().items()),
    isa_coverage.ISA,
    isa_coverage.WEIGHTS,
    isa_coverage.ERRORS,
    command_coverage.RING,
    cop_coverage.COP,
    graph_coverage.GRAPH,
)
"""All groups; the first are the table of `make regress`, whose rows are bins."""


class FunctionalError(ValueError):
    """A point, exclusion or run that cannot be used; the text says why."""


@dataclass(frozen=True)
class Exclusion:
    """Bins that are legal and are not asked for.

    Attributes:
        group: name of the group.
        bins: a pattern for each of its points.
        reason: why not, a sentence.
    """

    group: str
    bins: Sequence[str]
    reason: str

    def __str__(self) -> str:
        return f"{EXCLUSIONS.name}: {self.group}: {' | '.join(self.bins)}"

    def holds(self, item: Item, bins: Sequence[str]) -> bool:
        """Whether it is about a bin of a point or cross."""
        places = [[*item.group.points].index(point) for point in item.points]
        return (
            item.group.name == self.group
            and all(bin_ == "*" or at in places for at, bin_ in enumerate(self.bins))
            and all(map(fnmatchcase, bins, [self.bins[place] for place in places]))
        )


@dataclass(frozen=True)
class Item:
    """A point, or a cross of several.

    Attributes:
        group: that it belongs to.
        points: names of the points, one for a point.
    """

    group: Group
    points: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in the library's tree, where a dot would begin a part of a group."""
        return f"{self.group.name}.{' x '.join(self.points)}"


@dataclass(frozen=True)
class Found:
    """What was met of a point or cross.

    Attributes:
        name: of it.
        bins: how many are asked for.
        covered: how many of these were met.
        excluded: how many are not asked for.
        missing: the others, by name.
    """

    name: str
    bins: int
    covered: int
    excluded: int
    missing: list[str]


def items(names: Iterable[str] = ()) -> list[Item]:
    """Return the points and crosses of the groups that are named, of all without a name.

    Raises:
        FunctionalError: no group or point is called so; names near ones.
    """
    every = [
        Item(group, points)
        for group in GROUPS
        for points in (*((point,) for point in group.points), *group.crosses)
    ]
    known = [*(group.name for group in GROUPS), *(item.name for item in every)]
    wanted = list(names)
    for name in wanted:
        if name not in known:
            hint = near(name, known) or f"; groups: {', '.join(known[: len(GROUPS)])}"
            raise FunctionalError(f"POINTS: given {name!r}, no group or point is called so{hint}")
    return [one for one in every if not wanted or {one.name, one.group.name} & {*wanted}]


def exclusions(path: Path = EXCLUSIONS) -> list[Exclusion]:
    """Read the data file.

    Raises:
        FunctionalError: an entry is not one, or names what is not there.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("exclusion", [])
    except tomllib.TOMLDecodeError as error:
        raise FunctionalError(f"{path.name}: no TOML: {error}") from None
    groups = {group.name: group for group in GROUPS}
    for entry in entries:
        if {*entry} != {each.name for each in fields(Exclusion)} or not entry["reason"]:
            raise FunctionalError(f"{path.name}: given {entry}, needed are group, bins and reason")
        group = groups.get(entry["group"])
        if group is None:
            hint = near(entry["group"], [*groups])
            raise FunctionalError(f"{path.name}: no group is called {entry['group']!r}{hint}")
        if len(entry["bins"]) != len(group.points):
            names = ", ".join(group.points)
            raise FunctionalError(f"{path.name}: given {entry['bins']}, needed a bin of {names}")
        for bin_, (point, bins) in zip(entry["bins"], group.points.items(), strict=True):
            if not any(fnmatchcase(each, bin_) for each in bins):
                raise FunctionalError(
                    f"{path.name}: {group.name}.{point} has no bin {bin_!r}{near(bin_, [*bins])}"
                )
    return [Exclusion(**entry) for entry in entries]


def _section(group: Group) -> Any:  # noqa: ANN401
    """Make the points and crosses of a group in the library; return what samples them."""
    covers = [
        CoverPoint(f"{group.name}.{point}", xf=lambda *bins, at=at: bins[at], bins=list(bins))
        for at, (point, bins) in enumerate(group.points.items())
    ]
    covers += [
        CoverCross(
            Item(group, cross).name,
            items=[f"{group.name}.{point}" for point in cross],
            ign_bins=group.ignored(cross),
        )
        for cross in group.crosses
    ]
    return coverage_section(*covers)(lambda *_: None)


def sample(rows: Iterable[str]) -> None:
    """Fill the library's database with rows that passing tests have executed."""
    coverage_db.clear()
    sections = {group.name: _section(group) for group in GROUPS}
    uses = {row: f"uses of {area}" for area, names in areas().items() for row in names}
    for row in sorted(set(rows)):
        name, _, bins = row.partition(": ")
        if row in uses:
            sections[uses[row]](row)
        elif name in sections:
            sections[name](*bins.split(" | "))


def judge(wanted: Sequence[Item], excluded: Sequence[Exclusion]) -> tuple[list[Found], list[str]]:
    """Return what was met of each point and cross, and what is wrong with the exclusions."""
    idle, problems, found = set(map(str, excluded)), [], []
    for item in wanted:
        counts = coverage_db[item.name].detailed_coverage
        bins = {(key,) if len(item.points) == 1 else key: hits for key, hits in counts.items()}
        out = {}
        for key in bins:
            for one in excluded:
                if one.holds(item, key):
                    out[key] = one
                    idle.discard(str(one))
        problems += [f"{out[key]}: {' | '.join(key)} was met" for key in out if bins[key]]
        missing = [" | ".join(key) for key, hits in bins.items() if not hits and key not in out]
        asked = len(bins) - len(out)
        found.append(Found(item.name, asked, asked - len(missing), len(out), missing))
    named = {item.group.name for item in wanted}
    problems += [
        f"{one}: excludes nothing" for one in excluded if str(one) in idle and one.group in named
    ]
    return found, problems


def write(found: Sequence[Found], problems: Sequence[str], run: int, path: Path = REPORT) -> None:
    """Write the report, and beside it the library's own of all bins with their hits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"run": run, "problems": problems, "items": [*map(asdict, found)]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    coverage_db.export_to_yaml(str(path.with_suffix(".yml")))


def text(found: Sequence[Found], most: int = 12) -> str:
    """Return the table for people, and the names of what is missing, some of each."""
    lines = [f"{'point or cross':48}{'bins':>7}{'met':>7}{'missing':>9}{'excluded':>10}"]
    for one in found:
        left = len(one.missing)
        lines.append(f"{one.name:48}{one.bins:7,}{one.covered:7,}{left:9,}{one.excluded:10,}")
    for one in found:
        lines += [f"missing: {one.name}: {name}" for name in one.missing[:most]]
        if len(one.missing) > most:
            more = f"and {len(one.missing) - most:,} more in {REPORT.relative_to(ROOT)}"
            lines.append(f"missing: {one.name}: {more}")
    return "\n".join(lines)
