# SPDX-License-Identifier: Apache-2.0
"""Plans for tests on the chip: drawn, placed, loaded, and compared with golden."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Operation,
    OperationPlace,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.operations.port import GROUPED
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Plan
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import Bases, Prepared, prepare, sizes_of
from npu.runtime.replay import By, DrivenChip, NetworkRun, Replay
from tb.bench import graph_coverage
from tb.bench.environment import Bench
from tb.stimulus.port_operands import port_operands
from tb.stimulus.random_graphs import random_graph

LIMIT = 4_000_000
"""Cycles that a batch may take."""
ROOM = 8 << 20
"""Bytes of memory over which parts are spread."""
BOTH: tuple[By, ...] = ("registers", "ring")
SHORT, FULL = 1, 12
"""Networks of a run."""
PORT = OperationPlace(Target.PORT, "drawn for the command port")


def drawn(bench: Bench, launches: int) -> tuple[Plan, Mapping[str, Array], Mapping[str, Array]]:
    """Return a random network cut into launches, inputs, and what golden makes of them.

    The plan has been written and read back: its verification is part of every test.
    """
    while True:
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed, operations=(6, 14))
        whole = compile_network(graph, bench.limits)
        if len(whole.segments) != 1 or len(whole.segments[0].first_word) < launches:
            continue
        names = list(whole.segments[0].first_word)
        cuts = np.sort(bench.random.choice(len(names) - 1, launches - 1, replace=False))
        network = compile_network(graph, bench.limits, split=[names[i] for i in cuts])
        plan = plan_from(files_of(plan_of(network)))
        if prepare(plan).batches[0].launches == tuple(range(launches)):
            return plan, inputs, run(graph, inputs)


def spread(random: np.random.Generator, plan: Plan) -> Bases:
    """Return random addresses in a random order, multiples of 64."""
    order = [str(name) for name in random.permutation(Bases.names())]
    sizes = sizes_of(plan)
    used = sum(sizes.values()) + 64 * len(sizes)
    gaps = np.sort(random.integers(0, (ROOM - used) // 64, len(order)))
    found, at = {}, 0
    for name, gap in zip(order, gaps, strict=True):
        # The arena of a decoder with a cache in memory begins at a multiple of 256.
        found[name] = -(-(at + 64 * int(gap)) // plan.alignment) * plan.alignment
        at = found[name] - 64 * int(gap) + -(-sizes[name] // 64) * 64
    return Bases(**found)


def compare(found: NetworkRun, expected: Mapping[str, Array], where: str) -> None:
    """Compare the outputs of a run with what golden makes."""
    for name, value in expected.items():
        assert np.array_equal(found.outputs[name], value, equal_nan=True), f"{where}: {name}"


async def loaded(bench: Bench, prepared: Prepared) -> Replay:
    """Return a plan on the chip, which was made ready for it."""
    driven = DrivenChip(bench.chip)
    await driven.load(prepared)
    bench.add_hits(graph_coverage.samples(prepared.plan.graph))
    return Replay(prepared, driven)


def product(
    random: np.random.Generator, name: str, shape: tuple[int, int, int]
) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of one product of two inputs, and their values."""
    group = int(random.integers(1, shape[1] + 1)) if name == GROUPED else 0
    values = dict(zip("abs", port_operands(random, name, shape, group), strict=False))
    tensors = {
        key: Tensor(key, TensorType(value.shape, Element.of(value.dtype)))
        for key, value in values.items()
    }
    tensors["y"] = Tensor("y", TensorType((shape[0], shape[2]), Element.I32))
    exact = name in ("fp16", "bf16") and bool(random.integers(2))
    attributes: dict[str, Attribute] = {"format": name, "group": group, "exact": exact}
    one = Operation("product", "portmatmul", tuple(values), ("y",), attributes, "test", PORT)
    return Graph("product", tuple(values), ("y",), tensors, (one,)), values
