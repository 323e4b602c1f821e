# SPDX-License-Identifier: Apache-2.0
"""A test of the chip for `recipes/kind_of_operation.patch`: it goes into tb/tests of the copy."""

from __future__ import annotations

import cocotb
import numpy as np

from golden.graph import run
from npu.compiler.network import compile_network
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.network_session import run_network
from tb.stimulus.random_graphs import random_graph

TAGS = ("networks",)
LIMIT = 4_000_000
GRAPHS = 6


@cocotb.test
async def test_average(dut: Dut) -> None:
    """Random graphs with means in them: chip, model and golden agree in every byte."""
    bench = await Bench.start(dut)
    left = GRAPHS
    while left:
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed, operations=(2, 8), only="elementwise")
        if "average" not in {one.kind for one in graph.operations}:
            continue
        left -= 1
        expected = run(graph, inputs)
        found = await run_network(bench, compile_network(graph, bench.limits), inputs, limit=LIMIT)
        for name in graph.outputs:
            same = np.array_equal(found.outputs[name], expected[name])
            assert same, f"random_graph({seed}): output {name} differs from golden"
