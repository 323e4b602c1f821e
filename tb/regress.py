# SPDX-License-Identifier: Apache-2.0
"""Merges what the runs have executed into one table: opcode and flag or mode, tests, seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from tb import coverage
from tb.runner import Result


@dataclass
class Row:
    """One use of the instruction set, and who executed it.

    Attributes:
        name: opcode, then flag, mode value or prefix operand.
        executions: how often it was dispatched in all runs.
        tests: names of the tests that executed it.
        runs: (test, seed) pairs that executed it.
    """

    name: str
    executions: int = 0
    tests: set[str] = field(default_factory=set)
    runs: set[tuple[str, int]] = field(default_factory=set)


def merge(results: Sequence[Result]) -> list[Row]:
    """Return the required rows with what passing runs have executed of them."""
    rows = {name: Row(name) for name in coverage.required()}
    for result in results:
        file = result.job.folder / coverage.FILE
        if not result.passed or not file.exists():
            continue
        for name, count in json.loads(file.read_text(encoding="utf-8")).items():
            if name in rows:
                rows[name].executions += count
                rows[name].tests.add(result.job.test.name)
                rows[name].runs.add((result.job.test.name, result.job.seed))
    return list(rows.values())


def missing(rows: Sequence[Row]) -> list[str]:
    """Return the rows that no test has executed."""
    return [row.name for row in rows if not row.tests]


def render(rows: Sequence[Row]) -> str:
    """Return the table as text."""
    table = Table(title="What the tests executed", title_justify="left")
    table.add_column("opcode")
    table.add_column("flag, mode or operand")
    for head in ("executed", "tests", "runs"):
        table.add_column(head, justify="right")
    table.add_column("for example")
    previous = ""
    for row in rows:
        opcode, _, use = row.name.partition(" ")
        if opcode != previous:
            table.add_section()
        table.add_row(
            opcode if opcode != previous else "",
            use,
            f"{row.executions:,}",
            str(len(row.tests)),
            str(len(row.runs)),
            min(row.tests) if row.tests else "no test",
        )
        previous = opcode
    console = Console(width=120, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
