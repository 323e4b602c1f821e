# SPDX-License-Identifier: Apache-2.0
"""Lines and branches of the RTL that the tests execute, as dev.coverage has left them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.coverage.figures import LOW_PERCENT, Figure
from dev.report.source import Record, Source, read_json

COMMAND = "make regress COV=1"


@dataclass(frozen=True, slots=True)
class ModuleCoverage:
    """One file of the design.

    Attributes:
        name: of the module.
        line, branch: its points.
        page: its source with what was executed of it, from the folder of reports; "" for none.
    """

    name: str
    line: Figure
    branch: Figure
    page: str

    @property
    def low(self) -> bool:
        """Whether few of its lines are executed."""
        return self.line.percent < LOW_PERCENT

    @property
    def open(self) -> int:
        """Points that nobody has executed or explained."""
        return self.line.open + self.branch.open


@dataclass(frozen=True, slots=True)
class CodeCoverage:
    """All modules.

    Attributes:
        modules: by name.
        runs: results that were merged.
        revision: of the sources, "" if unknown.
        problems: what is wrong with the reasons that are given for points, a line each.
        page: that of all modules, from the folder of reports; "" for none.
    """

    modules: tuple[ModuleCoverage, ...]
    runs: int
    revision: str
    problems: tuple[str, ...]
    page: str

    @property
    def line(self) -> Figure:
        """Of all modules together."""
        return sum((one.line for one in self.modules), Figure())

    @property
    def branch(self) -> Figure:
        """Of all modules together."""
        return sum((one.branch for one in self.modules), Figure())


def read_code_coverage(folder: Path) -> Source[CodeCoverage]:
    """Read coverage.json of a folder of reports."""

    def page(name: str) -> str:
        path = f"coverage/{name}.html"
        return path if (folder / path).exists() else ""

    def parse(record: Record) -> CodeCoverage:
        conditions = record.at("conditions")
        return CodeCoverage(
            modules=tuple(
                ModuleCoverage(
                    one.text("module"),
                    _figure(one.at("line")),
                    _figure(one.at("branch")),
                    page(one.text("module")),
                )
                for one in record.at("modules").entries()
            ),
            runs=conditions.whole("runs"),
            revision=conditions.text("revision"),
            problems=tuple(str(one.content) for one in record.at("problems").entries()),
            page=page("index"),
        )

    return read_json(folder / "coverage.json", COMMAND, parse)


def _figure(record: Record) -> Figure:
    return Figure(record.whole("hit"), record.whole("all"), record.whole("explained"))
