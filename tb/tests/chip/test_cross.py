# SPDX-License-Identifier: Apache-2.0
"""Every engine under the full cross of other engines, memory behaviour and shape.

Each test walks {others idle, others busy} x {no pressure, gaps or stalls on one channel} x
{latency 1, 40, 200}, and in each of these conditions runs every shape class with fresh data; the
short form takes one latency, drawn for each of the others' conditions. Busy
means that at the dispatch of each instruction under test every other engine has unfinished work on
operands of its own, so that all meet in the banks of the SRAM and on the bus; the log is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import cocotb

from spec.isa import WORD, Engine, Instruction, Opcode
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.bench.logs import DISPATCH, DONE, Records
from tb.stimulus import Case, join
from tb.stimulus.engine_cases import ENGINES, SHAPES, companion, of_class
from tb.stimulus.simple_cases import DMA_BASES, StoreWindow
from tb.stimulus.sram_space import Space

TAGS = ("ld", "st", "gemm", "smx", "nrm", "vec", "random")

LATENCIES = (1, 40, 200)
PRESSURES: tuple[dict[str, int], ...] = (
    {},
    {"read_gap": 60},
    {"ar_stall": 80},
    {"aw_stall": 80},
    {"w_stall": 60},
    {"write_gap": 80},
)
"""Percent of cycles in which one channel (none, R, AR, AW, W, B) does not move."""
COMPANION = SHAPES.index("tiles")
"""Shape class of what the other engines do."""


def _companions(bench: Bench, engine: Engine, memory: StoreWindow, space: Space) -> list[Case]:
    """Return two instructions of every other engine, in turns."""
    edge = bench.config.tile
    return [
        companion(of_class(other, COMPANION, memory, edge)[turn % 2 - 1], bench.random, space)
        for turn in range(2)
        for other in ENGINES
        if other != engine
    ]


def _groups(bench: Bench, engine: Engine, memory: StoreWindow, busy: bool) -> list[list[Case]]:
    """Return a group for each shape class: what keeps the others busy, then the one under test."""
    groups = []
    for index in range(len(SHAPES)):
        for generator in of_class(engine, index, memory, bench.config.tile):
            space = Space(bench.random, bench.config.sram_bytes // WORD)
            case = generator(bench.random, space)
            others = _companions(bench, engine, memory, space) if busy else []
            groups.append([*others, case])
    return groups


def _check_busy(program: Sequence[Instruction], events: Records, engine: Engine) -> None:
    """Check that each instruction under test found every other engine at work."""
    subjects = [
        index - 1
        for index, word in enumerate(program)
        if word.opcode == Opcode.BARRIER and word.m == 0
    ]
    dispatched, done = events[events["kind"] == DISPATCH], events[events["kind"] == DONE]
    finished = {int(event["instr"]): int(event["cycle"]) for event in done}
    engines = {int(event["instr"]): int(event["engine"]) for event in done}
    started = {int(event["instr"]): int(event["cycle"]) for event in dispatched}
    for subject in subjects:
        at = started[subject]
        working = {engines[instr] for instr in finished if started[instr] <= at < finished[instr]}
        idle = set(ENGINES) - working
        assert not idle, f"word {subject} on {engine.name}: {idle} had nothing to do"


async def _cross(dut: Dut, engine: Engine) -> None:
    bench = await Bench.start(dut)
    memory = StoreWindow()
    for busy in (False, True):
        for pressure in PRESSURES:
            drawn = (int(bench.random.choice(LATENCIES)),)
            for latency in LATENCIES if full() else drawn:
                knobs = Knobs(read_latency=latency, write_latency=latency, **pressure)
                await bench.set_knobs(knobs)
                program, stream = join(bench, _groups(bench, engine, memory, busy))
                execution = await bench.execute(program, stream, bases=DMA_BASES, limit=1_000_000)
                assert execution.finish.error is None, str(execution.finish.error)
                if busy:
                    _check_busy(program, execution.events, engine)


@cocotb.test
async def test_cross_ld(dut: Dut) -> None:
    """DMA_LOAD, every condition and shape class."""
    await _cross(dut, Engine.LD)


@cocotb.test
async def test_cross_st(dut: Dut) -> None:
    """DMA_STORE, every condition and shape class."""
    await _cross(dut, Engine.ST)


@cocotb.test
async def test_cross_gemm(dut: Dut) -> None:
    """GEMM with B from the stream and from SRAM, every condition and shape class."""
    await _cross(dut, Engine.GEMM)


@cocotb.test
async def test_cross_smx(dut: Dut) -> None:
    """SOFTMAX, every condition and shape class."""
    await _cross(dut, Engine.SMX)


@cocotb.test
async def test_cross_nrm(dut: Dut) -> None:
    """LAYERNORM, every condition and shape class."""
    await _cross(dut, Engine.NRM)


@cocotb.test
async def test_cross_vec(dut: Dut) -> None:
    """VEC and GELU, every condition and shape class."""
    await _cross(dut, Engine.VEC)
