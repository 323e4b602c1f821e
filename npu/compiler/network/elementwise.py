# SPDX-License-Identifier: Apache-2.0
"""Operations on single elements and on single rows: VEC, tables, softmax, norms, rope."""

from __future__ import annotations

from typing import Literal

import numpy as np

from npu.compiler.emit import (
    emit_elementwise,
    emit_norm,
    emit_rope_rows,
    emit_softmax,
    emit_table,
)
from npu.compiler.errors import CompileError
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.stream import ShareData, row_norm_share, table_share
from npu.graph.form import Operation
from spec.isa.generated import Opcode
from spec.isa.operands import DYNAMIC, up

MOST_ROWS = DYNAMIC - 1


class RowKernel(Kernel):
    """An operation on rows of the same number as those of its result, some rows at a time."""

    def __init__(
        self, context: Context, operation: Operation, reads: list[StorageView], writes: StorageView
    ) -> None:
        for view in (*reads, writes):
            if view.rows() is None:
                raise CompileError(f"{operation.name}: rows without a pitch")
        rows = writes.rows()
        assert rows is not None
        each = sum(2 * view.row_bytes for view in (*reads, writes) if not context.in_sram(view))
        most = min(MOST_ROWS, context.budget // each) if each else MOST_ROWS
        if most < 1:
            raise CompileError(
                f"{operation.name}: needs {each} bytes of SRAM for a row, "
                f"there are {max(0, context.budget)}"
            )
        # Two chunks at least where memory is read or written, so that transfers overlap with work.
        if each and rows.count > 64:
            most = min(most, max(64, -(-rows.count // 4)))
        self.chunks = even(rows.count, most)
        super().__init__(context, operation, reads, writes, len(self.chunks))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows of an input."""
        return row_part(self.reads[number], *self.chunks[chunk])

    def target(self, chunk: int) -> StorageView:
        """Return the rows of the result."""
        return row_part(self.writes, *self.chunks[chunk])


class VectorKernel(RowKernel):
    """One VEC instruction a chunk."""

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit it."""
        one, builder, dst = self.operation, place.builder, place.result(chunk)
        a = place.source(0, chunk)
        match one.kind:
            case "add" | "sub" | "max" | "min":
                emit_elementwise(builder, one.kind, a, dst, place.source(1, chunk))
            case "mul":
                b = place.source(1, chunk)
                emit_elementwise(builder, "mul", a, dst, b, sh=one["shift"])
            case "clip":
                emit_elementwise(builder, "clamp", a, dst, lo=one["low_int"], hi=one["high_int"])
            case "requantise":
                emit_elementwise(builder, "scale_shift", a, dst, scale=one["mult"], sh=one["shift"])
            case _:
                raise CompileError(f"{one.name}: {one.kind} is no elementwise operation")


class TableKernel(RowKernel):
    """A table of 256 results."""

    @property
    def shares(self) -> dict[str, ShareData]:
        """The table."""
        table = self.operation.integers["table"].astype(np.int8)
        return {"table": ShareData(Opcode.GELU, table_share(table))}

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit it."""
        a, dst = place.source(0, chunk), place.result(chunk)
        emit_table(place.builder, a, dst, place.share("table"))


class SoftmaxKernel(RowKernel):
    """Probabilities of rows of scores."""

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit it."""
        emit_softmax(place.builder, place.source(0, chunk), place.result(chunk))


class NormKernel(RowKernel):
    """LAYERNORM or RMSNORM of int16 rows."""

    @property
    def shares(self) -> dict[str, ShareData]:
        """Gains and biases."""
        one = self.operation.integers
        columns = self.writes.columns
        share = row_norm_share(
            int(one["eps"].reshape(-1)[0]),
            np.broadcast_to(one["gain"], columns).astype(np.uint16),
            np.broadcast_to(one["shift"], columns).astype(np.uint8),
            np.broadcast_to(one["bias"], columns).astype(np.int8),
        )
        return {"norm": ShareData(self.opcode, share)}

    @property
    def opcode(self) -> Opcode:
        """The instruction."""
        return Opcode.LAYERNORM if self.operation.kind == "layernorm" else Opcode.RMSNORM

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit it."""
        name: Literal["LAYERNORM", "RMSNORM"]
        name = "LAYERNORM" if self.opcode == Opcode.LAYERNORM else "RMSNORM"
        a, dst = place.source(0, chunk), place.result(chunk)
        emit_norm(place.builder, name, a, dst, place.share("norm"))


class RopeKernel(Kernel):
    """ROPE of heads side by side, or of one head at a time where heads are an outer axis."""

    def __init__(
        self, context: Context, operation: Operation, x: StorageView, writes: StorageView
    ) -> None:
        axis = operation["heads_axis"] % len(x.shape)
        self.inner = axis == len(x.shape) - 2 and all(
            view.strides[axis] == view.row_bytes for view in (x, writes)
        )
        if axis == len(x.shape) - 2 and not self.inner:
            raise CompileError(f"{operation.name}: heads that do not lie side by side")
        self.heads = x.shape[axis] if self.inner else 1
        outer = x.shape[: -3 if self.inner else -2]
        self.indices = list(np.ndindex(*outer))
        self.positions = x.shape[-3 if self.inner else -2]
        super().__init__(context, operation, [x], writes, len(self.indices))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows of a head, or of all heads of a batch."""
        part = self.reads[number].at(*self.indices[chunk])
        return row_part(part, 0, self.positions * self.heads)

    def target(self, chunk: int) -> StorageView:
        """Return where they go."""
        part = self.writes.at(*self.indices[chunk])
        return row_part(part, 0, self.positions * self.heads)

    @property
    def buffers(self) -> dict[str, int]:
        """The table of cosines and sines."""
        return {"table": self.positions * up(2 * self.writes.columns)}

    @property
    def constants(self) -> dict[str, bytes]:
        """The table, rows of whole words."""
        table = self.operation.integers["table"].astype("<i2")
        rows = table.reshape(table.shape[0], -1)[: self.positions]
        row = np.zeros((self.positions, up(2 * rows.shape[1]) // 2), "<i2")
        row[:, : rows.shape[1]] = rows
        return {"table": row.tobytes()}

    def begin(self, place: KernelPlace) -> None:
        """Load the table."""
        place.constant("table", place.scratch("table"))

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the rotation."""
        a, dst = place.source(0, chunk), place.result(chunk)
        emit_rope_rows(
            place.builder,
            a,
            dst,
            place.scratch("table"),
            heads=self.heads,
            pairs=self.operation["interleaved"],
        )
