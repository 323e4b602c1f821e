# SPDX-License-Identifier: Apache-2.0
"""Rows between memory and SRAM: plain transfers, and rows of a table by index."""

from typing import Literal

from npu.compiler.program_builder import ProgramBuilder

Index = Literal["list", "token", "pos"]


def emit_load(
    builder: ProgramBuilder, dst: int, base: int, *, rows: int, size: int, offset: int | None = None
) -> int:
    """Emit the load of `rows` rows of `size` bytes behind a base register; return its word index.

    `offset` counts bytes from the base register.
    """
    return builder.emit("DMA_LOAD", dst=dst, M=rows, N=size, b=base, off=offset)


def emit_store(
    builder: ProgramBuilder, src: int, base: int, *, rows: int, size: int, offset: int | None = None
) -> int:
    """Emit the store of `rows` rows of `size` bytes, as `emit_load`; return its word index."""
    return builder.emit("DMA_STORE", dst=src, M=rows, N=size, b=base, off=offset)


def emit_embed(
    builder: ProgramBuilder,
    dst: int,
    base: int,
    *,
    rows: int,
    size: int,
    index: Index,
    ids: int | None = None,
) -> int:
    """Emit the fetch of rows of a table; return its word index.

    Args:
        builder: of the program.
        dst: where they go in SRAM.
        base: register of the table.
        rows: how many.
        size: bytes of one.
        index: what names the rows: a list of ids in SRAM, TOKEN, or the positions from POS on.
        ids: address of the list.

    """
    return builder.emit("EMBED", dst=dst, src0=ids, M=rows, N=size, b=base, idx=index)
