# SPDX-License-Identifier: Apache-2.0
"""Memory protection: regions checked on every burst of program and DMA, and their locks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cocotb
import numpy as np

from golden.machine import ErrorReport
from spec.isa import Engine, ErrorCode
from spec.regs.generated import CHIP_BASE, ChipReg
from tb.bench.bursts import PAGE, ReadBursts, WriteBursts, split
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, PROGRAM, Bench, reset
from tb.bench.memory_regions import (
    CLOSED,
    COUNT,
    OPEN,
    RegionRegisters,
    permitted,
    protect,
    set_region,
)
from tb.bench.recovery import (
    command,
    next_program_runs,
    program,
    run_stopped,
    wait_idle,
)

TAGS = ("ld", "st", "faults")


def _denied(engine: Engine, instr: int, address: int) -> ErrorReport:
    return ErrorReport(ErrorCode.REGION, engine, instr, address)


@dataclass(frozen=True)
class Transfer:
    """A DMA instruction behind `before` NOPs; `at` is relative to INPUT."""

    store: bool
    before: int
    at: int
    rows: int
    row_bytes: int
    pitch: int

    @property
    def text(self) -> str:
        """The program: NOPs, the transfer, END."""
        name, sram = ("DMA_STORE", 0x20000) if self.store else ("DMA_LOAD", 0)
        return "NOP\n" * self.before + (
            f"{name} dst={sram:#x} M={self.rows} N={self.row_bytes} b=0 off={self.at:#x} "
            f"pitch={self.pitch}\nEND"
        )

    @property
    def bursts(self) -> list[range]:
        """Byte addresses of its bursts."""
        return list(split(INPUT + self.at, self.rows, self.row_bytes, self.pitch))


def _random_transfer(random: np.random.Generator, pages: int) -> Transfer:
    """Return a transfer within `pages` pages; one row, or some that do not overlap."""
    rows = int(random.integers(1, 4))
    row_bytes = int(random.integers(1, (pages - 1) * PAGE // rows))
    at = 16 * int(random.integers(0, (pages * PAGE - rows * (row_bytes + 16)) // 16))
    room = (pages * PAGE - at - row_bytes) // max(rows - 1, 1)
    shortest = -(-row_bytes // 16) * 16
    pitch = 16 * int(random.integers(shortest // 16, max(room // 16, shortest // 16) + 1))
    store = bool(random.integers(2))
    return Transfer(store, int(random.integers(0, 4)), at, rows, row_bytes, pitch)


def _random_region(random: np.random.Generator, pages: int) -> RegionRegisters:
    """Return a region of some pages in and around the transfers; at times the wrong way round."""
    first, last = (INPUT + PAGE * int(page) for page in random.integers(-1, pages + 1, 2))
    if random.random() < 0.85:
        first, last = min(first, last), max(first, last)
    return RegionRegisters(first, last, bool(random.integers(2)), bool(random.integers(2)))


@cocotb.test
async def test_protection_regions(dut: Dut) -> None:
    """Random regions, random transfers: allowed ones run, denied ones name their first burst."""
    bench = await Bench.start(dut)
    reads, writes = ReadBursts(dut), WriteBursts(dut)
    pages, outcomes = 6, {True: 0, False: 0}
    for _ in range(12):
        regions = [_random_region(bench.random, pages) for _ in range(COUNT)]
        if bench.random.random() < 0.5:
            regions[int(bench.random.integers(1, COUNT))] = CLOSED
        code = int(bench.random.integers(COUNT))
        regions[code] = RegionRegisters(PROGRAM, PROGRAM, True, False)
        await protect(bench, regions)
        reads.bursts.clear()
        writes.bursts.clear()
        for _ in range(5):
            transfer = _random_transfer(bench.random, pages)
            words = program(transfer.text)
            start = bench.load(words)
            allowed = [
                permitted(regions, burst[0], write=transfer.store) for burst in transfer.bursts
            ]
            outcomes[all(allowed)] += 1
            if all(allowed):
                await bench.run(words, start)
                continue
            first = transfer.bursts[allowed.index(False)]
            engine = Engine.ST if transfer.store else Engine.LD
            await run_stopped(bench, start, _denied(engine, transfer.before, first[0]))
        for burst in reads.bursts:
            assert permitted(regions, burst.address, write=False), f"{burst} was denied"
        for burst in writes.bursts:
            assert permitted(regions, burst.address, write=True), f"{burst} was denied"
    assert min(outcomes.values()) >= 10, f"allowed and denied: {outcomes}"
    await protect(bench, [OPEN])
    await next_program_runs(bench)


@cocotb.test
async def test_protection_permissions(dut: Dut) -> None:
    """A region to read from is not written, and one to write to is not read."""
    bench = await Bench.start(dut)
    code = RegionRegisters(PROGRAM, PROGRAM, True, False)
    for store in (False, True):
        transfer = Transfer(store, 1, 0x20, 1, 700, 704)
        start = bench.load(program(transfer.text))
        engine = Engine.ST if store else Engine.LD
        for read, write in ((True, False), (False, True)):
            await protect(bench, [code, RegionRegisters(INPUT, INPUT, read, write)])
            if write == store:
                await bench.run(program(transfer.text), start)
            else:
                await run_stopped(bench, start, _denied(engine, 1, INPUT + 0x20))


@cocotb.test
async def test_protection_limit_is_inclusive(dut: Dut) -> None:
    """The first and the last byte of a region are in it, their neighbours are not."""
    bench = await Bench.start(dut)
    page = INPUT + 3 * PAGE
    regions = [
        RegionRegisters(PROGRAM, PROGRAM, True, False),
        RegionRegisters(page, page + PAGE, True, True),
    ]
    await protect(bench, regions)
    inside, below, above = (3 * PAGE, 2 * PAGE), 3 * PAGE - 16, 5 * PAGE
    for store, engine in ((False, Engine.LD), (True, Engine.ST)):
        whole = Transfer(store, 0, inside[0], 1, inside[1], inside[1])
        await bench.run(program(whole.text), bench.load(program(whole.text)))
        for at in (below, above):
            outside = Transfer(store, 0, at, 1, 16, 16)
            start = bench.load(program(outside.text))
            await run_stopped(bench, start, _denied(engine, 0, INPUT + at))


@cocotb.test
async def test_protection_every_page_bit(dut: Dut) -> None:
    """A region whose pages differ from the accessed one in any single bit does not permit it."""
    bench = await Bench.start(dut)
    transfer = Transfer(False, 0, 0, 1, 16, 16)
    start = bench.load(program(transfer.text))
    code = RegionRegisters(PROGRAM, PROGRAM, True, False)
    for bit in range(12, 32):
        other = INPUT ^ 1 << bit
        regions = [code, RegionRegisters(other, other, True, True)]
        if other < INPUT:
            regions.append(RegionRegisters(other, INPUT - 1, True, True))
        else:
            regions.append(RegionRegisters(INPUT + PAGE, other, True, True))
        await protect(bench, regions)
        await run_stopped(bench, start, _denied(Engine.LD, 0, INPUT))


@cocotb.test
async def test_protection_fetch(dut: Dut) -> None:
    """The program is fetched under the same rules; the report names the first denied word."""
    bench = await Bench.start(dut)
    fetched = ReadBursts(dut)
    words = program("NOP\n" * 299 + "END")
    raw = b"".join(word.encode() for word in words)
    for allowed in (0, 1, 7, 32, 33, 250):
        base = PROGRAM + PAGE - 16 * allowed
        bench.memory.stage(base, raw)
        start = replace(bench.load([]), ucode_base=base, ucode_len=len(words))
        await protect(bench, [RegionRegisters(0, PROGRAM, True, True)])
        fetched.bursts.clear()
        await run_stopped(bench, start, _denied(Engine.SEQ, allowed, PROGRAM + PAGE))
        assert all(burst.address < PROGRAM + PAGE for burst in fetched.bursts)
        await protect(bench, [CLOSED, RegionRegisters(PROGRAM, PROGRAM + 2 * PAGE, True, False)])
        await bench.run(words, start)
    await protect(bench, [OPEN])
    await next_program_runs(bench)


@cocotb.test
async def test_protection_lock(dut: Dut) -> None:
    """A locked region holds through attempts to open it and soft resets, until a hard reset."""
    bench = await Bench.start(dut)
    transfer = Transfer(True, 0, 0, 1, 256, 256)
    start = bench.load(program(transfer.text))
    denied = _denied(Engine.ST, 0, INPUT)
    await set_region(bench, 0, replace(OPEN, write=False), lock=True)
    await run_stopped(bench, start, denied)
    await set_region(bench, 0, OPEN)
    await run_stopped(bench, start, denied)
    await command(bench, "SOFT_RESET")
    await wait_idle(bench)
    await set_region(bench, 0, OPEN)
    await run_stopped(bench, start, denied)
    at = CHIP_BASE + ChipReg.REGION0_CTRL
    assert await bench.bus.read32(at) == 0b101
    await reset(dut)
    assert await bench.bus.read32(at) == 0b011
    await bench.run(program(transfer.text), start)
