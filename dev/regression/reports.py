# SPDX-License-Identifier: Apache-2.0
"""What a regression leaves for people and other tools: a table, JSON, and JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from dev.regression import rows, schedule
from dev.regression.results import Run
from dev.regression.task import Outcome, Task
from spec.paths import BUILD

REPORTS = BUILD / "reports"
WORKERS = (3, 8, 16)
"""Numbers of workers for which the efficiency is modelled."""
_NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, such as the colours of a terminal in the words of a tool."""
JSON, JUNIT, TABLE = "regress.json", "junit.xml", "regress.txt"


def write(
    run: Run,
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    notes: Sequence[str],
    folder: Path = REPORTS,
) -> list[rows.CoverageRow]:
    """Write all reports of a run; return the rows of the coverage table.

    Args:
        run: the run.
        tasks: what it was to do.
        outcomes: how its tasks ended, those that have.
        notes: what happened to it.
        folder: where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = rows.merge(outcomes)
    (folder / TABLE).write_text(rows.render(found), encoding="utf-8")
    text = json.dumps(summary(run, tasks, outcomes, notes, found), indent=1)
    (folder / JSON).write_text(text + "\n", encoding="utf-8")
    junit(run, outcomes).write(str(folder / JUNIT), pretty=True)
    return found


def verdicts(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Return what a run has found out, without what differs from one run to the next."""
    return [
        {
            "key": outcome.task.key,
            "status": outcome.status,
            "message": outcome.message,
            "cycles": outcome.cycles,
            "rows": {row.name: row[1:] for row in outcome.rows},
        }
        for outcome in sorted(outcomes, key=lambda outcome: outcome.task.key)
    ]


def summary(
    run: Run,
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    notes: Sequence[str],
    found: Sequence[rows.CoverageRow],
) -> dict[str, object]:
    """Return a run as plain data."""
    ended = {outcome.task.key for outcome in outcomes}
    return {
        "run": run.number,
        "tier": run.tier,
        "state": run.state,
        "revision": run.revision,
        "tree": run.tree,
        "minutes": round(run.seconds / 60, 1),
        "efficiency": {
            str(count): round(schedule.efficiency(outcomes, count), 3) for count in WORKERS
        },
        "passed": sum(outcome.passed for outcome in outcomes),
        "failed": sum(not outcome.passed for outcome in outcomes),
        "not_run": [task.key for task in tasks if task.key not in ended],
        "notes": list(notes),
        "results": verdicts(outcomes),
        "rows": [
            {
                "row": row.name,
                "tests": dict(row.tests),
                "seeds": sorted(row.seeds),
                "programs": row.programs,
            }
            for row in found
        ],
    }


def junit(run: Run, outcomes: Sequence[Outcome]) -> JUnitXml:
    """Return a run for tools that read JUnit's XML: a suite for each model or kind."""
    report = JUnitXml(f"regress {run.tier}")
    suites: dict[str, TestSuite] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.task.key):
        task = outcome.task
        name = task.model or task.kind
        suite = suites.setdefault(name, TestSuite(name))
        case = TestCase(f"{task.name}-{task.seed}", name, round(outcome.seconds, 3))
        if not outcome.passed:
            message = _NOT_XML.sub("?", outcome.message)
            lines = [message, f"repeat: {outcome.repeat}"]
            lines += [f"log: {outcome.log}"] if outcome.log else []
            lines += [f"waves: {outcome.waves}"] if outcome.waves else []
            failure = Failure((message.splitlines() or [""])[0])
            failure.text = "\n".join(lines)
            case.result = [failure]
        suite.add_testcase(case)
    for suite in suites.values():
        report.add_testsuite(suite)
    report.update_statistics()  # type: ignore[no-untyped-call]
    return report
