# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the coprocessor: from the issue of an instruction to its result taken.

The commit comes one cycle after the issue and the host is always ready. Of several instructions the
slowest counts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import numpy as np

from npu.compiler.ideal import LeastWork
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, encode
from spec.regs.generated import CopReg
from tb.bench.offers import Offer
from tb.benchmarks.benchmark import Benchmark, Interval
from tb.cop import operand_values as values
from tb.cop.cop_session import CopSession

SCALARS = (
    *(CopOp.MACC, CopOp.RELU, CopOp.QMUL, CopOp.CLAMP, CopOp.GELU, CopOp.RSTACC),
    *(CopOp.FRELU, CopOp.FRSTACC),
)
TURNS = 8
"""So often each scalar instruction is run, on other operands."""
A, B = 0x0060_0001, 0x0061_0003
"""Where bytes lie."""
WORDS_A, WORDS_B, WORDS_D = 0x0060_0000, 0x0061_0000, 0x0062_0000
"""Where words lie, sources and destination."""
NO_LIMIT = 0
"""LIMIT: 1 MiB."""
Run = Callable[[CopSession], Awaitable[int]]


async def _scalars(session: CopSession) -> int:
    offers = []
    for op in SCALARS:
        floating = COP_INSTRUCTIONS[op].rs1 == "float"
        draw = values.floats if floating else values.integers
        for _ in range(TURNS):
            one, other = (int(word) for word in draw(session.random, 2))
            offers.append(Offer(encode(op, 1, 2, 3), (one, other, 0), alone=True))
    return max(answer.cycles for answer in await session.run(*offers))


def _moderate(session: CopSession, count: int) -> bytes:
    return session.random.normal(0.0, 2.0, count).astype(np.float32).tobytes()


async def _vectors(ops: Sequence[CopOp], count: int, session: CopSession) -> int:
    """Run instructions on arrays of `count` elements; bytes lie at odd addresses."""
    await session.write(CopReg.LIMIT, NO_LIMIT)
    cycles = []
    for op in ops:
        info = COP_INSTRUCTIONS[op]
        if info.element == 1:
            one, other = A, B
            data = [session.random.bytes(count) for _ in range(2)]
        else:
            one, other = WORDS_A, WORDS_D if info.rs2 == "destination" else WORDS_B
            data = [_moderate(session, count) for _ in range(2)]
        if op == CopOp.VEXP:
            data[0] = values.exponents(session.random, count).tobytes()
        session.put(one, data[0])
        if info.rs2 in ("source", "both"):
            session.put(other, data[1])
        scalar = int(np.float32(1.375).view(np.uint32)), 0x3F80_0000, 0
        await session.run(Offer(encode(CopOp.FRSTACC)), Offer(encode(CopOp.FMACC), scalar))
        rs2 = count if info.rs2 == "count" else other
        (answer,) = await session.run(Offer(encode(op, 1, 2, 3), (one, rs2, count)))
        cycles.append(answer.cycles)
    return max(cycles)


async def _roots(session: CopSession) -> int:
    """Run both reciprocal roots from memory."""
    session.put(WORDS_A, np.array([6553600], np.uint32).tobytes())
    session.put(WORDS_B, np.array([3.7], np.float32).tobytes())
    offers = [
        Offer(encode(CopOp.VRSQRT, 1, 2), (WORDS_A, 0, 0), alone=True),
        Offer(encode(CopOp.FVRSQRT, 1, 2), (WORDS_B, 0, 0), alone=True),
    ]
    return max(answer.cycles for answer in await session.run(*offers))


def _work(op: CopOp, count: int) -> LeastWork:
    """Return what the bus has to move."""
    info = COP_INSTRUCTIONS[op]
    size = count * info.element
    sources = 1 + (info.rs2 in ("source", "both"))
    return LeastWork(
        read_bytes=size * sources, write_bytes=size * (info.rs2 in ("destination", "both"))
    )


def cop_cases() -> Iterator[Benchmark]:
    """Yield the benchmarks of the coprocessor."""

    def case(name: str, parameters: dict[str, int], work: LeastWork, run: Run) -> Benchmark:
        return Benchmark(
            name,
            {**parameters, "latency": 40},
            work,
            run=run,
            interval=Interval.RESULT,
            counted=0,
            pictured=False,
        )

    def vector(name: str, count: int, *ops: CopOp) -> Benchmark:
        return case(name, {"n": count}, _work(ops[0], count), partial(_vectors, ops, count))

    yield case("cop_scalar", {"instructions": len(SCALARS)}, LeastWork(cycles=1), _scalars)
    yield vector("cop_vmac_784", 784, CopOp.VMAC)
    yield vector("cop_vreduce_64", 64, CopOp.VREDUCE)
    yield vector("cop_vmax_64", 64, CopOp.VMAX)
    yield vector("cop_fvmac_64", 64, CopOp.FVMAC)
    yield vector("cop_fvmac_784", 784, CopOp.FVMAC)
    yield vector("cop_vexp_64", 64, CopOp.VEXP)
    yield vector("cop_fvexp_64", 64, CopOp.FVEXP)
    yield vector("cop_fvgelu_64", 64, CopOp.FVGELU)
    yield vector("cop_fvmul_64", 64, CopOp.FVMUL, CopOp.FVSUB_SCALAR)
    yield vector("cop_fvadd_64", 64, CopOp.FVADD, CopOp.FVSUB)
    yield vector("cop_fvdiv_64", 64, CopOp.FVDIV)
    yield case("cop_rsqrt", {"instructions": 2}, LeastWork(read_bytes=4), _roots)
