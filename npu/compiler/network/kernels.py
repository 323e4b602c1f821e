# SPDX-License-Identifier: Apache-2.0
"""Which kernels become of an operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from npu.compiler.errors import CompileError
from npu.compiler.network.aliasing import in_place
from npu.compiler.network.attention import MASK, AttentionKernel, divisions
from npu.compiler.network.bands import BandKernel
from npu.compiler.network.batched import BatchedKernel, matrix_at, outer_index
from npu.compiler.network.convolution import conv_kernel, cycles_of
from npu.compiler.network.depthwise import depthwise_kernel
from npu.compiler.network.elementwise import (
    NormKernel,
    RopeKernel,
    SoftmaxKernel,
    TableKernel,
    VectorKernel,
)
from npu.compiler.network.kernel import Context, Kernel
from npu.compiler.network.layout import Layout, StorageView, parts_of, reshaped
from npu.compiler.network.linear import LinearKernel
from npu.compiler.network.lines import line_kernel
from npu.compiler.network.moves import MoveKernel, TurnKernel, index_map
from npu.compiler.network.pools import AveragePoolKernel, MaxPoolKernel, MeanKernel
from npu.graph.form import Operation
from npu.graph.operations import Trait, with_trait

BETWEEN = 128
"""Cycles of a chunk of a convolution beside its products, moves and stream, which models leave out:
a product drains before the next begins. Measured on networks, at memory latency 40."""
ROWS = (128, 112, 96, 80, 64, 48, 32, 24, 16, 8, 4, 2, 1)
"""Rows of a chunk of a product, the most first."""


def kernels_of(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    """Return the kernels of an operation, the best that fit the context's budget.

    Raises CompileError if there are none.
    """
    if op.kind not in _MAKERS:
        raise CompileError(f"{op.name}: {op.kind} is no operation of the chip")
    made = _MAKERS[op.kind](context, layout, op)
    for kernel in made:
        if kernel.sram_bytes > context.budget:
            raise CompileError(
                f"{op.name}: needs {kernel.sram_bytes} bytes of SRAM beside what lies there, "
                f"there are {context.budget}"
            )
    return made


def _views(context: Context, op: Operation, *numbers: int) -> list[StorageView]:
    return [context.view(op.inputs[number]) for number in numbers]


def _operand(context: Context, op: Operation) -> StorageView | None:
    return context.view(op.inputs[-1]) if op["combine"] else None


def _matmul(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    weight = context.graph.constant(op.inputs[1])
    writes, operand = context.view(op.outputs[0]), _operand(context, op)
    (a,) = _views(context, op, 0)
    if weight is None:
        (b,) = _views(context, op, 1)
        return [BatchedKernel(context, op, a, b, operand, writes)]
    wide = weight.astype(np.int64) - int(op["b_zero"])
    wide = wide.swapaxes(-1, -2) if op["transpose_b"] else wide
    if wide.ndim == 2:
        return [_linear(context, op, a, wide, operand, writes)]
    made = []
    for number, index in enumerate(np.ndindex(*writes.shape[:-2])):
        made.append(
            _linear(
                context,
                replace(op, name=f"{op.name}.{number}"),
                matrix_at(a, index),
                wide[outer_index(wide.shape, index)],
                None if operand is None else matrix_at(operand, index),
                matrix_at(writes, index),
            )
        )
    return made


def _linear(
    context: Context,
    op: Operation,
    a: StorageView,
    weight: np.ndarray,
    operand: StorageView | None,
    writes: StorageView,
) -> Kernel:
    zero = "a_zero" if op.kind == "matmul" else "x_zero"
    correction = -int(op[zero]) * weight.sum(0)
    for most in ROWS:
        kernel = LinearKernel(context, op, a, weight, operand, writes, correction, most)
        if kernel.sram_bytes <= context.budget:
            return kernel
    raise CompileError(
        f"{op.name}: one row needs {kernel.sram_bytes} bytes of SRAM, there are {context.budget}"
    )


def _conv(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    weight = context.graph.constant(op.inputs[1])
    if weight is None:
        raise CompileError(f"{op.name}: a filter that is not constant")
    (x,) = _views(context, op, 0)
    writes, operand = context.view(op.outputs[0]), _operand(context, op)
    views = [view for view in (x, operand, writes) if view is not None]
    pixel = weight.shape[:2] == (1, 1) and op["groups"] == 1 and tuple(op["strides"]) == (1, 1)
    if pixel and not any(op["pads"]) and all(view.rows() for view in views):
        wide = weight[0, 0].astype(np.int64) - int(op["w_zero"])
        return [_linear(context, op, x, wide, operand, writes)]
    forms = [form(context, op, x, operand, writes) for form in (depthwise_kernel, line_kernel)]
    bands = min(filter(None, forms), key=BandKernel.cycles, default=None)
    try:
        blocks = conv_kernel(context, op, x, operand, writes)
    except CompileError:
        if bands is None:
            raise
        return [bands]
    more = BETWEEN * (bands.count - blocks.count) if bands is not None else 0
    if bands is not None and bands.cycles() + more < cycles_of(blocks):
        return [bands]
    return [blocks]


def _rows(kind: Callable[..., Kernel], count: int) -> Callable[..., list[Kernel]]:
    def make(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
        del layout
        reads = _views(context, op, *range(count))
        return [kind(context, op, reads, context.view(op.outputs[0]))]

    return make


def _rope(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    return [RopeKernel(context, op, context.view(op.inputs[0]), context.view(op.outputs[0]))]


def _attention(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    masked = len(op.used) > MASK and context.graph.constant(op.inputs[MASK]) is None
    reads = _views(context, op, *range(MASK + masked))
    writes = context.view(op.outputs[0])
    for division in divisions(context, op, reads, writes):
        kernel = AttentionKernel(context, op, reads, writes, division)
        if kernel.sram_bytes <= context.budget:
            break
    return [kernel]


def _pool(kind: Callable[..., Kernel]) -> Callable[..., list[Kernel]]:
    def make(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
        x, writes = context.view(op.inputs[0]), context.view(op.outputs[0])
        for parts in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128):
            kernel = kind(context, op, x, writes, -(-writes.shape[1] // parts))
            if kernel.sram_bytes <= context.budget:
                return [kernel]
        raise CompileError(
            f"{op.name}: a row of windows needs {kernel.sram_bytes} bytes of SRAM, there are "
            f"{context.budget}"
        )

    return make


def _mean(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    x, writes = context.view(op.inputs[0]), context.view(op.outputs[0])
    axes = sorted(axis % len(x.shape) for axis in op["axes"])
    outer = axes[0]
    if axes != list(range(outer, len(x.shape) - 1)):
        raise CompileError(f"{op.name}: a mean over axes {axes}, allowed those before the last")
    return [MeanKernel(context, op, x, writes, outer)]


def _move(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    if op.name in layout.free:
        return []
    x, writes = context.view(op.inputs[0]), context.view(op.outputs[0])
    if op.kind == "transpose" and x.size == 1:
        turned = _turned(x, writes, tuple(op["order"]))
        if turned is not None:
            return [TurnKernel(context, op, *turned)]
    index = index_map(op, x.shape, writes.shape)
    fill = int(op.attributes.get("value_int", 0))  # type: ignore[arg-type]
    return [MoveKernel(context, op, x, writes, index, fill)]


def _turned(
    x: StorageView, writes: StorageView, order: tuple[int, ...]
) -> tuple[StorageView, StorageView] | None:
    """Return input and result as matrices to turn, if that is what a transposition does."""
    axes = len(order)
    for outer in range(axes - 1):
        for split in range(outer + 1, axes):
            wanted = (*range(outer), *range(split, axes), *range(outer, split))
            if order == wanted:
                lead = x.shape[:outer]
                rows = int(np.prod(x.shape[outer:split]))
                columns = int(np.prod(x.shape[split:]))
                a = reshaped(x, (*lead, rows, columns))
                c = reshaped(writes, (*lead, columns, rows))
                if a is None or c is None or a.rows(outer) is None or c.rows(outer) is None:
                    return None
                return a, c
    return None


def _concat(context: Context, layout: Layout, op: Operation) -> list[Kernel]:
    result = context.view(op.outputs[0])
    there = in_place(layout, op, result)
    axis = op["axis"] % len(result.shape)
    shapes = [context.view(name).shape for name in op.inputs]
    parts = parts_of(result, shapes, axis)
    made: list[Kernel] = []
    at = 0
    for number, name in enumerate(op.inputs):
        view = context.view(name)
        if not there[number]:
            index = np.arange(int(np.prod(view.shape)), dtype=np.int64).reshape(view.shape)
            part = Operation(f"{op.name}.{number}", "identity", (name,), op.outputs)
            if parts is not None:
                made.append(MoveKernel(context, part, view, parts[number], index))
            else:
                raise CompileError(f"{op.name}: inputs that do not end at whole words")
        at += view.shape[axis]
    return made


_MAKERS: dict[str, Callable[[Context, Layout, Operation], list[Kernel]]] = {
    "matmul": _matmul,
    "conv": _conv,
    **dict.fromkeys(with_trait(Trait.PAIR), _rows(VectorKernel, 2)),
    "clip": _rows(VectorKernel, 1),
    "requantise": _rows(VectorKernel, 1),
    "table": _rows(TableKernel, 1),
    "softmax": _rows(SoftmaxKernel, 1),
    "layernorm": _rows(NormKernel, 1),
    "rmsnorm": _rows(NormKernel, 1),
    "rope": _rope,
    "attention": _attention,
    "maxpool": _pool(MaxPoolKernel),
    "avgpool": _pool(AveragePoolKernel),
    "mean": _mean,
    **dict.fromkeys(with_trait(Trait.COPY), _move),
    "concat": _concat,
}
