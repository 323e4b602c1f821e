# SPDX-License-Identifier: Apache-2.0
"""The coprocessor alone, between host registers and memory, against golden."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.coprocessor import FaultCode
from npu.driver.errors import DeviceError
from spec.isa.coprocessor import CopOp, encode
from spec.regs.generated import COP_BASE, CopReg
from tb.bench.dut import Dut
from tb.bench.environment import full
from tb.bench.knobs import Knobs
from tb.bench.memory_regions import OPEN
from tb.bench.offers import Answer, Offer
from tb.bench.scoreboard import MismatchError
from tb.cop.cop_session import CopSession
from tb.cop.port_cases import plays_every_manner
from tb.cop.random_offers import BORDER, describe
from tb.cop.random_runs import run_random_lists
from tb.cop.random_scenes import draw_scene
from tb.cop.soft_resets import reset_at_any_cycle

STREAM_GRAIN = 64
"""Streams begin and end at multiples of this many bytes."""
WORD = 16


@cocotb.test
async def unit_cop_random(dut: Dut) -> None:
    """Random lists on a hostile memory, in every manner of offering, leave what golden says."""
    await run_random_lists(dut, *((500, 200) if full() else (25, 60)))


@cocotb.test
async def unit_cop_manners(dut: Dut) -> None:
    """Late operands, early commits, commits by age, kills of what waits, with golden's results."""
    await plays_every_manner(await CopSession.start(dut))


@cocotb.test
async def unit_cop_soft_reset(dut: Dut) -> None:
    """A soft reset at any cycle: one result each, RESET if one ran, state zero, memory in order."""
    session = await CopSession.start(dut)
    hits = await reset_at_any_cycle(session, 1000 if full() else 60)
    assert hits > 5, f"only {hits} instructions were hit"


@cocotb.test
async def unit_cop_stream(dut: Dut) -> None:
    """Random lists around a parameter stream in use: read by anybody, written by nobody."""
    session = await CopSession.start(dut)
    lists = 200 if full() else 20
    for _ in range(lists):
        size = STREAM_GRAIN * int(session.random.integers(1, 17))
        first = BORDER + STREAM_GRAIN * int(session.random.integers(-12, 8))
        dut.knob_stream_first.value, dut.knob_stream_bytes.value = first, size
        session.memory.stream = first, first + size - 1
        scene = draw_scene(np.random.default_rng(session.random.integers(1 << 32)), 40)
        scene = replace(scene, regions=(OPEN,))
        try:
            await session.run_scene(scene)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"{error}\nstream {first:#x}, {size} bytes: {scene}") from error
        await session.clear()
    dut.knob_stream_bytes.value = 0  # the next test of this process knows of no stream
    counts = session.bench.hits.counts
    denied = sum(count for row, count in counts.items() if row.endswith("DENIED"))
    assert denied > lists // 4, f"only {denied} instructions were denied"


@cocotb.test
async def unit_cop_store_errors(dut: Dut) -> None:
    """STVEC at every alignment, where the first word of its bytes fails, the second, or both."""
    session = await CopSession.start(dut)
    load = Offer(encode(CopOp.LDVEC, 1, 1), (BORDER + 0x400, 0, 0))
    for knobs in (Knobs(), Knobs(write_latency=1), Knobs(aw_stall=60, w_stall=60, write_spread=9)):
        for at in range(WORD):
            for first, last in ((0, 15), (16, 31), (0, 31)):
                start = BORDER + at
                hit = first == 0 or at > WORD - 4
                erring = {"error_first": BORDER + first, "error_last": BORDER + last}
                await session.set_knobs(knobs)
                await session.run(load)
                await session.set_knobs(Knobs(**(vars(knobs) | erring | {"write_error": 1})))
                await session.run(Offer(encode(CopOp.STVEC, 0, 2, 1), (start, 0, 0)))
                fault = session.model.fault
                found = fault and (fault.code, fault.address, fault.index)
                if found != ((FaultCode.BUS, start, 0) if hit else None):
                    raise MismatchError(f"at {start:#x}, errors {first}..{last}: {found}")
                await session.clear()
    assert await session.read(CopReg.STATUS) == 0


@cocotb.test
async def unit_cop_clear_while_busy(dut: Dut) -> None:
    """A write that clears an accumulator within an instruction counts before or behind it."""
    session = await CopSession.start(dut)
    data = session.random.integers(0, 1 << 30, 256, np.uint32).tobytes()
    cases = (
        (CopOp.MACC, CopReg.ACC_LO, (CopOp.MACC, CopOp.VMAC, CopOp.VMUL)),
        (CopOp.FMACC, CopReg.FACC_LO, (CopOp.FMACC, CopOp.FVMAC, CopOp.FVMUL, CopOp.FVDIV)),
    )
    for scalar, register, ops in cases:
        before = Offer(encode(scalar, 0, 1, 2), (0x3F81_2345, 0x0000_2345, 0))
        for op in ops:
            rs = before.rs if op == scalar else (BORDER, BORDER + 0x100, 60)
            offer = Offer(encode(op, 1, 2, 3), rs, gap=30)
            for after in range(1, 200, 1 if full() or op == scalar else 13):
                session.put(BORDER, data)
                await session.run(before)
                session.player.begin([offer])
                await ClockCycles(dut.clk, after)
                await session.bench.bus.write32(COP_BASE + register, 1)
                await _compare_clear(session, offer, await session.player.finish(1), register)


async def _compare_clear(
    session: CopSession, offer: Offer, answers: list[Answer], register: CopReg
) -> None:
    """Compare what an instruction and a write to a register have left, in either order.

    Raises:
        MismatchError: it is neither.
    """
    model, reasons = session.model, []
    state, instructions = deepcopy(model.state), model.instructions
    image = session.memory.load(BORDER, 0x400)
    for clears_first in (True, False):
        model.state, model.instructions = deepcopy(state), instructions
        session.memory.store(BORDER, image)
        if clears_first:
            model.write(register, 1)
        session.check([offer], answers)
        if not clears_first:
            model.write(register, 1)
        try:
            return await session.compare()
        except MismatchError as error:
            reasons.append(str(error))
    raise MismatchError(f"{describe(offer)}: cleared before: {reasons[0]}; behind: {reasons[1]}")
