# SPDX-License-Identifier: Apache-2.0
"""Runs a batch where it is called, and says how each of its tasks ended.

Tests that fail in a process with others, and those that a stopped simulator has kept from running,
run again by themselves: what counts is how a test ends alone, or that it passes only alone.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

from dev.coverage.points import FILE, CoverageError, parse
from dev.regression import known, models
from dev.regression.task import Batch, ExecutedRow, Outcome, Status, Task
from dev.regression.tiers import SUITES
from spec.paths import BUILD, ROOT
from tb.bench import isa_coverage
from tb.run import processes, runner, together

RUNS = BUILD / "runs" / "regress"
LOG_BYTES = 1 << 16
"""The end of a failure's log that is kept."""


def execute(batch: Batch) -> list[Outcome]:
    """Run a batch; return the outcome of each of its tasks.

    Raises:
        BuildError: its model cannot be built.
    """
    task = batch.tasks[0]
    if task.kind == "sweep":
        outcomes = [_sweep(task)]
    elif task.kind in ("python", "nightly"):
        outcomes = [_pytest(task)]
    else:
        outcomes = _simulate(batch)
    return [replace(outcome, attempt=batch.attempt) for outcome in outcomes]


def job_of(task: Task, coverage: bool = False) -> runner.Job:
    """Return the simulation of a task, on the configuration's own model."""
    test = known.tests()[task.name]
    configuration = models.configuration_of(task.model, coverage)
    return runner.Job(
        test,
        configuration,
        task.seed,
        full=task.full,
        hostile=task.hostile,
        memory=task.memory,
    )


def _simulate(batch: Batch) -> list[Outcome]:
    """Run tests in one process, and again by themselves those that have not passed there."""
    jobs = {task: job_of(task, batch.coverage) for task in batch.tasks}
    binary = models.provide(next(iter(jobs.values())).configuration)
    place = RUNS / f"{batch.name}-{os.getpid()}-{time.monotonic_ns()}"
    outcomes: list[Outcome] = []
    try:
        waiting = list(batch.tasks)
        if len(waiting) > 1:
            first, *others = (jobs[task] for task in waiting)
            shared = replace(
                first,
                companions=tuple(job.test for job in others),
                place=place / "together",
                binary=binary,
            )
            names = {task.name: task for task in waiting}
            found = together.run(shared)
            outcomes += [
                _outcome(names[result.job.test.name], result) for result in found if result.passed
            ]
            outcomes = _with_points(outcomes, shared, batch)
            failed = {names[r.job.test.name]: r for r in found if not r.passed}
            waiting = [task for task in waiting if task not in {o.task for o in outcomes}]
        else:
            shared, failed = jobs[waiting[0]], {}
        for task in waiting:
            alone = replace(jobs[task], place=place / task.name, binary=binary)
            outcome = _outcome(task, runner.run(alone))
            if outcome.passed and task in failed:
                outcome = replace(
                    outcome,
                    status="failed",
                    message=f"passes alone, fails behind others: {failed[task].message}",
                    repeat=shared.repro,
                    log=_end_of(shared.folder / runner.LOG),
                )
            outcomes += _with_points([outcome], alone, batch)
        return _blamed(outcomes, shared) if len(batch.tasks) > 1 else outcomes
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _blamed(outcomes: list[Outcome], shared: runner.Job) -> list[Outcome]:
    """Let an error of the simulator that no test has shown be a failure of the first one."""
    stopped = runner.simulator_error(shared.folder / runner.LOG)
    if not stopped or not all(outcome.passed for outcome in outcomes):
        return outcomes
    first = replace(
        outcomes[0],
        status="failed",
        message=f"passes alone, but the simulator of all these tests stopped: {stopped}",
        repeat=shared.repro,
        log=_end_of(shared.folder / runner.LOG),
    )
    return [first, *outcomes[1:]]


def _outcome(task: Task, result: runner.TestResult) -> Outcome:
    """Return how a task ended whose simulation has ended."""
    job, status = result.job, _status(result.passed)
    rows = isa_coverage.rows_file(job.folder, task.name)
    found = json.loads(rows.read_text(encoding="utf-8")) if result.passed and rows.exists() else {}
    executed = tuple(ExecutedRow(row, *counts) for row, counts in sorted(found.items()))
    log = "" if result.passed else _end_of(job.folder / runner.LOG)
    repeat = replace(job, place=None).repro
    said = (result.message, result.seconds, result.cycles, executed)
    return Outcome(task, status, *said, result.output, log, repeat)


