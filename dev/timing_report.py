# SPDX-License-Identifier: Apache-2.0
"""What `make timing` found: build/reports/timing.json, tables, and those of docs/timing.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from dev import ecp5, gates, marked_page, netlist, timing
from dev.yosys import SynthesisError
from npu.tables import FitTable, as_text
from spec.paths import ROOT

REPORT = timing.REPORT
ECP5_HEADS = ("LUT4", "for few levels", "FF", "multipliers", "block RAM")
"""Of `ecp5.FIGURES`."""
PAGE = ROOT / "docs" / "timing.md"


def save(
    results: Sequence[timing.BlockTiming],
    mapped: Sequence[gates.Gates],
    device: ecp5.Ecp5Report | None,
    path: Path = REPORT,
) -> None:
    """Write all figures as JSON: {blocks, gates, ecp5}, the last one null where it was not run."""
    record = {
        "blocks": [asdict(one) for one in results],
        "gates": [asdict(one) for one in mapped],
        "ecp5": None if device is None else asdict(device),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _gates_cells(block: str, mapped: Sequence[gates.Gates]) -> tuple[str, str, str]:
    """Return kGE, nanoseconds and rows of the array of a block; empty where they are not known."""
    for one in mapped:
        if one.block == block:
            rows = gates.rows(mapped)[block]
            return f"{one.area:.1f}", f"{one.nanoseconds:.1f}", f"{rows:.1f}"
    return "", "", ""


def _named(one: timing.BlockTiming) -> str:
    given = ", ".join(f"{name} {value}" for name, value in one.parameters.items())
    return f"{one.top} {given}".strip()


def render(results: Sequence[timing.BlockTiming], mapped: Sequence[gates.Gates]) -> str:
    """Return the table as text, and the deepest paths of whole chips below it."""
    table = FitTable(title="Levels of logic")
    table.name("block")
    table.text("module and parameters")
    heads = ("levels", "of LUTs", "LUT", "FF", "DSP")
    for head in (*heads, *(("kGE", "ns", "rows") if mapped else ()), "seconds"):
        table.figure(head)
    for one in results:
        figures = (f"{getattr(one, name):,}" for name in timing.FIGURES)
        extra = _gates_cells(one.block, mapped) if mapped else ()
        table.add_row(one.block, _named(one), *figures, *extra, f"{one.seconds:.0f}")
    text = as_text(table, 120)
    for one in results:
        shown = timing.DEEPEST if one.block in timing.WHOLE else 1
        for path in one.paths[:shown]:
            text += f"{one.block}: {path.levels} levels: {timing.path_text(path)}\n"
    return text


def render_ecp5(report: ecp5.Ecp5Report) -> str:
    """Return the tables of the ECP5 as text."""
    modules = FitTable(title="The smallest chip on an ECP5")
    modules.name("module")
    for head in ECP5_HEADS:
        modules.figure(head)
    for one in report.modules:
        modules.add_row(one.module, *(f"{getattr(one, name):,}" for name in ecp5.FIGURES))
    clocks = FitTable(title="Clocks")
    clocks.name("block")
    clocks.figure("MHz")
    clocks.name("is")
    for each in report.clocks:
        clocks.add_row(each.block, f"{each.megahertz:.1f}", each.word)
    tables = (modules, report.modules), (clocks, report.clocks)
    return "".join(as_text(each, 120) for each, rows in tables if rows)


# -------------------------------------------------------------------------------------------------
# Page
# -------------------------------------------------------------------------------------------------
def write_page(
    results: Sequence[timing.BlockTiming],
    mapped: Sequence[gates.Gates],
    device: ecp5.Ecp5Report | None,
    release: str | None,
    page: Path = PAGE,
) -> None:
    """Write the tables of the page; those of what was not measured stay.

    Args:
        results: of all blocks.
        mapped: in gates, empty where the library is missing.
        device: on the ECP5.
        release: the name of a row of the history, which is written anew or added; None: no row.
        page: the file.

    Raises:
        SynthesisError: the page lacks the marks of a table.
    """
    text = page.read_text(encoding="utf-8")
    parts: dict[str, Callable[[], str]] = {
        "levels": partial(_levels, results),
        "paths": partial(_paths, results),
        "gates": partial(_gates, results, mapped) if mapped else partial(_present, text, "gates"),
        "ecp5": partial(_ecp5, device) if device else partial(_present, text, "ecp5"),
        "history": partial(_history, _present(text, "history"), results, release),
    }
    try:
        text = marked_page.fill(text, page, parts)
    except ValueError as error:
        raise SynthesisError(str(error)) from None
    page.write_text(text, encoding="utf-8")


def _present(text: str, name: str) -> str:
    """Return a part of the page as it is."""
    found = re.search(rf"^<!-- begin {name} -->\n(.*?)^<!-- end {name} -->$", text, re.M | re.S)
    return found[1] if found else ""


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], names: int = 1) -> str:
    """Return a table of Markdown; all columns but the first `names` hold figures."""
    lines = [list(heads), ["---"] * names + ["---:"] * (len(heads) - names), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _levels(results: Sequence[timing.BlockTiming]) -> str:
    rows = [
        (
            one.block,
            _named(one),
            *(f"{getattr(one, name):,}" for name in timing.FIGURES),
            _short(one.paths[0]) if one.paths else "",
        )
        for one in results
    ]
    heads = ("block", "module and parameters", "levels", "of LUTs", "LUT", "FF", "DSP", "deepest")
    lines = table(heads, rows, 2).splitlines(keepends=True)
    lines[1] = lines[1].replace("---: |\n", "--- |\n")
    return "".join(lines)


def _short(path: netlist.Path) -> str:
    """Return a path in a cell of a table: registers, and modules with their levels."""
    begin, end = (name.rpartition(".")[2] for name in (path.begin, path.end))
    return " -> ".join((begin, *(f"{one.module} {one.levels}" for one in path.stages), end))


def _paths(results: Sequence[timing.BlockTiming]) -> str:
    text = ""
    for one in results:
        if one.block not in timing.WHOLE:
            continue
        for words, paths in (("", one.paths), (", through nothing but LUTs", one.lut_paths)):
            rows = [
                (path.levels, around or path.stages[0].module, begin, ", ".join(stages), end)
                for path in paths
                for around, (begin, *stages, end) in [path.words()]
            ]
            text += f"`{one.block}`{words}:\n\n"
            text += table(("levels", "in", "from", "through", "to"), rows, 5).replace(
                "| --- |", "| ---: |", 1
            )
            text += "\n"
    return text.rstrip("\n") + "\n"


def _gates(results: Sequence[timing.BlockTiming], mapped: Sequence[gates.Gates]) -> str:
    named = {one.block: one for one in results}
    rows = [
        (name, _named(named[name]), named[name].levels, *_gates_cells(name, mapped))
        for name in (one.block for one in mapped)
        if name in named
    ]
    heads = ("block", "module and parameters", "levels", "kGE", "ns", "rows")
    return table(heads, rows, 2) + _left_out(timing.NOT_IN_GATES)


def _ecp5(report: ecp5.Ecp5Report) -> str:
    modules = [
        (one.module, *(f"{getattr(one, name):,}" for name in ecp5.FIGURES))
        for one in report.modules
    ]
    text = table(("module", *ECP5_HEADS), modules)
    clocks = [
        (one.block, one.word, f"{one.megahertz:.1f}", f"{one.seconds:.0f}") for one in report.clocks
    ]
    text += "\n" + table(("block", "is", "MHz", "seconds"), clocks, 2)
    return text + _left_out(timing.NOT_ON_ECP5)


def _left_out(reasons: Mapping[str, str]) -> str:
    """Return what is said under a table of the blocks that are not in it."""
    return "\nLeft out:\n\n" + "".join(f"- `{name}`: {why}\n" for name, why in reasons.items())


def _history(before: str, results: Sequence[timing.BlockTiming], release: str | None) -> str:
    """Return the history with the row of a release at its end, or in its place."""
    heads = ["release"]
    for block in timing.WHOLE:
        heads += [f"{block} levels", "of LUTs", "LUT", "FF", "DSP"]
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")] for line in before.splitlines()[2:]
    ]
    if release is not None:
        known = {one.block: one for one in results}
        row = [release]
        for block in timing.WHOLE:
            row += [f"{getattr(known[block], name):,}" for name in timing.FIGURES]
        names = [one[0] for one in rows]
        if release in names:
            rows[names.index(release)] = row
        else:
            rows.append(row)
    return table(heads, rows)
