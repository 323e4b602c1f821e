# SPDX-License-Identifier: Apache-2.0
"""Runs compiled networks on the instruction model, races looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np

from golden.command.model import ModelBus
from golden.graph import run as run_golden
from golden.machine import ChipConfig
from npu.compiler.network import CompiledNetwork, compile_network
from npu.driver.chip import Chip
from npu.graph.form import Array, Graph
from npu.planner.network_plan import plan_of
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, NetworkRun, Replay
from spec.isa.operands import Limits, up


def run_compiled(
    network: CompiledNetwork,
    inputs: Mapping[str, Array],
    *,
    limits: Limits | None = None,
    seed: int = 1,
) -> NetworkRun:
    """Run a network on a chip whose memory and SRAM hold random bytes before; a race raises."""
    chip_limits = limits or Limits()
    prepared = prepare(plan_of(network))
    random = np.random.default_rng(seed)
    memory = random.integers(0, 256, up(prepared.end), np.uint8)
    config = ChipConfig(chip_limits.array_dim, chip_limits.sram_bytes, chip_limits.acc_rows)
    sram = random.integers(0, 256, config.sram_bytes, np.uint8)

    async def run() -> NetworkRun:
        chip = await Chip.connect(ModelBus(memory, config=config, sram=sram, races=True))
        driven = DrivenChip(chip)
        await driven.load(prepared)
        return await Replay(prepared, driven).run(inputs)

    return asyncio.run(run())


def run_graph(
    graph: Graph, inputs: Mapping[str, Array], *, limits: Limits | None = None
) -> Mapping[str, Array]:
    """Compile a fused graph and return what the instruction model makes of it."""
    return run_compiled(compile_network(graph, limits), inputs, limits=limits).outputs


def run_as_golden(
    graph: Graph, inputs: Mapping[str, Array], limits: Limits | None = None
) -> tuple[CompiledNetwork, Mapping[str, Array]]:
    """Return a fused graph compiled and its outputs, which are golden's bit for bit."""
    network = compile_network(graph, limits)
    expected, found = (
        run_golden(graph, inputs),
        run_compiled(network, inputs, limits=limits).outputs,
    )
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
    return network, found


def gemms(network: CompiledNetwork) -> list[str]:
    """Return the text of each GEMM."""
    lines = "".join(one.text for one in network.segments).splitlines()
    return [line for line in lines if line.startswith("GEMM")]
