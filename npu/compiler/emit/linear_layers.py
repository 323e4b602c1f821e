# SPDX-License-Identifier: Apache-2.0
"""Linear layers: GEMM with weights and requantisation from the stream."""

from npu.compiler.emit.matrix_products import Combine, Epilogue, emit_product
from npu.compiler.emit.sram_matrix import SramMatrix
from npu.compiler.program_builder import ProgramBuilder
from npu.image import StreamShare


def emit_linear(
    builder: ProgramBuilder,
    src: SramMatrix,
    dst: SramMatrix,
    share: StreamShare,
    *,
    op: Combine | None = None,
    table: bool = False,
    product: tuple[int, int] | None = None,
) -> int:
    """Emit a linear layer of int8 rows; return its word index.

    Args:
        builder: of the program.
        src: (M, K) int8.
        dst: (M, N) int8 or int16.
        share: of weights and channels, with `table` behind an activation table.
        op: what follows the requantisation: the result of the layer added to, or multiplied with,
            what stands at `dst`.
        table: the activation of the share follows.
        product: multiplier and shift of the product.

    """
    epilogue = Epilogue(table=table, op=op, operand=dst if op else None, product=product)
    return emit_product(builder, src, None, dst, share, epilogue)


def emit_best_columns(
    builder: ProgramBuilder,
    src: SramMatrix,
    columns: int,
    share: StreamShare,
    dst: SramMatrix | None,
) -> int:
    """Emit a linear layer of one row whose best column ARGMAX finds; return its word index.

    The results themselves are kept at `dst`, (1, columns) int16, or nowhere for None.
    """
    return builder.emit(
        "GEMM",
        "bias",
        "argmax",
        dst=None if dst is None else dst.address,
        src0=src.address,
        M=src.rows,
        N=columns,
        K=src.columns,
        B="stream",
        fmt=share.format or None,
        group=share.group or None,
        q="ch",
        out="none" if dst is None else dst.out,
        share=share,
    )
