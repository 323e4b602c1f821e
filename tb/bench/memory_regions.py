# SPDX-License-Identifier: Apache-2.0
"""The memory regions as a host programs them, and what they permit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spec.regs.generated import CHIP_BASE, ChipReg
from tb.bench.bursts import PAGE
from tb.bench.environment import Bench

COUNT = 8


@dataclass(frozen=True)
class RegionRegisters:
    """What a region permits: from the page of byte `base` to the page of byte `limit`."""

    base: int
    limit: int
    read: bool
    write: bool

    def permits(self, address: int, *, write: bool) -> bool:
        """Whether this region alone permits an access to the page of `address`."""
        inside = self.base // PAGE <= address // PAGE <= self.limit // PAGE
        return inside and (self.write if write else self.read)


OPEN = RegionRegisters(0, (1 << 32) - 1, True, True)
CLOSED = RegionRegisters(0, (1 << 32) - 1, False, False)


def permitted(regions: Sequence[RegionRegisters], address: int, *, write: bool) -> bool:
    """Whether any of `regions` permits an access to the page of `address`."""
    return any(region.permits(address, write=write) for region in regions)


async def set_region(
    bench: Bench, index: int, region: RegionRegisters, *, lock: bool = False
) -> None:
    """Program region `index`."""
    at = CHIP_BASE + ChipReg[f"REGION{index}_BASE"]
    control = region.read | region.write << 1 | lock << 2
    values = (region.base & -PAGE, region.limit & -PAGE, control)
    for offset, value in zip((0, 4, 8), values, strict=True):
        await bench.bus.write32(at + offset, value)


async def protect(bench: Bench, regions: Sequence[RegionRegisters]) -> None:
    """Program all regions; those not given are closed."""
    for index in range(COUNT):
        await set_region(bench, index, regions[index] if index < len(regions) else CLOSED)
