# SPDX-License-Identifier: Apache-2.0
"""Lines and branches of the RTL that the tests execute, as dev.coverage has left them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.coverage.figures import LOW_PERCENT, Figure
from dev.coverage.pages import Conditions
from dev.report.source import Source, read_json

COMMAND = "make regress COV=1"


@dataclass(frozen=True, slots=True)
class ModuleCoverage:
    """One file of the design: its module, and its points."""

    module: str
    line: Figure
    branch: Figure

    @property
    def low(self) -> bool:
        """Whether few of its lines are executed."""
        return self.line.percent < LOW_PERCENT

    @property
    def open(self) -> int:
        """Points that nobody has executed or explained."""
        return self.line.open + self.branch.open


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """All modules.

    Attributes:
        modules: by name.
        conditions: what was run.
        problems: what is wrong with the reasons that are given for points, a line each.
    """

    modules: tuple[ModuleCoverage, ...]
    conditions: Conditions
    problems: tuple[str, ...]

    @property
    def line(self) -> Figure:
        """Of all modules together."""
        return sum((one.line for one in self.modules), Figure())

    @property
    def branch(self) -> Figure:
        """Of all modules together."""
        return sum((one.branch for one in self.modules), Figure())


def read_code_coverage(folder: Path) -> Source[CoverageReport]:
    """Read coverage.json of a folder of reports."""
    return read_json(folder / "coverage.json", COMMAND, CoverageReport, lambda found: found)
