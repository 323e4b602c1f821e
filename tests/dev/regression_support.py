# SPDX-License-Identifier: Apache-2.0
"""Regressions that simulate nothing: tasks, and outcomes that follow from their names."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.regression import local, reports, session
from dev.regression.results import Results
from dev.regression.task import Batch, ExecutedRow, Outcome, Task

WORKERS = 2


def tasks_of(count: int) -> list[Task]:
    """Return tasks whose files do not exist, on two models."""
    models = ("fast-a16", "fast-a8")
    return [Task("python", f"test_{number:04}", models[number % 2]) for number in range(count)]


def outcome_of(task: Task, worker: str = "local", attempt: int = 1) -> Outcome:
    """Return the outcome that follows from the name of a task; every seventh fails."""
    number = zlib.crc32(task.key.encode())
    failed = number % 7 == 0
    return Outcome(
        task,
        "failed" if failed else "passed",
        f"number {number}" if failed else "",
        0.01,
        number,
        ()
        if failed
        else (ExecutedRow("DMA_LOAD base=1", number % 100 + 1, 2), ExecutedRow("NOP", 1, 1)),
        log="the end" if failed else "",
        repeat=f"make TESTCASE={task.name}",
        worker=worker,
        attempt=attempt,
    )


def execute(batch: Batch) -> list[Outcome]:
    """Run a batch, which takes no time."""
    return [outcome_of(task, attempt=batch.attempt) for task in batch.tasks]


def runner(work: local.Execute = execute) -> session.Runner:
    """Return what runs batches on this machine, two side by side."""

    def run(given: Sequence[Batch], take: local.Take, _: Callable[[str], None]) -> None:
        local.run(given, WORKERS, work, take)

    return run


def go(store: Results, tasks: Sequence[Task], folder: Path, work: local.Execute = execute) -> int:
    """Begin a run, or go on with the last one, until its end; return the exit status."""
    last = next(iter(store.runs()), None)
    if last is None or last.state == "finished":
        number = store.begin("full", {"coverage": False, "complete": False}, tasks, "aa")
    else:
        number = last.number
        store.again(number)
    plan = session.RegressionPlan(number, store.tasks(number))
    return session.run(plan, store, WORKERS, runner(work), folder)


def found_out(store: Results, folder: Path) -> dict[str, object]:
    """Return all that the last run has found out, without what differs from one run to the next."""
    summary = json.loads((folder / reports.JSON).read_text(encoding="utf-8"))
    for timed in ("minutes", "efficiency"):
        summary.pop(timed, None)
    junit = ElementTree.parse(folder / reports.JUNIT).getroot()
    cases = [
        (suite.get("name"), case.get("name"), [(each.tag, each.get("message")) for each in case])
        for suite in junit.iter("testsuite")
        for case in suite.iter("testcase")
    ]
    return {
        "verdicts": reports.verdicts(store.outcomes(store.runs()[0].number)),
        "json": summary,
        "rows": (folder / reports.TABLE).read_text(encoding="utf-8"),
        "junit": cases,
    }
