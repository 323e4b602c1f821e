# SPDX-License-Identifier: Apache-2.0
"""Networks on the instruction model: every bit that the chip makes, without a simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.compiler.network import CompiledNetwork
from npu.driver.chip import Chip
from npu.graph.form import Array
from npu.graph.states import States
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Plan
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, NetworkRun, Replay
from spec.isa.operands import up


def run_on_golden(
    network: CompiledNetwork | Plan,
    inputs: Mapping[str, Array],
    *,
    inner: bool = False,
    states: States | None = None,
) -> NetworkRun:
    """Run a network once.

    Args:
        network: compiled, or its plan.
        inputs: of its graph by name, in shape and type of the graph.
        states: what the run finds and changes; those of a first run without.
        inner: keep what segments leave for others and what the host makes, too.

    Raises:
        GraphError: an operation of the host cannot be evaluated.
        ProgramFailed: a segment ended with an error.
    """
    plan = network if isinstance(network, Plan) else plan_of(network)
    limits = plan.limits
    prepared = prepare(plan)
    config = ChipConfig(**asdict(limits))
    bus = ModelBus(np.zeros(up(prepared.end), np.uint8), config=config)

    async def run() -> NetworkRun:
        driven = DrivenChip(await Chip.connect(bus))
        await driven.load(prepared)
        return await Replay(prepared, driven, states=states).run(inputs, inner=inner)

    return asyncio.run(run())
