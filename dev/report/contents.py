# SPDX-License-Identifier: Apache-2.0
"""The sections of the page, each with its state in a few words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from dev.quality_report import QualityReport
from dev.report.benches import Benches
from dev.report.campaigns import Faults
from dev.report.code_coverage import CoverageReport
from dev.report.collect import Page
from dev.report.executed import Executed
from dev.report.failures import Failures
from dev.report.figures import Synthesis
from dev.report.history import History
from dev.report.source import Source
from dev.report.suite import Feature, Slow

Tone = Literal["", "bad", "warn"]
State = tuple[str, Tone]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A section.

    Attributes:
        anchor: its name in links.
        title: its heading.
        state: how it stands, in a few words.
        tone: `bad` for what fails, `warn` for what is missing or broken.
    """

    anchor: str
    title: str
    state: str
    tone: Tone


def contents(page: Page) -> tuple[Entry, ...]:
    """Return the sections in their order."""
    states: tuple[tuple[str, str, State], ...] = (
        ("failures", "Failures", _state(page.failures, _failures)),
        ("instructions", "Instructions", _executed(page)),
        ("tests", "Tests", _state(page.features, _features)),
        ("code", "Code coverage", _state(page.code, _code)),
        ("benches", "Benchmarks", _state(page.benches, _benches)),
        ("quality", "Quality", _state(page.quality, _quality)),
        ("synthesis", "Synthesis", _state(page.synthesis, _synthesis)),
        ("campaigns", "Faults, sweeps", _campaigns(page)),
        ("history", "History", _state(page.history, _history)),
        ("slowest", "Slowest", _state(page.slowest, _slowest)),
        ("sources", "Sources", _sources(page)),
    )
    return tuple(Entry(anchor, title, *state) for anchor, title, state in states)


def _state(source: Source[T], tell: Callable[[T], State]) -> State:
    if source.value is None:
        return source.state, "warn"
    return tell(source.value)


def _failures(found: Failures) -> State:
    return (f"{found.count:,}", "bad") if found.count else ("none", "")


def _executed(page: Page) -> State:
    def tell(found: Executed) -> State:
        total, missing = len(found.uses), len(found.missing)
        due = page.store.value is not None and page.store.value.shown.due
        return f"{total - missing:,} of {total:,}", "bad" if missing and due else ""

    return _state(page.executed, tell)


def _features(found: tuple[Feature, ...]) -> State:
    results = sum(len(feature.results) for feature in found)
    passed = sum(feature.passed for feature in found)
    failed = any(feature.failed for feature in found)
    return f"{passed:,} of {results:,}", "bad" if failed else "warn" if passed < results else ""


def _code(found: CoverageReport) -> State:
    return f"{found.line.percent:.1f} %", "warn" if found.problems else ""


def _benches(found: Benches) -> State:
    missed = len(found.missed)
    return (f"{missed} missed", "bad") if missed else (f"{len(found.lines)} met", "")


def _quality(found: QualityReport) -> State:
    missed = len(found.missed)
    if missed:
        return f"{missed} missed", "bad"
    return f"{len(found.models) + len(found.formats)} met", ""


def _synthesis(found: Synthesis) -> State:
    if found.larger:
        return f"{len(found.larger)} too large", "bad"
    return f"{len(found.blocks)} blocks", ""


def _campaigns(page: Page) -> State:
    faults: Faults | None = page.faults.value
    wrong = sum(len(one.wrong) for one in page.sweeps.value or ())
    if faults is not None and faults.missed:
        return f"{len(faults.missed)} unnoticed", "bad"
    if wrong:
        return f"{wrong} wrong", "bad"
    unproved = sum(not one.holds for one in page.proofs.value or ())
    if unproved:
        return f"{unproved} not proved", "bad"
    if page.lockstep.value and not page.lockstep.value.same:
        return "the netlist differs", "bad"
    alive = len(page.mutants.value.alive) if page.mutants.value else 0
    if alive:
        return f"{alive} mutants unnoticed", "bad"
    there = [
        page.faults,
        page.mutants,
        page.proofs,
        page.lockstep,
        page.plan,
        page.sweeps,
        page.damage,
        page.times,
    ]
    missing = sum(source.value is None for source in there)
    return (f"{missing} missing", "warn") if missing else ("all noticed", "")


def _history(found: History) -> State:
    runs = len(found.runs) + found.older
    if found.flaky:
        return f"{len(found.flaky)} flaky", "warn"
    return f"{runs} run{'' if runs == 1 else 's'}", ""


def _slowest(found: tuple[Slow, ...]) -> State:
    return (f"{found[0].result.seconds:,.0f} s", "") if found else ("none", "")


def _sources(page: Page) -> State:
    count = len(page.complaints)
    return (f"{count} to make", "warn") if count else ("all there", "")
