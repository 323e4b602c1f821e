# SPDX-License-Identifier: Apache-2.0
"""Matrix products of 16-bit floats, which the host converts to Q8.8.

Conversion rounds half away from zero. A product of Q8.8 numbers is one of Q16.16, of which the
result keeps eight fraction bits, rounded down: of each product, or of the exact sum.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from npu.driver.command.operation import Scalar
from npu.driver.command.product import (
    Flags,
    Integers,
    Product,
    added,
    as_signed,
    check_matrix,
    first_wrong,
    multiplied,
)
from npu.driver.command.runner import Runner
from npu.driver.command.scalars import signed
from npu.driver.errors import RequestError
from spec.regs import CmdOp

FRACTION_BITS = 8
Q8_8_LOW, Q8_8_HIGH = -(1 << 15), (1 << 15) - 1
SMALLEST_NORMAL = {"FP16": 2.0**-14, "BF16": 2.0**-126}


def to_q8_8(name: str, codes: Integers, fmt: str) -> npt.NDArray[np.int64]:
    """Return a matrix of FP16 or BF16 codes in Q8.8, half away from zero.

    Raises:
        RequestError: no matrix of 16-bit codes; NaN, infinity, a subnormal number, or one that
            leaves int16 in Q8.8. The message names row and column.
    """
    check_matrix(name, codes)
    _refuse(name, codes, (codes < 0) | (codes > 0xFFFF), "0x0000 to 0xffff")
    with np.errstate(invalid="ignore"):  # what a conversion of a NaN may signal
        if fmt == "FP16":
            values = codes.astype(np.uint16).view(np.float16).astype(np.float64)
        else:
            values = (codes.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    size = np.abs(values)
    numbers = f"codes of zero and finite normal numbers of {fmt}"
    _refuse(name, codes, np.isnan(size), numbers, "not a number")
    _refuse(name, codes, np.isinf(size), numbers, "infinity")
    _refuse(name, codes, (size != 0) & (size < SMALLEST_NORMAL[fmt]), numbers, "subnormal")
    # Below 2^15 the sum is exact; beyond, it only has to stay beyond.
    fixed = np.copysign(np.floor(size * (1 << FRACTION_BITS) + 0.5), values)
    wrong = (fixed < Q8_8_LOW) | (fixed > Q8_8_HIGH)
    if place := first_wrong(wrong):
        what = f"{values[place]:g} in Q8.8 is {fixed[place]:.0f}"
        _refuse(name, codes, wrong, f"{Q8_8_LOW} to {Q8_8_HIGH} in Q8.8", what)
    return fixed.astype(np.int64)


def _refuse(name: str, codes: Integers, wrong: Flags, allowed: str, what: str = "") -> None:
    """Raise RequestError for the first code that is wrong."""
    if place := first_wrong(wrong):
        i, j = place
        given = f"{int(codes[i, j]):#06x}" + (f" ({what})" if what else "")
        raise RequestError(f"{name}[{i}, {j}]", given, allowed)


async def half_product(runner: Runner, a: Integers, b: Integers, *, exact: bool) -> Product:
    """Multiply (M, K) by (K, N), both in Q8.8, into int32 in Q8.8 modulo 2^32.

    With `exact` the sum of the products is rounded instead of each one.
    """
    if exact:
        return await _chained(runner, a, b)
    depth = a.shape[1]
    total: Integers = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for k in range(depth):
        part = await multiplied(runner, a[:, k, None], b[None, k]) >> FRACTION_BITS
        total = await added(runner, total, part) if k else part
    return Product(as_signed(total), (2 * depth - 1) * total.size, 0)


async def _chained(runner: Runner, a: Integers, b: Integers) -> Product:
    """Multiply by chains of MAC_S16; a chain ends before its sum can leave 32 bits."""
    rows, depth, columns = *a.shape, b.shape[1]
    largest = max(1, int(np.abs(a).max()) * int(np.abs(b).max()))
    length = max(1, ((1 << 31) - 1) // largest)
    sums = [0] * (rows * columns)
    for first in range(0, depth, length):
        chain = [0] * len(sums)
        for k in range(first, min(first + length, depth)):
            pairs = product((a[:, k] & 0xFFFF).tolist(), (b[k] & 0xFFFF).tolist())
            chain = await runner.scalars(
                [Scalar(CmdOp.MAC_S16, x, y, acc) for (x, y), acc in zip(pairs, chain, strict=True)]
            )
        sums = [total + signed(part) for total, part in zip(sums, chain, strict=True)]
    values = np.array([total >> FRACTION_BITS for total in sums], np.int64)
    return Product(as_signed(values.reshape(rows, columns)), depth * len(sums), 0)
