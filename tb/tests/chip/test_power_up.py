# SPDX-License-Identifier: Apache-2.0
"""The first reset: whatever the flip-flops hold before it, the chip comes up as documented.

The runner starts the simulator anew for each state before the reset: all zeros, all ones, random.
"""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from spec.regs import CMD_BASE, CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, Bench, reset
from tb.bench.knobs import Knobs
from tb.bench.recovery import next_program_runs, program
from tb.command.command_session import CLEAR, START, CommandSession
from tb.command.descriptor_words import DescriptorWords, Extension, launch
from tb.command.random_descriptors import AREA, SOURCE, TARGET, legal_tile
from tb.command.reset_values import assert_reset_values

TAGS = ("seq",)

SCRATCH_BYTES = (64, 128, 256)
MEMORY_MIB = 9
POWER_UPS = 16
COPY = "DMA_LOAD dst=0x0 M=1 N=96 b=0\nBARRIER ld\nDMA_STORE dst=0x0 M=1 N=96 b=1\nEND"


async def _command_port_works(session: CommandSession) -> None:
    """A tile by register, then a ring with a stream, a writeback, records and a program."""
    await session.fill_scratch(16)
    assert await session.operate(CmdOp.ADD, 1, 2, 3)
    tile = legal_tile(session.random, CmdOp.GEMM_S8, session.scratch_bytes)
    assert await session.operate(CmdOp.GEMM_S8, tile=tile)
    await session.use_records(3)
    words = program(COPY)
    session.bus.write_memory(PROGRAM, b"".join(word.encode() for word in words))
    assert await session.run(
        DescriptorWords(CmdOp.ADD, SOURCE, 0, 0, stream=(0, 32)),
        DescriptorWords(CmdOp.GEMM_S8, writeback=True, extension=Extension.of_tile(tile, TARGET)),
        launch(PROGRAM, len(words), base0=INPUT, base1=OUTPUT),
    )
    await session.compare()
    await session.write(CmdReg.CTRL_STATUS, CLEAR)


@cocotb.test
async def test_power_up(dut: Dut) -> None:
    """Reset values, then command port, ring and every engine work; reset values after a second."""
    bench = await Bench.start(dut)
    await assert_reset_values(bench.bus)
    session = await CommandSession.around(bench, Knobs(), sram=True)
    session.data(SOURCE, AREA)
    await _command_port_works(session)
    await next_program_runs(bench)
    await bench.bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, START)  # it is done again
    await ClockCycles(dut.clk, 50)
    await reset(dut)
    await assert_reset_values(bench.bus)
