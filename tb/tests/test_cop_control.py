# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: soft resets at any moment, and work beside microcode and the command port."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import cocotb
from cocotb.triggers import ClockCycles

from golden.coprocessor import Coprocessor, FaultCode, Instruction
from golden.machine import Machine
from npu.asm import assemble
from npu.isa.coprocessor import COP_INSTRUCTIONS, CopOp, decode, encode, offset
from npu.regs import CmdOp
from npu.regs.generated import COP_FIELDS, SEQ_BASE, SEQ_FIELDS, CopReg, SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM, Bench, full
from tb.bench.knobs import Knobs
from tb.bench.offers import Answer, Offer
from tb.bench.recovery import STREAM_BYTES, load_every_engine
from tb.bench.scoreboard import MismatchError, compare_images
from tb.command.command_session import HOSTILE, CommandSession
from tb.command.descriptor_words import launch
from tb.command.random_descriptors import AREA, SOURCE, Maker
from tb.cop.cop_session import CopSession, uses_memory
from tb.cop.random_offers import BORDER, MANNERS, OfferMaker, describe

COP_SOURCES = (3,)
SCRATCH_BYTES = (64, 128)
SOFT_RESET = SEQ_FIELDS["CTRL_SOFT_RESET"].mask
COPY = """
    DMA_LOAD dst=0x0 M=4 N=96 b=0
    BARRIER ld
    DMA_STORE dst=0x0 M=4 N=96 b=1
    END
"""
RELU = Offer(encode(CopOp.RELU, 1, 2), (5, 0, 0))


WINDOW = range(BORDER - 0x2000, BORDER + 0x2000)
"""Where random lists write."""


# --------------------------------------------------------------------------------------------------
# Soft reset
# --------------------------------------------------------------------------------------------------
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
        result = model.soft_reset(Instruction(offer.word, *offer.rs), index)
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


@cocotb.test
async def test_cop_soft_reset(dut: Dut) -> None:
    """A soft reset at any cycle: one result each, RESET if one ran, state zero, memory in order."""
    session = await CopSession.start(dut)
    hits = 0
    for number in range(400 if full() else 60):
        await session.set_knobs(HOSTILE[number % len(HOSTILE)] if number % 2 else Knobs())
        manner = MANNERS[(0, 1, 2, 3, 6)[number % 5]]
        maker = OfferMaker(session.random, manner=manner, wild=0.0, illegal=0.0)
        ops = [op for op in CopOp if uses_memory(op)] * 3 + list(CopOp)
        offers = [maker.instruction(ops[maker.below(len(ops))]) for _ in range(6)]
        for address, data in maker.pieces.items():
            session.put(address, data)
        answers = await _strike(session, offers, 1 + maker.below(700))
        await ClockCycles(dut.clk, 10)
        hits += await _explain(session, offers, answers) == FaultCode.RESET
        await session.clear()
        await session.run(RELU, maker.instruction(CopOp.VREDUCE))
        await session.clear()
    assert hits > 5, f"only {hits} instructions were hit"


@cocotb.test
async def test_cop_soft_reset_idle(dut: Dut) -> None:
    """A soft reset while nothing runs clears the state, keeps settings, is no fault."""
    session = await CopSession.start(dut)
    maker = OfferMaker(session.random)
    await session.run(*(maker.scalar(op) for op in (CopOp.MACC, CopOp.FMACC) * 3))
    await session.write(CopReg.LIMIT, 100)
    await session.soft_reset()
    await session.compare()
    assert session.model.fault is None
    await session.run(*(maker.scalar(op) for op in (CopOp.MACC, CopOp.FMACC)))


# --------------------------------------------------------------------------------------------------
# Beside the rest of the chip
# --------------------------------------------------------------------------------------------------
ARRAYS = slice(BORDER - 0x1000, BORDER + 0x1000)
"""Where the lists below write; everybody else writes elsewhere."""


