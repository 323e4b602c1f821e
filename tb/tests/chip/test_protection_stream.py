# SPDX-License-Identifier: Apache-2.0
"""Protection of the parameter stream: read within the regions, not written while it is in use."""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np

from golden.machine import ErrorReport, StartState
from spec.isa import Engine, ErrorCode
from tb.bench.bursts import PAGE, ReadBursts, split
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM, STREAM, Bench
from tb.bench.memory_regions import OPEN, RegionRegisters, protect
from tb.bench.recovery import next_program_runs, program, run_stopped

TAGS = ("stream", "faults")


def _denied(engine: Engine, instr: int, address: int) -> ErrorReport:
    return ErrorReport(ErrorCode.REGION, engine, instr, address)


def _with_stream(bench: Bench, text: str, base: int, length: int) -> StartState:
    """Load a program and `length` random bytes of stream at `base`."""
    bench.memory.stage(base, bench.random.integers(0, 256, length, np.uint8))
    return replace(bench.load(program(text)), stream_base=base, stream_len=length)


def _shares(count: int) -> str:
    """Return instructions that take `count` shares of 256 bytes and write different words."""
    lines = (f"GELU dst={0x1000 + 0x80 * n:#x} src0=0x0 M=2 N=64 stream" for n in range(count))
    return "\n".join(lines) + "\n"


@cocotb.test
async def test_protection_stream_read(dut: Dut) -> None:
    """The stream is read under the same rules; the report names the first denied burst."""
    bench = await Bench.start(dut)
    text = _shares(40) + "END"
    read = ReadBursts(dut)
    for allowed in (0, 64, 512, 576, 5000 // 64 * 64):
        base = STREAM + 2 * PAGE - allowed
        start = _with_stream(bench, text, base, 40 * 256)
        code = RegionRegisters(PROGRAM, PROGRAM, True, False)
        await protect(bench, [code, RegionRegisters(STREAM, STREAM + PAGE, True, False)])
        read.bursts.clear()
        await run_stopped(bench, start, _denied(Engine.STREAM, 0, STREAM + 2 * PAGE))
        assert all(burst.address < STREAM + 2 * PAGE for burst in read.bursts)
        await protect(bench, [code, RegionRegisters(STREAM, STREAM + 4 * PAGE, True, False)])
        await bench.run(program(text), start)
    await protect(bench, [OPEN])
    await next_program_runs(bench)


async def _store_near_stream(bench: Bench, first: int, row_bytes: int, shares: int) -> bool:
    """Store bytes while a stream is in use; return whether that was denied.

    The stream begins at a place of its own within a page.

    Args:
        bench: the bench, idle.
        first: where the store begins, relative to the stream.
        row_bytes: bytes to store.
        shares: length of the stream in pieces of 256 bytes.
    """
    base, length = STREAM + PAGE + 64 * int(bench.random.integers(0, 64)), 256 * shares
    text = _shares(shares)
    text += f"SET BASE2 v={base + first}\nDMA_STORE dst=0x20000 M=1 N={row_bytes} b=2\nEND"
    start = _with_stream(bench, text, base, length)
    image = bench.memory.read(base, length)
    bursts = list(split(base + first, 1, row_bytes, 0))
    touching = [b for b in bursts if b[0] < base + length and b[-1] >= base]
    if not touching:
        await bench.run(program(text), start)
        return False
    await run_stopped(bench, start, _denied(Engine.ST, shares + 1, touching[0][0]))
    assert bench.memory.read(base, length) == image, "the stream in use was written"
    return True


@cocotb.test
async def test_protection_stream_written(dut: Dut) -> None:
    """No store touches the stream in use; the bytes right before and right behind are free."""
    bench = await Bench.start(dut)
    shares = 3
    length = 256 * shares
    for first, row_bytes, denied in (
        (-64, 64, False),
        (-64, 65, True),
        (-1024, 1024, False),
        (-1040, 1041, True),
        (length - 16, 1, True),
        (length - 16, 2000, True),
        (length, 1, False),
        (length, 3000, False),
        (-PAGE, 3 * PAGE, True),
        (256, 32, True),
    ):
        assert await _store_near_stream(bench, first, row_bytes, shares) == denied
    for _ in range(20):
        shares = int(bench.random.integers(1, 12))
        first = 16 * int(bench.random.integers(-160, 16 * shares + 32))
        await _store_near_stream(bench, first, int(bench.random.integers(1, 2600)), shares)
    await next_program_runs(bench)


@cocotb.test
async def test_protection_without_stream(dut: Dut) -> None:
    """Where a stream was is writable again as soon as a program runs without one."""
    bench = await Bench.start(dut)
    await next_program_runs(bench)
    text = f"SET BASE2 v={STREAM}\nDMA_STORE dst=0x0 M=1 N=512 b=2\nEND"
    await bench.execute(program(text))
    await next_program_runs(bench)
