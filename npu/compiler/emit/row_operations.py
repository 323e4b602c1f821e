# SPDX-License-Identifier: Apache-2.0
"""Operations on rows of SRAM: norms, activation tables, sums, rotary positions."""

from typing import Literal

from npu.compiler.emit.sram_matrix import SramMatrix
from npu.compiler.program_builder import ProgramBuilder
from npu.image import StreamShare
from spec.isa.operands import up

NormName = Literal["LAYERNORM", "RMSNORM"]
ElementwiseName = Literal[
    "add", "sub", "mul", "scale_shift", "clamp", "relu", "copy2d", "max", "min", "table"
]


def emit_norm(
    builder: ProgramBuilder, norm: NormName, src: SramMatrix, dst: SramMatrix, share: StreamShare
) -> int:
    """Emit a norm of int16 rows to int8 or int16; return its word index."""
    out = "i16" if dst.element == "int16" else None
    return _streamed(builder, norm, src, dst, share, out)


def emit_table(
    builder: ProgramBuilder, src: SramMatrix, dst: SramMatrix, share: StreamShare
) -> int:
    """Emit an activation by a streamed table of int8 to int8; return its word index."""
    return _streamed(builder, "GELU", src, dst, share)


def _streamed(
    builder: ProgramBuilder,
    mnemonic: str,
    src: SramMatrix,
    dst: SramMatrix,
    share: StreamShare,
    out: str | None = None,
) -> int:
    """Emit an operation on rows whose parameters come from the stream."""
    return builder.emit(
        mnemonic,
        "stream",
        dst=dst.address,
        src0=src.address,
        M=src.rows,
        N=src.columns,
        out=out,
        ap=src.given_pitch,
        cp=dst.given_pitch,
        share=share,
    )


def emit_softmax(builder: ProgramBuilder, src: SramMatrix, dst: SramMatrix) -> int:
    """Emit the softmax of int16 rows to uint8 probabilities; return its word index."""
    return builder.emit(
        "SOFTMAX",
        dst=dst.address,
        src0=src.address,
        M=src.rows,
        N=src.columns,
        out="prob",
        ap=src.given_pitch,
        cp=dst.given_pitch,
    )


def emit_add(builder: ProgramBuilder, a: SramMatrix, b: SramMatrix, dst: SramMatrix) -> int:
    """Emit the saturated sum of rows; return its word index."""
    return emit_elementwise(builder, "add", a, dst, b)


def emit_elementwise(
    builder: ProgramBuilder,
    op: ElementwiseName,
    a: SramMatrix,
    dst: SramMatrix,
    b: SramMatrix | None = None,
    **numbers: int | None,
) -> int:
    """Emit an operation of VEC on rows; return its word index.

    `b` is the other matrix, or the 256 entries of a table. `numbers` are those that the operation
    has: shift sh, scale, bounds lo and hi.
    """
    return builder.emit(
        "VEC",
        op=op,
        dst=dst.address,
        src0=a.address,
        src1=None if b is None else b.address,
        M=dst.rows,
        N=dst.columns,
        A=a.out,
        out=dst.out,
        ap=a.given_pitch,
        bp=None if b is None else b.given_pitch,
        cp=dst.given_pitch,
        more=numbers,
    )


def emit_rope(
    builder: ProgramBuilder,
    address: int,
    table: int,
    *,
    rows: int,
    head_dim: int,
    heads: int,
    pitch: int,
) -> int:
    """Emit the rotation in place of int8 heads side by side; return its word index.

    Args:
        builder: of the program.
        address: of the first head in the first row.
        table: address of the rows of cosine and sine.
        rows: how many.
        head_dim: lanes of a head.
        heads: of a row.
        pitch: bytes from row to row.

    """
    given = pitch if rows > 1 and pitch != heads * up(head_dim) else None
    return builder.emit(
        "ROPE",
        dst=address,
        src0=address,
        src1=table,
        M=rows,
        N=head_dim,
        K=heads,
        ap=given,
        cp=given,
    )


def emit_rope_rows(
    builder: ProgramBuilder,
    src: SramMatrix,
    dst: SramMatrix,
    table: int,
    *,
    heads: int,
    pairs: bool,
) -> int:
    """Emit the rotation of rows of single heads; return its word index.

    Args:
        builder: of the program.
        src: (positions * heads, head_dim) int8, heads innermost; several heads have no gaps.
        dst: where they go, the same.
        table: address of the rows of cosine and sine, one for each position.
        heads: of a position.
        pairs: neighbouring lanes turn together instead of halves.
    """
    rows = src.rows // heads
    pitches = [None if rows == 1 or m.pitch == m.row_bytes else m.pitch * heads for m in (src, dst)]
    return builder.emit(
        "ROPE",
        *(["pairs"] if pairs else []),
        dst=dst.address,
        src0=src.address,
        src1=table,
        M=rows,
        N=src.columns,
        K=heads,
        ap=pitches[0],
        cp=pitches[1],
    )
