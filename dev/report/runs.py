# SPDX-License-Identifier: Apache-2.0
"""Runs of the regression and their results, as the page sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

STATES = ("running", "finished", "interrupted")


@dataclass(frozen=True, slots=True)
class Result:
    """A planned test with one seed, and how it ended.

    Attributes:
        key: its name in the run, kind and model and seed included.
        kind: that of `dev.regression.task`.
        name: of the test; a file for `python`.
        model: simulation model, "" for none.
        seed, hostile: seeds of the test and of a hostile memory, 0 for none.
        full: whether it is the long form.
        status: `passed`, `failed`, or "" for one that has not ended.
        message: why it failed.
        seconds: on the clock.
        cycles: simulated, 0 if unknown.
        rows: rows of the coverage table: how often it executed them, and in how many programs.
        output: what it printed.
        log: the end of the log of a failure.
        repeat: the command that repeats it.
        waves: the save file of its waveform, relative to the tree, "" for none.
        worker: who ran it.
        attempt: 1 for the first.
    """

    key: str
    kind: str
    name: str
    model: str
    seed: int
    full: bool
    hostile: int
    status: str = ""
    message: str = ""
    seconds: float = 0.0
    cycles: int = 0
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    output: str = ""
    log: str = ""
    repeat: str = ""
    waves: str = ""
    worker: str = ""
    attempt: int = 1

    @property
    def passed(self) -> bool:
        """Whether it ended well."""
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise."""
        return self.status not in ("passed", "")


@dataclass(frozen=True, slots=True)
class Ended:
    """What is left of a result of any run: enough for trends."""

    key: str
    kind: str
    name: str
    model: str
    status: str
    seconds: float
    cycles: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened to a run: a retry, a worker that was lost."""

    at: datetime | None
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the regression.

    Attributes:
        number: its number in the file.
        begun, ended: when; None if unknown.
        state: one of `STATES`.
        tier: which tests were asked for.
        options: the others, by name.
        tree: digest of the sources.
        revision: of git, "" if unknown.
        dirty: whether the sources differed from it.
        host: the machine that began it.
        seconds: on the clock, of all its parts; 0 if none has ended.
        planned: how many results it is to have.
        results: what has ended.
    """

    number: int
    begun: datetime | None
    ended: datetime | None
    state: str
    tier: str
    options: Mapping[str, Any]
    tree: str
    revision: str
    dirty: bool
    host: str
    seconds: float
    planned: int
    results: tuple[Ended, ...]

    @property
    def passed(self) -> int:
        """Results that are good."""
        return sum(one.status == "passed" for one in self.results)

    @property
    def failed(self) -> int:
        """Results that are not."""
        return len(self.results) - self.passed

    @property
    def open(self) -> int:
        """Planned results that are not there."""
        return max(0, self.planned - len(self.results))

    @property
    def choices(self) -> list[str]:
        """The options that are not left out, as text."""
        return [
            name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
            for name, value in self.options.items()
            if value and name != "complete"
        ]

    @property
    def asked(self) -> tuple[str, Mapping[str, Any]]:
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
        if self.state in ("running", "interrupted"):
            return self.state
        return "passed" if self.results and not self.failed and not self.open else "failed"


@dataclass(frozen=True, slots=True)
class Store:
    """What the file holds.

    Attributes:
        runs: the latest, oldest first; never empty.
        older: how many runs before them were left out.
        shown: the run that the page is about.
        results: of that run, in the order of its plan.
        notes: of that run.
        problems: entries that could not be read, one line each.
    """

    runs: tuple[Run, ...]
    older: int
    shown: Run
    results: tuple[Result, ...]
    notes: tuple[Note, ...]
    problems: tuple[str, ...]
