# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: instructions of registers, on values at which something changes and on any."""

from __future__ import annotations

import cocotb

from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.cop.cop_session import CopSession
from tb.cop.random_offers import MANNERS, OfferMaker

TAGS = ("cop",)

COP_SOURCES = (3,)
SCALARS = [op for op, info in COP_INSTRUCTIONS.items() if not info.element]
INTEGERS = [op for op in SCALARS if COP_INSTRUCTIONS[op].opcode == 0x0B]
FLOATS = [op for op in SCALARS if op not in INTEGERS]


async def _random(dut: Dut, ops: list[CopOp], count: int) -> None:
    session = await CopSession.start(dut)
    for manner in MANNERS:
        maker = OfferMaker(session.random, manner=manner)
        offers = [maker.scalar(ops[maker.below(len(ops))]) for _ in range(count)]
        await session.run(*offers)


@cocotb.test
async def test_cop_scalar_integer(dut: Dut) -> None:
    """MACC, RELU, QMUL, CLAMP, GELU, RSTACC in every manner of offering."""
    await _random(dut, INTEGERS, 1000 if full() else 300)


@cocotb.test
async def test_cop_scalar_float(dut: Dut) -> None:
    """FMACC, FRELU, FGELU, FRSQRT, FRSTACC in every manner of offering."""
    await _random(dut, FLOATS, 1000 if full() else 300)
