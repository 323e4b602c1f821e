# SPDX-License-Identifier: Apache-2.0
"""Performance counters where no other test looks: cleared, odd shapes, after a soft reset.

The bench compares the counters with its own figures after every program of every test.
"""

from __future__ import annotations

from dataclasses import asdict

import cocotb
from cocotb.triggers import ClockCycles

from npu.driver.counters import ChipCounters
from spec.regs.generated import CHIP_FIELDS, ChipReg
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.recovery import command, load_every_engine, next_program_runs, program, wait_idle

TAGS = ("registers", "timing")

SHAPES = ((1, 1, 1), (3, 5, 7), (2, 17, 16), (5, 16, 33), (9, 47, 15), (4, 32, 64))
"""(M, N, K) beside and on the edges of tiles."""
FORMS = ("i8", "u8", "i16", "u16")


async def _clear(bench: Bench) -> None:
    await bench.chip.write_chip(ChipReg.PERF_CTRL, CHIP_FIELDS["PERF_CTRL_CLEAR"].mask)


def _all_zero(counters: ChipCounters) -> bool:
    return not any(counters.named().values())


@cocotb.test
async def test_counters_macs(dut: Dut) -> None:
    """MACS is M*N*K, twice that with a 16-bit A; what pads a tile is not counted."""
    bench = await Bench.start(dut)
    for m, n, k in SHAPES:
        for form in FORMS:
            text = f"GEMM dst=0x8000 src0=0 src1=0x4000 M={m} N={n} K={k} A={form} out=i32\nEND"
            counters = (await bench.execute(program(text))).finish.counters
            passes = 2 if "16" in form else 1
            assert counters.macs == m * n * k * passes, f"{m}x{n}x{k} {form}: {counters.macs}"


@cocotb.test
async def test_counters_clear(dut: Dut) -> None:
    """CLEAR zeroes all of them, idle or while a program runs, which counts on from there."""
    bench = await Bench.start(dut)
    whole = (await next_program_runs(bench)).finish.counters
    idle = [name for name, value in whole.named().items() if not value]
    assert not idle, f"nothing counted: {idle}"
    await ClockCycles(dut.clk, 100)
    assert await bench.chip.counters() == whole, "counters moved after the end"
    await _clear(bench)
    assert _all_zero(await bench.chip.counters())
    await bench.chip.start(load_every_engine(bench))
    await ClockCycles(dut.clk, whole.cycles // 2)
    await _clear(bench)
    await wait_idle(bench, whole.cycles)
    rest = await bench.chip.counters()
    assert 0 < rest.cycles < whole.cycles - whole.cycles // 2, f"{rest.cycles} of {whole.cycles}"
    assert asdict(await _again(bench)) == asdict(whole), "the next program counts otherwise"


async def _again(bench: Bench) -> ChipCounters:
    return (await next_program_runs(bench)).finish.counters


@cocotb.test
async def test_counters_while_they_count(dut: Dut) -> None:
    """What is read while a program runs is the count of that cycle: the array's beside CYCLES."""
    bench = await Bench.start(dut)
    words = program("GEMM dst=0x20000 src0=0 src1=0x10000 M=128 N=64 K=512 out=i32\nEND")
    await bench.chip.start(bench.load(words))
    while not await bench.chip.read_chip(ChipReg.BUSY2):
        pass
    await _clear(bench)
    for turn in range(60):
        await ClockCycles(dut.clk, int(bench.random.integers(0, 20)))
        before = await bench.chip.read_chip(ChipReg.CYCLES_LO)
        busy = await bench.chip.read_chip(ChipReg.BUSY2)
        after = await bench.chip.read_chip(ChipReg.CYCLES_LO)
        assert before < busy < after, f"{turn}: {before}, then {busy} busy, then {after}"
    await wait_idle(bench, 20_000)


@cocotb.test
async def test_counters_soft_reset(dut: Dut) -> None:
    """A soft reset keeps what an abandoned program has counted; its own cycles count, too."""
    bench = await Bench.start(dut)
    await bench.chip.start(load_every_engine(bench))
    await ClockCycles(dut.clk, 300)
    await command(bench, "SOFT_RESET")
    await wait_idle(bench)
    before = await bench.chip.counters()
    assert before.cycles >= 300, before
    await command(bench, "SOFT_RESET")
    await wait_idle(bench)
    after = await bench.chip.counters()
    assert 0 < after.cycles - before.cycles < 10, f"{before.cycles}, then {after.cycles} cycles"
    assert after.busy == before.busy, "an idle engine is busy"
