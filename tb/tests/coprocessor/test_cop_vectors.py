# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: instructions on arrays: every length, alignment and overlap."""

from __future__ import annotations

import cocotb

from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, encode
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.bench.offers import Offer
from tb.cop.cop_session import CopSession
from tb.cop.random_offers import BORDER, OfferMaker

TAGS = ("cop",)

COP_SOURCES = (3,)
COUNTED = [op for op, info in COP_INSTRUCTIONS.items() if info.counted]
TWO = [op for op in COUNTED if COP_INSTRUCTIONS[op].rs2 != "count"]
KNOBS = (Knobs(), Knobs(read_latency=3, write_latency=70, read_gap=40, w_stall=50, interleave=1))
START = BORDER - 0x200
PLAYED = 1000
"""Instructions in a list."""


def _offer(op: CopOp, one: int, other: int, count: int) -> Offer:
    rs2 = count if COP_INSTRUCTIONS[op].rs2 == "count" else other
    return Offer(encode(op, 1, 2, 3), (one, rs2, count))


def _fill(session: CopSession, maker: OfferMaker) -> None:
    for address, data in maker.pieces.items():
        session.put(address, data)


async def _run(session: CopSession, offers: list[Offer]) -> None:
    maker = OfferMaker(session.random)
    for number, knobs in enumerate(KNOBS):
        await session.set_knobs(knobs)
        _fill(session, maker)
        chosen = offers if not number else offers[:: 1 if full() else 7]
        for first in range(0, len(chosen), PLAYED):
            await session.run(*chosen[first : first + PLAYED], limit=2_000_000)


@cocotb.test
async def test_cop_vector_lengths(dut: Dut) -> None:
    """Every length from 0 to LIMIT, at changing alignments."""
    session = await CopSession.start(dut)
    offers = []
    for op in COUNTED:
        most = 256 // COP_INSTRUCTIONS[op].element
        step = 1 if full() or most == 64 else 3
        for count in [*range(0, most, step), most]:
            one, other = (START + int(value) for value in session.random.integers(0, 512, 2))
            offers.append(_offer(op, one, other, count))
    await _run(session, offers)


@cocotb.test
async def test_cop_vector_alignments(dut: Dut) -> None:
    """All 16 alignments of each operand against each other, short and long arrays."""
    session = await CopSession.start(dut)
    offers = []
    for op in COUNTED:
        size = COP_INSTRUCTIONS[op].element
        others = range(16) if op in TWO else range(1)
        for one in range(16):
            for other in others:
                if not full() and op in TWO and (one * 5 + other) % 4:
                    continue
                count = int(session.random.integers(1, 1 + 70 // size))
                offers.append(_offer(op, START + one, START + 0x180 + other, count))
    await _run(session, offers)


@cocotb.test
async def test_cop_vector_overlaps(dut: Dut) -> None:
    """Destinations that begin before, in and behind their source: elements one after the other."""
    session = await CopSession.start(dut)
    offers = []
    for op in TWO:
        size = COP_INSTRUCTIONS[op].element
        distances = range(-40, 41) if full() else [*range(-17, 18), 31, 32, 33]
        for distance in distances:
            count = int(session.random.integers(1, 1 + 80 // size))
            start = START + 0x100 + int(session.random.integers(16))
            offers.append(_offer(op, start, start + distance, count))
    await _run(session, offers)


@cocotb.test
async def test_cop_vector_registers(dut: Dut) -> None:
    """LDVEC and STVEC: every register, offset sign and alignment; a store is seen by a load."""
    session = await CopSession.start(dut)
    maker = OfferMaker(session.random)
    _fill(session, maker)
    offers = []
    for number in range(256):
        address = START + number % 37 + maker.below(400)
        imm = maker.below(4096) - 2048
        base = (address - imm) & 0xFFFF_FFFF
        store = encode(CopOp.STVEC, 0, 5, maker.below(32), imm)
        load = encode(CopOp.LDVEC, maker.below(32), 5, 0, imm)
        offers += [Offer(store, (base, 0, 0)), Offer(load, (base, 0, 0))]
        offers.append(Offer(load, ((base + 2) & 0xFFFF_FFFF, 0, 0)))
    await session.run(*offers)
