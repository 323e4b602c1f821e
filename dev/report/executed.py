# SPDX-License-Identifier: Apache-2.0
"""What a run has executed of the instruction set and the ports, by opcode and use.

Only results that passed count as having executed a row; a row that only failed ones have reached is
told apart from one that nothing has reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dev.regression.task import Outcome
from tb.bench import isa_coverage
from tb.command import command_coverage
from tb.cop import cop_coverage

State = Literal["executed", "only by failed", "not executed"]


@dataclass(slots=True)
class Use:
    """One use of an opcode: a row of the coverage table.

    Attributes:
        opcode, name: the two parts of the row; `name` is "" for the plain use.
        tests: how often each test has executed it, in runs that passed.
        programs: in how many programs, of those runs.
        seeds: seeds of those runs.
        failed: tests with a result that executed it and failed.
    """

    opcode: str
    name: str
    tests: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    seeds: set[int] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    @property
    def executed(self) -> int:
        """How often, in all runs that passed."""
        return self.tests.total()

    @property
    def state(self) -> State:
        """Whether a test has executed it and passed."""
        if self.tests:
            return "executed"
        return "only by failed" if self.failed else "not executed"

    @property
    def passing(self) -> list[tuple[str, int]]:
        """The tests whose results all passed, most executions first."""
        return [pair for pair in self.tests.most_common() if pair[0] not in self.failed]


@dataclass(frozen=True, slots=True)
class OpcodeUses:
    """The uses of one opcode, in the order of the table."""

    name: str
    uses: tuple[Use, ...]

    @property
    def executed(self) -> int:
        """Uses that a test has executed and passed."""
        return sum(use.state == "executed" for use in self.uses)

    @property
    def failing(self) -> int:
        """How many tests have executed a use of it and failed."""
        return len({test for use in self.uses for test in use.failed})

    @property
    def complete(self) -> bool:
        """Whether every use was executed."""
        return self.executed == len(self.uses)

    @property
    def tests(self) -> int:
        """How many tests have executed a use of it."""
        return len({test for use in self.uses for test in (*use.tests, *use.failed)})

    @property
    def times(self) -> int:
        """How often its uses were executed; an execution is one of several uses."""
        return sum(use.executed for use in self.uses)


@dataclass(frozen=True, slots=True)
class Area:
    """The opcodes of one interface of the chip."""

    name: str
    opcodes: tuple[OpcodeUses, ...]

    @property
    def uses(self) -> tuple[Use, ...]:
        """All of them."""
        return tuple(use for opcode in self.opcodes for use in opcode.uses)

    @property
    def executed(self) -> int:
        """Uses that a test has executed and passed."""
        return sum(opcode.executed for opcode in self.opcodes)


@dataclass(frozen=True, slots=True)
class Executed:
    """The whole table.

    Attributes:
        areas: instruction set, command port, coprocessor.
        any: whether a result has executed anything.
    """

    areas: tuple[Area, ...]
    any: bool

    @property
    def uses(self) -> tuple[Use, ...]:
        """All of them."""
        return tuple(use for area in self.areas for use in area.uses)

    @property
    def missing(self) -> tuple[Use, ...]:
        """Those that no test has executed and passed."""
        return tuple(use for use in self.uses if use.state != "executed")


def areas() -> dict[str, list[str]]:
    """Return the rows that must be executed, by the interface that they belong to."""
    return {
        "instruction set": isa_coverage.required(),
        "command port": command_coverage.required(),
        "coprocessor": cop_coverage.required(),
    }


def executed(results: Sequence[Outcome], rows: dict[str, list[str]]) -> Executed:
    """Return what results have executed of the given rows, by interface."""
    uses = {row: _use(row) for names in rows.values() for row in names}
    for result in results:
        for row, count, programs in result.rows:
            use = uses.get(row)
            if use is None or not count:
                continue
            if result.passed:
                use.tests[result.task.name] += count
                use.programs += programs
                use.seeds.add(result.task.seed)
            elif result.failed:
                use.failed.add(result.task.name)
    return Executed(
        tuple(Area(area, _opcodes(uses[row] for row in names)) for area, names in rows.items()),
        any(result.rows for result in results),
    )


def _use(row: str) -> Use:
    opcode, _, name = row.partition(" ")
    return Use(opcode, name)


def _opcodes(uses: Iterable[Use]) -> tuple[OpcodeUses, ...]:
    groups: dict[str, list[Use]] = {}
    for use in uses:
        groups.setdefault(use.opcode, []).append(use)
    return tuple(OpcodeUses(name, tuple(members)) for name, members in groups.items())
