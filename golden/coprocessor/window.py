# SPDX-License-Identifier: Apache-2.0
"""Names of the coprocessor's registers."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class CopReg(IntEnum):
    """Offsets in the window."""

    ACC_LO = 0x00
    ACC_HI = 0x04
    VREG0 = 0x08
    VREG1 = 0x0C
    VREG2 = 0x10
    VREG3 = 0x14
    FACC_LO = 0x18
    FACC_HI = 0x1C
    STATUS = 0x40
    CTRL = 0x44
    FAULT_INSTR = 0x48
    FAULT_ADDR = 0x4C
    FAULT_INDEX = 0x50
    LIMIT = 0x54
    INSTRS = 0x58
    CYCLES = 0x5C
    BEATS = 0x60
    CONFIG = 0x7C


class Control(IntFlag):
    """Bits of CTRL."""

    CLEAR = 1
    TRAP = 2


STATUS_FAULT = 2
STATUS_CODE = 4
"""STATUS: bit FAULT, and where CODE begins."""
CONFIG_VERSION = 1
