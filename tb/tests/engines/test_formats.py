# SPDX-License-Identifier: Apache-2.0
"""Narrow weights in the stream: every code and side byte, layout, starved, stopped on the way.

These tests follow the size of the array they run on; they run on every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden import formats
from golden.machine import ErrorReport
from spec.isa import (
    Engine,
    ErrorCode,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    SetReg,
    WeightFormat,
    WeightGroup,
)
from spec.regs.generated import ChipReg
from tb.bench.dut import Dut
from tb.bench.environment import STREAM, Bench, full
from tb.bench.knobs import Knobs
from tb.bench.recovery import Command, command, next_program_runs, run_stopped, wait_idle
from tb.stimulus import build_program
from tb.stimulus.format_cases import every_code
from tb.stimulus.gemm_cases import GROUP_ROWS, GemmMode, GemmSize, build, groups, random_mode
from tb.stimulus.random_case import Generator, instruction

TAGS = ("gemm", "stream", "formats", "long")
TIMED = ("test_format_stopped",)

BLOCK_EXPONENTS = np.array([*range(10), 255], np.uint8)
"""Side bytes of MX formats: each shift, the first that leaves nothing, and the largest."""
PATIENCE = 200
"""MEM_TIMEOUT of the test with a silent memory, in cycles."""


def _kinds(edge: int) -> Iterator[tuple[WeightFormat, WeightGroup]]:
    """Yield every format with every group that it may have."""
    for fmt in WeightFormat:
        for group in groups(fmt, edge):
            yield fmt, group


def _period(fmt: WeightFormat, group: WeightGroup, edge: int) -> int:
    """Return the rows of K that one beat, or one pair, of side bytes serves."""
    if fmt in formats.SPARSE:
        return 2 * edge if edge == 16 else edge
    if fmt in formats.GROUPED | formats.MX:
        return formats.BEAT // edge * GROUP_ROWS[group]
    return edge


def _sums(fmt: WeightFormat, group: WeightGroup) -> GemmMode:
    """Return the mode of exact int32 sums with weights of a format."""
    return GemmMode(
        a_type=GemmA.INT8,
        b_form=GemmB.STREAM,
        transpose=False,
        requant=False,
        q=GemmQ.PREFIX,
        out=GemmOut.INT32,
        op=GemmOp.NONE,
        accumulate=False,
        bias=False,
        relu=False,
        table=False,
        fmt=fmt,
        group=group,
    )


def _drawn(bench: Bench, fmt: WeightFormat, group: WeightGroup) -> GemmMode:
    """Return a random mode with weights of a format."""
    mode = random_mode(bench.random, bench.config.tile)
    return replace(mode, b_form=GemmB.STREAM, transpose=False, fmt=fmt, group=group)


def _program(
    bench: Bench, makers: list[tuple[GemmMode, GemmSize]]
) -> tuple[list[Instruction], bytes]:
    """Return program and stream of GEMMs of given modes and shapes."""
    edge = bench.config.tile
    cases: list[Generator] = [
        partial(build, shape=shape, mode=mode, edge=edge) for mode, shape in makers
    ]
    return build_program(bench, cases)


async def _run(bench: Bench, makers: list[tuple[GemmMode, GemmSize]]) -> None:
    """Run GEMMs of given modes and shapes; each agrees in every byte."""
    program, stream = _program(bench, makers)
    execution = await bench.execute(program, stream, limit=2_000_000 * bench.slower)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_format_codes(dut: Dut) -> None:
    """Every code with every side byte or position; of MX formats in the short form eleven bytes."""
    bench = await Bench.start(dut)
    edge, rows = bench.config.tile, bench.config.acc_rows
    every = np.arange(256, dtype=np.uint8)
    for fmt, group in _kinds(edge):
        if group != groups(fmt, edge)[0] and not full():
            continue
        short = fmt in formats.MX and not full()
        cases = every_code(fmt, group, BLOCK_EXPONENTS if short else every, rows, edge)
        for case in cases:
            program, stream = build_program(bench, [case])
            execution = await bench.execute(program, stream)
            assert execution.finish.error is None, f"{fmt.name}: {execution.finish.error}"


@cocotb.test
async def test_format_boundaries(dut: Dut) -> None:
    """K around each period of the side bytes, up to three column tiles, any mode."""
    bench = await Bench.start(dut)
    edge, random = bench.config.tile, bench.random
    for fmt, group in _kinds(edge):
        period = _period(fmt, group, edge)
        near = {1, edge - 1, edge, edge + 1, period - 1, period, period + 1, 2 * period + 1}
        if full():
            near |= {k + step for k in range(edge, 2 * period + 2, edge) for step in (-1, 0, 1)}
        makers = []
        for k in sorted(near - {0}):
            most = bench.config.acc_rows // 2 if random.random() < 0.1 else 5
            m, n = int(random.integers(1, most + 1)), int(random.integers(1, 3 * edge + 1))
            makers.append((_drawn(bench, fmt, group), GemmSize(m, n, k)))
        await _run(bench, makers)


@cocotb.test
async def test_format_neighbours(dut: Dut) -> None:
    """Shares of every two formats behind each other; tables, each q; a quick and a halting memory.

    The FIFO of the stream runs empty anywhere, between side bytes and their tile as well.
    """
    bench = await Bench.start(dut)
    edge, random = bench.config.tile, bench.random
    kinds = list(_kinds(edge)) if full() else [(fmt, groups(fmt, edge)[0]) for fmt in WeightFormat]
    halting = Knobs(read_latency=3, read_gap=85, ar_stall=60, read_spread=30)
    for knobs in (Knobs(), halting):
        await bench.set_knobs(knobs)
        for index, first in enumerate(kinds):
            makers = []
            for turn, second in enumerate(kinds):
                for kind in (first, second):
                    requant = replace(_sums(*kind), requant=True, out=GemmOut.INT8, table=turn < 8)
                    mode = replace(requant, q=GemmQ((turn + index) % 4))
                    n, k = (int(random.integers(1, last + 1)) for last in (2 * edge, 5 * edge))
                    makers.append((mode, GemmSize(int(random.integers(1, 4)), n, k)))
            if full() or index % 3 == int(random.integers(3)):
                await _run(bench, makers)


@cocotb.test
async def test_format_short_stream(dut: Dut) -> None:
    """A share that is one beat short is STREAM_END, one beat more is STREAM_LEFT."""
    bench = await Bench.start(dut)
    edge, random = bench.config.tile, bench.random
    for fmt, group in _kinds(edge):
        period = _period(fmt, group, edge)
        lengths = (1, period, period + 1)
        for k in lengths if full() else (int(random.choice(lengths)),):
            shape = GemmSize(2, int(random.integers(1, 2 * edge + 1)), k)
            program, stream = _program(bench, [(_sums(fmt, group), shape)])
            for given, expected in (
                (stream[:-64], ErrorCode.STREAM_END),
                (stream, None),
                (stream + bytes(64), ErrorCode.STREAM_LEFT),
            ):
                execution = await bench.execute(program, given)
                error = execution.finish.error
                code = None if error is None else error.code
                assert code == expected, f"{fmt.name} {GROUP_ROWS[group]} K={k}: {error}"


@cocotb.test
async def test_format_again(dut: Dut) -> None:
    """SET STREAM back to a share, and LOOP over it: each turn begins with side bytes."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    for fmt, group in _kinds(edge):
        period = _period(fmt, group, edge)
        shape = GemmSize(3, edge + 1, period + edge)
        program, stream = _program(bench, [(_sums(fmt, group), shape)] * 2)
        back = instruction(Opcode.SET, dst=SetReg.STREAM)
        twice = [*program[:-1], *back, *program[:-1], *back]
        loop = Instruction(Opcode.LOOP)
        again = [*twice, *program[:-1], loop, program[-1]]
        execution = await bench.execute(again, stream, loop_left=2, kv_cap=1 << 20)
        assert execution.finish.error is None, f"{fmt.name}: {execution.finish.error}"


