# SPDX-License-Identifier: Apache-2.0
"""What a network costs, operation by operation, and where each of them runs and why.

Costs are counted from the words of the programs (`npu.runtime.account`); a run adds the chip's
counters and, from the RTL, the cycles of each operation. Sums of lines are the figures of segments,
and sums of segments those of the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from npu.driver.counters import ChipCounters
from npu.graph.form import Graph, Operation
from npu.graph.macs import macs_of
from npu.isa.generated import Opcode
from npu.isa.operands import Limits
from npu.runtime.account import Bound, Cost, beats, total, word_costs
from npu.runtime.plan import Plan, PlannedSegment

SEQUENCED = (Opcode.NOP, Opcode.BARRIER, Opcode.PFX, Opcode.SET, Opcode.LOOP, Opcode.END)
"""What no engine executes."""


@dataclass(frozen=True)
class OperationLine:
    """An operation.

    Attributes:
        name, kind, source: as the graph has them.
        target, reason: where it runs and why.
        segment: its number, -1 on the host.
        macs: multiplications that the network asks for; `cost.macs` are those of the chip.
        cost: of its instructions.
        host_bytes: of the tensors that the host reads and writes for it.
        bound: what limits it: mac, bus, vector or host; "" where nothing is left to do.
        ideal: least cycles, 0 on the host.
        cycles: measured, from the end of the operation before to its own end; None without RTL.
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
        """Of all segments."""
        return total(one.cost for one in self.segments)

    @property
    def macs(self) -> int:
        """That the network asks for and the chip executes."""
        return sum(one.macs for one in self.operations if one.segment >= 0)

    @property
    def ideal(self) -> int:
        """Least cycles of all segments."""
        return sum(one.ideal for one in self.segments)

    @property
    def cycles(self) -> int | None:
        """Measured, None without RTL."""
        counted = [one.counters.cycles for one in self.segments if one.counters is not None]
        if len(counted) < len(self.segments) or not all(counted):
            return None
        return sum(counted)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "network": self.network,
            "chip": asdict(self.limits),
            "total": {
                "macs": self.macs,
                "cost": asdict(self.cost),
                "host_bytes": sum(one.host_bytes for one in self.operations),
                "ideal": self.ideal,
                "cycles": self.cycles,
            },
            "segments": [asdict(one) for one in self.segments],
            "operations": [{**asdict(one), "padding": one.padding} for one in self.operations],
        }


def report_of(
    plan: Plan,
    counters: Sequence[ChipCounters] = (),
    cycles: Mapping[str, int] | None = None,
) -> Report:
    """Return the report of a plan.

    Args:
        plan: of the network.
        counters: of each segment's run, in order; none before a run.
        cycles: measured, of each operation that has instructions, by name.
    """
    operations: list[OperationLine] = []
    segments: list[SegmentLine] = []
    for step in plan.steps:
        if isinstance(step, str):
            operations.append(_on_host(plan.graph, plan.operation(step)))
            continue
        lines, end = _on_chip(plan, step)
        cost = total([end, *(one.cost for one in lines)])
        ideal = sum(one.ideal for one in lines)
        counted = counters[step] if counters else None
        segments.append(SegmentLine(step, cost, end, ideal, counted))
        operations += lines
    if cycles is not None:
        operations = [
            replace(one, cycles=cycles.get(one.name, 0)) if one.segment >= 0 else one
            for one in operations
        ]
    return Report(plan.graph.name, plan.limits, tuple(operations), tuple(segments))


def owners(segment: PlannedSegment) -> list[str]:
    """Return the operation that each word of a program belongs to, "" behind the last one.

    What follows the last instruction of an engine, the restored stream and END, is the end.
    """
    program = segment.program
    count = len(program)
    starts = sorted((at, name) for name, at in segment.first_word.items())
    names = [""] * count
    for index, (at, name) in enumerate(starts):
        stop = starts[index + 1][0] if index + 1 < len(starts) else count
        names[at:stop] = [name] * (stop - at)
    last = count - 1
    while last >= 0 and program[last].opcode in SEQUENCED:
        last -= 1
    return names[: last + 1] + [""] * (count - last - 1)


def _on_chip(plan: Plan, number: int) -> tuple[list[OperationLine], Cost]:
    segment = plan.segments[number]
    sums: dict[str, Cost] = {}
    program = segment.program
    for name, cost in zip(owners(segment), word_costs(program, plan.limits), strict=True):
        sums[name] = sums.get(name, Cost()) + cost
    end = sums.pop("", Cost())
    lines = []
    for name in segment.operations:
        one, cost = plan.operation(name), sums.get(name, Cost())
        macs = macs_of(plan.graph, one)
        bound, ideal = cost.bound(plan.limits), cost.ideal_cycles(plan.limits)
        lines.append(_line(one, number, macs, cost, 0, bound, ideal))
    return lines, end


def _on_host(graph: Graph, one: Operation) -> OperationLine:
    touched = [graph.type(name) for name in (*one.used, *one.outputs) if not graph[name].constant]
    size = sum(kind.size * kind.element.dtype.itemsize for kind in touched)
    return _line(one, -1, macs_of(graph, one), Cost(), size, "host", 0)


def _line(
    one: Operation, segment: int, macs: int, cost: Cost, host: int, bound: str, ideal: int
) -> OperationLine:
    target, reason = (one.place.target.value, one.place.reason) if one.place else ("host", "")
    return OperationLine(
        one.name, one.kind, one.source, target, reason, segment, macs, cost, host, bound, ideal
    )


def disagreements(report: Report) -> list[str]:
    """Return how the chip's counters differ from the report, a sentence for each figure.

    The chip reads the stream ahead, and drops what a jump in it makes superfluous: of the stream
    only fewer beats than the program takes are wrong.
    """
    found = []
    for one in report.segments:
        counters = one.counters
        if counters is None or not counters.cycles:
            continue
        cost = one.cost
        plain = counters.read_beats - counters.stream_beats
        for what, counted, wanted in (
            ("MACs", counters.macs, cost.macs),
            ("instructions", counters.instrs, cost.instructions),
            ("beats of loads and microcode", plain, beats(cost.load_bytes) + cost.words),
            ("beats of stores", counters.write_beats, beats(cost.store_bytes)),
        ):
            if counted != wanted:
                found.append(f"segment {one.number}: {what}: counted {counted}, reported {wanted}")
        if counters.stream_beats < beats(cost.stream_bytes):
            found.append(
                f"segment {one.number}: beats of the stream: counted {counters.stream_beats}, "
                f"reported {beats(cost.stream_bytes)}"
            )
    return found
