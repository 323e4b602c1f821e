# SPDX-License-Identifier: Apache-2.0
"""The memories that the bench has, and what they give at most."""

from __future__ import annotations

from enum import IntEnum


class MemoryKind(IntEnum):
    """What answers the chip: the numbers are those of `tb_pkg`, the parts those of dram.h."""

    FIXED = 0
    DDR4 = 1
    LPDDR4 = 2


CEILING = {MemoryKind.DDR4: 0.951, MemoryKind.LPDDR4: 0.917}
"""Share of the bus that a plain reader of long bursts gets: `unit_dram_ceiling` measures it."""

DRAMS = tuple(kind.name.lower() for kind in MemoryKind if kind)
"""What `MEMORY=` takes."""


def suffix(kind: MemoryKind) -> str:
    """Return what the name of a benchmark on a memory ends with."""
    return f"_{kind.name.lower()}" if kind else ""
