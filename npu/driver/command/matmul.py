# SPDX-License-Identifier: Apache-2.0
"""Matrix products of any size on the command port; the chip does every multiplication.

| format | elements | one operation | sums of parts |
|---|---|---|---|
| INT8, INT4 | -128..127, -8..7 | GEMM_S8, GEMM_S4: a tile | host, modulo 2^32 |
| INT2, TERNARY | -2..1, -1..1 | DOT16_S2: 16 products of one element | ACC |
| FP8 | E4M3 codes 0..255 but 0x7F, 0xFF | DOT4_FP8_E4M3: 4 products | ACC |
| SPARSE_INT4 | -8..7, a 2:4 sparse | SDOT4_S4_2_4: 4 products, 8 lanes | ADD |
| FP16, BF16 | codes of normal numbers and zero, -128..128 | MUL_LO: 1 product of Q8.8 | ADD |
| the same, exact | the same | MAC_S16: 1 product of Q8.8 | ACC, host |

The result is int32 modulo 2^32; of FP8, FP16 and BF16 it is in Q8.8, each product rounded down,
with `exact` only their sum.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from npu.driver.command import scalars
from npu.driver.command.half_matmul import half_product, to_q8_8
from npu.driver.command.operation import NOT_A_NUMBER, Scalar
from npu.driver.command.port import CommandPort
from npu.driver.command.product import (
    Arena,
    Integers,
    Product,
    Submit,
    check_matrix,
    check_range,
    first_wrong,
    open_runner,
)
from npu.driver.command.runner import Runner
from npu.driver.command.tiled import tiled
from npu.driver.errors import RequestError
from spec.regs import CmdOp

Words: TypeAlias = npt.NDArray[np.uint64]

GROUP, KEPT = 4, 2
"""2:4 sparsity: of so many neighbours along K, so many may differ from 0."""


class Format(StrEnum):
    """What the elements are."""

    INT8 = "INT8"
    INT4 = "INT4"
    INT2 = "INT2"
    TERNARY = "TERNARY"
    FP8 = "FP8"
    SPARSE_INT4 = "SPARSE_INT4"
    FP16 = "FP16"
    BF16 = "BF16"


RANGES = {
    Format.INT8: (-128, 127),
    Format.INT4: (-8, 7),
    Format.INT2: (-2, 1),
    Format.TERNARY: (-1, 1),
    Format.SPARSE_INT4: (-8, 7),
}
HALVES = frozenset({Format.FP16, Format.BF16})
GEMMS = {Format.INT8: CmdOp.GEMM_S8, Format.INT4: CmdOp.GEMM_S4}


class _Dot(NamedTuple):
    """A dot product that adds ACC: so many lanes of so many bits."""

    op: CmdOp
    lanes: int
    bits: int


DOTS = {
    Format.INT2: _Dot(CmdOp.DOT16_S2, 16, 2),
    Format.TERNARY: _Dot(CmdOp.DOT16_S2, 16, 2),
    Format.FP8: _Dot(CmdOp.DOT4_FP8_E4M3, 4, 8),
}


async def matmul(
    port: CommandPort,
    a: Integers,
    b: Integers,
    fmt: Format | str,
    submit: Submit = "register",
    *,
    arena: Arena = None,
    exact: bool = False,
) -> Product:
    """Return a (M, K) times b (K, N), of any size from 1.

    Args:
        port: the command port.
        a: integers in the range of the format.
        b: the same.
        fmt: what the elements are.
        submit: "register" runs one operation after the other; "descriptor" stages them in memory
            and runs batches of what fits the ring.
        arena: (address, size) of memory for "descriptor": a multiple of 16, and at least 192 bytes
            more than the scratchpad.
        exact: of FP16 and BF16, round only the sum of the products.

    Raises:
        RequestError: shape, type, element, sparsity or arena does not fit; nothing was touched.
        CommandFailed: the hardware reports an error.
    """
    if fmt not in list(Format):
        raise RequestError("matmul.fmt", repr(fmt), ", ".join(Format))
    fmt = Format(fmt)
    if exact and fmt not in HALVES:
        raise RequestError("matmul.exact", exact, f"False but for {', '.join(sorted(HALVES))}")
    if fmt in HALVES:
        a, b = to_q8_8("a", a, fmt), to_q8_8("b", b, fmt)
    else:
        _check("a", a, fmt)
        _check("b", b, fmt)
    if a.shape[1] != b.shape[0]:
        raise RequestError("b", f"{b.shape[0]} rows", f"{a.shape[1]}, the columns of a")
    kept = _kept(a) if fmt is Format.SPARSE_INT4 else None
    runner = await open_runner(port, "matmul", submit, arena)
    if fmt in HALVES:
        return await half_product(runner, a, b, exact=exact)
    if kept is not None:
        return await _sparse(runner, a, kept, b)
    if fmt in GEMMS:
        return (await tiled(runner, [(a, b)], GEMMS[fmt]))[0]
    return await _dots(runner, a, b, fmt)


def _check(name: str, values: Integers, fmt: Format) -> None:
    """Raise RequestError unless this is a matrix of the format's elements."""
    if fmt is not Format.FP8:
        check_range(name, values, *RANGES[fmt], fmt)
        return
    check_matrix(name, values)
    if place := first_wrong((values < 0) | (values > 0xFF) | np.isin(values, NOT_A_NUMBER)):
        i, j = place
        raise RequestError(
            f"{name}[{i}, {j}]",
            f"{int(values[i, j]):#04x}",
            "0x00-0x7e, 0x80-0xfe for FP8: 0x7f and 0xff are not numbers",
        )


