# SPDX-License-Identifier: Apache-2.0
"""Makes the report of a plan: costs from the words of its programs, and what a run adds.

A run adds the chip's counters and, from the RTL, the cycles of each operation. What the words say
must be what the counters have counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from npu.driver.command.product import Product
from npu.driver.counters import ChipCounters
from npu.graph.form import Graph, Operation
from npu.graph.macs import macs_of
from npu.graph.operations.port import TILED
from npu.runtime.account import Cost, beats, total, word_costs
from npu.runtime.plan import Action, Plan
from npu.runtime.plan_record import state_records
from npu.runtime.report import NetworkReport, OperationLine, SegmentLine
from spec.isa.gemm import GemmForm
from spec.isa.generated import LINE, Opcode
from spec.isa.weight_formats import GROUPED


def report_of(
    plan: Plan,
    counters: Sequence[ChipCounters] = (),
    cycles: Mapping[str, int] | None = None,
    products: Mapping[str, Product] | None = None,
) -> NetworkReport:
    """Return the report of a plan; that of a decoder is empty, `npu profile` measures it.

    Args:
        plan: of the network.
        counters: of each segment's run, in order; none before a run.
        cycles: measured, of each operation that has instructions, by name.
        products: of the command port, by the name of the operation; none before a run.
    """
    if plan.decoder is not None:
        # Its words do not show how often they run.
        return NetworkReport(plan.graph.name, plan.limits, (), ())
    operations: list[OperationLine] = []
    segments: list[SegmentLine] = []
    for step in plan.steps:
        if step.action is Action.HOST:
            operations.append(_on_host(plan.graph, plan.operation(str(step.of))))
        if step.action is Action.PORT:
            product = (products or {}).get(str(step.of))
            operations.append(_on_port(plan.graph, plan.operation(str(step.of)), product))
        if step.action is not Action.LAUNCH:
            continue
        number = step.segment
        lines, end = _on_chip(plan, number)
        cost = total([end, *(one.cost for one in lines)])
        ideal = sum(one.ideal for one in lines)
        counted = counters[number] if counters else None
        segments.append(SegmentLine(number, cost, end, ideal, counted))
        operations += lines
    if cycles is not None:
        operations = [
            replace(one, cycles=cycles.get(one.name, 0)) if one.segment >= 0 else one
            for one in operations
        ]
    segment_lines, states = tuple(segments), tuple(state_records(plan.graph))
    weights = tuple(_weight_bits(plan))
    return NetworkReport(
        plan.graph.name, plan.limits, tuple(operations), segment_lines, states, weights
    )


def _weight_bits(plan: Plan) -> Iterator[tuple[str, float]]:
    """Yield formats of weights in the stream, and their bits a weight with sides and padding."""
    bits: dict[str, int] = {}
    counts: dict[str, int] = {}
    for word in (each for segment in plan.segments for each in segment.program):
        if word.opcode != Opcode.GEMM or not (form := GemmForm.of(word)).stream:
            continue
        layout = form.layout(plan.limits.edge)
        group = str(layout.group) if layout.format in GROUPED else ""
        name = f"{layout.format.asm}{group}"
        tiles = -(-word.n // layout.edge)
        bits[name] = bits.get(name, 0) + 8 * LINE * tiles * layout.lines(word.k)
        counts[name] = counts.get(name, 0) + word.n * word.k
    for name, size in bits.items():
        yield name, size / counts[name]


def _on_chip(plan: Plan, number: int) -> tuple[list[OperationLine], Cost]:
    segment = plan.segments[number]
    sums: dict[str, Cost] = {}
    program = segment.program
    for name, cost in zip(segment.owners, word_costs(program, plan.limits), strict=True):
        sums[name] = sums.get(name, Cost()) + cost
    end = sums.pop("", Cost())
    lines = []
    for name in segment.operations:
        one, cost = plan.operation(name), sums.get(name, Cost())
        macs = macs_of(plan.graph, one)
        bound, ideal = cost.bound(plan.limits), cost.ideal_cycles(plan.limits)
        lines.append(_line(one, number, macs, cost, 0, bound, ideal))
    return lines, end


def _on_host(graph: Graph, op: Operation) -> OperationLine:
    return _line(op, -1, macs_of(graph, op), Cost(), _touched(graph, op), "host", 0)


def _on_port(graph: Graph, op: Operation, product: Product | None) -> OperationLine:
    """Return the line of a product; its tiles multiply what is asked for and nothing else."""
    macs = macs_of(graph, op)
    cost = Cost(macs=macs if op["format"] in TILED else 0)
    line = _line(op, -1, macs, cost, _touched(graph, op), "port", 0)
    return line if product is None else replace(line, port_operations=product.operations)


def _touched(graph: Graph, op: Operation) -> int:
    """Return the bytes that the host reads and writes for an operation."""
    touched = [graph.type(name) for name in (*op.used, *op.outputs) if not graph[name].constant]
    return sum(kind.size * kind.element.dtype.itemsize for kind in touched)


def _line(
    op: Operation, segment: int, macs: int, cost: Cost, host: int, bound: str, ideal: int
) -> OperationLine:
    target, reason = (op.place.target.value, op.place.reason) if op.place else ("host", "")
    return OperationLine(
        op.name, op.kind, op.source, target, reason, segment, macs, cost, host, bound, ideal
    )


def disagreements(
    report: NetworkReport, products: Mapping[str, Product] | None = None
) -> list[str]:
    """Return how the chip's counters differ from the report, a sentence for each figure.

    The chip reads the stream ahead, and drops what a jump in it makes superfluous: of the stream
    only fewer beats than the program takes are wrong.
    """
    found = []
    lines = {op.name: op for op in report.operations}
    for name, product in (products or {}).items():
        wanted = lines[name].cost.macs
        if product.macs != wanted:
            found.append(f"operation {name}: MACs: counted {product.macs}, reported {wanted}")
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
