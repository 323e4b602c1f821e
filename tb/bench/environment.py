# SPDX-License-Identifier: Apache-2.0
"""The bench as a test sees it: reset, memory, knobs, run a program, compare with the model."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Unpack

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.task import current_task
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from golden.machine import ChipConfig, Machine, RunResult
from npu.driver.chip import Finish, LastState
from npu.driver.errors import DeviceError
from spec.isa import Instruction
from spec.isa.operands import Limits
from spec.regs import MachineStart, StartState
from tb.bench import failure, isa_coverage, logs
from tb.bench.counters import compare_counters
from tb.bench.dut import Dut
from tb.bench.host import RtlBus, RtlChip, TimedFinish, hostile_seed, wanted_memory
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory
from tb.bench.memory_kinds import MemoryKind
from tb.bench.python_memory import PythonMemory
from tb.bench.scenes import Keep, SceneRecord, record
from tb.bench.scoreboard import (
    Compared,
    Locate,
    MismatchError,
    RunMismatchError,
    Writes,
    compare_errors,
    compare_images,
    compare_writes,
)

INPUT, OUTPUT = 0x0010_0000, 0x0020_0000
"""Default BASE0 and BASE1."""
_BASES = (INPUT, OUTPUT, 0, 0, 0, 0, 0, 0)
PROGRAM, STREAM = 0x0040_0000, 0x0080_0000
"""Where `Bench.load` puts the program and the parameter stream."""
_used = False
"""Whether a test has used the bench in this process."""
DEFAULT_LIMIT = 200_000
"""Cycles that a program of a test may take unless the test says otherwise."""


class BackEnd(Enum):
    """Who answers on the memory bus."""

    SYSTEMVERILOG = "the slave in tb_top: fast, for everything"
    PYTHON = "the slave in tb.bench.python_memory: for protocol tests"


@dataclass(frozen=True)
class Execution:
    """A program that ran on the chip and on the model with equal results.

    Attributes:
        finish: the chip's error status, counters and time.
        model: what the model returned.
        writes: the chip's SRAM writes.
        events: dispatched words and finished instructions (`tb.bench.logs.EVENT`).
        trace: milestones and, with the knob `trace`, states (`tb.bench.logs.START` and so on).
        compared: how much was compared.
    """

    finish: TimedFinish
    model: RunResult
    writes: Writes
    events: logs.Records
    trace: logs.Records
    compared: Compared


@dataclass
class Bench:
    """One `tb_top` after reset.

    Attributes:
        dut: the bench top.
        run_dir: folder of this run.
        memory: the memory behind the chip; filled with random bytes at the start.
        bus: register port, interrupt and memory, as the driver takes them.
        chip: the driver on that bus.
        config: the chip's sizes, read from its own registers.
        random: the test's random generator, seeded by the run's seed.
        knobs: the memory as it behaves now.
        hits: coverage rows that programs of this test have executed.
    """

    dut: Dut
    run_dir: Path
    memory: Memory
    bus: RtlBus
    chip: RtlChip
    config: ChipConfig
    random: np.random.Generator
    knobs: Knobs
    hits: isa_coverage.Hits = field(default_factory=isa_coverage.Hits)

    @classmethod
    async def start(
        cls,
        dut: Dut,
        knobs: Knobs | None = None,
        *,
        back_end: BackEnd = BackEnd.SYSTEMVERILOG,
    ) -> Bench:
        """Reset the chip and return the bench around it."""
        gc.freeze()  # what is imported stays: no collection need look at it, the last least of all
        run_dir = Path(str(cocotb.plusargs["run_dir"]))
        await _forget_test_before(dut, run_dir)
        seed = int(cocotb.RANDOM_SEED)
        random = np.random.default_rng(seed)
        memory = Memory.map(run_dir / "memory.bin")
        memory.data[:] = random.integers(0, 256, memory.data.size, np.uint8)
        dut.knob_seed.value = seed & 0xFFFF_FFFF
        knobs = _as_the_run_wants(knobs or Knobs())
        knobs.apply(dut)
        slave: PythonMemory | None = None
        if back_end is BackEnd.PYTHON:
            slave = PythonMemory(dut, memory, knobs, seed)
            slave.start()
        bus = RtlBus(dut, memory)
        await reset(dut)
        chip = await RtlChip.connect(bus)
        limits = chip.info.limits
        sizes = limits.array_dim, limits.sram_bytes, limits.acc_rows, limits.norm_max
        config = ChipConfig(*sizes, narrow_formats=limits.narrow_formats)
        bench = cls(dut, run_dir, memory, bus, chip, config, random, knobs)
        chip.on_error = lambda error: bench.add_hits([isa_coverage.error_row(error)])
        bench._slave = slave
        bench._writes = logs.Log(run_dir / logs.SRAM_WRITES_FILE, logs.SRAM_WRITE)
        bench._events = logs.Log(run_dir / logs.EVENTS_FILE, logs.EVENT)
        bench._trace = logs.Log(run_dir / logs.TRACE_FILE, logs.EVENT)
        return bench

    _slave: PythonMemory | None = field(default=None, init=False, repr=False)
    _writes: logs.Log = field(init=False, repr=False)
    _events: logs.Log = field(init=False, repr=False)
    _trace: logs.Log = field(init=False, repr=False)

    async def set_knobs(self, knobs: Knobs) -> None:
        """Change the behaviour of the memory from the next clock edge on."""
        self.knobs = knobs = _as_the_run_wants(knobs)
        knobs.apply(self.dut)
        if self._slave is not None:
            self._slave.knobs = knobs
        await RisingEdge(self.dut.clk)

    @property
    def limits(self) -> Limits:
        """The chip's sizes as the compiler takes them."""
        return self.chip.info.limits

    @property
    def slower(self) -> int:
        """How many times the cycles of a 16 x 16 array this one may take."""
        return max(1, 16 // self.config.array_dim) ** 2

    async def sync(self) -> npt.NDArray[np.uint8]:
        """Return a copy of the chip's SRAM, (bytes,) uint8; the logs are complete up to now."""
        await _sync(self.dut)
        return np.fromfile(self.run_dir / "sram.bin", dtype=np.uint8)

    def load(
        self,
        program: Sequence[Instruction],
        stream: bytes = b"",
        *,
        length: int | None = None,
        **registers: Unpack[MachineStart],
    ) -> StartState:
        """Put program and stream into memory and return how to start it.

        Args:
            program: its words.
            stream: its parameters.
            length: words that the chip is told of, by default all.
            registers: what the machine starts with; without `bases` those of INPUT and OUTPUT.
        """
        self.memory.stage(PROGRAM, b"".join(word.encode() for word in program))
        if stream:
            self.memory.stage(STREAM, stream)
        words = len(program) if length is None else length
        machine: MachineStart = {"bases": _BASES, **registers}
        return StartState(PROGRAM, words, STREAM, len(stream), **machine)

    async def run(
        self,
        program: Sequence[Instruction],
        start: StartState,
        *,
        locate: Locate | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Execution:
        """Run a loaded program on the chip and on the model and compare everything.

        Args:
            program: the words in memory, for messages and coverage.
            start: as `load` returned it.
            locate: names a place in SRAM in the terms of the model.
            limit: cycles until the interrupt must have come.

        Raises:
            MismatchError: the two differ; the message names the first difference.
            DeviceError: the chip did not end.
        """
        sram = await self.sync()
        self._writes.take()
        self._events.take()
        self._trace.take()
        memory = self.memory.snapshot()
        model = Machine(self.config, memory, sram).run(start)
        if model.races:
            raise ValueError(f"the program has {len(model.races)} races, first: {model.races[0]}")
        try:
            finish = await self.chip.run(start, limit)
        except DeviceError:
            await self.sync()
            raise
        actual_sram = await self.sync()
        writes = Writes.of_log(self._writes.take())
        events = self._events.take()
        trace = self._trace.take()
        expected = Writes.of_model(model)
        compared = Compared.of(
            (expected, writes), (sram, actual_sram), (memory, self.memory.data), model.stored
        )
        execution = Execution(finish, model, writes, events, trace, compared)
        try:
            compare_writes(expected, writes, program, locate)
            compare_errors(model.error, finish.error)
            _compare_registers(model, finish)
            if compared.differs:
                compare_images(sram, actual_sram, "SRAM")
                compare_images(memory, self.memory.data, "memory")
            compare_counters({"INSTRS": model.executed, "MACS": model.macs}, finish.counters)
        except MismatchError as error:
            failure.note(self.run_dir, error, events, trace, int(self.dut.cycle.value))
            raise RunMismatchError(str(error), execution) from None
        self.hits.add(program, events, self.config.tile, self.config.array_dim, self.knobs)
        self._save_hits()
        return execution

    async def execute(
        self,
        program: Sequence[Instruction],
        stream: bytes = b"",
        *,
        limit: int = DEFAULT_LIMIT,
        **registers: Unpack[MachineStart],
    ) -> Execution:
        """`load` and `run` in one."""
        start = self.load(program, stream, **registers)
        return await self.run(program, start, limit=limit)

    def add_hits(self, rows: Iterable[str]) -> None:
        """Count rows of the table of `make regress` that no program has executed but the test."""
        self.hits.add_rows(rows)
        self._save_hits()

    def record_scene(self, keep: Keep, parts: Sequence[str], text: str) -> None:
        """Write down the scene that is about to run, so that it can run again with fewer parts.

        Args:
            keep: which scene, and what is left of it.
            parts: names of all parts that the whole one has.
            text: what is left of it, for people.

        Raises:
            ValueError: the scene lacks a part that is to be kept.
        """
        unknown = set(keep.parts or parts) - set(parts)
        if unknown:
            raise ValueError(
                f"KEEP: scene {keep.scene} has no part {', '.join(sorted(unknown))}, "
                f"it has {', '.join(parts)}"
            )
        found = SceneRecord(running_test(), keep.scene, list(keep.parts or parts), text)
        record(self.run_dir, found)

    def _save_hits(self) -> None:
        file = isa_coverage.rows_file(self.run_dir, running_test())
        file.write_text(self.hits.as_json(), encoding="utf-8")


def running_test() -> str:
    """Return the name of the test whose own task this is."""
    return current_task().get_name().removeprefix("Test ")


def _as_the_run_wants(knobs: Knobs) -> Knobs:
    """Return a test's knobs; on a hostile memory those that it leaves as usual are drawn.

    A DRAM takes the place of a memory of which the test does not say how late it answers.
    """
    seed = hostile_seed()
    drawn = Knobs.hostile(np.random.default_rng(seed)) if seed else Knobs()
    memory = wanted_memory() if knobs.as_late_as_usual else MemoryKind.FIXED
    return knobs.or_else(replace(drawn, memory=memory))


async def _forget_test_before(dut: Dut, run_dir: Path) -> None:
    """Empty the logs of the bench if another test has run in this process."""
    global _used
    if _used and hasattr(dut, "sync"):  # the bench of one block writes no logs
        await _sync(dut)
        for name in (logs.SRAM_WRITES_FILE, logs.EVENTS_FILE, logs.TRACE_FILE):
            os.truncate(run_dir / name, 0)
    _used = True


async def _sync(dut: Dut) -> None:
    """Let the bench copy the SRAM and write its logs out."""
    await FallingEdge(dut.clk)
    dut.sync.value = 1
    await Timer(1, "ns")
    dut.sync.value = 0
    await Timer(1, "ns")


def full() -> bool:
    """Return whether a test with a long form is to run it: under `make regress` or with FULL=1."""
    return "full" in cocotb.plusargs


def turns(count: int) -> int:
    """Return how often a random test does something: `count` times, half as often in short form."""
    return count if full() else -(-count // 2)


def _compare_registers(model: RunResult, finish: Finish) -> None:
    """Compare what the program left in registers."""
    last = LastState(model.out_count, model.token, model.pos)
    if finish.last != last:
        raise MismatchError(f"registers: expected {last}, actual {finish.last}")


async def reset(dut: Dut, cycles: int = 5) -> None:
    """Hold the chip in reset for some cycles; it releases after a clock edge."""
    dut.rst_n.value = 0
    for _ in range(cycles):
        await RisingEdge(dut.clk)
    dut.rst_n.value = 1
    for _ in range(2):
        await RisingEdge(dut.clk)
