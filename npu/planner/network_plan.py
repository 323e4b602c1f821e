# SPDX-License-Identifier: Apache-2.0
"""The plan of a compiled network."""

from __future__ import annotations

from dataclasses import replace

from npu.compiler.network import CompiledNetwork, Segment
from npu.graph.form import Graph
from npu.runtime.plan import Origin, Plan, PlannedSegment


def plan_of(network: CompiledNetwork, origin: Origin | None = None) -> Plan:
    """Return the plan of a compiled network."""
    segments = tuple(map(_segment, network.segments))
    numbers = iter(range(len(segments)))
    steps = tuple(next(numbers) if isinstance(one, Segment) else one.name for one in network.steps)
    taken = {name for one in segments for name in (*one.reads, *one.writes)}
    return Plan(
        _for_running(network.graph),
        steps,
        segments,
        network.limits,
        network.stream,
        network.shares,
        network.constants,
        network.arena,
        {name: network.offsets[name] for name in sorted(taken)},
        origin or Origin(),
    )


def _segment(one: Segment) -> PlannedSegment:
    return PlannedSegment(
        tuple(each.name for each in one.operations),
        one.program.image(),
        one.text,
        one.first_word,
        max((share.offset + share.bytes for share in one.shares), default=0),
        one.sram_bytes,
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
