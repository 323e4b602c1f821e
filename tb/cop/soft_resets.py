# SPDX-License-Identifier: Apache-2.0
"""Soft resets at any moment: which moments explain what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from cocotb.triggers import ClockCycles

from golden.coprocessor import CopInstruction, Coprocessor, FaultCode
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, decode, encode, offset
from spec.regs.generated import COP_FIELDS, SEQ_BASE, SEQ_FIELDS, CopReg, SeqReg
from tb.bench.offers import Answer, Offer
from tb.bench.scoreboard import MismatchError
from tb.cop.cop_session import CopSession, uses_memory
from tb.cop.random_offers import BORDER, MANNERS, OfferMaker, describe
from tb.cop.random_scenes import temper

SOFT_RESET = SEQ_FIELDS["CTRL_SOFT_RESET"].mask
WINDOW = range(BORDER - 0x2000, BORDER + 0x2000)
"""Where random lists write."""
RELU = Offer(encode(CopOp.RELU, 1, 2), (5, 0, 0))


async def _strike(session: CopSession, offers: Sequence[Offer], after: int) -> list[Answer]:
    """Play a list, and reset the chip softly after some cycles."""
    session.player.begin(offers)
    await ClockCycles(session.bench.dut.clk, after)
    await session.bench.bus.write32(SEQ_BASE + SeqReg.CTRL, SOFT_RESET)
    return await session.player.finish(len(offers))


def _cut(offer: Offer, index: int) -> tuple[int, int]:
    """Return size and address of an element that is written, size 0 if there is none."""
    op = decode(offer.word)
    assert op is not None
    info = COP_INSTRUCTIONS[op]
    if op == CopOp.STVEC:
        return info.element, offer.rs[0] + offset(offer.word) & 0xFFFF_FFFF
    if info.rs2 not in ("destination", "both") or index >= offer.rs[2]:
        return 0, WINDOW.start
    return info.element, offer.rs[1] + index * info.element


def _reset_within(session: CopSession, offer: Offer, answer: Answer, index: int) -> None:
    """Reset the model within an instruction that has completed `index` elements.

    The element at `index` may be half written where it lies across two bus words.

    Raises:
        MismatchError: the chip cannot have been reset there.
    """
    model, state = session.model, deepcopy(session.model.state)
    if not model.offer(offer.word).accept:
        raise MismatchError("an instruction that was reset is refused")
    old = session.memory.load(WINDOW.start, len(WINDOW))
    before = model.fault, model.instructions
    model.execute(offer.word, *offer.rs)
    new = session.memory.load(WINDOW.start, len(WINDOW))
    session.memory.store(WINDOW.start, old)
    model.state, (model.fault, model.instructions) = state, before
    try:
        result = model.soft_reset(CopInstruction(offer.word, *offer.rs), index)
    except ValueError as error:
        raise MismatchError(str(error)) from None
    if result is None or (result.we and result.data != answer.data):
        raise MismatchError(f"result {answer.data:#x} of the instruction that was reset")
    size, first = _cut(offer, index)
    found = session.bench.memory.read(first, size)
    begin = first - WINDOW.start
    mixed = [
        actual if actual in (before, after) else before
        for actual, before, after in zip(
            found, session.memory.load(first, size), new[begin : begin + size], strict=True
        )
    ]
    session.memory.store(first, bytes(mixed))


def _replay(
    session: CopSession, offers: Sequence[Offer], answers: Sequence[Answer], at: int, index: int
) -> None:
    """Execute a list on the model, reset before instruction `at` or, with an index, within it.

    Raises:
        MismatchError: chip and model differ.
    """
    for place, (offer, answer) in enumerate(zip(offers, answers, strict=True)):
        struck = place == at
        if struck and index < 0:
            session.model.soft_reset()
        if struck and index >= 0 and answer.resulted:
            _reset_within(session, offer, answer, index)
            continue
        session.check([offer], [answer])
    if at == len(offers):
        session.model.soft_reset()


async def _explain(
    session: CopSession, offers: Sequence[Offer], answers: Sequence[Answer]
) -> FaultCode:
    """Find the moment of the reset with which chip and model agree; return the fault that stands.

    Raises:
        MismatchError: there is none.
    """
    before = deepcopy(session.model.state), session.model.fault, session.model.instructions
    image = session.memory.load(WINDOW.start, len(WINDOW))
    status = await session.read(CopReg.STATUS)
    found = FaultCode(status >> COP_FIELDS["STATUS_CODE"].lsb & 15)
    index = await session.read(CopReg.FAULT_INDEX) if found == FaultCode.RESET else -1
    reasons = []
    for at in range(len(offers) + 1):
        model: Coprocessor = session.model
        model.state, model.fault, model.instructions = deepcopy(before[0]), before[1], before[2]
        session.memory.store(WINDOW.start, image)
        try:
            _replay(session, offers, answers, at, index)
            await session.compare()
            return found
        except MismatchError as error:
            reasons.append(f"reset at {at}: {error}")
    head = f"no moment of the reset explains {found.name} at {index} of {session.model.fault}"
    told = [f"{describe(o)} {a}" for o, a in zip(offers, answers, strict=True)]
    raise MismatchError("\n".join([head, *reasons, *told]))


async def reset_at_any_cycle(session: CopSession, lists: int) -> int:
    """Reset the chip softly within random lists; return how often an instruction was hit.

    Raises:
        MismatchError: there is no moment at which a reset leaves what is found.
    """
    hits = 0
    for number in range(lists):
        await session.set_knobs(temper(session.random))
        manner = MANNERS[(0, 1, 2, 3, 6)[number % 5]]
        maker = OfferMaker(session.random, manner=manner, wild=0.0, illegal=0.0)
        ops = [op for op in CopOp if uses_memory(op)] * 3 + list(CopOp)
        offers = [maker.instruction(ops[maker.below(len(ops))]) for _ in range(6)]
        for address, data in maker.pieces.items():
            session.put(address, data)
        answers = await _strike(session, offers, 1 + maker.below(700))
        await ClockCycles(session.bench.dut.clk, 10)
        hits += await _explain(session, offers, answers) == FaultCode.RESET
        await session.clear()
        await session.run(RELU, maker.instruction(CopOp.VREDUCE))
        await session.clear()
    return hits
