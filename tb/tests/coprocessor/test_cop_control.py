# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: soft resets at any moment, and work beside microcode and the command port."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from golden.coprocessor import FaultCode
from golden.machine import Machine
from npu.asm import assemble
from spec.isa.coprocessor import CopOp, encode
from spec.regs import CmdOp
from spec.regs.generated import CopReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM, Bench, full
from tb.bench.knobs import Knobs
from tb.bench.offers import Offer
from tb.bench.recovery import STREAM_BYTES, load_every_engine
from tb.bench.scoreboard import compare_images
from tb.command.command_session import HOSTILE, CommandSession
from tb.command.descriptor_words import launch
from tb.command.random_descriptors import AREA, SOURCE, Maker
from tb.cop.cop_session import CopSession
from tb.cop.random_offers import BORDER, OfferMaker
from tb.cop.soft_resets import reset_at_any_cycle

TAGS = ("cop", "faults")

COP_SOURCES = (3,)
SCRATCH_BYTES = (64, 128)
COPY = """
    DMA_LOAD dst=0x0 M=4 N=96 b=0
    BARRIER ld
    DMA_STORE dst=0x0 M=4 N=96 b=1
    END
"""


# --------------------------------------------------------------------------------------------------
# Soft reset
# --------------------------------------------------------------------------------------------------
@cocotb.test
async def test_cop_soft_reset(dut: Dut) -> None:
    """A soft reset at any cycle: one result each, RESET if one ran, state zero, memory in order."""
    session = await CopSession.start(dut)
    hits = await reset_at_any_cycle(session, 400 if full() else 60)
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
