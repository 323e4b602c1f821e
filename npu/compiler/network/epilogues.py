# SPDX-License-Identifier: Apache-2.0
"""What follows the sums of a linear operation: its integers as channels of a share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import Epilogue, SramMatrix, emit_elementwise, emit_product
from npu.compiler.errors import CompileError
from npu.compiler.network.kernel import KernelPlace
from npu.compiler.stream import Channels
from npu.graph.form import Operation
from npu.image import StreamShare
from spec.isa.operands import up

INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class AfterSums:
    """What follows the sums of an operation.

    Attributes:
        channels: bias and requantisation per column; None for int32 results.
        table: of the activation, if there is one.
        epilogue: for `emit_product`, without its operands.
    """

    channels: Channels | None
    table: npt.NDArray[np.int8] | None
    epilogue: Epilogue

    def columns(self, first: int, count: int) -> AfterSums:
        """Return the same steps on some of the columns."""
        if self.channels is None:
            return self
        cut = slice(first, first + count)
        channels = Channels(
            self.channels.bias[cut], self.channels.mult[cut], self.channels.shift[cut]
        )
        return replace(self, channels=channels)


def finish_of(operation: Operation, columns: int, correction: npt.NDArray[np.int64]) -> AfterSums:
    """Return the steps between the sums of an operation and its result.

    Args:
        operation: a matmul or conv with its integers.
        columns: N.
        correction: (N,) what is added to the sums besides the operation's own bias.

    Raises CompileError if the bias leaves int32.
    """
    mult = operation.integers.get("mult")
    bias = operation.integers.get("bias", np.zeros(columns, np.int32)).astype(np.int64)
    bias = np.broadcast_to(bias, columns) + correction
    if bias.size and (bias.min() < INT32.min or bias.max() > INT32.max):
        raise CompileError(
            f"{operation.name}: a bias of {max(abs(int(b)) for b in bias)}, allowed is int32"
        )
    if mult is None:
        return AfterSums(None, None, Epilogue(channels=False))
    channels = Channels(
        bias.astype(np.int32),
        np.broadcast_to(mult, columns).astype(np.uint16),
        np.broadcast_to(operation.integers["shift"], columns).astype(np.uint8),
    )
    table = operation.integers.get("table")
    combine = operation["combine"] or None
    product = (operation["product_mult"], operation["product_shift"]) if combine == "mul" else None
    epilogue = Epilogue(
        relu=operation["relu"], table=table is not None, op=combine, product=product
    )
    return AfterSums(channels, table, epilogue)


def finish_product(
    place: KernelPlace,
    a: SramMatrix,
    b: SramMatrix | None,
    dst: SramMatrix,
    share: StreamShare | None,
    finish: AfterSums,
    *,
    sums: SramMatrix | None = None,
    operand: SramMatrix | None = None,
    transpose: bool = False,
    lines: tuple[int, int] | None = None,
    depthwise: bool = False,
) -> None:
    """Emit the last product of a sum and what follows it.

    GEMM cannot add partial sums and take an operand in one: behind partial sums the operand is
    added or multiplied by instructions of its own.
    """
    epilogue = replace(finish.epilogue, sums=sums, operand=operand)
    if sums is not None and operand is not None:
        epilogue = replace(epilogue, op=None, operand=None, product=None)
    emit_product(
        place.builder,
        a,
        b,
        dst,
        share,
        epilogue,
        transpose=transpose,
        lines=lines,
        depthwise=depthwise,
    )
    if epilogue.op == finish.epilogue.op or operand is None:
        return
    if finish.epilogue.product is not None:
        _multiply(place, dst, operand, *finish.epilogue.product)
    else:
        emit_elementwise(place.builder, "add", dst, dst, operand)


def factor_buffer(operation: Operation, rows: int, columns: int) -> dict[str, int]:
    """Return the buffer in which rows behind partial sums are multiplied, if they are."""
    return {"factors": 2 * rows * up(2 * columns)} if operation["combine"] == "mul" else {}


def _multiply(
    place: KernelPlace, dst: SramMatrix, operand: SramMatrix, mult: int, shift: int
) -> None:
    """Emit dst = sat8(rs(dst * operand * mult, shift)) as GEMM has it: int16 holds the product."""
    wide = SramMatrix(place.scratch("factors"), dst.rows, dst.columns, "int16")
    other = replace(wide, address=wide.address + wide.rows * wide.pitch)
    for narrow, same in ((dst, wide), (operand, other)):
        emit_elementwise(place.builder, "scale_shift", narrow, same, scale=1, sh=0)
    emit_elementwise(place.builder, "mul", wide, wide, other, sh=0)
    emit_elementwise(place.builder, "scale_shift", wide, dst, scale=mult, sh=shift)
