# SPDX-License-Identifier: Apache-2.0
"""Matrix products: GEMM with B from the stream or from SRAM, and all that may follow the sums."""

from dataclasses import dataclass
from typing import Literal

from npu.compiler.emit.sram_matrix import SramMatrix
from npu.compiler.program_builder import ProgramBuilder
from npu.image import StreamShare

Combine = Literal["add", "mul"]


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What follows the sums of a product, in this order.

    Attributes:
        sums: int32 partial sums that are added first.
        channels: bias and requantisation per column follow, from the share; without them the
            int32 sums are written and nothing below applies.
        relu: negative results become 0.
        table: an activation table of the share follows.
        op: the result is added to, or multiplied with, `operand`.
        operand: of the result's size and type.
        product: multiplier and shift of the multiplication.
    """

    sums: SramMatrix | None = None
    channels: bool = True
    relu: bool = False
    table: bool = False
    op: Combine | None = None
    operand: SramMatrix | None = None
    product: tuple[int, int] | None = None


def emit_product(
    builder: ProgramBuilder,
    a: SramMatrix,
    b: SramMatrix | None,
    dst: SramMatrix,
    share: StreamShare | None,
    epilogue: Epilogue,
    *,
    transpose: bool = False,
    lines: tuple[int, int] | None = None,
    depthwise: bool = False,
) -> int:
    """Emit a product; return its word index.

    Args:
        builder: of the program.
        a: (M, K) int8, uint8 or int16.
        b: (K, N) int8, or (N, K) with `transpose`; None for the weights of the share.
        dst: (M, N) int8, int16 or int32.
        share: the piece of the stream; None if nothing is taken from it.
        epilogue: what follows.
        transpose: B is given transposed.
        lines: how many lines of A a row is, or each column multiplies, and the bytes between
            their beginnings.
        depthwise: each column multiplies its own channel. A is then (M, N), of which M + 3 rows
            are read in each line.
    """
    d = epilogue.sums or epilogue.operand
    switches = {
        "T": transpose,
        "bias": epilogue.channels,
        "relu": epilogue.relu,
        "acc": epilogue.sums is not None,
        "table": epilogue.table,
        "depthwise": depthwise,
    }
    operands = _from_stream(d, share) if b is None else _from_sram(b, d)
    return builder.emit(
        "GEMM",
        *(name for name, chosen in switches.items() if chosen),
        dst=dst.address,
        src0=a.address,
        src1=operands.src1,
        M=dst.rows,
        N=dst.columns,
        K=lines[0] * builder.limits.edge if lines and depthwise else a.columns,
        A=a.of_a,
        B=operands.form,
        fmt=operands.format,
        group=operands.group,
        q="ch" if epilogue.channels else None,
        out=dst.out,
        op=epilogue.op,
        mul=epilogue.product[0] if epilogue.product else None,
        sh=epilogue.product[1] if epilogue.product else None,
        ap=a.given_pitch if lines is None else _given(a, a.pitch),
        bp=_line_pitch(a, lines, depthwise) if lines else operands.bp,
        cp=dst.given_pitch,
        d=operands.d,
        lines=f"{lines[0]}x{a.row_bytes // lines[0]}" if lines and not depthwise else None,
        dp=d.given_pitch if d else None,
        share=share,
    )


def _line_pitch(a: SramMatrix, lines: tuple[int, int], depthwise: bool) -> int | None:
    """Return the bytes between lines of A where they must be named."""
    count, apart = lines
    if not depthwise:
        return apart
    return None if count == 1 else _given(a, apart)


def _given(a: SramMatrix, pitch: int) -> int | None:
    """Return a pitch where a depthwise product must name it: A has several rows whatever M."""
    return None if pitch == a.row_bytes else pitch


@dataclass(frozen=True, slots=True)
class _OperandB:
    """How an instruction names B, and where it names D."""

    src1: int | None
    form: str | None = None
    format: str | None = None
    group: str | None = None
    bp: int | None = None
    d: int | None = None


def _from_stream(d: SramMatrix | None, share: StreamShare | None) -> _OperandB:
    if share is None:
        raise ValueError("B: given neither a matrix nor a share, allowed one of them")
    address = d.address if d else None
    return _OperandB(address, "stream", share.format or None, share.group or None)


def _from_sram(b: SramMatrix, d: SramMatrix | None) -> _OperandB:
    return _OperandB(b.address, bp=b.given_pitch, d=d.address if d else None)
