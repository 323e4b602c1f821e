# SPDX-License-Identifier: Apache-2.0
"""Products of matrices on the command port, from what its operations compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from golden.command.matmul import group_matmul, half_matmul
from golden.command.scalar import fp8
from golden.graph.call import IntegerCall
from npu.graph.form import Array


def portmatmul(call: IntegerCall) -> Array:
    """Multiply (M, K) by (K, N); the result is int32 modulo 2^32."""
    a, b = call.array(0), call.array(1)
    match call["format"]:
        case "fp8":
            rows, columns = (
                [[fp8(code) for code in row] for row in one.tolist()] for one in (a, b.T)
            )
            return _sums(rows, columns, 256)
        case "fp16" | "bf16" as name:
            left, right = (one.view(np.uint16).astype(np.int64) for one in (a, b))
            return half_matmul(left, right, name.upper(), exact=bool(call["exact"]))
        case "group_int4":
            return group_matmul(a, b, call.array(2), call["group"], "q8_8")
        case _:
            return _sums(a.tolist(), b.T.tolist(), 1)


def _sums(rows: list[list[int]], columns: list[list[int]], unit: int) -> Array:
    """Return the sums of products in a unit, each rounded down, modulo 2^32."""
    sums = [
        [
            sum(x * y // unit for x, y in zip(row, column, strict=True)) % (1 << 32)
            for column in columns
        ]
        for row in rows
    ]
    return np.array(sums, np.uint32).view(np.int32)


MEANINGS: dict[str, Callable[[IntegerCall], Array]] = {"portmatmul": portmatmul}
