# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX alone: numerators and probabilities, masks, positions, stacked heads."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.asm import assemble
from tb.dut import Dut
from tb.environment import INPUT, Bench
from tb.stimulus import run_cases
from tb.stimulus.simple import softmax


@cocotb.test
async def test_softmax_random(dut: Dut) -> None:
    """Random shapes, forms, masks and score distributions."""
    bench = await Bench.start(dut)
    await run_cases(bench, [softmax], count=40, programs=4)


@cocotb.test
async def test_softmax_distances(dut: Dut) -> None:
    """Every distance from the maximum that has a numerator of its own, in one row per form."""
    bench = await Bench.start(dut)
    row = (20000 - np.arange(1300)).astype("<i2")
    bench.memory.stage(INPUT, row)
    text = "DMA_LOAD dst=0x0 M=1 N=2600 b=0\nBARRIER ld\n"
    for index, out in enumerate(("prob", "u8", "u16")):
        sums = "" if out == "prob" else f" src1={0xF000 + 16 * index:#x}"
        text += f"SOFTMAX dst={0x4000 * (index + 1):#x} src0=0x0{sums} M=1 N=1300 out={out}\n"
    await bench.execute(assemble(text + "END").instructions)


@cocotb.test
async def test_softmax_long_equal(dut: Dut) -> None:
    """1,024 equal scores: the sum counts every one of them."""
    bench = await Bench.start(dut)
    bench.memory.stage(INPUT, np.full(1024, -321, "<i2"))
    text = """
        DMA_LOAD dst=0x0 M=1 N=2048 b=0
        BARRIER ld
        SOFTMAX dst=0x1000 src0=0x0 src1=0x3000 M=1 N=1024 out=u16
        SOFTMAX dst=0x4000 src0=0x0 src1=0x5000 M=1 N=1024 out=u8
        BARRIER smx
        END
    """
    await bench.execute(assemble(text).instructions)
    sram = await bench.sync()
    assert int(sram[0x3000:0x3004].view("<u4")[0]) == 1024 * 65535
    assert int(sram[0x5000:0x5004].view("<u4")[0]) == 1024 * 255


@cocotb.test
async def test_softmax_causal(dut: Dut) -> None:
    """The mask at every position of a prompt, with stacked heads and rows past the last column."""
    bench = await Bench.start(dut)
    for pos in (0, 1, 15, 16, 17, 40):
        text = f"""
            DMA_LOAD dst=0x0 M=48 N=66 b=0
            BARRIER ld
            SOFTMAX dst=0x4000 src0=0x0 src1=0x8000 M=48 N=33 K=16 causal out=u16 ap=80
            SOFTMAX dst=0x10000 src0=0x0 M=48 N=33 causal out=prob ap=80
            SET POS v={pos}
            SOFTMAX dst=0xA000 src0=0x0 src1=0xC000 M=48 N=33 K=12 causal out=u8 ap=80
            END
        """
        await bench.execute(assemble(text).instructions, pos=pos)
