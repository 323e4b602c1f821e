# SPDX-License-Identifier: Apache-2.0
"""Runs of the regression and their results, as the page sees them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from dev.regression.results import Note, Results, ResultsError, Run
from dev.regression.task import Outcome
from dev.report.source import Source, one_line, shown

COMMAND = "make regress"
RUNS_MOST = 60
"""Runs whose results are read, the latest; older ones stay in the file."""


@dataclass(frozen=True)
class RunResults(Run):
    """One run of the regression with its results.

    Attributes:
        planned: how many results it is to have.
        results: what has ended, without texts.
    """

    planned: int
    results: tuple[Outcome, ...]

    @property
    def passed(self) -> int:
        """Results that are good."""
        return sum(one.passed for one in self.results)

    @property
    def failed(self) -> int:
        """Results that are not."""
        return len(self.results) - self.passed

    @property
    def open(self) -> int:
        """Planned results that are not there."""
        return self.planned - len(self.results)

    @property
    def choices(self) -> list[str]:
        """The options that are not left out, as text."""
        return [
            name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
            for name, value in self.options.items()
            if value and name != "complete"
        ]

    @property
    def asked(self) -> tuple[str, Mapping[str, object]]:
        """What was asked for: runs that agree in it take the same time on the same machine."""
        return self.tier, self.options

    @property
    def complete(self) -> bool:
        """Whether all rows of the coverage table must be executed."""
        return self.options.get("complete") is True

    @property
    def due(self) -> bool:
        """Whether they must be executed by now."""
        return self.complete and self.state == "finished"

    @property
    def verdict(self) -> str:
        """Of the results, in a word: `passed`, `failed`, `interrupted` or `running`."""
        if self.state != "finished":
            return self.state
        return "passed" if self.results and not self.failed and not self.open else "failed"


@dataclass(frozen=True, slots=True)
class Store:
    """What the file holds.

    Attributes:
        runs: the latest, oldest first; never empty.
        older: how many runs before them were left out.
        shown: the run that the page is about.
        results: of that run by task, also those of tasks that have not ended.
        notes: of that run.
        problems: entries that could not be read, one line each.
    """

    runs: tuple[RunResults, ...]
    older: int
    shown: RunResults
    results: tuple[Outcome, ...]
    notes: tuple[Note, ...]
    problems: tuple[str, ...]


def read_store(path: Path, number: int | None = None) -> Source[Store]:
    """Read the results of a run, and of those before it.

    Args:
        path: the SQLite file.
        number: of the run that the page is about; None for the latest.
    """
    file = shown(path)
    if not path.is_file():
        return Source(file, COMMAND)
    try:
        with closing(Results(path, reading=True)) as results:
            store = _store(results, number)
    except ResultsError as error:
        return Source(file, COMMAND, problem=one_line(error).removeprefix(f"{path}: "))
    except (TypeError, ValueError) as error:
        return Source(file, COMMAND, problem=one_line(error))
    if store is None:
        asked = "no run is in it" if number is None else f"no run in it has the number {number}"
        return Source(file, COMMAND, problem=asked)
    return Source(file, COMMAND, store)


def _store(results: Results, number: int | None) -> Store | None:
    """Return what the database holds up to a run, None if there is no such run."""
    found = [run for run in reversed(results.runs()) if number is None or run.number <= number]
    if not found or number not in (None, found[-1].number):
        return None
    runs = tuple(_with_results(results, run) for run in found[-RUNS_MOST:])
    last = runs[-1]
    ended = {outcome.task: outcome for outcome in results.outcomes(last.number)}
    tasks = sorted(results.tasks(last.number))
    return Store(
        runs,
        len(found) - len(runs),
        last,
        tuple(ended.get(task) or Outcome(task) for task in tasks),
        tuple(results.notes(last.number)),
        tuple(results.problems),
    )


def _with_results(results: Results, run: Run) -> RunResults:
    outcomes = tuple(results.outcomes(run.number, whole=False))
    return RunResults(**vars(run), planned=len(results.tasks(run.number)), results=outcomes)
