# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs as programs of scenes: compiled for the chip, with golden's outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from golden import graph as golden
from npu.compiler.network import compile_network
from npu.graph import text
from npu.graph.form import Array, Graph
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Action
from npu.runtime.prepare import Prepared, bases_from, prepare
from npu.runtime.tensor_rows import from_rows, tensor_bytes, to_rows
from spec.isa.operands import Limits
from spec.regs import StartState
from tb.bench.environment import STREAM
from tb.bench.memory import Memory
from tb.bench.scenes import Keep, chosen, names_of
from tb.bench.scoreboard import MismatchError
from tb.stimulus.random_graphs import random_graph

OPERATIONS = (1, 5)
"""Least and most operations of a graph."""
MOST_BYTES = 1 << 22
"""Of the compiled graph in memory."""


@dataclass(frozen=True)
class SceneGraph:
    """A graph that is one program of the chip.

    Attributes:
        graph: the network.
        limits: sizes of the chip.
        seed: of the values that it takes.
    """

    graph: Graph
    limits: Limits
    seed: int

    @property
    def names(self) -> list[str]:
        """What its operations are called as parts of a scene."""
        return names_of("g", self.graph.operations)

    def keeping(self, keep: Keep) -> SceneGraph | None:
        """Return the graph with some of its operations; what the others made is given to it."""
        kept = chosen("g", self.graph.operations, keep)
        if not kept:
            return None
        made = [name for one in kept for name in one.outputs]
        read = dict.fromkeys(name for one in kept for name in one.used)
        given = [name for name in read if name not in made and self.graph.constant(name) is None]
        outputs = [name for name in made if name not in read or name in self.graph.outputs]
        graph = replace(self.graph, inputs=tuple(given), outputs=tuple(outputs))
        return replace(self, graph=graph.with_operations(kept))

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """What it takes, full-range, by name; the same whatever else the graph takes."""
        values = {}
        for name in self.graph.inputs:
            kind = self.graph.type(name)
            bounds = np.iinfo(kind.element.dtype)
            random = np.random.default_rng((self.seed, *name.encode()))
            drawn = random.integers(bounds.min, bounds.max, kind.shape, endpoint=True)
            values[name] = drawn.astype(kind.element.dtype)
        return values

    @cached_property
    def prepared(self) -> Prepared:
        """The compiled graph at its addresses."""
        plan = plan_of(compile_network(self.graph, self.limits))
        return prepare(plan, bases_from(plan, STREAM))

    @property
    def fits(self) -> bool:
        """Whether it is one program that needs nobody else, and not a large one."""
        steps = [step.action for step in self.prepared.plan.steps]
        others = set(steps) - {Action.PACK, Action.LAUNCH, Action.UNPACK}
        small = self.prepared.end - STREAM <= MOST_BYTES
        return small and not others and steps.count(Action.LAUNCH) == 1

    @property
    def start(self) -> StartState:
        """How its program starts."""
        return self.prepared.starts[0]

    def stage(self, memory: Memory) -> None:
        """Put program, parameters and inputs into memory."""
        for address, data in self.prepared.memory:
            memory.stage(address, data)
        for name, value in self.inputs.items():
            rows = to_rows(value, self.graph.type(name))
            memory.stage(self.prepared.address(name), rows)

    def check(self, memory: Memory) -> None:
        """Compare its outputs with golden's.

        Raises:
            MismatchError: they differ.
        """
        expected = golden.run(self.graph, self.inputs)
        for name in self.graph.outputs:
            kind = self.graph.type(name)
            data = memory.read(self.prepared.address(name), tensor_bytes(kind))
            if not np.array_equal(from_rows(data, kind), expected[name]):
                raise MismatchError(f"output {name} of the graph differs from golden")

    def text(self) -> str:
        """Return the graph for people."""
        return text.outline(self.graph).rstrip()


def draw_graph(random: np.random.Generator, limits: Limits) -> SceneGraph:
    """Return a random graph that is one program of the chip."""
    while True:
        seed = int(random.integers(1 << 32))
        found = SceneGraph(random_graph(seed, operations=OPERATIONS)[0], limits, seed)
        if found.fits:
            return found
