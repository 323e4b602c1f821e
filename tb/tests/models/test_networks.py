# SPDX-License-Identifier: Apache-2.0
"""Networks: random quantised graphs on the RTL, the instruction model and golden, equal in all."""

from __future__ import annotations

import cocotb
import numpy as np

from golden.graph import run
from npu.compiler.network import compile_network
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.network_session import run_network
from tb.stimulus.random_graphs import random_graph

TAGS = ("networks", "random", "long")

SHORT, FULL = 3, 170
"""Graphs of a run; three seeds of the full form are more than 500."""
LIMIT = 4_000_000


@cocotb.test
async def test_networks_random(dut: Dut) -> None:
    """Graphs of 2 to 30 operations, of the host too: chip, model and golden agree in every byte."""
    bench = await Bench.start(dut)
    for _ in range(FULL if full() else SHORT):
        seed = int(bench.random.integers(1 << 32))
        graph, inputs = random_graph(seed)
        expected = run(graph, inputs)
        found = await run_network(bench, compile_network(graph, bench.limits), inputs, limit=LIMIT)
        for name in graph.outputs:
            same = np.array_equal(found.outputs[name], expected[name], equal_nan=True)
            assert same, f"random_graph({seed}): output {name} differs from golden"
