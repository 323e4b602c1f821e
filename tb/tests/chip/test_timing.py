# SPDX-License-Identifier: Apache-2.0
"""One small operation of everything, one after the other: what the timing diagrams are taken from.

`python -m dev.diagrams --record` takes the diagrams of docs/rtl from the waveform of this test. So
that they stay what they are, nothing here is drawn at random but data.
"""

from __future__ import annotations

import cocotb

from npu.asm import assemble
from spec.regs import CmdOp, CmdReg
from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.command.command_session import CLEAR, CommandSession
from tb.command.descriptor_words import DescriptorWords, Extension

TAGS = ("timing",)

SCRATCH_BYTES = (64,)
QUICK = Knobs(read_latency=4, write_latency=2)
"""A memory whose latency leaves a diagram readable."""
STREAM_BYTES = 64 + 64 + 2 * 256 + 128
"""The shares of LAYERNORM (64 and 64) and GEMM (two tiles of weights, one of channels)."""
TARGET = 0x0020_1000
"""Where the descriptor's result goes."""

PROGRAM = """
    NOP
    VEC op=add dst=0x400 src0=0x0 src1=0x200 M=2 N=32
    BARRIER vec
    SOFTMAX dst=0x500 src0=0x0 src1=0x580 M=1 N=16 out=u8
    BARRIER smx
    LAYERNORM dst=0x600 src0=0x0 M=2 N=16 stream
    BARRIER nrm
    ROPE dst=0x680 src0=0x0 src1=0x200 M=1 N=32 K=1
    BARRIER nrm
    GEMM dst=0x700 src0=0x0 M=4 N=16 K=32 B=stream q=ch bias
    BARRIER gemm
    DMA_STORE dst=0x700 off=0 M=2 N=40 b=1
    BARRIER st
    DMA_LOAD dst=0x800 off=0 M=2 N=40 b=0
    BARRIER ld
    ; from here on two engines want the same bank: VEC begins a cycle earlier, SOFTMAX a word later
    VEC op=copy2d dst=0x1000 src0=0x0 M=1 N=64
    SOFTMAX dst=0x1100 src0=0x10 src1=0x1180 M=1 N=32 out=u8
    END
"""

NARROW = """
    SOFTMAX dst=0x500 src0=0x0 src1=0x580 M=1 N=64 out=u8
    BARRIER smx
    GEMM dst=0x700 src0=0x0 M=4 N=16 K=32 B=stream fmt=mxfp6e2 out=i32
    END
"""
NARROW_BYTES = 64 + 2 * (64 + 128)
"""Its share: side bytes, and two tiles, each with its plane; SOFTMAX gives it time to arrive."""


@cocotb.test
async def test_timing(dut: Dut) -> None:
    """The command port by register and by descriptor, then all engines, then narrow weights."""
    session = await CommandSession.start(dut, QUICK)
    await session.operate(CmdOp.DOT4_S8, 0x0403_0201, 0x0807_0605, 100)
    await session.run(
        DescriptorWords(CmdOp.ADD, 40, 2, writeback=True, extension=Extension(TARGET)),
        DescriptorWords(CmdOp.SUB, 40, 2),
    )
    await session.compare()
    await session.write(CmdReg.CTRL_STATUS, CLEAR)
    stream = session.bench.random.bytes(STREAM_BYTES)
    await session.bench.execute(assemble(PROGRAM).instructions, stream)
    narrow = session.bench.random.bytes(NARROW_BYTES)
    await session.bench.execute(assemble(NARROW).instructions, narrow)
