# SPDX-License-Identifier: Apache-2.0
"""The rules of AXI on both ports: what the standard allows is no breach.

With a plusarg `scene` that breach is played as well, which ends the simulation: see
tests/suites/test_axi_rules.py.
"""

from __future__ import annotations

import cocotb
from cocotb.triggers import FallingEdge

from tb.bench.dut import Dut
from tb.unit.axi_scenes import BREACHES, LEGAL, QUIET, AxiScene

SIGNALS = sorted(
    {
        name
        for scene in (*BREACHES.values(), *LEGAL.values())
        for cycle in scene.cycles
        for name in cycle
    }
    | set(QUIET)
)


async def _play(dut: Dut, scene: AxiScene) -> None:
    """Play a scene behind a reset and a quiet cycle, or in the reset; then a quiet cycle."""
    dut.rst_n.value = 0
    for cycle in [{}, {}, *scene.cycles, {}]:
        for name in SIGNALS:
            getattr(dut, name).value = (QUIET | cycle).get(name, 0)
        await FallingEdge(dut.clk)
        dut.rst_n.value = int(not scene.asleep)


@cocotb.test
async def unit_axi_rules(dut: Dut) -> None:
    """Scenes that the standard allows, then the one that is asked for."""
    await FallingEdge(dut.clk)
    for scene in LEGAL.values():
        await _play(dut, scene)
    if "scene" in cocotb.plusargs:
        await _play(dut, BREACHES[str(cocotb.plusargs["scene"])])
