# SPDX-License-Identifier: Apache-2.0
"""Coverage to read: `coverage.json`, a page with all modules, and a page for each of them.

The pages are static: no script, one style sheet beside them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import jinja2

from dev.coverage import reasons
from dev.coverage.figures import Coverage, Figure, Missed, Module, figures, read_sources
from dev.coverage.points import Points
from spec.paths import REPORTS

TEMPLATES = Path(__file__).parent
STYLE = "style.css"


@dataclass(frozen=True)
class Conditions:
    """What was run.

    Attributes:
        models: folders of the simulation models, e.g. "cov-a16".
        tests: names of the tests.
        seeds: seeds of the runs.
        runs: runs that were merged.
        revision: commit of the sources, with a mark if they were changed since.
    """

    models: tuple[str, ...]
    tests: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: int
    revision: str = ""


@dataclass(frozen=True)
class Row:
    """A line of a module's source.

    Attributes:
        number: from 1.
        text: without its end.
        count: how often it was executed, None for a line without statements.
        state: "hit", "part" if something of it was not executed, "miss", "known" for what is
            missed for known reasons, or "" without statements.
        missed: what was not executed of the points that begin here.
    """

    number: int
    text: str
    count: int | None
    state: Literal["", "hit", "part", "miss", "known"]
    missed: tuple[Missed, ...]


def write_report(
    points: Points,
    conditions: Conditions,
    folder: Path = REPORTS,
    entries: Sequence[reasons.Reason] | None = None,
) -> Coverage:
    """Write `coverage.json` and the pages in `coverage/`; return the figures.

    Args:
        points: what the runs executed together.
        conditions: what was run.
        folder: where the reports are.
        entries: reasons for what is not covered, by default those of `reasons.toml`.

    Raises:
        CoverageError: the points are of other sources, or `reasons.toml` cannot be read.
    """
    sources = read_sources(points)
    coverage = figures(points, reasons.load() if entries is None else entries, sources)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record(coverage, conditions), indent=1)
    (folder / "coverage.json").write_text(text + "\n", encoding="utf-8")
    pages = folder / "coverage"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir()
    shutil.copy(TEMPLATES / STYLE, pages / STYLE)
    render = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    index = render.get_template("index.html").render(coverage=coverage, conditions=conditions)
    (pages / "index.html").write_text(index, encoding="utf-8")
    page = render.get_template("module.html")
    for module in coverage.modules:
        rows = annotate(module, points, sources[module.file])
        html = page.render(module=module, rows=rows, conditions=conditions)
        (pages / f"{module.name}.html").write_text(html, encoding="utf-8")
    return coverage


def annotate(module: Module, points: Points, source: Sequence[str]) -> list[Row]:
    """Return the lines of a module's source with what was executed of each."""
    counts: dict[int, list[int]] = {}
    for point, span, count in zip(
        points.table.points, points.table.spans, points.counts.tolist(), strict=True
    ):
        if point.file == module.file:
            for line in {point.line, *span}:
                counts.setdefault(line, []).append(count)
    missed: dict[int, list[Missed]] = {}
    for each in module.missed:
        missed.setdefault(each.point.line, []).append(each)
    unknown = {
        line
        for point, span in zip(points.table.points, points.table.spans, strict=True)
        if point in {each.point for each in module.open}
        for line in {point.line, *span}
    }
    return [
        Row(
            number,
            text,
            max(counts[number]) if number in counts else None,
            _state(counts.get(number, []), number in unknown),
            tuple(missed.get(number, [])),
        )
        for number, text in enumerate(source, 1)
    ]


def _state(counts: Sequence[int], unknown: bool) -> Literal["", "hit", "part", "miss", "known"]:
    if not counts:
        return ""
    if all(counts):
        return "hit"
    if not unknown:
        return "known"
    return "part" if any(counts) else "miss"


def record(coverage: Coverage, conditions: Conditions) -> dict[str, Any]:
    """Return what `coverage.json` holds."""
    return {
        "conditions": asdict(conditions),
        "line": _figure(coverage.line),
        "branch": _figure(coverage.branch),
        "modules": [
            {
                "module": module.name,
                "file": module.file,
                "line": _figure(module.line),
                "branch": _figure(module.branch),
            }
            for module in coverage.modules
        ],
        "low": [
            {
                "module": module.name,
                "percent": round(module.line.percent, 2),
                "reasons": sorted({each.reason for each in module.missed if each.reason}),
                "open": len(module.open),
            }
            for module in coverage.low
        ],
        "uncovered": [
            {
                "module": module.name,
                "file": module.file,
                "line": each.point.line,
                "column": each.point.column,
                "kind": each.point.kind,
                "arm": each.point.arm,
                "source": each.source,
                "reason": each.reason,
            }
            for module in coverage.modules
            for each in module.missed
        ],
        "without_points": list(coverage.without),
        "uncounted_packages": list(coverage.uncounted),
        "problems": list(coverage.problems),
    }


def _figure(figure: Figure) -> dict[str, Any]:
    return {**asdict(figure), "open": figure.open, "percent": round(figure.percent, 2)}
