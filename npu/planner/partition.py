# SPDX-License-Identifier: Apache-2.0
"""Splits a network into parts for the chip and parts for whoever else executes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npu.compiler.network.network import groups_of
from npu.graph.form import Graph, GraphError, Operation
from npu.graph.importers import named, opened, read, usual_samples
from npu.graph.inputs import Samples
from npu.graph.prepare import prepare


@dataclass(frozen=True)
class Part:
    """Operations that run together.

    Attributes:
        delegated: whether the chip executes them, in programs or on its command port.
        graph: of these operations alone; its inputs and outputs are what crosses the border.
        reasons: why each operation is there, by its name.
    """

    delegated: bool
    graph: Graph
    reasons: Mapping[str, str]

    @property
    def sources(self) -> tuple[str, ...]:
        """What the operations are called in the file, in order."""
        return tuple(one.source or one.kind for one in self.graph.operations)


def partition(
    source: Any,  # noqa: ANN401
    *,
    calibrate: Samples | str | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    host: Sequence[str] = (),
    npu: Sequence[str] = (),
    port: Sequence[str] = (),
) -> list[Part]:
    """Split a network; parts stand in an order in which they can run.

    No part depends on itself through another one.

    Args:
        source: a graph, or what `npu.graph.importers.read` takes.
        calibrate: samples of a network in float, as `build_plan`.
        shapes: of inputs with free dimensions, by name.
        host: names of operations, or kinds, that are not to be delegated.
        npu: names of operations, or kinds, that are to run in programs of the chip.
        port: names of operations, or kinds, that are to run on its command port.

    Raises:
        GraphError: file, samples or an argument is wrong; naming file, operation and tensor.
    """
    source = opened(source)
    file = "" if isinstance(source, Graph) else named(source)
    graph = source if isinstance(source, Graph) else read(source, shapes=shapes)
    if shapes and isinstance(source, Graph):
        raise GraphError("shapes: given for a graph, allowed for files")
    if graph.states:
        name = graph.states[0].input
        raise GraphError(
            f"{file}: " * bool(file) + f"state {name!r}: given one, allowed none: the "
            "parts of a network leave nothing to their next run"
        )
    samples = usual_samples(source, graph) if calibrate is None else calibrate
    fused = prepare(graph, samples=samples, host=host, npu=npu, port=port, file=file)
    return [_part(fused, group) for group in groups_of(fused, _delegated)]


def _delegated(one: Operation) -> bool:
    return one.on_chip or one.on_port


def _part(graph: Graph, group: Sequence[Operation]) -> Part:
    reasons = {one.name: one.place.reason if one.place else "" for one in group}
    return Part(_delegated(group[0]), subgraph(graph, group), reasons)


def subgraph(graph: Graph, group: Sequence[Operation]) -> Graph:
    """Return some operations of a graph as a graph: what crosses their border goes in and out."""
    made = {name for one in group for name in one.outputs}
    own = {one.name for one in group}
    needed = {*graph.outputs}
    for one in graph.operations:
        if one.name not in own:
            needed.update(one.used)
    taken = dict.fromkeys(
        name for one in group for name in one.used if name not in made and not graph[name].constant
    )
    part = Graph(
        f"{graph.name}: {group[0].name}",
        tuple(taken),
        tuple(name for one in group for name in one.outputs if name in needed),
        graph.tensors,
        (),
    )
    return part.with_operations(group)