def _draw(session: CopSession, count: int) -> list[Offer]:
    """Return a random list; what it works on is in memory."""
    maker = OfferMaker(session.random, wild=0.0)
    offers = maker.list(count)
    for address, data in maker.pieces.items():
        session.put(address, data)
    return offers


async def _beside_descriptors(dut: Dut, knobs: Knobs) -> None:
    """Run descriptors, one of which launches a program, and a list of instructions at once."""
    bench = await Bench.start(dut, knobs)
    words = assemble(COPY).instructions
    bench.memory.stage(PROGRAM, b"".join(word.encode() for word in words))
    session = await CopSession.around(bench, knobs)
    offers = _draw(session, 100)
    command = await CommandSession.around(bench, knobs, sram=True)
    command.data(SOURCE, AREA)
    ring = Maker(session.random, command.scratch_bytes)
    start = launch(PROGRAM, len(words), base0=INPUT, base1=OUTPUT)
    command.put(start, ring.extended(CmdOp.SUB), start)
    await command.begin()
    answers = await session.player.play(offers)
    assert await command.finish()
    session.memory.data[ARRAYS.stop :] = command.memory.data[ARRAYS.stop :]
    session.memory.data[: ARRAYS.start] = command.memory.data[: ARRAYS.start]
    session.check(offers, answers)
    await session.compare()
    command.memory.data[ARRAYS] = session.memory.data[ARRAYS]
    await command.compare()


async def _beside_program(dut: Dut, knobs: Knobs) -> None:
    """Run a program that uses every engine and a list of instructions at once."""
    session = await CopSession.start(dut, knobs)
    bench = session.bench
    start = load_every_engine(bench)
    session.memory.data[:] = bench.memory.data
    offers = _draw(session, 60)
    sram = await bench.sync()
    Machine(bench.config, session.memory.data, sram, races=False).run(start)
    running = cocotb.start_soon(bench.chip.run(start, 100_000))
    answers = await session.player.play(offers)
    finish = await running
    assert finish.error is None
    session.check(offers, answers)
    await session.compare()
    compare_images(sram, await bench.sync(), "SRAM")


@cocotb.test
async def test_cop_beside_descriptors(dut: Dut) -> None:
    """Coprocessor, descriptors and launched programs at once: all are right."""
    await _beside_descriptors(dut, Knobs())


@cocotb.test
async def test_cop_beside_descriptors_hostile(dut: Dut) -> None:
    """The same on a memory that moves in fits and starts."""
    await _beside_descriptors(dut, HOSTILE[1])


@cocotb.test
async def test_cop_beside_program(dut: Dut) -> None:
    """Coprocessor and microcode at once: both are right."""
    await _beside_program(dut, Knobs())


@cocotb.test
async def test_cop_beside_program_hostile(dut: Dut) -> None:
    """The same on a memory that moves in fits and starts."""
    await _beside_program(dut, HOSTILE[3])


@cocotb.test
async def test_cop_stream_protected(dut: Dut) -> None:
    """While a program runs, a write to its parameter stream is DENIED; afterwards it is not."""
    session = await CopSession.start(dut)
    bench = session.bench
    start = load_every_engine(bench)
    session.memory.data[:] = bench.memory.data
    Machine(bench.config, session.memory.data, await bench.sync(), races=False).run(start)
    store = Offer(encode(CopOp.STVEC, 0, 1, 2), (STREAM + STREAM_BYTES - 4, 0, 0))
    load = Offer(encode(CopOp.LDVEC, 2, 1), (STREAM, 0, 0))
    session.memory.stream = (STREAM, STREAM + STREAM_BYTES - 1)
    running = cocotb.start_soon(bench.chip.run(start, 100_000))
    await ClockCycles(dut.clk, 500)
    assert not running.done()
    answers = await session.player.play([load, store])
    assert not running.done()
    await running
    session.check([load, store], answers)
    await session.compare()
    assert session.model.fault is not None and session.model.fault.code == FaultCode.DENIED
    session.memory.stream = None
    await session.clear()
    await session.run(load, store)
    assert session.model.fault is None
