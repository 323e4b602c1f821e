# SPDX-License-Identifier: Apache-2.0
"""A matrix in SRAM, as the emitters take it, and the notes of what an instruction writes."""

from dataclasses import dataclass, replace
from typing import Literal

from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.tensor_map import TensorRef
from spec.isa.operands import up

Element = Literal["int8", "uint8", "int16", "int32"]
ELEMENTS: dict[str, Element] = {
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
}
"""The types that SRAM holds, by name."""
_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "int32": 4}
_OUT = {"int8": "i8", "uint8": "i8", "int16": "i16", "int32": "i32"}


@dataclass(frozen=True, slots=True)
class SramMatrix:
    """Rows of elements in SRAM, each row padded to whole words.

    Attributes:
        address: of the first row, in bytes, a multiple of 16.
        rows, columns: its size; the columns that an instruction computes, padded heads included.
        element: the type.
        spacing: bytes from row to row, a multiple of 16; 0 for rows without gaps.

    """

    address: int
    rows: int
    columns: int
    element: Element = "int8"
    spacing: int = 0

    @property
    def pitch(self) -> int:
        """Bytes from row to row."""
        return self.spacing or self.row_bytes

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, padded to whole words."""
        return up(self.columns * _BYTES[self.element])

    @property
    def given_pitch(self) -> int | None:
        """The pitch where an instruction must name it: of several rows with gaps."""
        return None if self.rows == 1 or self.pitch == self.row_bytes else self.pitch

    @property
    def out(self) -> str:
        """The element type as an instruction's `out` names it."""
        return _OUT[self.element]

    @property
    def of_a(self) -> str | None:
        """The element type as GEMM names it for its operand A; None for int8."""
        return {"int8": None, "uint8": "u8", "int16": "i16"}[self.element]

    @property
    def last_row(self) -> "SramMatrix":
        """The last row alone."""
        return self.part(self.rows - 1, 1)

    def part(self, first: int, rows: int) -> "SramMatrix":
        """Return at most `rows` rows from row `first` on."""
        rows = min(rows, self.rows - first)
        return replace(self, address=self.address + first * self.pitch, rows=rows)

    def columns_from(self, first: int, columns: int) -> "SramMatrix":
        """Return at most `columns` columns from column `first` on, at the border of a word."""
        address = self.address + first * _BYTES[self.element]
        columns = min(columns, self.columns - first)
        return replace(self, address=address, columns=columns, spacing=self.pitch)


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
    element: Element = "int8",
) -> None:
    """Note the rows of some heads side by side: one piece, or one per head if padded."""
    lane = up(head_dim)
    whole = head_dim == lane
    width = head_dim * heads if whole else head_dim
    for head in range(1 if whole else heads):
        builder.tensor(
            TensorRef(
                name,
                layer,
                instr,
                address + head * lane * _BYTES[element],
                (rows, width),
                element,
                pitch,
                row=row,
                column=head * head_dim,
            )
        )
