# SPDX-License-Identifier: Apache-2.0
"""The rules of the coprocessor's port: each is seen when it is broken, and only then."""

from __future__ import annotations

import cocotb
from cocotb.triggers import FallingEdge

from tb.bench.dut import Dut
from tb.cop.rule_scenes import BREACHES, LEGAL, QUIET, Scene, rules

SIGNALS = sorted({name for scene in (*BREACHES.values(), *LEGAL.values()) for cycle in scene.cycles
                  for name in cycle} | set(QUIET))  # fmt: skip


async def _broken(dut: Dut, scene: Scene) -> list[set[str]]:
    """Play a scene after a reset; return the rules that are broken in each of its cycles."""
    found = []
    dut.split.value, dut.rst_n.value = scene.split, 0
    for cycle in [QUIET, *scene.cycles]:
        for name in SIGNALS:
            getattr(dut, name).value = (QUIET | cycle).get(name, 0)
        await FallingEdge(dut.clk)
        dut.rst_n.value = 1
        bits = int(dut.broken.value)
        found.append({rule for at, rule in enumerate(rules()) if bits >> at & 1})
    return found[1:]


@cocotb.test
async def unit_cop_rules_breaches(dut: Dut) -> None:
    """The last cycle of each scene breaks the rule whose name it has, and nothing else does."""
    await FallingEdge(dut.clk)
    for rule, scene in BREACHES.items():
        *before, last = await _broken(dut, scene)
        assert not any(before) and last == {rule}, f"{rule}: {before}, {last}"


@cocotb.test
async def unit_cop_rules_kept(dut: Dut) -> None:
    """What the standard allows breaks no rule."""
    await FallingEdge(dut.clk)
    for name, scene in LEGAL.items():
        found = await _broken(dut, scene)
        assert not any(found), f"{name}: {found}"
