# SPDX-License-Identifier: Apache-2.0
"""The tests of a run by feature: verdicts, seeds, time, cycles; failures; the slowest.

A feature is what a module of tests is about. Results of one test that differ in the seed alone, or
in the seed of a hostile memory, are one line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path, PurePosixPath

from dev.regression.task import Outcome
from spec.paths import ROOT
from tb.run import registry, units

KINDS = {
    "rtl": "Tests on the chip",
    "unit": "Tests on single blocks",
    "sweep": "Functions on all inputs",
    "python": "Tests that need no chip, or bring one",
    "nightly": "Tests of the night",
}
"""Kinds of tests, in the order of the page."""
SLOWEST = 20


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a test beside its results.

    Attributes:
        feature: the group that it is shown in.
        summary: the first line of its docstring.
    """

    feature: str
    summary: str = ""


class Tally:
    """What several results say together."""

    results: tuple[Outcome, ...]

    @property
    def passed(self) -> int:
        """Results that are good."""
        return sum(one.passed for one in self.results)

    @property
    def failed(self) -> int:
        """Results that are not."""
        return sum(one.failed for one in self.results)

    @property
    def open(self) -> int:
        """Planned results that are not there."""
        return len(self.results) - self.passed - self.failed

    @property
    def verdict(self) -> str:
        """In a word: `failed`, `not run`, `passed`."""
        if self.failed:
            return "failed"
        return "not run" if self.open else "passed"

    @property
    def seconds(self) -> float:
        """Of all of them together."""
        return sum(one.seconds for one in self.results)

    @property
    def cycles(self) -> int:
        """Of all of them together."""
        return sum(one.cycles for one in self.results)


@dataclass(frozen=True)
class TestLine(Tally):
    """One test on one model, with all its seeds.

    Attributes:
        kind, name, model: as of its results.
        about: feature and summary.
        results: by seed.
    """

    kind: str
    name: str
    model: str
    about: About
    results: tuple[Outcome, ...]

    @property
    def anchor(self) -> str:
        """Its name on the page."""
        return f"test-{self.kind}-{self.model}-{self.name}".replace("/", "-").replace(" ", "-")


@dataclass(frozen=True)
class Feature(Tally):
    """The tests of one feature.

    Attributes:
        kind: of all its tests.
        name: of the feature.
        tests: by name.
        results: of all of them.
    """

    kind: str
    name: str
    tests: tuple[TestLine, ...]
    results: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Slow:
    """A result that took long, and its share of all time, 0 to 1."""

    result: Outcome
    share: float


def known_tests() -> dict[tuple[str, str], About]:
    """Return what the sources say of the tests on the RTL, by kind and name."""
    found: dict[tuple[str, str], About] = {}
    for kind, tests in (("rtl", registry.discover()), ("unit", units.tests_of())):
        for test in tests:
            found[kind, test.name] = About(test.group.removeprefix("test_"), test.summary)
    return found


def _docstring(path: Path) -> str:
    """Return the first line of a module's docstring, "" if there is none."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ""
    return (ast.get_docstring(tree) or "").split("\n")[0]


def about(result: Outcome, known: Mapping[tuple[str, str], About]) -> About:
    """Return feature and summary of a test; one that the sources lack has the feature `gone`."""
    task = result.task
    if task.kind in ("python", "nightly"):
        return About(str(PurePosixPath(task.name).parent), _docstring(ROOT / task.name))
    if task.kind == "sweep":
        return About("coprocessor functions")
    return known.get((task.kind, task.name), About("not in the sources any more"))


def features(
    results: Iterable[Outcome], known: Mapping[tuple[str, str], About]
) -> tuple[Feature, ...]:
    """Return the tests by feature, kinds in the order of `KINDS`, features and tests by name."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for result in results:
        task = result.task
        groups.setdefault((task.kind, task.name, task.model), []).append(result)
    lines: dict[tuple[str, str], list[TestLine]] = {}
    for (kind, name, model), members in groups.items():
        told = about(members[0], known)
        line = TestLine(kind, name, model, told, tuple(members))
        lines.setdefault((kind, told.feature), []).append(line)
    order = list(KINDS)
    place = {kind: order.index(kind) if kind in order else len(order) for kind, _ in lines}
    found = []
    for kind, name in sorted(lines, key=lambda key: (place[key[0]], key)):
        tests = tuple(sorted(lines[kind, name], key=lambda test: (test.name, test.model)))
        results_of = tuple(one for test in tests for one in test.results)
        found.append(Feature(kind, name, tests, results_of))
    return tuple(found)


def slowest(results: Sequence[Outcome]) -> tuple[Slow, ...]:
    """Return the results that took longest."""
    total = sum(result.seconds for result in results)
    longest = sorted(results, key=lambda result: result.seconds, reverse=True)[:SLOWEST]
    return tuple(Slow(result, result.seconds / total) for result in longest if result.seconds)


def by_kind(found: Sequence[Feature]) -> list[tuple[str, list[Feature]]]:
    """Return features that stand in the order of `features`, by kind."""
    return [(kind, list(members)) for kind, members in groupby(found, attrgetter("kind"))]
