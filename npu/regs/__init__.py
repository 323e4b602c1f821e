# SPDX-License-Identifier: Apache-2.0
"""The host's registers. The SystemRDL files in this folder are their single source."""

from npu.regs.generated import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    CMD_FIELDS,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    CmdOp,
    CmdReg,
    RegField,
    SeqReg,
)

__all__ = [
    "CHIP_BASE",
    "CHIP_FIELDS",
    "CMD_BASE",
    "CMD_FIELDS",
    "SEQ_BASE",
    "SEQ_FIELDS",
    "ChipReg",
    "CmdOp",
    "CmdReg",
    "RegField",
    "SeqReg",
]
