# SPDX-License-Identifier: Apache-2.0
"""Generated from spec/isa/coprocessor.toml by `python -m spec.isa.generate`; do not edit."""

# fmt: off
from enum import IntEnum

from spec.isa.fields import CopInfo


class CopOp(IntEnum):
    """Instructions of the coprocessor."""

    MACC = 0
    VMAC = 1
    VEXP = 2
    VRSQRT = 3
    VMUL = 4
    VREDUCE = 5
    VMAX = 6
    RELU = 7
    QMUL = 8
    CLAMP = 9
    GELU = 10
    RSTACC = 11
    LDVEC = 12
    STVEC = 13
    FMACC = 14
    FVMAC = 15
    FVEXP = 16
    FVRSQRT = 17
    FVMUL = 18
    FVREDUCE = 19
    FVMAX = 20
    FVADD = 21
    FVSUB = 22
    FVRELU = 23
    FVGELU = 24
    FVDIV = 25
    FVSUB_SCALAR = 26
    FRSQRT = 27
    FRELU = 28
    FGELU = 29
    FRSTACC = 30


COP_INSTRUCTIONS: dict[CopOp, CopInfo] = {
    CopOp.MACC: CopInfo(0x0B, 0, 0, "R", "value", "value", "", 0),
    CopOp.VMAC: CopInfo(0x0B, 0, 1, "R", "source", "source", "count", 1),
    CopOp.VEXP: CopInfo(0x0B, 0, 2, "R", "source", "destination", "count", 4),
    CopOp.VRSQRT: CopInfo(0x0B, 0, 3, "R", "source", "", "result", 4),
    CopOp.VMUL: CopInfo(0x0B, 0, 4, "R", "source", "destination", "count", 1),
    CopOp.VREDUCE: CopInfo(0x0B, 0, 5, "R", "source", "count", "result", 4),
    CopOp.VMAX: CopInfo(0x0B, 0, 6, "R", "source", "count", "result", 4),
    CopOp.RELU: CopInfo(0x0B, 1, None, "R", "value", "", "result", 0),
    CopOp.QMUL: CopInfo(0x0B, 2, None, "R", "value", "value", "result", 0),
    CopOp.CLAMP: CopInfo(0x0B, 3, None, "R", "value", "", "result", 0),
    CopOp.GELU: CopInfo(0x0B, 4, None, "R", "value", "", "result", 0),
    CopOp.RSTACC: CopInfo(0x0B, 5, None, "R", "", "", "result", 0),
    CopOp.LDVEC: CopInfo(0x0B, 6, None, "I", "source", "", "vreg", 4),
    CopOp.STVEC: CopInfo(0x0B, 7, None, "S", "destination", "vreg", "", 4),
    CopOp.FMACC: CopInfo(0x2B, 0, 0, "R", "float", "float", "", 0),
    CopOp.FVMAC: CopInfo(0x2B, 0, 1, "R", "source", "source", "count", 4),
    CopOp.FVEXP: CopInfo(0x2B, 0, 2, "R", "source", "destination", "count", 4),
    CopOp.FVRSQRT: CopInfo(0x2B, 0, 3, "R", "source", "", "float", 4),
    CopOp.FVMUL: CopInfo(0x2B, 0, 4, "R", "source", "destination", "count", 4),
    CopOp.FVREDUCE: CopInfo(0x2B, 0, 5, "R", "source", "count", "float", 4),
    CopOp.FVMAX: CopInfo(0x2B, 0, 6, "R", "source", "count", "float", 4),
    CopOp.FVADD: CopInfo(0x2B, 0, 7, "R", "source", "both", "count", 4),
    CopOp.FVSUB: CopInfo(0x2B, 0, 8, "R", "source", "both", "count", 4),
    CopOp.FVRELU: CopInfo(0x2B, 0, 9, "R", "source", "destination", "count", 4),
    CopOp.FVGELU: CopInfo(0x2B, 0, 10, "R", "source", "destination", "count", 4),
    CopOp.FVDIV: CopInfo(0x2B, 0, 11, "R", "source", "destination", "count", 4),
    CopOp.FVSUB_SCALAR: CopInfo(0x2B, 0, 12, "R", "source", "destination", "count", 4),
    CopOp.FRSQRT: CopInfo(0x2B, 0, 19, "R", "float", "", "float", 0),
    CopOp.FRELU: CopInfo(0x2B, 1, None, "R", "float", "", "float", 0),
    CopOp.FGELU: CopInfo(0x2B, 4, None, "R", "float", "", "float", 0),
    CopOp.FRSTACC: CopInfo(0x2B, 5, None, "R", "", "", "float", 0),
}
