# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: instructions whose results were worked out by hand, and every code there is."""

from __future__ import annotations

from collections.abc import Sequence

import cocotb
import numpy as np

from golden.coprocessor.floats import float32_of_double
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, decode, offset
from tb.bench.dut import Dut
from tb.bench.offers import Offer
from tb.bench.scoreboard import MismatchError
from tb.cop import cop_coverage
from tb.cop.cop_session import CopSession
from tb.cop.named_cases import FLOAT_CASES, INTEGER_CASES, A, B, NamedCase
from tb.cop.random_offers import OfferMaker

TAGS = ("cop",)

COP_SOURCES = (2, 3)
OPCODES = (0x0B, 0x2B)
NUMBERS = ((5, 10, 11), (31, 0, 22))
"""(rd, rs1, rs2) of the words of every code."""


async def _run_case(session: CopSession, case: NamedCase) -> None:
    session.put(A, case.image(case.a))
    if COP_INSTRUCTIONS[case.op].rs2 in ("source", "both"):
        session.put(B, case.image(case.b))
    answer = (await session.run(*case.offers()))[-1]
    if case.result is not None and answer.data != case.register(case.result):
        raise MismatchError(f"expected {case.result}, actual {answer.data:#010x}")
    if case.written is not None:
        expected = case.image(case.written)
        actual = session.bench.memory.read(case.destination, len(expected))
        if actual != expected:
            raise MismatchError(f"expected {expected.hex()}, actual {actual.hex()}")
    state = session.model.state  # the chip's as well
    if case.acc is not None and state.acc != case.acc & (1 << 64) - 1:
        raise MismatchError(f"acc: expected {case.acc:#x}, actual {state.acc:#x}")
    if case.facc is not None:
        s = int(np.array(case.facc, np.float32).view(np.uint32))
        if float32_of_double(state.facc) != s:
            raise MismatchError(f"facc: expected {case.facc}, actual {state.facc:#x}")


async def _run_cases(dut: Dut, cases: Sequence[NamedCase]) -> None:
    session = await CopSession.start(dut)
    for case in cases:
        if not session.model.offer(case.offers()[-1].word).accept:
            continue  # a port of two operands
        try:
            await _run_case(session, case)
        except MismatchError as error:
            raise MismatchError(f"{case.name}: {error}") from None
        session.bench.add_hits({cop_coverage.case_row(case.name)})


@cocotb.test
async def test_cop_integer_cases(dut: Dut) -> None:
    """Integer instructions give what was worked out by hand."""
    await _run_cases(dut, INTEGER_CASES)


@cocotb.test
async def test_cop_float_cases(dut: Dut) -> None:
    """Float instructions give what was worked out by hand."""
    await _run_cases(dut, FLOAT_CASES)


def _operands(op: CopOp | None, word: int) -> tuple[int, int, int]:
    """Return operands with which an instruction can be executed."""
    if op is None or not COP_INSTRUCTIONS[op].element:
        return 0x0004_0003, 0x3F81_0005, 7
    if COP_INSTRUCTIONS[op].rs2 == "count":
        return A, 5, 0xFFFF_FFFF
    return A - offset(word) & 0xFFFF_FFFF, B, 5


@cocotb.test
async def test_cop_codes(dut: Dut) -> None:
    """Every code of both opcodes: instructions are executed, all else is refused."""
    session = await CopSession.start(dut)
    offers = []
    for opcode in OPCODES:
        for code in range(1 << 10):
            for rd, rs1, rs2 in NUMBERS:
                word = opcode | rd << 7 | (code & 7) << 12 | rs1 << 15 | rs2 << 20 | code >> 3 << 25
                offers.append(Offer(word, _operands(decode(word), word)))
    assert len(offers) == 4096
    executed = 0
    for first in range(0, len(offers), 1024):
        answers = await session.run(*offers[first : first + 1024])
        executed += sum(answer.resulted for answer in answers)
    accepted = [session.model.offer(offer.word).accept for offer in offers]
    assert executed == sum(accepted)
    if session.model.num_rs == 3:
        assert executed == 2 * ((7 + 7 * 128) + (14 + 3 * 128)), executed


@cocotb.test
async def test_cop_other_opcodes(dut: Dut) -> None:
    """Words of other opcodes are refused, whatever else they say."""
    session = await CopSession.start(dut)
    maker = OfferMaker(session.random)
    offers = []
    for opcode in sorted(set(range(128)) - set(OPCODES)):
        words = [maker.below(1 << 25) << 7 | opcode for _ in range(8)]
        offers += [maker.offer(word) for word in words]
    answers = await session.run(*offers)
    assert not any(answer.accepted for answer in answers)