def _with_points(outcomes: list[Outcome], job: runner.Job, batch: Batch) -> list[Outcome]:
    """Return outcomes of one process; all of them have the points that it executed.

    A test of power-up has none: what random registers execute before a reset proves nothing.
    """
    file = job.folder / FILE
    if not batch.coverage or job.test.power_ups or not file.exists():
        return outcomes
    try:
        points = parse(file)
    except CoverageError:  # a simulator that stopped leaves half of it
        return outcomes
    finally:
        file.unlink()
    covered, table = points.encode(), points.table.encode()
    return [replace(outcome, covered=covered, table=table) for outcome in outcomes]


def _status(passed: bool) -> Status:
    return "passed" if passed else "failed"


def _end_of(log: Path) -> str:
    """Return the end of a log, "" if there is none."""
    if not log.exists():
        return ""
    return log.read_bytes()[-LOG_BYTES:].decode(errors="replace")


def _sweep(task: Task) -> Outcome:
    """Compare a function of the coprocessor with its reference on all inputs."""
    sample = [] if task.full else ["--sample", str(1 << 24)]
    words = ["-m", "npu.cli", "cop-sweep", task.name, *sample, "--seed", str(task.seed), "-j", "1"]
    status, log, seconds = _process(task, [sys.executable, *words], dict(os.environ))
    message = "" if status == 0 else f"cop-sweep ended with {status}: {log.strip()[-2000:]}"
    repeat = " ".join([".venv/bin/python", *words[:-2]])
    kept = log if message else ""
    return Outcome(
        task, _status(not message), message, seconds, output=log, log=kept, repeat=repeat
    )


def _process(
    task: Task, command: list[str], environment: dict[str, str]
) -> tuple[int | str, str, float]:
    """Run a program; return its exit status, the end of what it said, and the seconds."""
    started = time.monotonic()
    RUNS.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=RUNS, prefix=task.kind, suffix=".txt") as file:
        status = processes.wait(processes.start(command, ROOT, environment, file.file))
        return status, _end_of(Path(file.name)), time.monotonic() - started


def _pytest(task: Task) -> Outcome:
    """Run a file of pytest."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib"]
    environment = {**os.environ, **({"FULL": "1"} if task.full else {})}
    environment |= {"NIGHTLY": "1"} if task.kind == "nightly" else {}
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "junit.xml"
        command += [f"--junitxml={report}", "-p", "no:cacheprovider", task.name]
        status, log, seconds = _process(task, command, environment)
        message = _pytest_message(report, status, log)
    in_full = task.kind == "python" and task.name.startswith(SUITES)
    repeat = f"make regress TIER={'full' if in_full else 'nightly'} FILTER={task.name}"
    last = log.strip().splitlines()[-1] if log.strip() else ""
    kept = log if message else ""
    return Outcome(
        task, _status(not message), message, seconds, output=last, log=kept, repeat=repeat
    )


def _pytest_message(report: Path, status: int | str, log: str) -> str:
    """Return what pytest found wrong, "" for nothing.

    A file of which nothing ran has failed, whatever the status: it proves nothing.
    """
    cases = list(ElementTree.parse(report).getroot().iter("testcase")) if report.exists() else []
    skipped = [found for case in cases for found in case.findall("skipped")]
    if status in (0, 5) and len(skipped) == len(cases):
        reasons = {_reason(found) for found in skipped}
        return f"nothing of it ran: {', '.join(sorted(reasons)) or 'no tests'}"
    if status == 0:
        return ""
    wrong = [
        f"{case.get('name')}: {found.get('message', '').splitlines()[0]}"
        for case in cases
        for found in (*case.findall("failure"), *case.findall("error"))
        if found.get("message")
    ]
    return "\n".join(wrong[:10]) or f"pytest ended with {status}: {log.strip()[-400:]}"


def _reason(skipped: ElementTree.Element) -> str:
    """Return why something was skipped; of a whole module, pytest says it in the text."""
    text = skipped.get("message") or ""
    if text == "collection skipped":
        text = ast.literal_eval(skipped.text or "")[2]
    return text.removeprefix("Skipped: ")
