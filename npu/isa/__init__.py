# SPDX-License-Identifier: Apache-2.0
"""The microcode instruction set: `isa.toml` is its single source. Standard library only."""

from npu.isa.fields import BitField, FieldInfo, OpcodeInfo, SetRegInfo
from npu.isa.generated import (
    ISA_VERSION,
    OPCODES,
    PREFIX_FIELDS,
    SET_REGISTERS,
    Engine,
    ErrorCode,
    Flag,
    Opcode,
    SetReg,
    VecOp,
)
from npu.isa.instruction import Instruction

__all__ = [
    "ISA_VERSION",
    "OPCODES",
    "PREFIX_FIELDS",
    "SET_REGISTERS",
    "BitField",
    "Engine",
    "ErrorCode",
    "FieldInfo",
    "Flag",
    "Instruction",
    "Opcode",
    "OpcodeInfo",
    "SetReg",
    "SetRegInfo",
    "VecOp",
]
