# SPDX-License-Identifier: Apache-2.0
"""The forms of GEMM: flags and imm taken apart, MODE clear expressed in the same terms."""

from dataclasses import dataclass

from npu.isa.generated import OPCODES, Flag, GemmA, GemmB, GemmFmt, GemmOp, GemmOut, GemmQ, Opcode
from npu.isa.instruction import Instruction

_MODE = OPCODES[Opcode.GEMM].imm

_C_BYTES = {GemmOut.INT8: 1, GemmOut.INT16: 2, GemmOut.INT32: 4, GemmOut.NONE: 0}


@dataclass(frozen=True, slots=True)
class GemmForm:
    """What a GEMM word says; with MODE clear the mode is what its imm and flags imply."""

    mode: bool
    transpose: bool
    bias: bool
    requant: bool
    relu: bool
    accumulate: bool
    a_type: int = GemmA.INT8
    b_form: int = GemmB.ROW_MAJOR
    fmt: int = GemmFmt.INT8
    q: int = GemmQ.PREFIX
    activation: bool = False
    out: int = GemmOut.INT32
    op: int = GemmOp.NONE
    argmax: bool = False

    @classmethod
    def of(cls, word: Instruction) -> "GemmForm":
        """Return the form of a GEMM word, legal or not."""

        def flag(bit: int) -> bool:
            return bool(word.flags >> bit & 1)

        requant = flag(Flag.REQUANT)
        flags = {
            "transpose": flag(Flag.TRANSPOSE_B),
            "bias": flag(Flag.BIAS_EN),
            "requant": requant,
            "relu": flag(Flag.RELU),
            "accumulate": flag(Flag.ACCUMULATE),
        }
        if not flag(Flag.MODE):
            return cls(mode=False, out=GemmOut.INT8 if requant else GemmOut.INT32, **flags)
        return cls(
            mode=True,
            a_type=_MODE["a_type"].get(word.imm),
            b_form=_MODE["b_form"].get(word.imm),
            fmt=_MODE["fmt"].get(word.imm),
            q=_MODE["q"].get(word.imm),
            activation=bool(_MODE["activation"].get(word.imm)),
            out=_MODE["out"].get(word.imm),
            op=_MODE["op"].get(word.imm),
            argmax=bool(_MODE["argmax"].get(word.imm)),
            **flags,
        )

    @property
    def a_bytes(self) -> int:
        """Bytes of an element of A; also the number of passes."""
        return 2 if self.a_type in (GemmA.INT16, GemmA.UINT16) else 1

    @property
    def stream(self) -> bool:
        """Whether B comes from the stream."""
        return self.b_form == GemmB.STREAM

    @property
    def has_d(self) -> bool:
        """Whether there is a second operand D."""
        return self.accumulate or self.op != GemmOp.NONE

    @property
    def uses_mul(self) -> bool:
        """Whether mul and sh of the prefix are used."""
        return self.op == GemmOp.MUL or (self.mode and self.requant and self.q == GemmQ.PREFIX)

    @property
    def uses_sums(self) -> bool:
        """Whether sums of the prefix are used."""
        return self.mode and self.requant and self.q == GemmQ.ROW

    @property
    def c_bytes(self) -> int:
        """Bytes of an element of C."""
        return _C_BYTES[GemmOut(self.out)]

    @property
    def d_bytes(self) -> int:
        """Bytes of an element of D."""
        if self.accumulate:
            return 4
        return 2 if self.op == GemmOp.ADD and self.out in (GemmOut.INT16, GemmOut.NONE) else 1
