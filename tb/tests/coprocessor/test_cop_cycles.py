# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: how long each instruction takes, against the column of its page."""

from __future__ import annotations

import re

import cocotb
import numpy as np

from spec.isa import cop_source
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, encode
from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.bench.offers import Offer
from tb.cop.cop_session import CopSession

TAGS = ("cop", "timing")

COP_SOURCES = (3,)
PLACES = A, B, D = 0x0060_0000, 0x0061_0000, 0x0062_0000
"""Where arrays lie: first source, second source, destination."""
BYTES = 128
"""Length of the longest arrays that the column is for."""
TERM = re.compile(r"(?P<sign>[+-]?)(?P<factor>\d*)(?P<what>[nL]?)(?:/(?P<divisor>\d+))?")


def published(column: str, count: int, latency: int) -> float:
    """Return what the column says for `count` elements and a memory of `latency` cycles."""
    values = {"n": count, "L": latency + 11, "": 1}
    terms = [match for match in TERM.finditer(column.replace(" ", "")) if match[0]]
    return sum(
        int(f"{term['sign']}{term['factor'] or 1}") * values[term["what"]]
        / int(term["divisor"] or 1)
        for term in terms
    )  # fmt: skip


def _offer(op: CopOp, numbers: list[int], count: int) -> Offer:
    """Return an instruction on arrays of `count` elements, or on two numbers."""
    info = COP_INSTRUCTIONS[op]
    places = {"source": A, "destination": A}
    rs1 = places.get(info.rs1, numbers[0])
    places = {"source": B, "both": B, "destination": D, "count": count}
    return Offer(encode(op, 1, 2, 3), (rs1, places.get(info.rs2, numbers[1]), count), alone=True)


@cocotb.test
async def test_cop_cycles_are_published(dut: Dut) -> None:
    """From issue to result, for short arrays of two lengths and memories of two latencies."""
    columns = {one.name: one.cycles for one in cop_source.load().instructions}
    for latency in (40, 90):
        session = await CopSession.start(dut, Knobs(read_latency=latency, write_latency=latency))
        for op, info in COP_INSTRUCTIONS.items():
            for size in (BYTES // 2, BYTES):
                data = np.abs(session.random.normal(1.0, 0.2, (3, BYTES // 4))).astype(np.float32)
                for place, array in zip(PLACES, data, strict=True):
                    session.put(place, array.tobytes())
                count = size // max(info.element, 1)
                offer = _offer(op, data.view(np.uint32)[0, :2].tolist(), count)
                (answer,) = await session.run(offer)
                cycles, column = answer.cycles, published(columns[op.name], count, latency)
                assert column - 4 <= cycles <= column, (
                    f"{op.name}, n = {count}, latency {latency}: {cycles} cycles, the page has "
                    f"{columns[op.name]} = {column:g}"
                )
