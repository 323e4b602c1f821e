# SPDX-License-Identifier: Apache-2.0
"""One regression from its plan to its reports, wherever its batches run."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dev.coverage import points
from dev.coverage.pages import Conditions, write_report
from dev.regression import batches, execute, local, reports, rows, schedule
from dev.regression.live import Live
from dev.regression.results import Results, ResultsError, Run
from dev.regression.task import Batch, Outcome, Task
from spec.paths import ROOT
from tb.run import failure_waves

WAVES_MOST = 5
"""Failures whose waves are recorded; more of them have most likely the same reason."""

Runner = Callable[[Sequence[Batch], local.Take, Callable[[str], None]], None]
"""Runs batches, hands over their outcomes, and says what happens on the way."""


class BusyError(RuntimeError):
    """Another regression writes the same results."""


@dataclass(frozen=True)
class RegressionPlan:
    """What is to be done.

    Attributes:
        run: number of the run in the database.
        tasks: all tasks of the run.
        coverage: whether to count what is executed.
        first: tests (`Task.test`) that go first.
        complete: whether every row of the coverage table must have been executed.
    """

    run: int
    tasks: list[Task]
    coverage: bool = False
    first: Sequence[str] = ()
    complete: bool = False


@contextmanager
def lock(file: Path) -> Iterator[None]:
    """Keep others from writing the same results.

    Raises:
        BusyError: another one does.
        ResultsError: it can be no file.
    """
    if file.is_dir():
        raise ResultsError(f"{file}: given a folder, allowed a file of results, or nothing")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(f"{file.name}.lock").open("a+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            raise BusyError(
                f"{file}: the regression of process {held.read().strip()} writes it; wait for its "
                "end, or name another file by RESULTS="
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield


def run(
    plan: RegressionPlan,
    results: Results,
    workers: int,
    runner: Runner,
    folder: Path = reports.REPORTS,
) -> int:
    """Run what has no result yet, write the reports, and return the exit status.

    An interruption leaves what has ended in the database, and a state from which to go on.

    Args:
        plan: what is to be done.
        results: where it is written down.
        workers: batches side by side.
        runner: runs the batches.
        folder: of the reports.
    """
    ended = {outcome.task for outcome in results.outcomes(plan.run)}
    left = [task for task in plan.tasks if task not in ended]
    known = results.seconds()
    begun, state = time.monotonic(), "interrupted"
    with Live(left, batches.guesses(left, known), workers) as live:

        def take(outcomes: list[Outcome]) -> None:
            kept = [_with_log(outcome, plan.run, results.file.parent) for outcome in outcomes]
            results.add(plan.run, kept)
            for outcome in kept:
                live.show(outcome)

        def note(text: str) -> None:
            results.note(plan.run, text)
            live.line(f"     {text}")

        try:
            runner(batches.make(left, known, plan.coverage, plan.first), take, note)
            ended_so = results.outcomes(plan.run)  # of all parts of the run
            _record([o for o in ended_so if not (o.passed or o.waves)], plan, results, live)
            state = "finished"
        except KeyboardInterrupt:
            live.line("interrupted; go on with: make regress RESUME=1")
        finally:
            results.end(plan.run, "interrupted", time.monotonic() - begun)
    run_row = next(each for each in results.runs() if each.number == plan.run)
    status = conclude(plan, results, replace(run_row, state=state), folder)
    # Last of all: who is killed above goes on by writing the reports.
    results.end(plan.run, state, 0.0)
    return status


def _with_log(outcome: Outcome, run: int, home: Path) -> Outcome:
    """Put the log of a failure into a file, and its path into the outcome."""
    if not outcome.log:
        return outcome
    path = home / "logs" / str(run) / f"{outcome.task.key.replace('/', '-')}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(outcome.log, encoding="utf-8")
    inside = path.is_relative_to(ROOT)
    return replace(outcome, log=str(path.relative_to(ROOT) if inside else path))


def _record(failed: Sequence[Outcome], plan: RegressionPlan, results: Results, live: Live) -> None:
    """Run the first failures again by themselves, with waves around the first mismatch."""
    simulated = [outcome for outcome in failed if outcome.task.kind in ("rtl", "unit")]
    for outcome in simulated[:WAVES_MOST]:
        recorded = failure_waves.record(execute.job_of(outcome.task), outcome.message)
        live.line(f"     {outcome.task.short}: {recorded.text}")
        if recorded.save_file is not None:
            waves = str(recorded.save_file.relative_to(ROOT))
            results.set_waves(plan.run, outcome.task.key, waves)


def conclude(plan: RegressionPlan, results: Results, run_row: Run, folder: Path) -> int:
    """Write the reports, print the verdict, and return the exit status."""
    outcomes = results.outcomes(plan.run)
    notes = [note.text for note in results.notes(plan.run)]
    found = reports.write(run_row, plan.tasks, outcomes, notes, folder)
    if plan.coverage:
        print(_cover(plan, results, run_row))
    unseen = rows.missing(found)
    if plan.complete:
        print(rows.render(found))
    passed = sum(outcome.passed for outcome in outcomes)
    missing = len(plan.tasks) - len(outcomes)
    for outcome in outcomes:
        if not outcome.passed:
            print(f"FAIL {outcome.task.short}: {(outcome.message.splitlines() or [''])[0]}")
            print(f"     repeat: {outcome.repeat}")
            print(
                f"     waves: {outcome.waves}" if outcome.waves else "",
                end="\n" * bool(outcome.waves),
            )
            _annotate(outcome)
    if plan.complete:
        for name in unseen:
            print(f"no test executes: {name}")
    print(
        f"run {run_row.number}, {run_row.tier}: {passed} passed, {len(outcomes) - passed} failed"
        + (f", {missing} not run" if missing else "")
        + f"; {len(found) - len(unseen)} of {len(found)} rows executed; "
        f"{run_row.seconds / 60:.1f} min"
    )
    share = schedule.efficiency(outcomes, 3)
    print(f"modelled from these times, three workers against one: efficiency {100 * share:.0f} %")
    if run_row.state == "interrupted":
        return 130
    incomplete = missing or (plan.complete and unseen) or not outcomes
    return 1 if incomplete or passed < len(outcomes) else 0


def _annotate(outcome: Outcome) -> None:
    """Show a failure where the changes are shown, in a workflow of GitHub."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        told = f"{outcome.message}\nrepeat: {outcome.repeat}"
        text = told.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        print(f"::error title={outcome.task.name}::{text}")


def _cover(plan: RegressionPlan, results: Results, run_row: Run) -> str:
    """Write the pages and the figures of what was executed; return a line about it."""
    covered = results.covered(plan.run)
    if not covered:
        return "nothing was counted: no test on the chip has ended"
    # Tests of one process have the same counts, which shall count once.
    distinct = {(run.table.digest, run.counts.tobytes()): run for run in covered.values()}
    merged = points.merge(distinct.values())
    tasks = [task for task in plan.tasks if task.key in covered]
    dirty = "+" if run_row.dirty else ""
    coverage = write_report(
        merged,
        Conditions(
            tuple(sorted({execute.job_of(task, True).configuration.folder.name for task in tasks})),
            tuple(sorted({task.name for task in tasks})),
            tuple(sorted({task.seed for task in tasks})),
            len(distinct),
            f"{run_row.revision[:12]}{dirty}",
        ),
    )
    figures = f"coverage: line {coverage.line}, branch {coverage.branch}; build/reports/coverage"
    return "\n".join([*coverage.problems, figures])
