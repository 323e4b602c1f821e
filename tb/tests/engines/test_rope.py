# SPDX-License-Identifier: Apache-2.0
"""ROPE: halves and neighbouring pairs of every head dimension, in place, many heads, crowds."""

from __future__ import annotations

from functools import partial

import cocotb

from npu.asm import assemble
from spec.isa import WORD, Engine
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus import build_program, run_cases
from tb.stimulus.random_case import join
from tb.stimulus.simple_cases import layernorm, rmsnorm, rope
from tb.stimulus.sram_space import BANKS, OneBank

TAGS = ("nrm", "random")
TIMED = ("test_rope_time",)

LONGEST = 4100
"""A head dimension of many words that is no multiple of one."""


@cocotb.test
async def test_rope_random(dut: Dut) -> None:
    """Random rows, heads, head dimensions and forms; angles and any other factors."""
    bench = await Bench.start(dut)
    await run_cases(bench, [rope], count=60, programs=4)


@cocotb.test
async def test_rope_every_dimension(dut: Dut) -> None:
    """Every even head dimension up to past four words, halves and neighbours."""
    bench = await Bench.start(dut)
    for neighbours in (False, True):
        for heads in (1, 3):
            makers = [
                partial(rope, extent=(2, dimension), heads=heads, neighbours=neighbours)
                for dimension in range(2, 76, 2)
            ]
            program, stream = build_program(bench, makers)
            execution = await bench.execute(program, stream)
            assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_rope_long(dut: Dut) -> None:
    """A head of many words, and many heads of one word."""
    bench = await Bench.start(dut)
    for neighbours in (False, True):
        makers = [
            partial(rope, extent=(2, LONGEST), heads=1, neighbours=neighbours),
            partial(rope, extent=(1, 16), heads=300, neighbours=neighbours),
        ]
        program, stream = build_program(bench, makers)
        execution = await bench.execute(program, stream)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_rope_and_norms(dut: Dut) -> None:
    """The three opcodes of the engine in turn."""
    bench = await Bench.start(dut)
    await run_cases(bench, [rope, rmsnorm, layernorm], count=45, programs=2)


@cocotb.test
async def test_rope_crowded_bank(dut: Dut) -> None:
    """Operands of several instructions whose rows all begin in one bank."""
    bench = await Bench.start(dut)
    words = bench.config.sram_bytes // WORD
    for _ in range(3):
        groups = []
        for bank in bench.random.permutation(BANKS)[:6].tolist():
            space = OneBank(bench.random, words, bank=bank)
            cases = [rope(bench.random, space, extent=(8, 16), heads=1) for _ in range(2)]
            groups.append([*cases, rmsnorm(bench.random, space, extent=(8, 8))])
        program, stream = join(bench, groups)
        execution = await bench.execute(program, stream)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_rope_time(dut: Dut) -> None:
    """Six heads of 16 lanes take at most 32 cycles, of 64 lanes at most 90."""
    bench = await Bench.start(dut)
    for lanes, most in ((16, 32), (64, 90)):
        text = "\n".join(
            f"ROPE dst={0x1000 + turn * 0x400:#x} src0=0x0 src1=0x800 M=1 N={lanes} K=6"
            for turn in range(8)
        )
        execution = await bench.execute(assemble(text + "\nEND").instructions)
        busy = execution.finish.counters.busy[Engine.NRM]
        assert busy <= 8 * most, f"8 x 6 heads of {lanes} lanes took {busy} cycles"
