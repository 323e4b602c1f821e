# SPDX-License-Identifier: Apache-2.0
"""What a network costs, operation by operation, and where each of them runs and why; as a table.

Sums of lines are the figures of segments, and sums of segments those of the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from rich import box
from rich.markup import escape

from npu.driver.counters import ChipCounters
from npu.graph.form import Target
from npu.runtime.account import Bound, Cost, total
from npu.tables import FitTable, as_text, cut
from spec.isa.operands import Limits

WIDTH = 120
"""Columns of the table."""
SHORT = 40
"""Columns of a name in a sentence."""
HEADS = ("MACs", "padding", "bytes", "least", "cycles")


@dataclass(frozen=True)
class OperationLine:
    """An operation.

    Attributes:
        name, kind, source: as the graph has them.
        target, reason: where it runs and why.
        segment: its number, -1 on the host and on the command port.
        macs: multiplications that the network asks for; `cost.macs` are those of the chip.
        cost: of its instructions; on the command port the multiplications of its tiles alone.
        host_bytes: of the tensors that the host reads and writes for it.
        bound: what limits it: mac, bus, vector, port or host; "" where nothing is left to do.
        ideal: least cycles, 0 on the host.
        cycles: measured, from the end of the operation before to its own end; None without RTL.
        port_operations: of the command port, as it has counted them; None before a run.
    """

    name: str
    kind: str
    source: str
    target: str
    reason: str
    segment: int
    macs: int
    cost: Cost
    host_bytes: int
    bound: Bound | str
    ideal: int
    cycles: int | None = None
    port_operations: int | None = None

    @property
    def on_port(self) -> bool:
        """Whether the command port executes it."""
        return self.target == Target.PORT

    @property
    def padding(self) -> float:
        """The share of the chip's multiplications that no one asked for."""
        return 1 - min(self.macs, self.cost.macs) / self.cost.macs if self.cost.macs else 0.0


@dataclass(frozen=True)
class SegmentLine:
    """A program.

    Attributes:
        number: of the segment.
        cost: of all its instructions, the sum of those of its operations and of its end.
        end: of the words behind the last operation.
        ideal: the sum over its operations.
        counters: of the chip at its end, None before a run.
    """

    number: int
    cost: Cost
    end: Cost
    ideal: int
    counters: ChipCounters | None = None

    @property
    def cycles(self) -> int | None:
        """Measured, None without RTL."""
        return self.counters.cycles or None if self.counters is not None else None


@dataclass(frozen=True)
class Report:
    """A network.

    Attributes:
        network: its name.
        limits: of the chip.
        operations: in the order of the steps.
        segments: in order.
    """

    network: str
    limits: Limits
    operations: tuple[OperationLine, ...]
    segments: tuple[SegmentLine, ...]

    @property
    def cost(self) -> Cost:
        """Of all segments, and of the command port."""
        port = (one.cost for one in self.operations if one.on_port)
        return total([*(one.cost for one in self.segments), *port])

    @property
    def macs(self) -> int:
        """That the network asks for and the chip executes."""
        return sum(one.macs for one in self.operations if one.segment >= 0 or one.on_port)

    @property
    def ideal(self) -> int:
        """Least cycles of all segments."""
        return sum(one.ideal for one in self.segments)

    @property
    def cycles(self) -> int | None:
        """Measured, None without RTL."""
        counted = [one.cycles for one in self.segments if one.cycles is not None]
        return sum(counted) if counted and len(counted) == len(self.segments) else None

    def __str__(self) -> str:
        """Return the table as text."""
        return as_text(report_table(self), WIDTH).rstrip("\n")

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "network": self.network,
            "chip": asdict(self.limits),
            "total": {
                "macs": self.macs,
                "cost": asdict(self.cost),
                "host_bytes": sum(one.host_bytes for one in self.operations),
                "port_operations": sum(one.port_operations or 0 for one in self.operations),
                "ideal": self.ideal,
                "cycles": self.cycles,
            },
            "segments": [asdict(one) for one in self.segments],
            "operations": [{**asdict(one), "padding": one.padding} for one in self.operations],
        }


def report_table(report: Report) -> FitTable:
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


def _caption(report: Report, measured: bool) -> str:
    lines = [
        "MACs: multiplications of the chip; padding: those that nobody asked for; bytes: loaded, "
        "stored and of the stream; least: cycles of array, bus or vector engines"
        + ("; cycles: from the end of the operation before." if measured else ".")
    ]
    for reason, found in _reasons(report).items():
        more = f" and {len(found) - 2} more" if len(found) > 2 else ""
        names = ", ".join(cut(name, SHORT) for name in found[:2])
        lines.append(escape(f"Host: {names}{more}: {reason}."))
    return "\n".join(lines)


def _reasons(report: Report) -> dict[str, list[str]]:
    """Return the names of the operations of the host by reason."""
    found: dict[str, list[str]] = {}
    for one in report.operations:
        if one.segment < 0 and not one.on_port:
            found.setdefault(one.reason, []).append(one.name)
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
    """Return what an operation was in its file: the first and the last of several."""
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