def _packed(values: Integers, count: int, bits: int) -> Words:
    """Return (R, K) elements as (R, ceil(K / count)) words of `count` lanes, filled up with 0."""
    filled = _filled(values, count)
    parts = filled.reshape(filled.shape[0], -1, count)
    lanes = parts.astype(np.int64).view(np.uint64) & np.uint64((1 << bits) - 1)
    shifted = lanes << (np.uint64(bits) * np.arange(count, dtype=np.uint64))
    words: Words = shifted.sum(axis=2, dtype=np.uint64)
    return words


def _filled(values: Integers, count: int) -> npt.NDArray[np.int64]:
    """Return (R, K) elements with zeros up to a multiple of `count` along K."""
    return np.pad(values.astype(np.int64), ((0, 0), (0, -values.shape[1] % count)))


def _result(sums: list[int], shape: tuple[int, int], operations: int) -> Product:
    values = np.array(sums, np.uint32).view(np.int32).reshape(shape)
    return Product(values, operations, 0)


async def _dots(runner: Runner, a: Integers, b: Integers, fmt: Format) -> Product:
    """Multiply by dot products whose ACC takes one part along K to the next."""
    op, count, bits = DOTS[fmt]
    ternary = fmt is Format.TERNARY
    # The code of -1 is 2 in ternary lanes, where -1 has 3 in two's complement.
    left, right = (np.where(it < 0, 2, it) if ternary else it for it in (a, b.T))
    left_words = _packed(left, count, bits).tolist()
    right_words = _packed(right, count, bits).tolist()
    pairs = list(product(left_words, right_words))
    parts = len(left_words[0])
    sums = [0] * len(pairs)
    for part in range(parts):
        sums = await runner.scalars(
            [
                Scalar(op, row[part], column[part], acc, ternary)
                for (row, column), acc in zip(pairs, sums, strict=True)
            ]
        )
    return _result(sums, (a.shape[0], b.shape[1]), parts * len(pairs))


def _kept(a: Integers) -> npt.NDArray[np.int64]:
    """Return the places in its group of the two elements kept of each, (M, groups, 2) ascending.

    Raises:
        RequestError: a group of four neighbours along K has more than two that differ from 0.
    """
    groups = _filled(a, 2 * GROUP).reshape(a.shape[0], -1, GROUP)
    counts = (groups != 0).sum(axis=2)
    if (counts > KEPT).any():
        i, group = (int(place) for place in np.argwhere(counts > KEPT)[0])
        first = GROUP * group
        raise RequestError(
            f"a[{i}, {first}:{min(first + GROUP, a.shape[1])}]",
            f"{int(counts[i, group])} elements other than 0",
            f"at most {KEPT} of {GROUP} for {Format.SPARSE_INT4}",
        )
    # Those that differ from 0 first, each kind in ascending order.
    order = np.argsort(groups == 0, axis=2, kind="stable")[:, :, :KEPT]
    return np.sort(order, axis=2)


async def _sparse(runner: Runner, a: Integers, kept: npt.NDArray[np.int64], b: Integers) -> Product:
    """Multiply by sparse dot products of eight lanes, whose sums the chip adds."""
    rows, columns = a.shape[0], b.shape[1]
    groups = _filled(a, 2 * GROUP).reshape(rows, -1, GROUP)
    values = np.take_along_axis(groups, kept, axis=2).reshape(rows, -1)
    left_words = _packed(values, 2 * KEPT, 4).tolist()
    positions = _packed(kept.reshape(rows, -1), 2 * KEPT, 2).tolist()
    right_words = _packed(b.T, 2 * GROUP, 4).tolist()
    left = [list(zip(*row, strict=True)) for row in zip(left_words, positions, strict=True)]
    pairs = list(product(left, right_words))
    parts = len(right_words[0])
    sums = [0] * len(pairs)
    for part in range(parts):
        dots = await runner.scalars(
            [
                Scalar(CmdOp.SDOT4_S4_2_4, row[part][0], column[part], row[part][1])
                for row, column in pairs
            ]
        )
        if part:
            dots = await runner.scalars(
                [scalars.add(one, other) for one, other in zip(sums, dots, strict=True)]
            )
        sums = dots
    return _result(sums, (rows, columns), (2 * parts - 1) * len(pairs))
