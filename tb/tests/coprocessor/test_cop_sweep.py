# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: functions on samples of all their inputs; the benches of the units have the rest."""

from __future__ import annotations

import cocotb
import numpy as np

from golden.coprocessor.boundaries import NEAREST
from spec.isa.coprocessor import CopOp, encode
from spec.regs.generated import CopReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.offers import Offer
from tb.cop.cop_session import CopSession
from tb.cop.operand_values import FLOATS, SATURATED, SMALLEST, Words, floats, radicands

TAGS = ("cop", "long")

COP_SOURCES = (3,)
SOURCE, TARGET = 0x0060_0003, 0x0064_0001
ARRAY = 2048
"""Elements of an instruction."""
SAMPLE, FULL = 8192, 1 << 17
"""Inputs of each function, and of the long form."""


async def _sweep(session: CopSession, op: CopOp, inputs: Words) -> None:
    """Run a function on (inputs,) uint32, an array after the other."""
    await session.write(CopReg.LIMIT, 0)
    for first in range(0, inputs.size, ARRAY):
        part = inputs[first : first + ARRAY]
        session.put(SOURCE, part.tobytes())
        await session.run(Offer(encode(op, 1, 2, 3), (SOURCE, TARGET, part.size)))


def _inputs(session: CopSession, function: str) -> Words:
    """Return all exponents and signs with random significands, special values, close ones."""
    count = FULL if full() else SAMPLE
    heads = np.arange(count, dtype=np.uint32) << 23
    tails = session.random.integers(0, 1 << 23, count).astype(np.uint32)
    special = np.array([*FLOATS, *NEAREST[function]], np.uint32)
    return np.concatenate([special, special | 1 << 31, heads | tails])


@cocotb.test
async def test_cop_sweep_gelu(dut: Dut) -> None:
    """GELU of all 256 bytes, whatever stands above them."""
    session = await CopSession.start(dut)
    above = session.random.integers(0, 1 << 24, 256).tolist()
    words = [byte | high << 8 for byte, high in enumerate(above)]
    await session.run(*(Offer(encode(CopOp.GELU, 1, 2), (word, 0, 0)) for word in words))


@cocotb.test
async def test_cop_sweep_vexp(dut: Dut) -> None:
    """VEXP at both ends of its range and all over it."""
    session = await CopSession.start(dut)
    count = FULL if full() else SAMPLE
    inside = np.linspace(SMALLEST - 5, SATURATED + 5, count).astype(np.int64)
    ends = [np.arange(end - 300, end + 300) for end in (SMALLEST, 0, SATURATED)]
    beyond = session.random.integers(-(1 << 31), 1 << 31, 500)
    await _sweep(session, CopOp.VEXP, np.concatenate([inside, *ends, beyond]).astype(np.uint32))


@cocotb.test
async def test_cop_sweep_fvexp(dut: Dut) -> None:
    """FVEXP at all exponents, at special values and next to rounding boundaries."""
    session = await CopSession.start(dut)
    await _sweep(session, CopOp.FVEXP, _inputs(session, "exp_float32"))
    await _sweep(session, CopOp.FVEXP, floats(session.random, ARRAY))


@cocotb.test
async def test_cop_sweep_fvgelu(dut: Dut) -> None:
    """FVGELU at all exponents, at special values and next to rounding boundaries."""
    session = await CopSession.start(dut)
    await _sweep(session, CopOp.FVGELU, _inputs(session, "gelu_float32"))
    await _sweep(session, CopOp.FVGELU, floats(session.random, ARRAY))


@cocotb.test
async def test_cop_sweep_roots(dut: Dut) -> None:
    """VRSQRT around all powers of two, FRSQRT at all exponents; both from memory and register."""
    session = await CopSession.start(dut)
    words = radicands(session.random, 600)
    session.put(SOURCE, words.tobytes())
    places = [SOURCE + 4 * index for index in range(words.size)]
    await session.run(*(Offer(encode(CopOp.VRSQRT, 1, 2), (at, 0, 0)) for at in places))
    inputs = _inputs(session, "rsqrt_float32")
    chosen = inputs if full() else np.concatenate([inputs[:100], inputs[100::9]])
    for first in range(0, chosen.size, 1000):
        part = chosen[first : first + 1000].tolist()
        await session.run(*(Offer(encode(CopOp.FRSQRT, 1, 2), (word, 0, 0)) for word in part))
    session.put(SOURCE, chosen[:600].tobytes())
    await session.run(*(Offer(encode(CopOp.FVRSQRT, 1, 2), (at, 0, 0)) for at in places))
