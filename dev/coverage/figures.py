# SPDX-License-Identifier: Apache-2.0
"""Coverage in figures: by module and in all, and what is not covered, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.coverage import reasons
from dev.coverage.points import CoverageError, Point, Points
from spec.paths import ROOT, RTL

LOW_PERCENT = 90.0
"""Line coverage below which a module is named."""
_FUNCTION_OF_PACKAGE = re.compile(r"^\s*package\b.*^\s*function\b", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """So many points of a kind are covered.

    Attributes:
        hit: points that were executed.
        all: points that there are.
        explained: points that were not executed, for a known reason.
    """

    hit: int = 0
    all: int = 0
    explained: int = 0

    @property
    def percent(self) -> float:
        """Covered points in percent of all, nothing left out."""
        return 100.0 * self.hit / self.all if self.all else 100.0

    @property
    def open(self) -> int:
        """Points that nobody has executed or explained."""
        return self.all - self.hit - self.explained

    def __add__(self, other: Figure) -> Figure:
        return Figure(self.hit + other.hit, self.all + other.all, self.explained + other.explained)

    def __str__(self) -> str:
        return f"{self.percent:.1f} % ({self.hit:,} of {self.all:,})"


@dataclass(frozen=True)
class Missed:
    """A point that was not executed.

    Attributes:
        point: which one.
        source: the text of its line.
        reason: why not, empty if nobody knows.
    """

    point: Point
    source: str
    reason: str

    @property
    def told(self) -> str:
        """What did not happen."""
        return ARMS.get(self.point.arm, self.point.arm)


ARMS = {
    "block": "never executed",
    "if": "condition never true",
    "else": "condition never false",
    "elsif": "condition never true",
    "case": "case never met",
    "cond_then": "first choice of ?: never taken",
    "cond_else": "second choice of ?: never taken",
}
"""What it means that a point is not covered."""


@dataclass(frozen=True)
class Module:
    """A file of the design.

    Attributes:
        file: its path from the project's folder.
        line: its lines: statements that execute together.
        branch: its branches: ways of decisions.
        missed: what was not executed, in the order of the source.
    """

    file: str
    line: Figure
    branch: Figure
    missed: tuple[Missed, ...]

    @property
    def name(self) -> str:
        """The module's name, which is the file's."""
        return Path(self.file).stem

    @property
    def open(self) -> tuple[Missed, ...]:
        """What was not executed for no known reason."""
        return tuple(missed for missed in self.missed if not missed.reason)


@dataclass(frozen=True)
class Coverage:
    """All figures.

    Attributes:
        modules: by path.
        without: files of `rtl/` without a point: structure or types only, or not in these models.
        uncounted: packages with functions, of which Verilator registers no points.
        problems: what is wrong with the entries of `reasons.toml`, a line each.
    """

    modules: tuple[Module, ...]
    without: tuple[str, ...]
    uncounted: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def line(self) -> Figure:
        """Lines of all modules."""
        return sum((module.line for module in self.modules), Figure())

    @property
    def branch(self) -> Figure:
        """Branches of all modules."""
        return sum((module.branch for module in self.modules), Figure())

    @property
    def low(self) -> tuple[Module, ...]:
        """Modules with less than `LOW_PERCENT` of their lines, the least first."""
        low = (module for module in self.modules if module.line.percent < LOW_PERCENT)
        return tuple(sorted(low, key=lambda module: module.line.percent))


def read_sources(points: Points, root: Path = ROOT) -> dict[str, list[str]]:
    """Return the lines of all files that have points.

    Raises:
        CoverageError: a file is not there, or ends before its last point.
    """
    last: dict[str, int] = {}
    for point in points.table.points:
        last[point.file] = max(last.get(point.file, 0), point.line)
    sources = {}
    for file, line in last.items():
        try:
            sources[file] = (root / file).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise CoverageError(
                f"{file}: {error.strerror}; coverage was recorded with other sources"
            ) from None
        if len(sources[file]) < line:
            raise CoverageError(
                f"{file}: has {len(sources[file])} lines, a point is in line {line}; coverage was "
                "recorded with other sources"
            )
    return sources


def figures(
    points: Points,
    entries: Iterable[reasons.Reason],
    sources: Mapping[str, Sequence[str]],
) -> Coverage:
    """Count the points of each module, and name what is not covered."""
    explained, problems = reasons.explain(points, entries, sources)
    counted: dict[str, dict[str, Figure]] = {file: {} for file in sources}
    missed: dict[str, list[Missed]] = {file: [] for file in sources}
    for point, hit in zip(points.table.points, points.hit.tolist(), strict=True):
        reason = "" if hit else explained.get(point, "")
        kinds = counted[point.file]
        one = Figure(int(hit), 1, int(bool(reason)))
        kinds[point.kind] = kinds.get(point.kind, Figure()) + one
        if not hit:
            text = sources[point.file][point.line - 1].strip()
            missed[point.file].append(Missed(point, text, reason))
    modules = [
        Module(
            file, kinds.get("line", Figure()), kinds.get("branch", Figure()), tuple(missed[file])
        )
        for file, kinds in sorted(counted.items())
    ]
    others = {path.relative_to(ROOT).as_posix(): path for path in sorted(RTL.rglob("*.sv"))}
    uncounted = [
        file
        for file, path in others.items()
        if file not in counted and _FUNCTION_OF_PACKAGE.search(path.read_text(encoding="utf-8"))
    ]
    without = [file for file in others if file not in counted and file not in uncounted]
    return Coverage(tuple(modules), tuple(without), tuple(uncounted), tuple(problems))
