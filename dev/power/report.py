# SPDX-License-Identifier: Apache-2.0
"""What `make power` found: build/reports/power.json, tables, and those of docs/energy.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dev import marked_page
from dev.power.engines import ENGINES
from dev.power.measure import IDLE_MOST, EngineFigures, RowFigures, Spent, Stated
from dev.power.token import Token
from dev.timing_report import table
from dev.yosys import SynthesisError
from npu.tables import FitTable, as_text
from spec.paths import BUILD, ROOT

REPORT = BUILD / "reports" / "power.json"
PAGE = ROOT / "docs" / "energy.md"


@dataclass
class PowerReport:
    """What was found.

    Attributes:
        model: whose token it is.
        tokens: by format of its weights.
        engines: those with a netlist.
        stated: what memories cost, by format.
        row: of the array, alone; None if it was not measured.
    """

    model: str
    tokens: dict[str, Token]
    engines: list[EngineFigures] = field(default_factory=list)
    stated: dict[str, list[Stated]] = field(default_factory=dict)
    row: RowFigures | None = None

    def logic(self, word: str) -> float:
        """Return nJ of a token, of all engines."""
        return sum(self.nanojoules(one, word) for one in self.engines)

    def nanojoules(self, one: EngineFigures, word: str) -> float:
        """Return nJ of a token, of an engine."""
        return one.tokens[word].total * self.tokens[word].cycles / 1000

    def worse(self) -> list[str]:
        """Return a line for each bar that is missed."""
        if self.row is None or self.row.share <= IDLE_MOST:
            return []
        idle = f"an idle row of the array uses {self.row.share:.1%} of an active one"
        return [f"{idle}, allowed {IDLE_MOST:.0%}"]


def save(report: PowerReport, path: Path = REPORT) -> None:
    """Write all figures as JSON, energies in pJ."""
    tokens = {
        word: {"cycles": token.cycles, "macs": token.figures.macs}
        for word, token in report.tokens.items()
    }
    engines = [asdict(one) for one in report.engines]
    stated = {word: [asdict(one) for one in each] for word, each in report.stated.items()}
    row = None
    if report.row is not None:
        row = asdict(report.row) | {"idle_share": report.row.share, "mac": report.row.mac}
    record = {
        "model": report.model,
        "tokens": tokens,
        "engines": engines,
        "stated": stated,
        "row": row,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


# -------------------------------------------------------------------------------------------------
# Tables
# -------------------------------------------------------------------------------------------------
def engine_heads(report: PowerReport) -> list[str]:
    """Return the heads of the columns of engines, behind the name."""
    by_word = ("{}: nJ", "share", "by counting")
    words = (head.format(word) for word in report.tokens for head in by_word)
    return ["kGE", "registers", "idle pJ", *words]


def engine_rows(report: PowerReport) -> list[list[str]]:
    """Return the rows of the table of engines, the last one their sum."""
    rows = []
    for one in report.engines:
        row = [f"{one.area:.1f}", f"{one.registers:,}", f"{one.idle:.1f}"]
        for word, token in report.tokens.items():
            spent = report.nanojoules(one, word)
            counted = one.tokens[word].counted * token.cycles / 1000
            row += [f"{spent:,.1f}", f"{spent / report.logic(word):.1%}", f"{counted:,.1f}"]
        rows.append([_named(one), *row])
    sums = [
        f"{sum(one.area for one in report.engines):.1f}",
        f"{sum(one.registers for one in report.engines):,}",
        f"{sum(one.idle for one in report.engines):.1f}",
    ]
    for word, token in report.tokens.items():
        counted = sum(one.tokens[word].counted for one in report.engines) * token.cycles / 1000
        sums += [f"{report.logic(word):,.1f}", "100.0%", f"{counted:,.1f}"]
    return [*rows, ["all of these", *sums]]


def _named(one: EngineFigures) -> str:
    return one.engine if one.instances == 1 else f"{one.engine} ({one.instances})"


def part_heads() -> list[str]:
    """Return the heads of the columns of what energy goes into, behind the name."""
    return ["format", "clocks, nJ", "registers, nJ", "logic, nJ", "counted / propagated", "known"]


def part_rows(report: PowerReport) -> list[list[str]]:
    """Return what the energy of each engine goes into, and how sure it is."""
    return [
        [
            one.engine,
            word,
            *(f"{each * token.cycles / 1000:,.1f}" for each in parts),
            f"{spent.ratio:.2f}",
            f"{spent.known:.1%}",
        ]
        for one in report.engines
        for word, token in report.tokens.items()
        for spent in [one.tokens[word]]
        for parts in [(spent.clock, spent.registers, spent.logic)]
    ]


STATED_HEADS = ("format", "bytes", "nJ", "least", "most")


def stated_rows(report: PowerReport) -> list[list[str]]:
    """Return what memories cost in a token."""
    return [
        [one.name, word, f"{one.moved:,.0f}", *(f"{each / 1000:,.1f}" for each in figures)]
        for word, stated in report.stated.items()
        for one in stated
        for figures in [(one.likely, one.least, one.most)]
    ]


ROW_HEADS = ("clocks", "registers", "logic", "all", "by counting")


def row_rows(row: RowFigures) -> list[list[str]]:
    """Return the two states of a row of the array, in pJ of a cycle."""
    states: Mapping[str, Spent] = {"Gaussian activations": row.active, "idle": row.idle}
    return [
        [
            name,
            *(f"{each:.1f}" for each in (spent.clock, spent.registers, spent.logic)),
            f"{spent.total:.1f}",
            f"{spent.counted:.1f}",
        ]
        for name, spent in states.items()
    ]


def row_text(row: RowFigures) -> str:
    """Return what follows from the two states, in a line."""
    counted = row.active.counted / row.active.total * row.mac
    return (
        f"{row.mac:.1f} pJ per MAC ({counted:.1f} by counting); idle is {row.share:.1%} of active, "
        f"allowed {IDLE_MOST:.0%}"
    )


def token_lines(report: PowerReport) -> list[str]:
    """Return a line for each token: its energy with that of SRAM and memory, and by the MAC.

    Of some engines it is not the chip's, and no MAC is divided by it.
    """
    lines = []
    whole = len(report.engines) == len(ENGINES)
    for word, token in report.tokens.items():
        spent = [one.tokens[word] for one in report.engines]
        on_chip = [one for one in report.stated[word] if one.name != "memory"]
        methods = {
            "likely": sum(one.total for one in spent),
            "least": sum(min(one.total, one.counted) for one in spent),
            "most": sum(max(one.total, one.counted) for one in spent),
        }
        chip, least, most = (
            (logic * token.cycles + sum(getattr(one, what) for one in on_chip)) / 1000
            for what, logic in methods.items()
        )
        macs = token.figures.macs
        lines.append(
            f"{word}: {token.cycles:,} cycles, {macs:,} MACs; "
            + ("chip" if whole else "memories and these engines")
            + f" {chip:,.0f} nJ ({least:,.0f} to {most:,.0f})"
            + f", {chip * 1000 / macs:.0f} pJ a MAC" * whole
        )
    return lines


def render(report: PowerReport) -> str:
    """Return all of it as text."""
    tables = [
        (f"Energy of a token of {report.model}", engine_heads(report), engine_rows(report), 1),
        ("Where it goes", part_heads(), part_rows(report), 2),
        ("Memories, stated by the byte", STATED_HEADS, stated_rows(report), 2),
    ]
    if report.row is not None:
        tables.append(("A row of the array, pJ of a cycle", ROW_HEADS, row_rows(report.row), 1))
    text = ""
    for title, columns, rows, names in tables:
        fit = FitTable(title=title)
        fit.name("engine" if names == 2 or title.startswith("Energy") else "state")
        for index, head in enumerate(columns):
            (fit.name if index < names - 1 else fit.figure)(head)
        for row in rows:
            fit.add_row(*row)
        text += as_text(fit, 140)
    lines = token_lines(report) + ([row_text(report.row)] if report.row is not None else [])
    return text + "".join(f"{line}\n" for line in lines)


def write_page(report: PowerReport, page: Path = PAGE) -> None:
    """Write the tables of the page.

    Raises:
        SynthesisError: the page lacks the marks of a table.
    """
    row = report.row
    assert row is not None
    parts = {
        "tokens": lambda: "".join(f"- {line}\n" for line in token_lines(report)),
        "engines": lambda: table(["engine", *engine_heads(report)], engine_rows(report)),
        "parts": lambda: table(["engine", *part_heads()], part_rows(report), 2),
        "memories": lambda: table(["what", *STATED_HEADS], stated_rows(report), 2),
        "row": lambda: table(["state", *ROW_HEADS], row_rows(row)) + f"\n{row_text(row)}.\n",
    }
    try:
        text = marked_page.fill(page.read_text(encoding="utf-8"), page, parts)
    except ValueError as error:
        raise SynthesisError(str(error)) from None
    page.write_text(text, encoding="utf-8")
