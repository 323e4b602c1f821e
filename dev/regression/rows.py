# SPDX-License-Identifier: Apache-2.0
"""Merges what the runs have executed into one table: opcode and flag or mode, tests, seeds.

The rows of command port and coprocessor stand behind those of the instruction set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dev.regression.task import Outcome
from npu.tables import FitTable, as_text
from tb.bench import isa_coverage
from tb.command import command_coverage
from tb.cop import cop_coverage


@dataclass
class CoverageRow:
    """One use of the instruction set or of a port, and who executed it.

    Attributes:
        name: opcode, then flag, mode value or prefix operand.
        tests: how often each test executed it, in all its runs.
        seeds: seeds with which some test executed it.
        programs: in how many programs, of all tests and seeds.
    """

    name: str
    tests: Counter[str] = field(default_factory=Counter)
    seeds: set[int] = field(default_factory=set)
    programs: int = 0


def merge(outcomes: Sequence[Outcome]) -> list[CoverageRow]:
    """Return the required rows with what passing runs have executed of them."""
    required = [*isa_coverage.required(), *command_coverage.required(), *cop_coverage.required()]
    rows = {name: CoverageRow(name) for name in required}
    for outcome in outcomes:
        for executed in outcome.rows if outcome.passed else ():
            row = rows.get(executed.name)
            if row is not None:
                row.tests[outcome.task.name] += executed.times
                row.seeds.add(outcome.task.seed)
                row.programs += executed.programs
    return list(rows.values())


def missing(rows: Sequence[CoverageRow]) -> list[str]:
    """Return the rows that no test has executed."""
    return [row.name for row in rows if not row.tests]


def render(rows: Sequence[CoverageRow]) -> str:
    """Return the table as text."""
    table = FitTable(title="What the tests executed")
    table.name("opcode")
    table.name("flag, mode or operand")
    for head in ("executed", "tests", "seeds", "programs"):
        table.figure(head)
    table.name("most in")
    previous = ""
    for row in rows:
        opcode, _, use = row.name.partition(" ")
        if opcode != previous:
            table.add_section()
        table.add_row(
            opcode if opcode != previous else "",
            use,
            f"{row.tests.total():,}",
            str(len(row.tests)),
            str(len(row.seeds)),
            f"{row.programs:,}",
            row.tests.most_common(1)[0][0] if row.tests else "no test",
        )
        previous = opcode
    return as_text(table, 120)
