# SPDX-License-Identifier: Apache-2.0
"""Rows between memory and SRAM: plain transfers, and rows of a table by index."""

from dataclasses import dataclass
from typing import Literal

from npu.compiler.hazards import Footprint
from npu.compiler.program_builder import ProgramBuilder
from spec.isa.operands import up

Index = Literal["list", "token", "pos"]


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows in memory behind a base register: bytes from it, their length, and from row to row."""

    base: int
    offset: int
    rows: int
    size: int
    pitch: int

    @property
    def operands(self) -> dict[str, int | None]:
        """The operands by which a transfer names them."""
        gaps = self.rows > 1 and self.pitch != up(self.size)
        return {
            "M": self.rows,
            "N": self.size,
            "b": self.base,
            "off": self.offset,
            "pitch": self.pitch if gaps else None,
        }


def emit_load_rows(
    builder: ProgramBuilder,
    source: MemoryRows,
    dst: int,
    pitch: int | None = None,
    *,
    also: Footprint | None = None,
) -> int:
    """Emit the load of rows to `dst`, `pitch` bytes apart there; return its word index.

    `also` stands for the words of memory.
    """
    return builder.emit("DMA_LOAD", dst=dst, cp=pitch, also=also, more=source.operands)


def emit_store_rows(
    builder: ProgramBuilder,
    src: int,
    pitch: int | None,
    target: MemoryRows,
    *,
    also: Footprint | None = None,
) -> int:
    """Emit the store of rows that lie `pitch` bytes apart at `src`; return its word index."""
    return builder.emit("DMA_STORE", dst=src, cp=pitch, also=also, more=target.operands)


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
