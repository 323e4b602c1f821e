# SPDX-License-Identifier: Apache-2.0
"""Generation without the host: one start, then nothing on the register port until the interrupt."""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from golden import session
from npu.driver.chip import LastState
from spec.isa import ErrorCode
from spec.regs import NO_TOKEN, StartState
from spec.regs.generated import ChipReg, SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.models.resident_model import Resident
from tb.tests.models.generation import QUIET, checkpoint, ids_of_text

TAGS = ("models", "long")

QUIET_CYCLES = 2_000
"""So long after the end nothing more may happen."""


class _Edges:
    """Counts the rising edges of the interrupt; wakes for nothing else."""

    def __init__(self, dut: Dut) -> None:
        self.count = 0
        cocotb.start_soon(self._watch(dut))

    async def _watch(self, dut: Dut) -> None:
        while True:
            await RisingEdge(dut.irq)
            self.count += 1


async def _alone(resident: Resident, launch: StartState) -> LastState:
    """Start a program and leave the chip alone; return what its registers say at the end."""
    bench, dut = resident.bench, resident.bench.dut
    interrupts = _Edges(dut)
    await bench.chip.start(launch)
    await ClockCycles(dut.clk, 2)
    before = int(dut.axil_handshakes.value)
    assert before > 0
    await bench.bus.wait_interrupt(resident.limit(launch.loop_left + 20))
    entries = bench.bus.waited.entries
    used = int(dut.axil_handshakes.value) - before
    assert used == 0, f"{used} handshakes on the register port while the chip generated"
    assert entries <= 4, f"Python woke {entries} times while the chip generated"
    await ClockCycles(dut.clk, QUIET_CYCLES)
    assert interrupts.count == 1, f"{interrupts.count} interrupts"
    await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
    assert await bench.chip.status() is None
    await ClockCycles(dut.clk, QUIET_CYCLES)
    assert interrupts.count == 1, f"{interrupts.count} interrupts"
    assert int(dut.axil_handshakes.value) > before
    return await bench.chip.last()


@cocotb.test
async def test_autonomous_counts(dut: Dut) -> None:
    """LOOPLEFT alone says how many tokens come of the same words, 1 to many."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("gpt2")
    resident, prompt = Resident.place(bench, model), ids_of_text(9)
    plan = resident.plan(prompt)
    words = 16 * plan.greedy.ucode_len
    program = bench.memory.read(plan.greedy.ucode_base, words)
    expected = session.generate(model, prompt, 40)
    for count in (1, 2, 3, 17, 40) if full() else (1, 3, 17):
        untouched = bench.random.integers(0, 256, 4 * 50, np.uint8)
        bench.memory.stage(plan.tokens, untouched)
        last = await _alone(resident, replace(plan.greedy, loop_left=count - 1))
        assert last == LastState(count, expected[count - 1], len(prompt) + count - 2), last
        written = bench.memory.array(plan.tokens, (50,), np.uint32)
        assert written[:count].tolist() == expected[:count]
        assert np.array_equal(written[count:], untouched.view("<u4")[count:])
        assert bench.memory.read(plan.greedy.ucode_base, words) == program
        assert await bench.chip.read_seq(SeqReg.LOOPLEFT) == count - 1


@cocotb.test
async def test_autonomous_end_token(dut: Dut) -> None:
    """The end token is written, counted and the last one, wherever it comes first."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("qwen2")
    resident, prompt = Resident.place(bench, model), ids_of_text(4)
    plan = resident.plan(prompt)
    most = 24 if full() else 12
    expected = session.generate(model, prompt, most)
    ends = [expected[0], expected[3], expected[most - 4], NO_TOKEN]
    stops = {(expected.index(end) if end in expected else most - 1) + 1 for end in ends}
    assert len(stops) > 2, f"{expected} stops at {stops}"
    for end in ends:
        count = (expected.index(end) if end in expected else most - 1) + 1
        bench.memory.stage(plan.tokens, bytes(4 * most))
        last = await _alone(resident, replace(plan.greedy, loop_left=most - 1, eos=end))
        assert last == LastState(count, expected[count - 1], len(prompt) + count - 2), last
        written = bench.memory.array(plan.tokens, (most,), np.uint32).tolist()
        assert written == expected[:count] + [0] * (most - count)


@cocotb.test
async def test_autonomous_context_full(dut: Dut) -> None:
    """Left alone with too many turns the chip stops at the end of the context and says so."""
    bench = await Bench.start(dut, QUIET)
    model = checkpoint("llama")
    resident, prompt = Resident.place(bench, model), ids_of_text(model.shape.context - 4)
    plan = resident.plan(prompt)
    expected = session.generate(model, prompt, 5)
    launch = replace(plan.greedy, loop_left=1000)
    finish = await bench.chip.run(launch, resident.limit(200))
    assert finish.error is not None and finish.error.code is ErrorCode.CONTEXT_FULL, finish.error
    assert bench.memory.array(plan.tokens, (5,), np.uint32).tolist() == expected
    assert finish.last == LastState(5, expected[-1], model.shape.context - 1), finish.last
    launch = replace(plan.greedy, loop_left=4)
    assert await _alone(resident, launch) == LastState(5, expected[-1], model.shape.context - 1)
