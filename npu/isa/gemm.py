# SPDX-License-Identifier: Apache-2.0
"""The forms of GEMM: flags and imm taken apart, MODE clear expressed in the same terms."""

from dataclasses import dataclass

from npu.isa.generated import OPCODES, Flag, Opcode
from npu.isa.instruction import Instruction

_MODE = OPCODES[Opcode.GEMM].imm

B_ROWS, B_TILES, B_STREAM = 0, 1, 2
Q_PREFIX, Q_TENSOR, Q_CHANNEL, Q_ROW = 0, 1, 2, 3
OUT_INT8, OUT_INT16, OUT_INT32, OUT_NONE = 0, 1, 2, 3
OP_NONE, OP_ADD, OP_MUL = 0, 1, 2


@dataclass(frozen=True, slots=True)
class GemmForm:
    """What a GEMM word says; with MODE clear the mode is what its imm and flags imply."""

    mode: bool
    transpose: bool
    bias: bool
    requant: bool
    relu: bool
    accumulate: bool
    a_type: int = 0
    b_form: int = B_ROWS
    fmt: int = 0
    q: int = Q_PREFIX
    activation: bool = False
    out: int = OUT_INT32
    op: int = OP_NONE
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
            return cls(mode=False, out=OUT_INT8 if requant else OUT_INT32, **flags)
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
        return 2 if self.a_type & 2 else 1

    @property
    def stream(self) -> bool:
        """Whether B comes from the stream."""
        return self.b_form == B_STREAM

    @property
    def has_d(self) -> bool:
        """Whether there is a second operand D."""
        return self.accumulate or self.op != OP_NONE

    @property
    def uses_mul(self) -> bool:
        """Whether mul and sh of the prefix are used."""
        return self.op == OP_MUL or (self.mode and self.requant and self.q == Q_PREFIX)

    @property
    def uses_sums(self) -> bool:
        """Whether sums of the prefix are used."""
        return self.mode and self.requant and self.q == Q_ROW

    @property
    def c_bytes(self) -> int:
        """Bytes of an element of C."""
        return {OUT_INT8: 1, OUT_INT16: 2, OUT_INT32: 4, OUT_NONE: 0}[self.out]

    @property
    def d_bytes(self) -> int:
        """Bytes of an element of D."""
        if self.accumulate:
            return 4
        return 2 if self.op == OP_ADD and self.out in (OUT_INT16, OUT_NONE) else 1
