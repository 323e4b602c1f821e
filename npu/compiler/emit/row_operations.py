# SPDX-License-Identifier: Apache-2.0
"""Operations on rows of SRAM: norms, activation tables, sums, rotary positions."""

from typing import Literal

from npu.compiler.emit.sram_matrix import SramMatrix
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.stream import Share

NormName = Literal["LAYERNORM", "RMSNORM"]


def emit_norm(
    builder: ProgramBuilder, norm: NormName, src: SramMatrix, dst: SramMatrix, share: Share
) -> int:
    """Emit a norm of int16 rows to int8; return its word index."""
    return _streamed(builder, norm, src, dst, share)


def emit_table(builder: ProgramBuilder, src: SramMatrix, dst: SramMatrix, share: Share) -> int:
    """Emit an activation by a streamed table of int8 to int8; return its word index."""
    return _streamed(builder, "GELU", src, dst, share)


def _streamed(
    builder: ProgramBuilder, mnemonic: str, src: SramMatrix, dst: SramMatrix, share: Share
) -> int:
    """Emit an operation on rows whose parameters come from the stream."""
    return builder.emit(
        mnemonic,
        "stream",
        dst=dst.address,
        src0=src.address,
        M=src.rows,
        N=src.columns,
        share=share,
    )


def emit_add(builder: ProgramBuilder, a: SramMatrix, b: SramMatrix, dst: SramMatrix) -> int:
    """Emit the saturated sum of int16 rows; return its word index."""
    return builder.emit(
        "VEC",
        op="add",
        dst=dst.address,
        src0=a.address,
        src1=b.address,
        M=a.rows,
        N=a.columns,
        A=a.out,
        out=dst.out,
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
    given = pitch if rows > 1 else None
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
