# SPDX-License-Identifier: Apache-2.0
"""The host's registers, and what it shares with the command port in memory.

Single sources are the SystemRDL files of this folder and `descriptors.toml`.
"""

from spec.regs.fields import RegField
from spec.regs.generated import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    CMD_FIELDS,
    COP_BASE,
    COP_FIELDS,
    DESC_ENTRY,
    DESC_EXTENSION,
    DESC_PROGRAM,
    DESC_RECORD,
    RING_STATUS_TEXT,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    CmdOp,
    CmdReg,
    CopReg,
    MachineStart,
    RingStatus,
    SeqReg,
    StartState,
)

NO_TOKEN = StartState().eos
"""The value of EOS that no token ends, as after a reset."""

__all__ = [
    "CHIP_BASE",
    "CHIP_FIELDS",
    "CMD_BASE",
    "CMD_FIELDS",
    "COP_BASE",
    "COP_FIELDS",
    "DESC_ENTRY",
    "DESC_EXTENSION",
    "DESC_PROGRAM",
    "DESC_RECORD",
    "NO_TOKEN",
    "RING_STATUS_TEXT",
    "SEQ_BASE",
    "SEQ_FIELDS",
    "ChipReg",
    "CmdOp",
    "CmdReg",
    "CopReg",
    "MachineStart",
    "RegField",
    "RingStatus",
    "SeqReg",
    "StartState",
]
