# SPDX-License-Identifier: Apache-2.0
"""What every register must read after a reset, from the register description."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cocotb

from spec.regs import RingStatus
from spec.regs.source import Register, load_all
from tb.bench.host import RtlBus

WORD = 0xFFFF_FFFF


@dataclass(frozen=True)
class ResetValue:
    """A register's value after a reset; `mask` has the bits whose value is known."""

    name: str
    address: int
    value: int
    mask: int


def _fixed() -> dict[str, int]:
    """Return what read-only registers show that do not reset to what their fields say."""
    scratch_bytes = int(str(cocotb.plusargs["scratch_bytes"]))
    return {"cmd.DESC_STATUS": RingStatus.EMPTY, "cmd.CMD_CONFIG": scratch_bytes, "seq.STATUS": 0}


def _documented(register: Register) -> tuple[int, int]:
    """Return (value, bits whose value is known); reserved bits read 0."""
    value, mask = 0, WORD
    for field in register.fields:
        if field.reset is None or "write 1" in field.access:
            mask &= ~(((1 << field.width) - 1) << field.lsb)
        else:
            value |= field.reset << field.lsb
    return value, mask


def reset_values(*windows: str) -> Iterator[ResetValue]:
    """Yield the reset values of the registers of windows, by their keys; of all without keys."""
    fixed = _fixed()
    for window in load_all():
        for register in window.registers:
            name = f"{window.key}.{register.name}"
            value, mask = _documented(register)
            if window.key == "cmd":  # what has no reset value there reads 0
                mask = WORD
            if name in fixed:
                value, mask = fixed[name], WORD
            if not windows or window.key in windows:
                yield ResetValue(name, window.base + register.offset, value, mask)


async def assert_reset_values(bus: RtlBus, *windows: str) -> None:
    """Read every register of the windows; each holds its documented value."""
    for register in reset_values(*windows):
        actual = await bus.read32(register.address)
        assert actual & register.mask == register.value, (
            f"{register.name}: {actual:#010x}, documented {register.value:#010x}"
        )
