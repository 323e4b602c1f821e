# SPDX-License-Identifier: Apache-2.0
"""Manners of offering that the standard allows, one by one: a port must not stumble over them."""

from __future__ import annotations

from spec.isa.coprocessor import CopOp, encode
from tb.bench.offers import Answer, Offer
from tb.cop.cop_session import CopSession
from tb.cop.random_offers import BORDER, NEVER, ONE

SLOW = Offer(encode(CopOp.VRSQRT, 1, 2), (BORDER, 0, 0))
"""An instruction on memory: the next one waits for its end."""
MACC = encode(CopOp.MACC, 0, 1, 2)
RELU = encode(CopOp.RELU, 3, 1)
TURNS = 20


async def _start(session: CopSession) -> None:
    session.put(BORDER, (6_553_600).to_bytes(4, "little"))
    await session.run(Offer(MACC, (3, 4, 0)))


async def operands_are_awaited(session: CopSession) -> None:
    """Sources that are read come late, in any order; one that is not read never comes."""
    await _start(session)
    for sources in ((0, 5, NEVER), (5, 0, NEVER), (9, 7, NEVER)):
        (answer,) = await session.run(Offer(MACC, (5, 6, 0), sources=sources))
        assert answer.resulted_at - answer.offered > max(sources[:2])
    (answer,) = await session.run(Offer(RELU, (5, 0, 0), sources=(4, NEVER, NEVER)))
    assert answer.data == 5


async def identifiers_count_by_age(session: CopSession) -> None:
    """Commits and kills name identifiers of other coprocessors, between ours and behind them."""
    await _start(session)
    before: list[Answer] = []
    for kill in (False, True):
        for step in (1, 2, 3) * TURNS:
            offer = Offer(MACC, (step, 7, 0), commit=6, kill=kill, step=step, beside=step - 1)
            before += await session.run(offer, Offer(MACC, (2, 9, 0), step=3))
    foreign = [answer for answer in before if answer.named != answer.id]
    assert {answer.killed for answer in foreign} == {False, True}, "no identifier was another's"
    assert len(foreign) > TURNS


async def commits_do_not_wait(session: CopSession) -> None:
    """Commits and kills of an instruction that waits for its issue, from its first cycle on."""
    await _start(session)
    for delay in range(6):
        early = [
            Offer(MACC, (delay, 3, 0), early=True, commit=delay, kill=kill, stays=True)
            for kill in (False, True)
        ]
        answers = await session.run(SLOW, early[0], SLOW, early[1], Offer(MACC, (1, 1, 0)))
        for answer in (answers[1], answers[3]):
            assert answer.committed < answer.issued, "it did not wait"
        assert answers[3].killed
        assert not answers[4].killed
        last = await session.run(SLOW, early[0])  # no younger commit tells of it
        assert last[1].committed < last[1].issued


async def kills_reach_what_waits(session: CopSession) -> None:
    """An instruction that waits while an older one is killed is issued later, and is killed."""
    await _start(session)
    for delay in (4, 9, 20):
        slow = Offer(SLOW.word, SLOW.rs, commit=delay, kill=True)
        answers = await session.run(
            slow, Offer(MACC, (5, 5, 0), stays=True), Offer(MACC, (1, 2, 0))
        )
        assert answers[1].killed
        assert answers[1].committed < answers[1].issued, "it was not waiting"
        assert not answers[2].killed


async def offers_follow_kills(session: CopSession) -> None:
    """What is offered in the cycle behind a kill, whatever identifier that names, is executed."""
    await _start(session)
    for delay in range(1, 6):
        for beside in (0, 2):
            first = Offer(MACC, (3, 5, 0), step=3, beside=beside, commit=delay, kill=True)
            answers = await session.run(first, *(Offer(MACC, (n, 7, 0)) for n in range(1, 8)))
            killed, *later = answers
            assert killed.killed
            assert not later[-1].killed
            assert (killed.named != killed.id) == (beside != 0), "it named another one"
            assert any(one.offered == killed.committed + 1 for one in later), "none came at once"


async def results_wait_for_the_host(session: CopSession) -> None:
    """An instruction on registers that is done waits until the result before it is taken."""
    await _start(session)
    before = Offer(RELU, (5, 0, 0), hold=90)
    for op in (CopOp.RSTACC, CopOp.FMACC, CopOp.FRSQRT, CopOp.FGELU, CopOp.FRSTACC):
        await session.run(before, Offer(encode(op, 3, 1, 2), (ONE, ONE, 0)))


async def decisions_are_made_once(session: CopSession) -> None:
    """A second commit, of what is under way or was there long ago, commits nothing younger."""
    await _start(session)
    for beside in (0, 1, 2):
        twice = Offer(MACC, (4, 4, 0), step=3, hold=9, repeat=True, beside=beside, commit=0)
        killed = Offer(MACC, (7, 7, 0), step=3, commit=12, kill=True)
        answers = await session.run(twice, killed, Offer(MACC, (1, 2, 0)))
        assert answers[1].killed
        assert answers[1].committed > answers[0].resulted_at, "it was not there"


async def plays_every_manner(session: CopSession) -> None:
    """Each of them, one after the other."""
    await operands_are_awaited(session)
    await identifiers_count_by_age(session)
    await commits_do_not_wait(session)
    await kills_reach_what_waits(session)
    await offers_follow_kills(session)
    await results_wait_for_the_host(session)
    await decisions_are_made_once(session)
