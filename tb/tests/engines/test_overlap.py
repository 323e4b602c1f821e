# SPDX-License-Identifier: Apache-2.0
"""Engines that work at the same time on operands of their own, without a barrier between them.

Every ordered pair of engines, full queues of each, and engines that all want the same bank of the
SRAM in every cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import cocotb
import numpy as np

from spec.isa import WORD, Engine, Instruction
from tb.bench.dut import Dut
from tb.bench.environment import Bench, Execution, turns
from tb.bench.knobs import Knobs
from tb.bench.logs import DISPATCH, DONE, Records
from tb.stimulus import Case, join
from tb.stimulus.engine_cases import ENGINES, SHAPES, of_class, of_one_word_rows
from tb.stimulus.simple_cases import DMA_BASES, StoreWindow
from tb.stimulus.sram_space import BANKS, OneBank, Space, bank_of

TAGS = ("ld", "st", "gemm", "smx", "nrm", "vec", "timing")

NEAR = Knobs(read_latency=1, write_latency=1)
"""A memory that does not keep loads and stores from the SRAM."""
LONG, SHORT = SHAPES.index("tiles"), SHAPES.index("above")
"""Even the short ones last longer than the fetch of a line of instructions."""


def _last_words(cases: Sequence[Case], program: Sequence[Instruction]) -> list[int]:
    """Return the index of each case's last word: they stand in this order in the program."""
    found, at = [], 0
    for case in cases:
        while list(program[at : at + len(case.words)]) != case.words:
            at += 1
        at += len(case.words)
        found.append(at - 1)
    return found


def _cycles(events: Records, kind: int) -> dict[int, int]:
    """Return the cycle in which each word was dispatched, or done."""
    chosen = events[events["kind"] == kind]
    return {int(event["instr"]): int(event["cycle"]) for event in chosen}


async def _run(bench: Bench, groups: Sequence[Sequence[Case]]) -> tuple[Execution, list[list[int]]]:
    """Run groups of cases that overlap; return the run and the last words' indices by group."""
    program, stream = join(bench, groups)
    execution = await bench.execute(program, stream, bases=DMA_BASES, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)
    last = iter(_last_words([case for cases in groups for case in cases], program))
    return execution, [[next(last) for _ in cases] for cases in groups]


@cocotb.test
async def test_overlap_pairs(dut: Dut) -> None:
    """Every ordered pair of engines, a long instruction before a short one and the other way."""
    bench = await Bench.start(dut)
    memory, edge = StoreWindow(), bench.config.tile
    for classes in ((LONG, SHORT), (LONG, LONG), (SHORT, LONG)):
        pairs = list(product(ENGINES, repeat=2))
        groups = []
        for pair in pairs:
            space = Space(bench.random, bench.config.sram_bytes // WORD)
            makers = [
                bench.random.choice(np.array(of_class(engine, index, memory, edge), object))
                for engine, index in zip(pair, classes, strict=True)
            ]
            groups.append([make(bench.random, space) for make in makers])
        execution, words = await _run(bench, groups)
        dispatched = _cycles(execution.events, DISPATCH)
        done = _cycles(execution.events, DONE)
        for pair, (first, second) in zip(pairs, words, strict=True):
            assert dispatched[second] < done[first], f"{pair}: one after the other"


@cocotb.test
async def test_overlap_queues(dut: Dut) -> None:
    """More instructions of one engine than its queue holds, of all small shapes and modes."""
    bench = await Bench.start(dut)
    memory, edge = StoreWindow(), bench.config.tile
    for engine in ENGINES:
        makers = [make for index in range(LONG) for make in of_class(engine, index, memory, edge)]
        groups = []
        for _ in range(turns(12)):
            space = Space(bench.random, bench.config.sram_bytes // WORD)
            order = bench.random.permutation(np.array(makers * 2, object))
            groups.append([make(bench.random, space) for make in order])
        await _run(bench, groups)


Order = Callable[[np.random.Generator, Space], list[Case]]


def _together(bench: Bench, engines: Sequence[Engine], turns: int) -> Order:
    """Return what makes `turns` cases of each engine, in turns, with rows of one word."""
    memory = StoreWindow()
    makers = [of_one_word_rows(engine, memory, bench.config.tile) for engine in engines] * turns
    return lambda random, space: [make(random, space) for make in makers]


def _occupied(execution: Execution, groups: Sequence[Sequence[int]]) -> int:
    """Return the cycles from the dispatch of each group's first word to the end of its last."""
    dispatched = _cycles(execution.events, DISPATCH)
    done = _cycles(execution.events, DONE)
    return sum(max(done[word] for word in words) - dispatched[words[0]] for words in groups)


async def _in_one_bank(bench: Bench, orders: Sequence[Order]) -> tuple[int, int]:
    """Run each group with all its rows in one bank, each bank in turn, and again anywhere.

    What is drawn is the same in both runs but for the places, so the difference in time is what
    the wait for the bank has cost.

    Returns:
        cycles in one bank, and anywhere; loading the operands is not counted.
    """
    words = bench.config.sram_bytes // WORD
    seed = int(bench.random.integers(1 << 32))
    cycles = []
    for one_bank in (True, False):
        random = np.random.default_rng(seed)
        groups = []
        for turn, order in enumerate(orders):
            bank = turn % BANKS
            space = OneBank(bench.random, words, bank=bank) if one_bank else None
            groups.append(order(random, space or Space(bench.random, words)))
        execution, indices = await _run(bench, groups)
        cycles.append(_occupied(execution, indices))
        banks = bank_of(execution.writes.words)
        both = np.stack([execution.writes.cycle, banks])
        assert np.unique(both, axis=1).shape == both.shape, "a bank took two words in one cycle"
    return cycles[0], cycles[1]


@cocotb.test
async def test_overlap_one_bank_pairs(dut: Dut) -> None:
    """Each two engines on each bank; those that read, and those that write, wait for each other."""
    bench = await Bench.start(dut, NEAR)
    pairs = list(combinations(ENGINES, 2))
    cycles = [await _in_one_bank(bench, [_together(bench, pair, 3)] * BANKS) for pair in pairs]
    crowded, free = np.sum(cycles, axis=0).tolist()
    assert crowded > 1.05 * free, f"{crowded} cycles in one bank, {free} anywhere: nobody waited"


@cocotb.test
async def test_overlap_one_bank_all(dut: Dut) -> None:
    """All six engines on one bank, each bank in turn: they wait, and all are right."""
    bench = await Bench.start(dut, NEAR)
    crowded, free = await _in_one_bank(bench, [_together(bench, ENGINES, 1)] * (4 * BANKS))
    assert crowded > 1.1 * free, f"{crowded} cycles in one bank, {free} anywhere: nobody waited"
