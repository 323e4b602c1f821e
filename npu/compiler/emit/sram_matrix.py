# SPDX-License-Identifier: Apache-2.0
"""A matrix in SRAM, as the emitters take it, and the notes of what an instruction writes."""

from dataclasses import dataclass
from typing import Literal

from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.tensor_map import TensorRef
from npu.isa.operands import up

Element = Literal["int8", "int16"]


@dataclass(frozen=True, slots=True)
class SramMatrix:
    """Rows of elements in SRAM, each row padded to whole words and no further.

    Attributes:
        address: of the first row, in bytes, a multiple of 16.
        rows, columns: its size; the columns that an instruction computes, padded heads included.
        element: the type.

    """

    address: int
    rows: int
    columns: int
    element: Element = "int8"

    @property
    def pitch(self) -> int:
        """Bytes from row to row."""
        return up(self.columns * (2 if self.element == "int16" else 1))

    @property
    def out(self) -> str:
        """The element type as an instruction's `out` names it."""
        return "i16" if self.element == "int16" else "i8"

    @property
    def last_row(self) -> "SramMatrix":
        """The last row alone."""
        return SramMatrix(
            self.address + (self.rows - 1) * self.pitch, 1, self.columns, self.element
        )


def note(
    builder: ProgramBuilder,
    name: str,
    layer: int,
    instr: int,
    matrix: SramMatrix,
    *,
    row: int = 0,
    column: int = 0,
) -> None:
    """Note a matrix that one instruction writes; row and column are its place in the tensor."""
    size = matrix.rows, matrix.columns
    builder.tensor(
        TensorRef(
            name,
            layer,
            instr,
            matrix.address,
            size,
            matrix.element,
            matrix.pitch,
            row=row,
            column=column,
        )
    )


def note_heads(
    builder: ProgramBuilder,
    name: str,
    layer: int,
    instr: int,
    address: int,
    *,
    rows: int,
    heads: int,
    head_dim: int,
    pitch: int,
    row: int = 0,
) -> None:
    """Note the int8 rows of some heads side by side: one piece, or one per head if padded."""
    lane = up(head_dim)
    whole = head_dim == lane
    width = head_dim * heads if whole else head_dim
    for head in range(1 if whole else heads):
        builder.tensor(
            TensorRef(
                name,
                layer,
                instr,
                address + head * lane,
                (rows, width),
                "int8",
                pitch,
                row=row,
                column=head * head_dim,
            )
        )