def _stops(bench: Bench) -> Iterator[tuple[list[Instruction], bytes, int]]:
    """Yield program, stream and the address of a beat at which to stop, by format and group.

    The beats are the first ones, and those before and behind the second beat of side bytes.
    """
    edge = bench.config.tile
    for fmt, group in _kinds(edge):
        shape = GemmSize(2, edge, _period(fmt, group, edge) + edge)
        program, stream = _program(bench, [(_sums(fmt, group), shape)])
        side = np.flatnonzero(
            formats.side_beats(fmt, shape.k, edge, GROUP_ROWS[group])
        ).tolist() or [0]
        last = side[-1]
        at = {0, 1, last, last + 1} if full() else {int(bench.random.choice([0, last])) + 1}
        for beat in sorted(at):
            yield program, stream, STREAM + formats.BEAT * beat


@cocotb.test
async def test_format_stopped(dut: Dut) -> None:
    """A soft reset, an abort and a time-out while side bytes wait for their tile."""
    bench = await Bench.start(dut)
    await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, PATIENCE)
    kinds: list[Command | None] = ["SOFT_RESET", "ABORT", None]
    for turn, (program, stream, at) in enumerate(_stops(bench)):
        start = bench.load(program, stream)
        await bench.set_knobs(Knobs(read_silent=1, silent_first=at))
        await bench.chip.start(start)
        kind = kinds[turn % len(kinds)]
        if kind is None:
            await bench.bus.wait_interrupt(2000)
            report = await bench.chip.report()
            assert report is not None and report.code == ErrorCode.TIMEOUT, str(report)
            await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        else:
            await ClockCycles(dut.clk, PATIENCE // 2)
            await command(bench, kind)
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        execution = await bench.execute(program, stream)
        assert execution.finish.error is None, str(execution.finish.error)
    await next_program_runs(bench)


@cocotb.test
async def test_format_bus_error(dut: Dut) -> None:
    """A read error on the beats around side bytes; the next narrow weights are right."""
    bench = await Bench.start(dut)
    for program, stream, at in _stops(bench):
        start = bench.load(program, stream)
        await bench.set_knobs(Knobs(read_error=1, error_first=at, error_last=at + 15))
        await run_stopped(bench, start, ErrorReport(ErrorCode.READ_ERROR, Engine.STREAM, 0, at))
        await bench.set_knobs(Knobs())
        execution = await bench.execute(program, stream)
        assert execution.finish.error is None, str(execution.finish.error)
    await next_program_runs(bench)
