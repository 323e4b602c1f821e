# SPDX-License-Identifier: Apache-2.0
"""The driver multiplies matrices on the chip: every format, by register and by descriptor."""

from __future__ import annotations

import cocotb
import ml_dtypes
import numpy as np
import numpy.typing as npt

from npu.driver.command import CommandPort
from npu.driver.command.matmul import HALVES, Format, matmul
from npu.driver.command.product import Submit
from spec.regs import CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.command.command_session import HOSTILE, CommandSession

TAGS = ("cmd", "long")

SCRATCH_BYTES = (64, 128, 256)
FORMATS = [fmt for fmt in Format if fmt not in HALVES]
ARENA = (0x0034_0000, 4096)
SHAPES = ((1, 1, 1), (1, 33, 2), (3, 4, 2), (5, 17, 4))
"""M, K, N."""
LONG_SHAPES = ((2, 7, 3), (7, 64, 7), (4, 16, 16), (13, 3, 9))
RANGES = {
    Format.INT8: (-128, 127),
    Format.INT4: (-8, 7),
    Format.INT2: (-2, 1),
    Format.TERNARY: (-1, 1),
    Format.FP8: (0, 253),
    Format.SPARSE_INT4: (-8, 7),
}

Matrix = npt.NDArray[np.int64]


def _operands(random: np.random.Generator, fmt: Format, m: int, k: int, n: int) -> list[Matrix]:
    """Return a (m, k) and b (k, n) over the full range of a format."""
    low, high = RANGES[fmt]
    a, b = (random.integers(low, high, size, endpoint=True) for size in ((m, k), (k, n)))
    if fmt is Format.FP8:
        return [codes + (codes >= 0x7F) for codes in (a, b)]
    if fmt is Format.SPARSE_INT4:
        for row in a:
            for group in range(0, k, 4):
                row[group + random.permutation(4)[:2][: max(0, k - group)] % max(1, k - group)] = 0
            for group in range(0, k, 4):
                filled = np.flatnonzero(row[group : group + 4])
                row[group + filled[2:]] = 0
    return [a, b]


def _product(fmt: Format, a: Matrix, b: Matrix) -> npt.NDArray[np.int32]:
    """Return (m, n) int32 modulo 2^32; FP8 in Q8.8, every product rounded down."""
    if fmt is not Format.FP8:
        return np.asarray(a @ b).astype(np.int32)

    def fixed(codes: Matrix) -> Matrix:
        real = codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        exact: Matrix = (np.sign(real) * np.floor(np.abs(real) * 256)).astype(np.int64)
        return exact

    products = fixed(a)[:, :, None] * fixed(b)[None, :, :]
    summed: npt.NDArray[np.int32] = (products // 256).sum(axis=1).astype(np.int32)
    return summed


async def _multiply(
    session: CommandSession,
    port: CommandPort,
    fmt: Format,
    shape: tuple[int, int, int],
    how: Submit,
) -> None:
    """Multiply on the chip; result, products and operations must be right."""
    a, b = _operands(session.random, fmt, *shape)
    macs, ops = await session.read(CmdReg.PERF_MACS), await session.read(CmdReg.PERF_OPS)
    found = await matmul(port, a, b, fmt, how, arena=ARENA)
    expected = _product(fmt, a, b)
    assert np.array_equal(found.values, expected), f"{fmt} {shape}: {found.values} for {expected}"
    counted = await session.read(CmdReg.PERF_MACS) - macs
    assert counted == found.macs, f"{fmt} {shape}: PERF_MACS {counted}, {found.macs} expected"
    if fmt in (Format.INT8, Format.INT4):
        assert counted == np.prod(shape), f"{fmt} {shape}: PERF_MACS {counted}"
    done = await session.read(CmdReg.PERF_OPS) - ops
    assert done == found.operations > 0, f"{fmt} {shape}: PERF_OPS {done}"
    assert await session.read(CmdReg.PERF_ERRORS) == 0


async def _all_formats(dut: Dut, how: Submit) -> None:
    session = await CommandSession.start(dut)
    port = await CommandPort.connect(session.bus)
    for turn, shape in enumerate([*SHAPES, *(LONG_SHAPES if full() else ())]):
        await session.set_knobs([Knobs(), *HOSTILE][turn % 5])
        for fmt in FORMATS:
            await _multiply(session, port, fmt, shape, how)
    await session.compare()


@cocotb.test
async def test_cmd_matmul_by_register(dut: Dut) -> None:
    """Every format, odd sizes, one operation after the other."""
    await _all_formats(dut, "register")


@cocotb.test
async def test_cmd_matmul_by_descriptor(dut: Dut) -> None:
    """Every format, odd sizes, in batches of descriptors with streams and writebacks."""
    await _all_formats(dut, "descriptor")
