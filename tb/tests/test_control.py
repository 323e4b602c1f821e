# SPDX-License-Identifier: Apache-2.0
"""Interrupt, start while busy, soft reset and bus errors: the chip stays usable."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from npu.asm import assemble
from npu.isa import Engine, ErrorCode
from npu.regs.generated import SEQ_FIELDS, ChipReg, SeqReg
from tb.dut import Dut
from tb.environment import DEFAULT_LIMIT, OUTPUT, Bench

BUSY_PROGRAM = """
    DMA_LOAD dst=0x0 M=64 N=256 b=0
    DMA_LOAD dst=0x8000 M=64 N=256 b=0 off=0x4000
    GELU dst=0x20000 src0=0x20000 M=64 N=128 stream
    BARRIER ld vec
    GEMM dst=0x10000 src0=0x0 src1=0x8000 M=64 N=64 K=256 q=imm mul=20000 sh=28
    VEC op=add dst=0x4000 src0=0x4000 src1=0xC000 M=32 N=128
    BARRIER
    DMA_STORE dst=0x10000 M=64 N=64 b=1
    DMA_STORE dst=0x4000 M=32 N=128 b=1 off=0x4000
    END
"""
"""Keeps the bus and several engines busy for some thousand cycles."""
TABLE = np.arange(255, -1, -1).astype(np.uint8).tobytes()


async def _idle(bench: Bench, limit: int = 2000) -> None:
    for _ in range(limit // 20):
        if not SEQ_FIELDS["STATUS_BUSY"].get(await bench.host.read_seq(SeqReg.STATUS)):
            return
        await ClockCycles(bench.dut.clk, 20)
    raise AssertionError(f"still busy after {limit} cycles: {bench.host.where()}")


@cocotb.test
async def test_control_interrupt(dut: Dut) -> None:
    """The line follows status and enable; writing 1 clears it, writing 0 does not."""
    bench = await Bench.start(dut)
    host = bench.host
    start = bench.load(assemble("NOP\nEND").instructions)
    await host.start_program(start)
    await host.write_chip(ChipReg.IRQ_ENABLE, 0)
    await _idle(bench)
    assert not int(dut.irq.value), "the line is up although it is not enabled"
    assert await host.read_chip(ChipReg.IRQ_STATUS) == 1
    await host.write_chip(ChipReg.IRQ_ENABLE, 1)
    await ClockCycles(dut.clk, 2)
    assert int(dut.irq.value), "status is set and enabled, the line is down"
    await host.write_chip(ChipReg.IRQ_STATUS, 0)
    await ClockCycles(dut.clk, 2)
    assert int(dut.irq.value), "writing 0 cleared the interrupt"
    await host.write_chip(ChipReg.IRQ_STATUS, 1)
    await ClockCycles(dut.clk, 2)
    assert not int(dut.irq.value), "writing 1 did not clear the interrupt"
    assert await host.status() is None


@cocotb.test
async def test_control_start_while_busy(dut: Dut) -> None:
    """A second start is ignored, and what it would have run does not happen."""
    bench = await Bench.start(dut)
    program = assemble(BUSY_PROGRAM).instructions
    start = bench.load(program, TABLE)
    expected = await bench.run(program, start)
    bench.memory.stage(OUTPUT, np.zeros(0x8000, np.uint8))
    await bench.host.start_program(start)
    for _ in range(5):
        await ClockCycles(dut.clk, 150)
        await bench.host.write_seq(SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask)
    await bench.host.wait_interrupt(DEFAULT_LIMIT)
    await bench.host.write_chip(ChipReg.IRQ_STATUS, 1)
    assert await bench.host.status() is None
    counters = await bench.host.counters()
    assert counters.instructions == expected.finish.counters.instructions
    await ClockCycles(dut.clk, 200)
    assert not int(dut.irq.value), "a start while busy was kept for later"


@cocotb.test
async def test_control_soft_reset(dut: Dut) -> None:
    """A soft reset at random cycles drains the bus; the next program runs and is right."""
    bench = await Bench.start(dut)
    program = assemble(BUSY_PROGRAM).instructions
    for _ in range(25):
        start = bench.load(program, TABLE)
        await bench.host.start_program(start)
        await ClockCycles(dut.clk, int(bench.random.integers(1, 4000)))
        await bench.host.write_seq(SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await _idle(bench)
        await bench.run(program, start)


@cocotb.test
async def test_control_read_error(dut: Dut) -> None:
    """A load from where there is no memory names engine, instruction and address."""
    bench = await Bench.start(dut)
    hole = bench.memory.data.size + 0x1000
    bases = (0, OUTPUT, hole, 0, 0, 0, 0, 0)
    text = "NOP\nDMA_LOAD dst=0 M=2 N=64 b=2 off=0x40\nBARRIER ld\nEND"
    start = bench.load(assemble(text).instructions, bases=bases)
    finish = await bench.host.run_program(start, DEFAULT_LIMIT)
    assert finish.error is not None, "no error was reported"
    assert (finish.error.code, finish.error.engine) == (ErrorCode.READ_ERROR, Engine.LD)
    assert (finish.error.instr, finish.error.address) == (1, hole + 0x40)
    await bench.execute(assemble(BUSY_PROGRAM).instructions, TABLE)


@cocotb.test
async def test_control_write_error(dut: Dut) -> None:
    """A store to where there is no memory names engine, instruction and address."""
    bench = await Bench.start(dut)
    hole = bench.memory.data.size + 0x1000
    bases = (0, OUTPUT, hole, 0, 0, 0, 0, 0)
    text = "NOP\nNOP\nDMA_STORE dst=0 M=2 N=64 b=2 off=0x40\nEND"
    start = bench.load(assemble(text).instructions, bases=bases)
    finish = await bench.host.run_program(start, DEFAULT_LIMIT)
    assert finish.error is not None, "no error was reported"
    assert (finish.error.code, finish.error.engine) == (ErrorCode.WRITE_ERROR, Engine.ST)
    assert (finish.error.instr, finish.error.address) == (2, hole + 0x40)
    await bench.execute(assemble(BUSY_PROGRAM).instructions, TABLE)
