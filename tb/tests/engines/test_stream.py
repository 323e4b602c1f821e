# SPDX-License-Identifier: Apache-2.0
"""The parameter stream: a full FIFO, several consumers in ticket order, rewinds."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from npu.asm import assemble
from spec.isa import TABLE_BYTES, Engine
from spec.regs.generated import SeqReg
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.knobs import Knobs

TAGS = ("stream",)
TIMED = (
    "test_stream_learns_the_latency",
    "test_stream_notices_a_slower_memory",
    "test_stream_steps_back_for_a_load",
)

BUS_BURSTS, BURST = 16, 32
"""Read bursts that the bus takes at once, and words of one."""
SLACK = 8
"""Cycles beside the latency that bursts under way should cover."""


@cocotb.test
async def test_stream_full(dut: Dut) -> None:
    """The FIFO fills while nobody takes from it, and gives everything back in order."""
    bench = await Bench.start(dut)
    stream = bench.random.integers(0, 256, 768 * 128, dtype=np.uint8)
    text = """
        SOFTMAX dst=0x20000 src0=0x10000 src1=0x30000 M=64 N=512 out=u16
        BARRIER smx
        GEMM dst=0x0 src0=0x8000 M=3 N=64 K=768 B=stream out=i32
        BARRIER gemm
        SOFTMAX dst=0x20000 src0=0x10000 src1=0x30000 M=64 N=512 out=u16
        BARRIER smx
        GEMM dst=0x4000 src0=0x8000 M=3 N=64 K=768 B=stream out=i32
        END
    """
    program = assemble(text).instructions
    for latency in (1, 40, 200):
        await bench.set_knobs(Knobs(read_latency=latency))
        await bench.execute(program, stream.tobytes())


@cocotb.test
async def test_stream_tickets(dut: Dut) -> None:
    """Shares of three engines that are dispatched together go to the right ones."""
    bench = await Bench.start(dut)
    tables = bench.random.integers(0, 256, 6 * TABLE_BYTES, dtype=np.uint8).tobytes()
    weights = bench.random.integers(0, 256, 6 * 2 * 256, dtype=np.uint8).tobytes()
    norms = bench.random.integers(0, 64, 6 * 192, dtype=np.uint8).tobytes()
    text, stream = "", b""
    for turn in range(6):
        text += f"""
            GELU dst={0x1000 + turn * 0x200:#x} src0=0x3000 M=4 N=100 stream
            GEMM dst={0x4000 + turn * 0x400:#x} src0=0x3400 M=5 N=16 K=32 B=stream out=i32
            LAYERNORM dst={0x8000 + turn * 0x200:#x} src0=0x3800 M=3 N=32 stream
        """
        stream += tables[turn * TABLE_BYTES :][:TABLE_BYTES]
        stream += weights[turn * 512 :][:512] + norms[turn * 192 :][:192]
    await bench.execute(assemble(text + "END").instructions, stream)


@cocotb.test
async def test_stream_rewind(dut: Dut) -> None:
    """SET STREAM to where the stream stands, ahead and back, near and past what was read."""
    bench = await Bench.start(dut)
    shares = 200
    stream = bench.random.integers(0, 256, shares * TABLE_BYTES, dtype=np.uint8).tobytes()
    for _ in range(4):
        text, at = "", 0
        for turn in range(40):
            if bench.random.random() < 0.6:
                far = bench.random.random() < 0.3
                step = int(bench.random.integers(-shares, shares)) if far else 1
                at = min(max(at + step, 0), shares - 1) if turn % 7 else at
                text += f"SET STREAM v={at * TABLE_BYTES}\n"
            text += f"GELU dst={turn * 0x100:#x} src0=0x8000 M=2 N=120 stream\n"
            at = (at + 1) % shares
            if at == 0:
                text += "SET STREAM v=0\n"
        text += f"SET STREAM v={shares * TABLE_BYTES}\nEND"
        await bench.execute(assemble(text).instructions, stream)


@cocotb.test
async def test_stream_limit(dut: Dut) -> None:
    """The stream never has more bursts under way than STREAM_LIMIT; results do not depend on it."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    stream = bench.random.integers(0, 256, 64 * 192, dtype=np.uint8).tobytes()
    program = assemble("GEMM dst=0x0 src0=0x8000 M=3 N=64 K=192 B=stream out=i32\nEND").instructions
    await bench.set_knobs(Knobs(read_latency=80))
    for limit in range(1, 32):
        await bench.chip.write_seq(SeqReg.STREAM_LIMIT, limit)
        owed.most.clear()
        await bench.execute(program, stream)
        allowed = min(limit, BUS_BURSTS)
        assert owed.most[Engine.STREAM] == allowed, f"limit {limit}: {owed.most[Engine.STREAM]}"


@cocotb.test
async def test_stream_learns_the_latency(dut: Dut) -> None:
    """Without a limit of the host as many bursts are under way as hide the latency, and no more."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    stream = bench.random.integers(0, 256, 64 * 768, dtype=np.uint8).tobytes()
    program = assemble("GEMM dst=0x0 src0=0x8000 M=1 N=64 K=768 B=stream out=i32\nEND").instructions
    for latency in (1, 40, 56, 57, 100, 150, 280, 281, 400, 500, 3):
        await bench.set_knobs(Knobs(read_latency=latency))
        await bench.execute(program, stream)  # begins with what the memory before was like
        owed.most.clear()
        execution = await bench.execute(program, stream)
        needed = min(max(3, 1 + -(-(latency + SLACK) // BURST)), BUS_BURSTS)
        assert owed.most[Engine.STREAM] == needed, f"latency {latency}: {owed.most[Engine.STREAM]}"
        # Program, stream, and their way through the chip
        assert execution.finish.counters.cycles <= len(stream) // 16 + 2 * latency + 150, (
            f"latency {latency}"
        )


@cocotb.test
async def test_stream_notices_a_slower_memory(dut: Dut) -> None:
    """A memory that becomes slower in the middle of a program is kept busy again before long."""
    bench = await Bench.start(dut)
    words = 64 * 768 * 4 // 16
    stream = bench.random.integers(0, 256, 16 * words, dtype=np.uint8).tobytes()
    program = assemble(
        "GEMM dst=0x0 src0=0x8000 M=1 N=256 K=768 B=stream out=i32\nEND"
    ).instructions
    for latency in (100, 300):
        await bench.set_knobs(Knobs(read_latency=1))

        async def slow_down() -> None:
            await ClockCycles(dut.clk, 1000)
            Knobs(read_latency=latency).apply(dut)  # noqa: B023

        change = cocotb.start_soon(slow_down())
        execution = await bench.execute(program, stream)
        await change
        # Each burst more is found after a round trip; half the bus is idle meanwhile at the worst.
        rounds = -(-latency // BURST)
        assert execution.finish.counters.cycles <= words + 200 + rounds * latency, (
            f"latency {latency}"
        )


@cocotb.test
async def test_stream_steps_back_for_a_load(dut: Dut) -> None:
    """What the stream took of a memory that became slower it gives back while a load waits."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    stream = bench.random.integers(0, 256, 3 * 64 * 768, dtype=np.uint8).tobytes()
    text = """
        GEMM dst=0x0 src0=0x8000 M=1 N=128 K=768 B=stream out=i32
        BARRIER gemm
        DMA_LOAD dst=0x10000 M=1 N=32768 b=0
        GEMM dst=0x1000 src0=0x8000 M=1 N=64 K=768 B=stream out=i32
        END
    """
    await bench.set_knobs(Knobs(read_latency=1))
    before, beside = [0], [0]

    async def watch() -> None:
        await ClockCycles(dut.clk, 500)
        Knobs(read_latency=300).apply(dut)
        while True:
            await ClockCycles(dut.clk, 1)
            load, under_way = owed.reads[Engine.LD], len(owed.reads[Engine.STREAM])
            started = bool(load) and len(load[0]) < BURST  # its first word has come
            (beside if started else before).append(under_way)

    watching = cocotb.start_soon(watch())
    await bench.execute(assemble(text).instructions, stream)
    watching.cancel()
    assert max(before) > 3, "the stream did not notice the slower memory"
    assert 0 < max(beside) <= 3, f"{max(beside)} bursts of the stream beside a load"
