# SPDX-License-Identifier: Apache-2.0
"""Compiled networks on the instruction model: every bit that the chip makes, without a simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.compiler.network import CompiledNetwork
from npu.driver.chip import Chip
from npu.graph.form import Array
from npu.isa.operands import Limits
from npu.runtime.network_runner import DrivenChip, NetworkRun, NetworkRunner


def run_on_golden(
    network: CompiledNetwork, inputs: Mapping[str, Array], limits: Limits | None = None
) -> NetworkRun:
    """Run a network once.

    Args:
        network: compiled for a chip of these limits.
        inputs: of its graph by name, in shape and type of the graph.
        limits: of the chip, the standard one if None.

    Raises:
        GraphError: an operation of the host cannot be evaluated.
        ProgramFailed: a segment ended with an error.
    """
    chip_limits = limits or Limits()
    runner = NetworkRunner(network)
    config = ChipConfig(chip_limits.array_dim, chip_limits.sram_bytes, chip_limits.acc_rows)
    bus = ModelBus(np.zeros(runner.end, np.uint8), config=config)

    async def run() -> NetworkRun:
        driven = DrivenChip(await Chip.connect(bus))
        driven.stage(runner.pieces)
        return await runner.run(driven, inputs)

    return asyncio.run(run())
