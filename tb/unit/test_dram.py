# SPDX-License-Identifier: Apache-2.0
"""What the DRAMs of the bench give at most: a plain reader of long bursts."""

from __future__ import annotations

import cocotb

from tb.bench.dut import Dut
from tb.bench.memory_kinds import CEILING, MemoryKind
from tb.unit.world import UnitBench, World

WORD = 16
BYTES = 16 << 20
"""Enough for a hundred refreshes of the DDR4."""
MARGIN = 0.002


async def _share(unit: UnitBench, kind: MemoryKind) -> float:
    """Return the share of the bus's words that the reader gets."""
    await unit.run(World(), 2 * BYTES // WORD, words=int(kind), stream_bytes=BYTES)
    return BYTES / WORD / int(unit.memory.data[:8].view("<u8")[0])


@cocotb.test
async def unit_dram_ceiling(dut: Dut) -> None:
    """A plain reader gets the share of the bus that benchmarks of a DRAM are held against."""
    unit = UnitBench.of(dut)
    for kind, ceiling in CEILING.items():
        share = await _share(unit, kind)
        print(f"{kind.name.lower()}: {share:.4f} of the bus")
        assert abs(share - ceiling) < MARGIN, f"{kind.name}: {share:.4f}, expected {ceiling}"


@cocotb.test
async def unit_dram_none(dut: Dut) -> None:
    """The memory without banks and refresh gives the same reader a word in every cycle."""
    share = await _share(UnitBench.of(dut), MemoryKind.FIXED)
    assert 1 > share > 1 - 10 * WORD / BYTES, f"{share:.6f} of the bus"
