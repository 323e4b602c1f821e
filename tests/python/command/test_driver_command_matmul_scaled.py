# SPDX-License-Identifier: Apache-2.0
"""Products of 16-bit floats, of INT4 in scaled groups and of MX blocks, against golden."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pytest

from golden.command import matmul as golden
from npu.driver.command import CommandPort
from npu.driver.command.group_matmul import ScaleKind, group_matmul
from npu.driver.command.half_matmul import to_q8_8
from npu.driver.command.matmul import HALVES, Format, matmul
from npu.driver.command.mx_matmul import Blocks, MxKind, MxProduct, Scaled, mx_matmul
from npu.driver.command.product import Product, Submit
from tb.command.matmul_operands import half_codes, mx_blocks, mx_numbers, scales
from tests.python.command.command_support import model_bus

SHAPES = [(1, 1, 1), (2, 9, 3), (4, 13, 2), (1, 70, 1)]
"""M, K, N."""
MX_SHAPES = [(1, 1, 1), (2, 31, 3), (1, 32, 2), (2, 65, 2)]
DIGITS = {"mxint8": 1, "mxfp8e4": 3, "mxfp8e5": 5, "mxfp6e3": 2, "mxfp6e2": 1, "mxfp4": 1}
ARENA = (0x1000, 2048)
SUBMITS: tuple[Submit, Submit] = ("register", "descriptor")
ONE = {
    "mxint8": 0x40,
    "mxfp8e4": 0x38,
    "mxfp8e5": 0x3C,
    "mxfp6e3": 0x0C,
    "mxfp6e2": 0x08,
    "mxfp4": 2,
}
"""Codes of 1.0."""

P = TypeVar("P", Product, MxProduct)
Codes = npt.NDArray[np.int64]


def on_chip(call: Callable[[CommandPort], Awaitable[P]], scratch_bytes: int = 64) -> P:
    """Return the product of a call on a fresh port, whose counters must be what it says."""

    async def run() -> P:
        port = await CommandPort.connect(model_bus(scratch_bytes))
        product = await call(port)
        after = await port.counters()
        assert (after.ops, after.macs, after.errors) == (product.operations, product.macs, 0)
        return product

    return asyncio.run(run())


def same(product: Product, expected: npt.NDArray[np.int32]) -> bool:
    """Whether type and values are as expected."""
    return product.values.dtype == np.int32 and np.array_equal(product.values, expected)


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("fmt", sorted(HALVES))
def test_halves(fmt: Format, submit: Submit) -> None:
    """Random sizes; each product rounded, or their sum."""
    rng = np.random.default_rng(1)
    differ = 0
    for m, k, n in SHAPES:
        a, b = half_codes(fmt, rng, (m, k)), half_codes(fmt, rng, (k, n))
        call = partial(matmul, a=a, b=b, fmt=fmt, submit=submit, arena=ARENA)
        found = on_chip(call)
        assert same(found, golden.half_matmul(a, b, fmt))
        assert (found.operations, found.macs) == ((2 * k - 1) * m * n, 0)
        once = on_chip(partial(call, exact=True))
        assert same(once, golden.half_matmul(a, b, fmt, exact=True))
        assert (once.operations, once.macs) == (m * k * n, 0)
        differ += int((once.values != found.values).sum())
    assert differ > 5


@pytest.mark.parametrize("fmt", sorted(HALVES))
def test_every_half(fmt: Format) -> None:
    """All codes that are numbers in Q8.8, and signed zeros."""
    expected = {}
    for code in range(1 << 16):
        try:
            expected[code] = golden.half_q8_8(code, fmt)
        except ValueError:
            continue
    codes = np.array([list(expected)], np.uint16)
    assert to_q8_8("a", codes, fmt).tolist() == [list(expected.values())]
    assert expected[0x8000] == 0


def code_of(fmt: Format, value: float) -> int:
    """Return the code of a number that the format has."""
    single = int(np.float32(value).view(np.uint32))
    return single >> 16 if fmt == "BF16" else int(np.float16(value).view(np.uint16))


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("fmt", sorted(HALVES))
def test_halves_at_the_edges(fmt: Format, submit: Submit) -> None:
    """Ties, floors of negative products, sums that leave 32 bits in Q16.16 and in Q8.8."""
    low, tie, step = code_of(fmt, -128), code_of(fmt, 2**-9), code_of(fmt, 2**-8)
    minus = 0x8000

    def multiplied(row: list[int], column: list[int], *, exact: bool = False) -> int:
        a, b = np.array([row]), np.array(column)[:, None]
        product = on_chip(lambda p: matmul(p, a, b, fmt, submit, arena=ARENA, exact=exact))
        return int(product.values[0, 0])

    one = code_of(fmt, 1)
    assert multiplied([tie], [one]) == 1
    assert multiplied([tie | minus], [one]) == -1
    assert multiplied([step, step], [step, step | minus]) == -1
    assert multiplied([step, step], [step, step | minus], exact=True) == 0
    for exact in (False, True):
        assert multiplied([low] * 5, [low] * 5, exact=exact) == 5 << 22
        assert multiplied([low] * 513, [low] * 513, exact=exact) == (513 << 22) - (1 << 32)


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("kind", ScaleKind)
def test_groups(kind: ScaleKind, submit: Submit) -> None:
    """Groups of any size, the last one short or not, and larger than K."""
    rng = np.random.default_rng(2)
    for m, k, n in SHAPES:
        a, q = rng.integers(-128, 128, (m, k)), rng.integers(-8, 8, (k, n))
        for group in {1, 3, k, k + 5} if k < 70 else {32, 69}:
            count = -(-k // group)
            factors = scales(kind, rng, (count, n))
            call = partial(group_matmul, a=a, q=q, scales=factors, group=group, kind=kind)
            found = on_chip(partial(call, submit=submit, arena=ARENA))
            assert same(found, golden.group_matmul(a, q, factors, group, kind)), (m, k, n, group)
            assert found.macs == m * k * n
            tiles = found.operations - (2 * count - 1) * m * n
            whole = on_chip(partial(matmul, a=a, b=q, fmt="INT8"))
            assert tiles == whole.operations if count == 1 else tiles >= count


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("scratch_bytes", [128, 256])
def test_larger_scratchpads(scratch_bytes: int, submit: Submit) -> None:
    """Larger tiles, the same products."""
    rng = np.random.default_rng(3)
    a, q = rng.integers(-128, 128, (5, 40)), rng.integers(-8, 8, (40, 4))
    factors = scales(ScaleKind.Q8_8, rng, (3, 4))
    found = on_chip(
        lambda p: group_matmul(p, a, q, factors, 16, "q8_8", submit, arena=ARENA), scratch_bytes
    )
    assert same(found, golden.group_matmul(a, q, factors, 16, "q8_8"))
    x = mx_blocks(MxKind.MXFP8E4, rng, (3, 40), columns=False)
    y = mx_blocks(MxKind.MXFP8E4, rng, (40, 2), columns=True)
    product = on_chip(lambda p: mx_matmul(p, x, y, "mxfp8e4", submit, arena=ARENA), scratch_bytes)
    assert fractions(product) == golden.mx_matmul(*x, *y, "mxfp8e4").tolist()


def test_groups_at_the_edges() -> None:
    """Extremes of every operand; the sum is taken modulo 2^32."""
    a, q = np.full((1, 100), -128, np.int8), np.full((100, 2), -8, np.int8)
    factors = np.tile(np.array([-32768, 32767], np.int16), (3, 1))
    found = on_chip(lambda p: group_matmul(p, a, q, factors, 40, "q8_8"))
    total = 1024 * 100
    assert found.values.tolist() == [
        [(total * -32768 + (1 << 31)) % (1 << 32) - (1 << 31), total * 32767 - (1 << 32)]
    ]
    assert same(found, golden.group_matmul(a, q, factors, 40, "q8_8"))
    found = on_chip(lambda p: group_matmul(p, a[:, :3], q[:3], factors[:3] // 256, 1, "int8"))
    assert found.values.tolist() == [[3072 * -128 * 256, 3072 * 127 * 256]]


def fractions(product: MxProduct) -> list[list[Fraction]]:
    """Return exact values; each must be in its only form."""
    for row in product.values:
        for one in row:
            assert one.integer % 2 == 1 or one == (0, 0)
    return [[one.fraction for one in row] for row in product.values]


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("kind", MxKind)
def test_mx(kind: MxKind, submit: Submit) -> None:
    """Random blocks with scales from 2^-127 to 2^127: not one bit is lost."""
    rng = np.random.default_rng(4)
    for m, k, n in MX_SHAPES[: 3 if kind == MxKind.MXFP8E5 else None]:
        a = mx_blocks(kind, rng, (m, k), columns=False)
        b = mx_blocks(kind, rng, (k, n), columns=True)
        found = on_chip(partial(mx_matmul, a=a, b=b, kind=kind, submit=submit, arena=ARENA))
        assert fractions(found) == golden.mx_matmul(*a, *b, kind).tolist(), (m, k, n)
        assert found.macs == m * n * k * DIGITS[kind] ** 2


@pytest.mark.parametrize("kind", MxKind)
def test_every_mx_element(kind: MxKind) -> None:
    """All numbers of a format, times 1.0."""
    codes = mx_numbers(kind)[:, None].astype(np.uint8)
    a = Blocks(codes, np.full_like(codes, 127))
    one = np.array([[ONE[kind]]], np.uint8)
    found = on_chip(lambda p: mx_matmul(p, a, Blocks(one, np.array([[127]])), kind), 256)
    assert fractions(found) == [[golden.mx_value(kind, code)] for code in codes[:, 0].tolist()]


def test_mx_at_the_edges() -> None:
    """The largest and smallest numbers that blocks can hold, beside each other in one sum."""
    big, small = 0x7B, 0x01
    codes = np.array([[big] * 32 + [small]], np.uint8)
    a, b = Blocks(codes, np.array([[254, 0]])), Blocks(codes.T, np.array([[254], [0]]))
    found = on_chip(lambda p: mx_matmul(p, a, b, "mxfp8e5")).values[0][0]
    assert found == Scaled((32 * 49 << 26 + 254 * 2 + 32) + 1, -2 * (16 + 127))
    zero = Blocks(codes * 0, a.scales)
    assert on_chip(lambda p: mx_matmul(p, zero, b, "mxfp8e5")).values == ((Scaled(0, 0),),)
