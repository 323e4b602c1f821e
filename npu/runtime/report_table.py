# SPDX-License-Identifier: Apache-2.0
"""The table of what a network costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape

from npu.runtime.account import Cost
from npu.tables import FitTable, as_text, cut
from spec.isa.generated import WeightFormat

if TYPE_CHECKING:
    from npu.runtime.report import NetworkReport, OperationLine, SegmentLine

WIDTH = 120
"""Columns of the table."""
SHORT = 40
"""Columns of a name in a sentence."""
HEADS = ("MACs", "padding", "bytes", "least", "cycles")


def text(report: NetworkReport) -> str:
    """Return the table as text."""
    return as_text(report_table(report), WIDTH).rstrip("\n")


def report_table(report: NetworkReport) -> FitTable:
    """Return the table of a report: what the host does in one go stands in one line."""
    measured = report.cycles is not None
    heads = HEADS if measured else HEADS[:-1]
    title = f"Network {escape(cut(report.network, SHORT))}"
    table = FitTable(title=title, box=box.SIMPLE_HEAD)
    table.caption = _caption(report, measured)
    table.name("operation")
    table.name("from")
    table.text("on")
    for head in heads:
        table.figure(head)
    table.text("bound")
    for number, lines in groupby(report.operations, key=lambda one: one.segment):
        if number < 0:
            for group in _together(list(lines)):
                row = _on_port if group[0].on_port else _on_host
                table.add_row(*row(group, measured))
        else:
            mine = list(lines)
            for one in mine:
                table.add_row(*_on_chip(one, measured))
            _end(table, report.segments[number], mine, measured)
        table.add_section()
    table.add_row(
        "all", "", "", *_figures(report.cost, report.ideal, report.cycles, measured, True), ""
    )
    return table


def _caption(report: NetworkReport, measured: bool) -> str:
    lines = [
        "MACs: multiplications of the chip; padding: those that nobody asked for; bytes: loaded, "
        "stored and of the stream; least: cycles of array, bus or vector engines"
        + ("; cycles: from the end of the operation before." if measured else ".")
    ]
    if any(name != WeightFormat.INT8.asm for name, _ in report.weights):
        formats = ", ".join(f"{name} {bits:.2f}" for name, bits in report.weights)
        lines.append(f"Weights in bits, side bytes and padding included: {formats}.")
    for reason, found in _reasons(report).items():
        more = f" and {len(found) - 2} more" if len(found) > 2 else ""
        names = ", ".join(cut(name, SHORT) for name in found[:2])
        lines.append(escape(f"Host: {names}{more}: {reason}."))
    for one in report.states:
        name = cut(one["input"], SHORT)
        lines.append(escape(f"State {name}: {one['bytes']:,} bytes, kept by the {one['kept']}."))
    return "\n".join(lines)


def _reasons(report: NetworkReport) -> dict[str, list[str]]:
    """Return the names of the operations of the host by reason."""
    found: dict[str, list[str]] = {}
    for op in report.operations:
        if op.segment < 0 and not op.on_port:
            found.setdefault(op.reason, []).append(op.name)
    return found


def _together(lines: list[OperationLine]) -> Iterator[list[OperationLine]]:
    """Yield the operations of the host that stand behind one another for one reason."""
    for _, group in groupby(lines, key=lambda one: one.name if one.on_port else one.reason):
        yield list(group)


def _on_port(group: list[OperationLine], measured: bool) -> list[str]:
    (one,) = group
    figures = _figures(one.cost, 0, 0, measured)
    figures[2] = f"{one.host_bytes:,}"
    return [escape(one.name), _short(one), "port", *figures, one.bound]


def _on_host(group: list[OperationLine], measured: bool) -> list[str]:
    figures = _figures(Cost(), 0, 0, measured)
    figures[2] = f"{sum(one.host_bytes for one in group):,}"
    name = group[0].name if len(group) == 1 else f"{group[0].name} +{len(group) - 1}"
    return [escape(name), _short(group[0]), "host", *figures, group[0].bound]


def _on_chip(one: OperationLine, measured: bool) -> list[str]:
    figures = _figures(one.cost, one.ideal, one.cycles, measured)
    if one.cost.macs:
        figures[1] = f"{one.padding:.0%}"
    return [escape(one.name), _short(one), "npu", *figures, one.bound]


def _short(one: OperationLine) -> str:
    """Return the name of an operation in its file: the first and the last of several."""
    parts = [part.removeprefix("stablehlo.") for part in one.source.split(" + ")]
    if not one.source:
        return one.kind
    text = parts[0] if len(parts) == 1 else f"{parts[0]} .. {parts[-1]}"
    return escape(" + ".join(parts) if len(parts) == 2 else text)


def _end(table: FitTable, one: SegmentLine, lines: list[OperationLine], measured: bool) -> None:
    if one.cycles is not None:
        rest = one.cycles - sum(line.cycles or 0 for line in lines)
        table.add_row("start and end", "", "", *_figures(one.end, 0, rest, measured), "")
    figures = _figures(one.cost, one.ideal, one.cycles, measured, True)
    table.add_row(f"segment {one.number}", "", "npu", *figures, "")


def _figures(
    cost: Cost, ideal: int, cycles: int | None, measured: bool, zeros: bool = False
) -> list[str]:
    def text(number: int) -> str:
        return f"{number:,}" if number or zeros else ""

    size = cost.load_bytes + cost.store_bytes + cost.stream_bytes
    found = [text(cost.macs), "", text(size), text(ideal)]
    return [*found, text(cycles or 0)] if measured else found
