# SPDX-License-Identifier: Apache-2.0
"""Products of two activations, matrix by matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import Epilogue, SramMatrix, emit_elementwise, emit_product
from npu.compiler.errors import CompileError
from npu.compiler.network.epilogues import factor_buffer, finish_of, finish_product
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.network.linear import summands
from npu.compiler.stream import ShareData, product_share
from npu.graph.form import Element, Operation
from spec.isa.generated import Opcode
from spec.isa.operands import up


def outer_index(shape: tuple[int, ...], index: tuple[int, ...]) -> tuple[int, ...]:
    """Return where matrices of a shape have the one at an index of the result's outer axes.

    Axes of one are repeated, those that are not there as well.
    """
    axes = len(shape) - 2
    own = index[len(index) - axes :] if axes > 0 else ()
    return tuple(0 if n == 1 else i for i, n in zip(own, shape[: max(axes, 0)], strict=True))


def matrix_at(view: StorageView, index: tuple[int, ...]) -> StorageView:
    """Return the matrix at an index of the result's outer axes."""
    return view.at(*outer_index(view.shape, index))


class BatchedKernel(Kernel):
    """y = finish(a @ b) for each pair of matrices, some rows of a at a time.

    Zero points become products of their own: of a with a matrix of -zb, and of a matrix of -za with
    b; what is left of them is a constant, part of the bias.
    """

    def __init__(
        self,
        context: Context,
        operation: Operation,
        a: StorageView,
        b: StorageView,
        operand: StorageView | None,
        writes: StorageView,
    ) -> None:
        self.transpose = bool(operation["transpose_b"])
        self.inner = a.columns
        self.columns = writes.columns
        self.zeros = int(operation["a_zero"]), int(operation["b_zero"])
        rest = self.inner * self.zeros[0] * self.zeros[1]
        self.finish = finish_of(operation, self.columns, np.full(self.columns, rest, np.int64))
        self.rest = rest if self.finish.channels is None else 0
        most = context.limits.acc_rows // a.size
        if a.element == Element.I16 and (self.finish.channels is None or any(self.zeros)):
            raise CompileError(f"{operation.name}: int16 rows, allowed int8 for partial sums")
        outer = writes.shape[:-2]
        self.chunks = [
            (index, first, count)
            for index in np.ndindex(*outer)
            for first, count in even(writes.shape[-2], most)
        ]
        reads = [a, b] if operand is None else [a, b, operand]
        super().__init__(context, operation, reads, writes, len(self.chunks))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return rows of a or of an operand, or the whole of b."""
        index, first, count = self.chunks[chunk]
        matrix = matrix_at(self.reads[number], index)
        if number == 1:
            return row_part(matrix, 0, matrix.shape[0])
        return row_part(matrix, first, count)

    def target(self, chunk: int) -> StorageView:
        """Return the rows of the result."""
        index, first, count = self.chunks[chunk]
        return row_part(matrix_at(self.writes, index), first, count)

    @property
    def most(self) -> int:
        """Rows of the largest chunk."""
        return max(count for _, _, count in self.chunks)

    @property
    def buffers(self) -> dict[str, int]:
        """Partial sums and the matrix of -za."""
        found = {}
        if any(self.zeros):
            found["sums"] = self.most * up(4 * self.columns)
            found |= factor_buffer(self.operation, self.most, self.columns)
        if self.zeros[0]:
            found["zeros"] = self.most * up(self.inner)
        if self.rest:
            found["rest"] = self.most * up(4 * self.columns)
        return found

    @property
    def constants(self) -> dict[str, bytes]:
        """What is left of two zero points, for int32 results."""
        if not self.rest:
            return {}
        return {"rest": np.full(self.most * up(4 * self.columns) // 4, self.rest, "<i4").tobytes()}

    @property
    def shares(self) -> dict[str, ShareData]:
        """Channels, and the matrix of -zb."""
        edge, found = self.context.limits.edge, {}
        for number, part in enumerate(self._zero_parts):
            found[f"zero{number}"] = ShareData(Opcode.GEMM, product_share(edge, part, None))
        if self.finish.channels is not None:
            data = product_share(edge, None, self.finish.channels, self.finish.table)
            found["channels"] = ShareData(Opcode.GEMM, data)
        return found

    @property
    def _zero_parts(self) -> list[npt.NDArray[np.int8]]:
        """The matrix of -zb, as a sum of int8 matrices."""
        if not self.zeros[1]:
            return []
        return summands(np.full((self.inner, self.columns), -self.zeros[1], np.int64))

    def begin(self, place: KernelPlace) -> None:
        """Fill the matrix of -za, an unsigned one where that is 128."""
        if self.rest:
            place.constant("rest", place.scratch("rest"))
        if self.zeros[0]:
            value = -self.zeros[0] if self.zeros[0] > -128 else -128
            matrix = SramMatrix(place.scratch("zeros"), self.most, self.inner)
            emit_elementwise(place.builder, "clamp", matrix, matrix, lo=value, hi=value)

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the products."""
        a, b, dst = place.source(0, chunk), place.source(1, chunk), place.result(chunk)
        operand = place.source(2, chunk) if len(self.reads) > 2 else None
        sums = None
        if any(self.zeros):
            partial = SramMatrix(place.scratch("sums"), dst.rows, dst.columns, "int32")
            if self.rest:
                sums = SramMatrix(place.scratch("rest"), dst.rows, dst.columns, "int32")
            for number in range(len(self._zero_parts)):
                share = place.share(f"zero{number}")
                epilogue = Epilogue(sums=sums, channels=False)
                emit_product(place.builder, a, None, partial, share, epilogue)
                sums = partial
            if self.zeros[0]:
                element: Literal["int8", "uint8"] = "uint8" if self.zeros[0] < 0 else "int8"
                zeros = SramMatrix(place.scratch("zeros"), dst.rows, self.inner, element)
                epilogue = Epilogue(sums=sums, channels=False)
                emit_product(
                    place.builder, zeros, b, partial, None, epilogue, transpose=self.transpose
                )
                sums = partial
        last = place.share("channels") if self.finish.channels is not None else None
        finish_product(
            place,
            a,
            b,
            dst,
            last,
            self.finish,
            sums=sums,
            operand=operand,
            transpose=self.transpose,
        )
