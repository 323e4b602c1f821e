# SPDX-License-Identifier: Apache-2.0
"""The parameter stream: a full FIFO, several consumers in ticket order, rewinds."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.asm import assemble
from npu.isa import Engine
from npu.regs.generated import SeqReg
from tb.bursts import OpenBursts
from tb.dut import Dut
from tb.environment import Bench
from tb.knobs import Knobs

TABLE = 256
"""Bytes of the share of GELU with a table from the stream."""
BUS_BURSTS = 16
"""Read bursts that the bus takes at once."""


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
    tables = bench.random.integers(0, 256, 6 * TABLE, dtype=np.uint8).tobytes()
    weights = bench.random.integers(0, 256, 6 * 2 * 256, dtype=np.uint8).tobytes()
    norms = bench.random.integers(0, 64, 6 * 192, dtype=np.uint8).tobytes()
    text, stream = "", b""
    for turn in range(6):
        text += f"""
            GELU dst={0x1000 + turn * 0x200:#x} src0=0x3000 M=4 N=100 stream
            GEMM dst={0x4000 + turn * 0x400:#x} src0=0x3400 M=5 N=16 K=32 B=stream out=i32
            LAYERNORM dst={0x8000 + turn * 0x200:#x} src0=0x3800 M=3 N=32 stream
        """
        stream += tables[turn * TABLE :][:TABLE]
        stream += weights[turn * 512 :][:512] + norms[turn * 192 :][:192]
    await bench.execute(assemble(text + "END").instructions, stream)


@cocotb.test
async def test_stream_rewind(dut: Dut) -> None:
    """SET STREAM to where the stream stands, ahead and back, near and past what was read."""
    bench = await Bench.start(dut)
    shares = 200
    stream = bench.random.integers(0, 256, shares * TABLE, dtype=np.uint8).tobytes()
    for _ in range(4):
        text, at = "", 0
        for turn in range(40):
            if bench.random.random() < 0.6:
                far = bench.random.random() < 0.3
                step = int(bench.random.integers(-shares, shares)) if far else 1
                at = min(max(at + step, 0), shares - 1) if turn % 7 else at
                text += f"SET STREAM v={at * TABLE}\n"
            text += f"GELU dst={turn * 0x100:#x} src0=0x8000 M=2 N=120 stream\n"
            at = (at + 1) % shares
            if at == 0:
                text += "SET STREAM v=0\n"
        text += f"SET STREAM v={shares * TABLE}\nEND"
        await bench.execute(assemble(text).instructions, stream)


@cocotb.test
async def test_stream_limit(dut: Dut) -> None:
    """The stream never has more bursts under way than STREAM_LIMIT; results do not depend on it."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    stream = bench.random.integers(0, 256, 64 * 192, dtype=np.uint8).tobytes()
    program = assemble("GEMM dst=0x0 src0=0x8000 M=3 N=64 K=192 B=stream out=i32\nEND").instructions
    await bench.set_knobs(Knobs(read_latency=80))
    for limit in range(32):
        await bench.host.write_seq(SeqReg.STREAM_LIMIT, limit)
        owed.most.clear()
        await bench.execute(program, stream)
        allowed = min(limit or BUS_BURSTS, BUS_BURSTS)
        assert owed.most[Engine.STREAM] == allowed, f"limit {limit}: {owed.most[Engine.STREAM]}"
