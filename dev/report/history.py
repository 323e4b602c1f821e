# SPDX-License-Identifier: Apache-2.0
"""What changed from run to run: cycles and seconds of tests, and tests that cannot be trusted.

A test is compared over the same seeds: a point of its line is the sum over those results that the
run of the page has, and a run that lacks one of them, or in which one failed, has no point.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dev.regression.task import Outcome
from dev.report.store import RunResults

Quantity = Literal["cycles", "seconds"]
LEAST_CHANGE: dict[Quantity, float] = {"cycles": 0.001, "seconds": 0.15}
"""Shares of the figure before, below which a change is none worth a line."""
LEAST_SECONDS = 1.0
"""Results that are faster than this vary by their start alone."""
MOST = 12
"""Tests in a table of changes."""


@dataclass(frozen=True, slots=True)
class Trend:
    """How a figure of a test went.

    Attributes:
        name, model: of the test.
        values: of each run, oldest first; None where it has none.
        before: the median of the earlier ones.
        now: the latest.
    """

    name: str
    model: str
    values: tuple[float | None, ...]
    before: float
    now: float

    @property
    def change(self) -> float:
        """Relative to the figure before."""
        return self.now / self.before - 1.0


@dataclass(frozen=True, slots=True)
class Flaky:
    """A result that came out differently without a change of the sources.

    Attributes:
        key: of the result.
        reasons: what happened, one text each.
    """

    key: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class History:
    """What the runs show together.

    Attributes:
        runs: latest first.
        older: runs that were left out.
        cycles, seconds: tests with the largest changes.
        flaky: by key.
    """

    runs: tuple[RunResults, ...]
    older: int
    cycles: tuple[Trend, ...]
    seconds: tuple[Trend, ...]
    flaky: tuple[Flaky, ...]

    @property
    def minutes(self) -> tuple[float | None, ...]:
        """Of the runs that were asked for what the latest was, oldest first."""
        alike = [run for run in self.runs if run.asked == self.runs[0].asked]
        return tuple(run.seconds / 60 or None for run in reversed(alike))


def history(runs: Sequence[RunResults], older: int = 0) -> History:
    """Return what runs, oldest first, show together."""
    return History(
        tuple(reversed(runs)),
        older,
        trends(runs, "cycles"),
        trends(runs, "seconds"),
        flaky(runs),
    )


def trends(runs: Sequence[RunResults], quantity: Quantity) -> tuple[Trend, ...]:
    """Return the tests whose figure in the latest run differs most from those before."""
    take: Callable[[Outcome], float] = (
        (lambda one: one.cycles) if quantity == "cycles" else (lambda one: one.seconds)
    )
    figures = [
        {one.task.key: take(one) for one in run.results if one.passed and take(one)} for run in runs
    ]
    tests: dict[tuple[str, str, str], list[str]] = {}
    for one in runs[-1].results if runs else ():
        task = one.task
        if task.key in figures[-1]:
            tests.setdefault((task.kind, task.name, task.model), []).append(task.key)
    found = []
    for (_, name, model), keys in tests.items():
        values = tuple(
            sum(of[key] for key in keys) if all(key in of for key in keys) else None
            for of in figures
        )
        earlier = [value for value in values[:-1] if value is not None]
        now = values[-1]
        if not earlier or now is None:
            continue
        trend = Trend(name, model, values, statistics.median(earlier), now)
        too_fast = quantity == "seconds" and max(trend.before, now) < LEAST_SECONDS
        if abs(trend.change) >= LEAST_CHANGE[quantity] and not too_fast:
            found.append(trend)
    return tuple(sorted(found, key=_size, reverse=True)[:MOST])


def _size(trend: Trend) -> float:
    """Return how large a change is: half is as much as double."""
    return max(trend.now / trend.before, trend.before / trend.now)


def flaky(runs: Iterable[RunResults]) -> tuple[Flaky, ...]:
    """Return the results that passed and failed with the same sources, or needed a retry."""
    verdicts: dict[tuple[str, str], dict[str, list[int]]] = {}
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for one in run.results:
            if run.tree:
                seen = verdicts.setdefault((one.task.key, run.tree), {})
                seen.setdefault(one.status, []).append(run.number)
            if one.attempt > 1:
                text = f"{one.status} in run {run.number} on attempt {one.attempt}"
                reasons.setdefault(one.task.key, []).append(text)
    for (key, tree), seen in verdicts.items():
        if len(seen) > 1:
            parts = [
                f"{status} in run {', '.join(map(str, numbers))}"
                for status, numbers in sorted(seen.items(), reverse=True)
            ]
            reasons.setdefault(key, []).append(f"{' but '.join(parts)}, same sources {tree[:10]}")
    return tuple(Flaky(key, tuple(texts)) for key, texts in sorted(reasons.items()))
