# SPDX-License-Identifier: Apache-2.0
"""Matrix products with INT4 weights that have a scale for each group along K and column.

Groups of any size: the weight formats of the parameter stream take 16, 32, 64 and 128 only.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from npu.driver.command.half_matmul import FRACTION_BITS, Q8_8_HIGH, Q8_8_LOW, to_q8_8
from npu.driver.command.port import CommandPort
from npu.driver.command.product import (
    Arena,
    Integers,
    Product,
    Submit,
    added,
    as_signed,
    check_range,
    check_shape,
    multiplied,
    open_runner,
)
from npu.driver.command.tiled import tiled
from npu.driver.errors import WORD, RequestError, whole


class ScaleKind(StrEnum):
    """What the scales are: int16 in Q8.8, integers of 8 bits, codes of FP16 or BF16."""

    Q8_8 = "q8_8"
    INT8 = "int8"
    FP16 = "fp16"
    BF16 = "bf16"


def _fixed(scales: Integers, kind: ScaleKind) -> Integers:
    """Return scales in Q8.8, or raise RequestError."""
    if kind in (ScaleKind.FP16, ScaleKind.BF16):
        return to_q8_8("scales", scales, kind.upper())
    if kind is ScaleKind.INT8:
        check_range("scales", scales, -128, 127, kind)
        return scales.astype(np.int64) << FRACTION_BITS
    check_range("scales", scales, Q8_8_LOW, Q8_8_HIGH, kind)
    return scales.astype(np.int64)


async def group_matmul(
    port: CommandPort,
    a: Integers,
    q: Integers,
    scales: Integers,
    group: int,
    kind: ScaleKind | str,
    submit: Submit = "register",
    *,
    arena: Arena = None,
) -> Product:
    """Return a times the weights q[k, n] * scales[k // group, n], in Q8.8 modulo 2^32.

    Dot products of the groups are tiles of GEMM_S8, MUL_LO multiplies them by their scales, ADD
    adds the groups: exact but for the conversion of floats to Q8.8.

    Args:
        port: the command port.
        a: (M, K) int8.
        q: (K, N) int4.
        scales: (ceil(K / group), N).
        group: rows of q that share a scale; the last group may have fewer.
        kind: what the scales are.
        submit: as of `matmul`.
        arena: as of `matmul`.

    Raises:
        RequestError: shape, type, element or arena does not fit; nothing was touched.
        CommandFailed: the hardware reports an error.
    """
    if kind not in list(ScaleKind):
        raise RequestError("group_matmul.kind", repr(kind), ", ".join(ScaleKind))
    whole("group_matmul.group", group, 1, WORD)
    check_range("a", a, -128, 127, "INT8")
    check_range("q", q, -8, 7, "INT4")
    fixed = _fixed(scales, ScaleKind(kind))
    (rows, depth), columns = a.shape, q.shape[1]
    if q.shape[0] != depth:
        raise RequestError("q", f"{q.shape[0]} rows", f"{depth}, the columns of a")
    groups = -(-depth // group)
    check_shape("scales", scales, (groups, columns), "one for each group and column of q")
    runner = await open_runner(port, "group_matmul", submit, arena)
    places = [slice(first, first + group) for first in range(0, depth, group)]
    parts = await tiled(runner, [(a[:, place], q[place]) for place in places])
    scaled = await multiplied(runner, np.stack([one.values for one in parts]), fixed[:, None])
    total = scaled[0]
    for part in scaled[1:]:
        total = await added(runner, total, part)
    operations = sum(one.operations for one in parts) + (2 * groups - 1) * rows * columns
    return Product(as_signed(total), operations, rows * columns * depth)
