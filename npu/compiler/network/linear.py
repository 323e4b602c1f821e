# SPDX-License-Identifier: Apache-2.0
"""Products of rows with constant weights: matmul, and convolutions of single pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import Epilogue, SramMatrix, emit_product
from npu.compiler.errors import CompileError
from npu.compiler.network.epilogues import factor_buffer, finish_of, finish_product
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.stream import ShareData, weight_share
from npu.graph.form import Element, Operation
from npu.graph.weight_rows import encoding_of
from spec.isa.operands import up

Wide = npt.NDArray[np.int64]


def summands(weight: Wide) -> list[npt.NDArray[np.int8]]:
    """Return int8 matrices whose sum is `weight`, as few as it takes: three from 255 on."""
    found, rest = list[npt.NDArray[np.int8]](), weight
    while not found or rest.any():
        part = np.clip(rest, -128, 127)
        found.append(part.astype(np.int8))
        rest = rest - part
    return found


class LinearKernel(Kernel):
    """y = finish(x @ weight), a chunk of rows at a time; the weights come from the stream.

    Weights that leave int8 are several matrices, each of which leaves partial sums for the next. A
    bias of int32 results is a matrix of partial sums as well.
    """

    def __init__(
        self,
        context: Context,
        operation: Operation,
        x: StorageView,
        weight: Wide,
        operand: StorageView | None,
        writes: StorageView,
        correction: Wide,
        most: int,
    ) -> None:
        self.weights = summands(weight)
        self.encoding = encoding_of(context.graph.type(operation.inputs[1]))
        self.columns = weight.shape[1]
        self.finish = finish_of(operation, self.columns, correction)
        self.bias = None
        if self.finish.channels is None:
            self.bias = _plain_bias(operation, self.columns, correction)
        if x.element == Element.I16:
            most = min(most, context.limits.acc_rows // 2)
            if len(self.weights) > 1 or self.finish.channels is None:
                raise CompileError(f"{operation.name}: int16 rows, allowed int8 for partial sums")
        rows = x.rows()
        if rows is None:
            raise CompileError(f"{operation.name}: rows without a pitch")
        self.chunks = even(rows.count, min(most, context.limits.acc_rows))
        reads = [x] if operand is None else [x, operand]
        super().__init__(context, operation, reads, writes, len(self.chunks))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows of an input."""
        return row_part(self.reads[number], *self.chunks[chunk])

    def target(self, chunk: int) -> StorageView:
        """Return the rows of the result."""
        return row_part(self.writes, *self.chunks[chunk])

    @property
    def most(self) -> int:
        """Rows of the largest chunk."""
        return max(count for _, count in self.chunks)

    @property
    def buffers(self) -> dict[str, int]:
        """Partial sums, and what is multiplied behind them."""
        row = up(4 * self.columns)
        found = {}
        if self.bias is not None:
            found["bias"] = self.most * row
        if len(self.weights) > 1:
            found["sums"] = self.most * row
            found |= factor_buffer(self.operation, self.most, self.columns)
        return found

    @property
    def constants(self) -> dict[str, bytes]:
        """The bias of int32 results, a row for each of a chunk's."""
        if self.bias is None:
            return {}
        row = np.zeros(up(4 * self.columns) // 4, "<i4")
        row[: self.columns] = self.bias
        return {"bias": np.tile(row, self.most).tobytes()}

    @property
    def shares(self) -> dict[str, ShareData]:
        """Weights, and channels with the last of them."""
        limits, found = self.context.limits, {}
        for number, weight in enumerate(self.weights):
            last = number == len(self.weights) - 1
            channels = self.finish.channels if last else None
            table = self.finish.table if last else None
            found[f"weight{number}"] = weight_share(
                self.operation.name, limits, weight, channels, table, self.encoding
            )
        return found

    def begin(self, place: KernelPlace) -> None:
        """Load the bias of int32 results."""
        if self.bias is not None:
            place.constant("bias", place.scratch("bias"))

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit a GEMM for each matrix of weights."""
        a, dst = place.source(0, chunk), place.result(chunk)
        operand = place.source(1, chunk) if len(self.reads) > 1 else None
        sums = None
        if self.bias is not None:
            sums = SramMatrix(place.scratch("bias"), dst.rows, dst.columns, "int32")
        for number in range(len(self.weights) - 1):
            partial = SramMatrix(place.scratch("sums"), dst.rows, dst.columns, "int32")
            epilogue = Epilogue(sums=sums, channels=False)
            share = place.share(f"weight{number}")
            emit_product(place.builder, a, None, partial, share, epilogue)
            sums = partial
        share = place.share(f"weight{len(self.weights) - 1}")
        finish_product(place, a, None, dst, share, self.finish, sums=sums, operand=operand)


def _plain_bias(operation: Operation, columns: int, correction: Wide) -> Wide | None:
    """Return the bias of int32 results; None for none."""
    bias = operation.integers.get("bias", np.zeros(1, np.int32)).astype(np.int64)
    total = np.broadcast_to(bias + correction, columns)
    return total if total.any() else None
