# SPDX-License-Identifier: Apache-2.0
"""Collects all that the page shows from results and reports, missing and broken ones included."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.formal import ProofVerdict
from dev.lockstep import LockstepReport
from dev.plan_standing import Standing
from dev.quality_report import QualityReport
from dev.regression import results
from dev.report.benches import Benches, Stream, read_benches, read_nightly, read_stream
from dev.report.campaigns import (
    Damage,
    Faults,
    Mutants,
    read_damage,
    read_faults,
    read_lockstep,
    read_mutants,
    read_plan,
    read_proofs,
    read_sweeps,
    read_times,
)
from dev.report.code_coverage import CoverageReport, read_code_coverage
from dev.report.executed import Executed, areas, executed
from dev.report.failures import Failures, failures
from dev.report.figures import Synthesis, read_quality, read_synthesis
from dev.report.history import History, history
from dev.report.pictures import Picture, read_picture, timelines
from dev.report.source import Source
from dev.report.store import Store, read_store
from dev.report.suite import Feature, Slow, features, known_tests, slowest
from spec.paths import REPORTS, ROOT
from tb.cop_datapath.sweep import Sweep
from tb.run.unit_times import Time


@dataclass(frozen=True)
class Places:
    """Where everything lies.

    Attributes:
        results: the SQLite file of all runs.
        reports: the folder of the JSON reports, in which the page will be.
        root: what the paths of logs are relative to.
    """

    results: Path = results.FILE
    reports: Path = REPORTS
    root: Path = ROOT


@dataclass(frozen=True)
class Page:
    """Everything that the page shows.

    Attributes:
        places: where it comes from.
        store: runs and results; the five below are made from it.
        failures, features, slowest: results by test.
        executed: results by opcode.
        history: of the runs.
    """

    places: Places
    store: Source[Store]
    failures: Source[Failures]
    features: Source[tuple[Feature, ...]]
    slowest: Source[tuple[Slow, ...]]
    executed: Source[Executed]
    history: Source[History]
    code: Source[CoverageReport]
    benches: Source[Benches]
    nightly: Source[Benches]
    stream: Source[Stream]
    roofline: Source[Picture]
    timelines: tuple[Source[Picture], ...]
    quality: Source[QualityReport]
    synthesis: Source[Synthesis]
    faults: Source[Faults]
    mutants: Source[Mutants]
    proofs: Source[tuple[ProofVerdict, ...]]
    lockstep: Source[LockstepReport]
    plan: Source[tuple[Standing, ...]]
    sweeps: Source[tuple[Sweep, ...]]
    damage: Source[dict[str, Damage]]
    times: Source[tuple[Time, ...]]

    @property
    def sources(self) -> tuple[Source[object], ...]:
        """All files that it is made from, each once."""
        return (
            self.store,
            self.code,
            self.benches,
            self.nightly,
            self.stream,
            self.roofline,
            *self.timelines,
            self.quality,
            self.synthesis,
            self.faults,
            self.mutants,
            self.proofs,
            self.lockstep,
            self.plan,
            self.sweeps,
            self.damage,
            self.times,
        )

    @property
    def verdict(self) -> str:
        """In a word: that of the results, or `failed` if a use that it needs was not executed."""
        if self.store.value is None:
            return "no results"
        run = self.store.value.shown
        lacking = run.complete and self.executed.value is not None and self.executed.value.missing
        return "failed" if lacking and run.verdict == "passed" else run.verdict

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of what was simulated, or of everything if nothing was."""
        outcomes = self.store.value.results if self.store.value else ()
        tasks = [one.task for one in outcomes]
        simulated = [task for task in tasks if task.kind in ("rtl", "unit")]
        return tuple(sorted({task.seed for task in simulated or tasks}))

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is missing or broken, one line each."""
        broken = [source.says for source in self.sources if source.value is None]
        return (*broken, *(self.store.value.problems if self.store.value else ()))


def collect(places: Places, run: int | None = None) -> Page:
    """Read everything.

    Args:
        places: where it lies.
        run: number of the run that the page is about; None for the latest.
    """
    store = read_store(places.results, run)
    folder = places.reports
    return Page(
        places=places,
        store=store,
        failures=store.map(lambda found: failures(found.results)),
        features=store.map(lambda found: features(found.results, known_tests())),
        slowest=store.map(lambda found: slowest(found.results)),
        executed=store.map(lambda found: executed(found.results, areas())),
        history=store.map(lambda found: history(found.runs, found.older)),
        code=read_code_coverage(folder),
        benches=read_benches(folder),
        nightly=read_nightly(folder),
        stream=read_stream(folder),
        roofline=read_picture(folder / "roofline.png"),
        timelines=timelines(folder),
        quality=read_quality(folder),
        synthesis=read_synthesis(folder),
        faults=read_faults(folder),
        mutants=read_mutants(folder),
        proofs=read_proofs(folder),
        lockstep=read_lockstep(folder),
        plan=read_plan(folder),
        sweeps=read_sweeps(folder),
        damage=read_damage(folder),
        times=read_times(folder),
    )
