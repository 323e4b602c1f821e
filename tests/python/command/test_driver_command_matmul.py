# SPDX-License-Identifier: Apache-2.0
"""Matrix products by the driver, on the reference model, against numpy."""

from __future__ import annotations

import asyncio
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from npu.driver.command import CommandPort
from npu.driver.command.matmul import HALVES, Format, matmul
from npu.driver.command.product import Product, Submit
from tests.python.command.command_support import RecordingBus, model_bus

SHAPES = [
    (1, 1, 1),
    (1, 33, 1),
    (3, 4, 2),
    (2, 7, 3),
    (5, 17, 4),
    (7, 64, 7),
    (4, 16, 16),
    (13, 3, 9),
]
"""M, K, N."""
FORMATS = [fmt for fmt in Format if fmt not in HALVES]
ARENA = (0x1000, 2048)
SUBMITS: tuple[Submit, Submit] = ("register", "descriptor")

Matrix = npt.NDArray[np.int64]


def operands(fmt: Format, shape: tuple[int, int, int], rng: np.random.Generator) -> list[Matrix]:
    """Return a (M, K) and b (K, N) over the full range of a format."""
    m, k, n = shape
    low, high = {
        Format.INT8: (-128, 127),
        Format.INT4: (-8, 7),
        Format.INT2: (-2, 1),
        Format.TERNARY: (-1, 1),
        Format.FP8: (0, 253),
        Format.SPARSE_INT4: (-8, 7),
    }[fmt]
    a, b = (rng.integers(low, high, size, endpoint=True) for size in ((m, k), (k, n)))
    if fmt is Format.FP8:
        return [values + (values >= 0x7F) for values in (a, b)]
    if fmt is Format.SPARSE_INT4:
        for i, first in np.ndindex(m, -(-k // 4)):
            for lane in rng.permutation(4)[: rng.integers(2, 5)]:
                if 4 * first + lane < k:
                    a[i, 4 * first + lane] = 0
    return [a, b]


def fixed_point(codes: Matrix) -> Matrix:
    """Return FP8 codes as Q8.8, magnitudes rounded down."""
    real = codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    fixed: Matrix = (np.sign(real) * np.floor(np.abs(real) * 256)).astype(np.int64)
    return fixed


def expected(fmt: Format, a: Matrix, b: Matrix) -> npt.NDArray[np.int32]:
    """Return what the chip must say."""
    if fmt is Format.FP8:
        products = fixed_point(a)[:, :, None] * fixed_point(b)[None]
        sums: Matrix = (products >> 8).sum(axis=1)
    else:
        sums = a @ b
    return sums.astype(np.int32)


async def run(
    port: CommandPort, a: npt.NDArray[Any], b: npt.NDArray[Any], fmt: Format, submit: Submit
) -> Product:
    """Multiply, and hold what the product says of itself against the chip's counters."""
    before = await port.counters()
    arena = ARENA if submit == "descriptor" else None
    product = await matmul(port, a, b, fmt, submit, arena=arena)
    after = await port.counters()
    assert (after.ops - before.ops, after.macs - before.macs) == (product.operations, product.macs)
    assert after.errors == 0
    assert product.values.dtype == np.int32
    return product


@pytest.mark.parametrize("submit", SUBMITS)
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("scratch_bytes", [64, 128, 256])
def test_product(scratch_bytes: int, fmt: Format, submit: Submit) -> None:
    """Every format, submission and size of scratchpad; odd sizes."""
    rng = np.random.default_rng(1)

    async def check() -> None:
        port = await CommandPort.connect(model_bus(scratch_bytes))
        for shape in SHAPES:
            a, b = operands(fmt, shape, rng)
            product = await run(port, a, b, fmt, submit)
            assert (product.values == expected(fmt, a, b)).all(), shape
            m, k, n = shape
            parts = {"INT2": 16, "TERNARY": 16, "FP8": 4, "SPARSE_INT4": 8}.get(fmt)
            if parts is None:
                assert product.macs == m * k * n
            else:
                dots = -(-k // parts) * m * n
                adds = dots - m * n if fmt is Format.SPARSE_INT4 else 0
                assert (product.operations, product.macs) == (dots + adds, 0)

    asyncio.run(check())


@pytest.mark.parametrize("submit", SUBMITS)
def test_corners(submit: Submit) -> None:
    """The extremes of each format along a whole row."""
    corners = {
        Format.INT8: [-128, 127], Format.INT4: [-8, 7], Format.INT2: [-2, 1],
        Format.TERNARY: [-1, 1], Format.FP8: [0x7E, 0xFE, 0x01, 0x81, 0x80],
        Format.SPARSE_INT4: [-8, 7],
    }  # fmt: skip

    async def check() -> None:
        port = await CommandPort.connect(model_bus())
        for fmt, values in corners.items():
            b = np.array([values] * 20)
            for value in values:
                a = np.full((1, 20), value)
                if fmt is Format.SPARSE_INT4:
                    a[:, 1::2] = 0
                product = await run(port, a, b, fmt, submit)
                assert (product.values == expected(fmt, a, b)).all(), (fmt, value)

    asyncio.run(check())


@pytest.mark.parametrize("submit", SUBMITS)
def test_fp8_sums_wrap(submit: Submit) -> None:
    """Sums are int32 modulo 2^32: 448 * 448 in Q8.8 overflows after 41 products."""

    async def check() -> None:
        port = await CommandPort.connect(model_bus())
        a, b = np.full((1, 50), 0x7E, np.uint8), np.full((50, 1), 0x7E, np.uint8)
        product = await run(port, a, b, Format.FP8, submit)
        assert product.values.tolist() == [[50 * 448 * 448 * 256 - (1 << 32)]]

    asyncio.run(check())


def test_types_and_names() -> None:
    """Any integer dtype, transposed views, and the format by name."""

    async def check() -> None:
        port = await CommandPort.connect(model_bus())
        rng = np.random.default_rng(3)
        a = rng.integers(0, 2, (9, 5), np.uint8).T
        b = rng.integers(0, 2, (18, 4), np.int16)[::2]
        for name in ("INT8", "INT4", "INT2", "TERNARY"):
            product = await matmul(port, a, b, name)
            assert (product.values == a.astype(int) @ b).all(), name

    asyncio.run(check())


def test_smallest_arena_and_what_lies_around_it() -> None:
    """One slot is enough, and nothing outside the arena is written."""

    async def check() -> None:
        bus = model_bus()
        port = await CommandPort.connect(bus)
        rng = np.random.default_rng(4)
        start, size = 0x1000, 128 + 64 + 64
        before = bus.read_memory(0, 1 << 16)
        for fmt in FORMATS:
            a, b = operands(fmt, (3, 18, 4), rng)
            product = await matmul(port, a, b, fmt, "descriptor", arena=(start, size))
            assert (product.values == expected(fmt, a, b)).all()
        after = bus.read_memory(0, 1 << 16)
        assert before[:start] == after[:start]
        assert before[start + size :] == after[start + size :]
        assert before[start : start + size] != after[start : start + size]

    asyncio.run(check())


def test_the_ring_is_filled() -> None:
    """Equal tiles go seven to a start: 14 of them are two starts."""

    async def check() -> None:
        bus = RecordingBus(model_bus())
        port = await CommandPort.connect(bus)
        a, b = np.ones((2, 7 * 14), np.int8), np.ones((7 * 14, 3), np.int8)
        bus.log.clear()
        product = await matmul(port, a, b, Format.INT8, "descriptor", arena=ARENA)
        assert (product.operations, product.macs) == (14, 14 * 42)
        assert sum(what == "interrupt" for what, _, _ in bus.log) == 2

    asyncio.run(check())
