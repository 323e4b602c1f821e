# SPDX-License-Identifier: Apache-2.0
"""A plan as JSON has it (`plan.schema.json`), with everything that follows from its programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from npu.graph.form import Graph
from npu.runtime.account import total, word_costs
from npu.runtime.plan import Plan, PlannedSegment, PlannedTensor, PlanStep
from npu.runtime.schedule import batches_of

FORMAT = 2


def record_of(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON, but for the entry `image`."""
    record = {
        "format": FORMAT,
        "origin": asdict(plan.origin),
        "chip": asdict(plan.limits),
        "decoder": None if plan.decoder is None else plan.decoder.record(),
        "arena": {"bytes": plan.arena, "alignment": plan.alignment},
        "tensors": [_tensor(one) for one in plan.tensors],
        "segments": [_segment(plan, number) for number in range(len(plan.segments))],
        "steps": step_records(plan.steps),
        "batches": [list(one) for one in batches_of(plan.steps)],
    }
    states = state_records(plan.graph)
    # Plans without are as they were before there were any.
    return {**record, "states": states} if states else record


def step_records(steps: Sequence[PlanStep]) -> list[dict[str, Any]]:
    """Return steps as JSON has them."""
    return [
        {
            "action": step.action.value,
            "of": step.of,
            "reads": list(step.reads),
            "writes": list(step.writes),
        }
        for step in steps
    ]


def state_records(graph: Graph) -> list[dict[str, Any]]:
    """Return states as JSON has them; all of them are with the host between two runs."""
    return [
        {
            "input": one.input,
            "output": one.output,
            "bytes": graph.type(one.input).bytes,
            "kept": "host",
        }
        for one in graph.states
    ]


def section_of(number: int) -> str:
    """Return the name of the section with the program of a segment."""
    return f"segment{number}"


def _tensor(one: PlannedTensor) -> dict[str, Any]:
    quantisation = one.type.quantisation
    return {
        "name": one.name,
        "element": one.type.element.value,
        "shape": list(one.type.shape),
        "scale": None if quantisation is None else quantisation.scale,
        "zero": 0 if quantisation is None else quantisation.zero,
        "offset": one.offset,
        "bytes": one.bytes,
        "first": one.first,
        "last": one.last,
    }


def _segment(plan: Plan, number: int) -> dict[str, Any]:
    one = plan.segments[number]
    costs = [] if plan.decoder is not None else word_costs(one.program, plan.limits)
    by_owner: dict[str, list[int]] = {}
    for index, owner in enumerate(one.owners):
        by_owner.setdefault(owner, []).append(index)
    cycles = sum(
        total(costs[index] for index in indices).ideal_cycles(plan.limits)
        for owner, indices in by_owner.items()
        if owner
    )
    return {
        "section": section_of(number),
        "words": len(one.program),
        "sram_bytes": one.sram_bytes,
        "stream_bytes": one.stream_bytes,
        "bases": [
            {"register": register, "area": base.area.value, "offset": base.offset}
            for register, base in sorted(one.bases.items())
        ],
        "registers": dict(one.registers),
        "operations": _operations(one),
        "reads": list(one.reads),
        "writes": list(one.writes),
        "cost": asdict(total(costs)) if costs else None,
        "cycles": cycles if costs else None,
    }


def _operations(one: PlannedSegment) -> list[dict[str, Any]]:
    return [
        {"name": name, "word": one.first_word.get(name), "words": one.owners.count(name)}
        for name in one.operations
    ]
