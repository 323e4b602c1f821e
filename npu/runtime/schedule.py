# SPDX-License-Identifier: Apache-2.0
"""The steps of a plan: what follows from the order of segments and operations.

The host puts what a batch of launches takes into the arena before it, and fetches what others need
behind it, so that launches stand behind one another and can go into the descriptor ring together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npu.graph.form import Graph, Operation
from npu.runtime.plan import Action, PlannedSegment, PlanStep

MOST_LAUNCHES = 3
"""Of a batch: a launch takes two of the ring's seven entries."""


def steps_of(
    graph: Graph, segments: Sequence[PlannedSegment], order: Sequence[int | str]
) -> tuple[PlanStep, ...]:
    """Return the steps.

    Args:
        graph: with places.
        segments: with what they read and write.
        order: numbers of segments and names of other operations as they run.
    """
    return tuple(_Schedule(graph, segments).steps(order))


def batches_of(steps: Sequence[PlanStep]) -> tuple[tuple[int, ...], ...]:
    """Return the launches that stand behind one another, in groups of at most MOST_LAUNCHES."""
    groups: list[list[int]] = []
    before: Action | None = None
    for step in steps:
        if step.action is Action.LAUNCH:
            if before is not Action.LAUNCH or len(groups[-1]) == MOST_LAUNCHES:
                groups.append([])
            groups[-1].append(step.segment)
        before = step.action
    return tuple(map(tuple, groups))


class _Schedule:
    def __init__(self, graph: Graph, segments: Sequence[PlannedSegment]) -> None:
        self.segments = segments
        self.operations = {op.name: op for op in graph.operations}
        elsewhere = [op for op in graph.operations if not op.on_chip]
        self.fetched = {*graph.outputs, *(name for one in elsewhere for name in one.used)}
        self.constant = {name for name, one in graph.tensors.items() if one.constant}
        self.arena: set[str] = set()

    def steps(self, order: Sequence[int | str]) -> Iterator[PlanStep]:
        run: list[int] = []
        for one in order:
            if isinstance(one, int):
                run.append(one)
                continue
            yield from self.launches(run)
            run = []
            yield self.other(self.operations[one])
        yield from self.launches(run)

    def launches(self, run: list[int]) -> Iterator[PlanStep]:
        segments = [self.segments[number] for number in run]
        made: set[str] = set()
        for one in segments:
            for name in one.reads:
                if name not in made and name not in self.arena:
                    self.arena.add(name)
                    yield PlanStep(Action.PACK, name, (name,), (name,))
            made.update(one.writes)
        for number, one in zip(run, segments, strict=True):
            yield PlanStep(Action.LAUNCH, number, one.reads, one.writes)
        self.arena |= made
        for one in segments:
            for name in one.writes:
                if name in self.fetched:
                    yield PlanStep(Action.UNPACK, name, (name,), (name,))

    def other(self, op: Operation) -> PlanStep:
        reads = tuple(dict.fromkeys(name for name in op.used if name not in self.constant))
        return PlanStep(Action.PORT if op.on_port else Action.HOST, op.name, reads, op.outputs)
