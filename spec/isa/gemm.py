# SPDX-License-Identifier: Apache-2.0
"""The forms of GEMM: flags and imm taken apart, MODE clear expressed in the same terms."""

from dataclasses import dataclass

from spec.isa.generated import (
    DEPTHWISE_TAPS,
    OPCODES,
    Flag,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Opcode,
    WeightFormat,
    WeightGroup,
)
from spec.isa.instruction import Instruction
from spec.isa.weight_formats import GROUPED, StreamLayout

_MODE = OPCODES[Opcode.GEMM].imm

_C_BYTES = {GemmOut.INT8: 1, GemmOut.INT16: 2, GemmOut.INT32: 4, GemmOut.NONE: 0}


@dataclass(frozen=True, slots=True)
class GemmForm:
    """What a GEMM word says; with MODE clear the mode is what its imm and flags imply.

    `format` and `group` hold what the bits say, legal or not.
    """

    mode: bool
    transpose: bool
    bias: bool
    requant: bool
    relu: bool
    accumulate: bool
    a_type: int = GemmA.INT8
    b_form: int = GemmB.ROW_MAJOR
    format: int = WeightFormat.INT8
    group: int = WeightGroup.G32
    q: int = GemmQ.PREFIX
    activation: bool = False
    out: int = GemmOut.INT32
    op: int = GemmOp.NONE
    argmax: bool = False
    depthwise: bool = False

    @classmethod
    def of(cls, word: Instruction) -> "GemmForm":
        """Return the form of a GEMM word, legal or not."""

        def flag(bit: int) -> bool:
            return bool(word.flags >> bit & 1)

        requant = flag(Flag.REQUANT)
        flags = {
            "bias": flag(Flag.BIAS_EN),
            "requant": requant,
            "relu": flag(Flag.RELU),
            "accumulate": flag(Flag.ACCUMULATE),
        }
        transpose, group_high = flag(Flag.TRANSPOSE_B), flag(Flag.GROUP_HIGH)
        if not flag(Flag.MODE):
            out = GemmOut.INT8 if requant else GemmOut.INT32
            return cls(mode=False, out=out, transpose=transpose, group=group_high << 1, **flags)
        b_form, fmt = _MODE["b_form"].get(word.imm), _MODE["fmt"].get(word.imm)
        stream = b_form in (GemmB.STREAM, GemmB.STREAM_MX)
        return cls(
            mode=True,
            transpose=transpose and not stream,
            a_type=_MODE["a_type"].get(word.imm),
            b_form=b_form,
            format=(b_form == GemmB.STREAM_MX) << 3 | fmt,
            group=group_high << 1 | (stream and transpose),
            q=_MODE["q"].get(word.imm),
            activation=bool(_MODE["activation"].get(word.imm)),
            out=_MODE["out"].get(word.imm),
            op=_MODE["op"].get(word.imm),
            argmax=bool(_MODE["argmax"].get(word.imm)),
            depthwise=bool(_MODE["depthwise"].get(word.imm)),
            **flags,
        )

    @property
    def a_bytes(self) -> int:
        """Bytes of an element of A; also the number of passes."""
        return 2 if self.a_type in (GemmA.INT16, GemmA.UINT16) else 1

    @property
    def stream(self) -> bool:
        """Whether B comes from the stream."""
        return self.b_form in (GemmB.STREAM, GemmB.STREAM_MX)

    @property
    def takes_lines(self) -> bool:
        """Whether the prefix's place of d holds lines of A: cut rows, or zero for whole ones."""
        return self.stream and not self.depthwise

    @property
    def grouped(self) -> bool:
        """Whether the instruction says how long the groups of the format are."""
        return self.format in GROUPED

    def layout(self, edge: int) -> StreamLayout:
        """Return the layout of B in the stream. Raises ValueError for a reserved format."""
        return StreamLayout.of(WeightFormat(self.format), WeightGroup(self.group), edge)

    def macs(self, m: int, n: int, k: int, edge: int) -> int:
        """Return the multiplications of 8 by 8 bits that an instruction of this form names."""
        if self.depthwise:
            return m * n * (k // edge) * DEPTHWISE_TAPS
        return m * n * k * self.a_bytes

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
