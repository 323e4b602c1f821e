# SPDX-License-Identifier: Apache-2.0
"""Matrix products of floats, scaled groups and MX blocks: the chip does every multiplication.

PERF_OPS and PERF_MACS read before and after prove it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import cocotb
import numpy as np

from golden.command import matmul as golden
from npu.driver.command import CommandPort
from npu.driver.command.group_matmul import ScaleKind, group_matmul
from npu.driver.command.matmul import HALVES, Format, matmul
from npu.driver.command.mx_matmul import MxKind, MxProduct, mx_matmul
from npu.driver.command.product import Product, Submit
from spec.regs import CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.command.command_session import HOSTILE, CommandSession
from tb.command.matmul_operands import half_codes, mx_blocks, scales

TAGS = ("cmd", "formats", "long")

SCRATCH_BYTES = (64, 128, 256)
ARENA = (0x0034_0000, 4096)
SHAPES = ((1, 1, 1), (2, 9, 3))
"""M, K, N."""
LONG_SHAPES = ((5, 33, 2), (3, 40, 5))
MX_SHAPES = ((1, 1, 1), (2, 35, 1))
LONG_MX_SHAPES = ((3, 64, 2), (2, 70, 4))
DIGITS = {
    MxKind.MXINT8: 1,
    MxKind.MXFP8E4: 3,
    MxKind.MXFP8E5: 5,
    MxKind.MXFP6E3: 2,
    MxKind.MXFP6E2: 1,
    MxKind.MXFP4: 1,
}


GROUPS = ((4, 1, 40, 7), (2, 5, 9, 1))
"""Rows that share a scale; the last group is short in most."""
P = TypeVar("P", Product, MxProduct)


@dataclass
class Multiplier:
    """Chip and model that multiply by register or by descriptor, with counters checked."""

    session: CommandSession
    port: CommandPort
    how: Submit

    async def _counted(self, what: str, call: Awaitable[P], scalars: int, macs: int) -> P:
        """Return a product that takes so many scalar operations and products of tiles."""
        read = self.session.read
        before = await read(CmdReg.PERF_OPS), await read(CmdReg.PERF_MACS)
        found = await call
        ops = await read(CmdReg.PERF_OPS) - before[0]
        counted = await read(CmdReg.PERF_MACS) - before[1]
        assert (ops, counted) == (found.operations, macs), f"{what}: PERF_OPS {ops}, MACS {counted}"
        assert found.macs == macs, f"{what}: {found.macs} MACs for {macs}"
        tiles = ops - scalars
        assert tiles > 0 if macs else tiles == 0, f"{what}: {ops} operations, {scalars} on words"
        assert await read(CmdReg.PERF_ERRORS) == 0, what
        return found

    async def halves(self, fmt: Format, shape: tuple[int, int, int]) -> None:
        """Multiply 16-bit floats, and round each product or their sum."""
        m, k, n = shape
        a, b = (half_codes(fmt, self.session.random, size) for size in ((m, k), (k, n)))
        for exact, scalars in ((False, (2 * k - 1) * m * n), (True, k * m * n)):
            call = matmul(self.port, a, b, fmt, self.how, arena=ARENA, exact=exact)
            found = await self._counted(fmt, call, scalars, 0)
            expected = golden.half_matmul(a, b, fmt, exact=exact)
            assert np.array_equal(found.values, expected), (
                f"{fmt} {shape}, exact {exact}: {found} for {expected}"
            )

    async def groups(self, kind: ScaleKind, shape: tuple[int, int, int], group: int) -> None:
        """Multiply by INT4 in scaled groups."""
        m, k, n = shape
        random, count = self.session.random, -(-k // group)
        a, q = random.integers(-128, 128, (m, k)), random.integers(-8, 8, (k, n))
        factors = scales(kind, random, (count, n))
        call = group_matmul(self.port, a, q, factors, group, kind, self.how, arena=ARENA)
        found = await self._counted(f"{kind} {group}", call, (2 * count - 1) * m * n, m * n * k)
        expected = golden.group_matmul(a, q, factors, group, kind)
        assert np.array_equal(found.values, expected), (
            f"{kind} in groups of {group} {shape}: {found} for {expected}"
        )

    async def mx(self, kind: MxKind, shape: tuple[int, int, int]) -> None:
        """Multiply MX blocks."""
        m, k, n = shape
        a = mx_blocks(kind, self.session.random, (m, k), columns=False)
        b = mx_blocks(kind, self.session.random, (k, n), columns=True)
        call = mx_matmul(self.port, a, b, kind, self.how, arena=ARENA)
        found = await self._counted(kind, call, 0, m * n * k * DIGITS[kind] ** 2)
        values = [[one.fraction for one in row] for row in found.values]
        expected = golden.mx_matmul(*a, *b, kind).tolist()
        assert values == expected, f"{kind} {shape}: {values} for {expected}"


async def _all(dut: Dut, how: Submit) -> None:
    session = await CommandSession.start(dut)
    on_chip = Multiplier(session, await CommandPort.connect(session.bus), how)
    for turn, shape in enumerate([*SHAPES, *(LONG_SHAPES if full() else ())]):
        await session.set_knobs([Knobs(), *HOSTILE][turn % 5])
        for fmt in sorted(HALVES):
            await on_chip.halves(fmt, shape)
        for kind, group in zip(ScaleKind, GROUPS[turn % 2], strict=True):
            await on_chip.groups(kind, shape, group)
    for turn, shape in enumerate([*MX_SHAPES, *(LONG_MX_SHAPES if full() else ())]):
        await session.set_knobs([*HOSTILE, Knobs()][turn % 5])
        for mx_kind in MxKind:
            await on_chip.mx(mx_kind, shape)
    await session.compare()


@cocotb.test
async def test_cmd_matmul_scaled_by_register(dut: Dut) -> None:
    """Floats, groups of every kind of scale, MX of every format, one after the other."""
    await _all(dut, "register")


@cocotb.test
async def test_cmd_matmul_scaled_by_descriptor(dut: Dut) -> None:
    """The same in batches of descriptors."""
    await _all(dut, "descriptor")
