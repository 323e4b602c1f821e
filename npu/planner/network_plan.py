# SPDX-License-Identifier: Apache-2.0
"""The plan of a compiled network."""

from __future__ import annotations

from dataclasses import replace

from npu.compiler.network import CompiledNetwork, Segment
from npu.graph.form import Graph
from npu.runtime.accesses import sram_bytes, taken, transfers
from npu.runtime.arena import extents, touches, use_of
from npu.runtime.plan import Base, BaseArea, Origin, Plan, PlannedSegment, PlannedTensor
from npu.runtime.plan_checks import check_host
from npu.runtime.schedule import steps_of
from npu.runtime.tensor_rows import tensor_bytes
from spec.isa.operands import Limits, up

ARENA_BASE, CONSTANTS_BASE = 0, 2
"""Base registers."""
BASES = {ARENA_BASE: Base(BaseArea.ARENA), CONSTANTS_BASE: Base(BaseArea.CONSTANTS)}


def plan_of(network: CompiledNetwork, origin: Origin | None = None) -> Plan:
    """Return the plan of a compiled network. Raises GraphError if its host does too much."""
    numbers = iter(range(len(network.segments)))
    order = [next(numbers) if isinstance(one, Segment) else one.name for one in network.steps]
    segments = tuple(_segment(one, network.limits) for one in network.segments)
    graph = _for_running(network.graph)
    tensors = tuple(
        PlannedTensor(name, graph.type(name), one.offset, up(one.bytes), one.first, one.last)
        for name, one in network.storages.items()
    )
    plan = Plan(
        graph,
        steps_of(graph, segments, order),
        segments,
        network.limits,
        network.stream,
        network.shares,
        network.constants,
        network.arena,
        tensors,
        origin or Origin(),
    )
    check_host(plan)
    return _exact(plan, order)


def _exact(plan: Plan, order: list[int | str]) -> Plan:
    """Return a plan that claims no more than its programs use."""
    found = touches(plan)
    use = use_of(plan, found)
    segments = tuple(
        replace(one, reads=reads, writes=writes)
        for one, reads, writes in zip(plan.segments, use.reads, use.writes, strict=True)
    )
    plan = replace(plan, segments=segments, steps=steps_of(plan.graph, segments, order))
    crossing = {name for one in segments for name in (*one.reads, *one.writes)}
    ends = extents(found)
    tensors = [
        replace(
            one,
            bytes=tensor_bytes(one.type)
            if one.name in crossing
            else up(ends[one.name][1] - one.offset),
        )
        for one in use_of(plan, found).tensors
    ]
    return replace(plan, tensors=tuple(tensors))


def _segment(one: Segment, limits: Limits) -> PlannedSegment:
    program = one.program.instructions
    return PlannedSegment(
        tuple(each.name for each in one.operations),
        one.program.image(),
        one.text,
        one.first_word,
        {number: BASES[number] for number in sorted({one.register for one in transfers(program)})},
        max(piece.offset + piece.bytes for piece in taken(program, limits)),
        sram_bytes(program, limits),
        one.reads,
        one.writes,
    )


def _for_running(graph: Graph) -> Graph:
    """Return the graph without what only programs and stream need of it."""
    wanted = {*graph.outputs}
    for one in graph.operations:
        if not one.on_chip:
            wanted.update(one.used)
    operations = [replace(one, integers={}) if one.on_chip else one for one in graph.operations]
    tensors = [
        replace(tensor, data=None)
        for name, tensor in graph.tensors.items()
        if tensor.constant and name not in wanted
    ]
    return graph.with_operations(operations, tensors)
