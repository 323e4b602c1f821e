# SPDX-License-Identifier: Apache-2.0
"""Runs one benchmark in the simulator: the cocotb tests here are named after their benchmarks."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import cocotb
import numpy as np

from npu.driver.chip import start_accesses
from spec.isa import Instruction
from spec.isa.instruction import decode_image, encode_image
from spec.regs import CMD_BASE, CmdReg
from tb.bench import callbacks, logs
from tb.bench.dut import Dut
from tb.bench.environment import Bench, Execution
from tb.benchmarks.benchmark import Benchmark, Interval
from tb.benchmarks.catalogue import CASES, LONG_RUN, NIGHTLY
from tb.benchmarks.command_benchmarks import launch_cycles, operation_cycles
from tb.command.command_session import CommandSession
from tb.cop.cop_session import CopSession

PROGRAM = "program.bin"
"""File in the run's folder; beside it figures, and the logs of the bench."""
START_MEMORY, START_WRITES = "memory_start.bin", "start_writes.json"
"""Files in the folder of the long run: what another host needs to repeat it."""


@dataclass(frozen=True)
class RunFigures:
    """What one run has shown.

    Attributes:
        cycles: of the timed interval.
        program_cycles: the chip's own count, from start to end.
        bytes_read, bytes_written: beats on the bus times 16, of the whole program.
        macs: useful 8x8-bit multiplications of the whole program, as the chip counted them.
        seconds: processor time of the simulation from start to interrupt.
        python_callbacks: entries into Python in that time.
    """

    cycles: int
    program_cycles: int
    bytes_read: int
    bytes_written: int
    macs: int
    seconds: float
    python_callbacks: int

    @classmethod
    def load(cls, folder: Path, name: str) -> RunFigures:
        """Read what `save` wrote."""
        return cls(**json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))

    @classmethod
    def total(cls, parts: Sequence[RunFigures]) -> RunFigures:
        """Return the sums of several programs' figures."""
        rows = [asdict(part) for part in parts]
        return cls(**{name: sum(row[name] for row in rows) for name in rows[0]})

    def save(self, folder: Path, name: str) -> None:
        """Write to the run's folder, which other benchmarks may share."""
        (folder / f"{name}.json").write_text(json.dumps(asdict(self)), encoding="utf-8")


def program_of(folder: Path) -> list[Instruction]:
    """Return the program of the run in `folder`."""
    return decode_image((folder / PROGRAM).read_bytes())


def interval(
    case: Benchmark, program: Sequence[Instruction], events: logs.Records, trace: logs.Records
) -> int:
    """Return the cycles of the timed interval.

    Raises:
        ValueError: the logs do not hold its two ends.
    """
    if case.interval is Interval.OPERATION:
        return operation_cycles(events, trace)
    if case.interval is Interval.LAUNCH:
        return launch_cycles(events, trace)

    def cycles(records: logs.Records, kind: int) -> list[int]:
        chosen = records[records["kind"] == kind]
        if case.interval is not Interval.PROGRAM:
            timed = [i for i, word in enumerate(program) if word.opcode == case.opcode]
            chosen = chosen[np.isin(chosen["instr"], timed)]
        return [int(cycle) for cycle in chosen["cycle"]]

    first, last = {
        Interval.PROGRAM: ((trace, logs.START), (trace, logs.INTERRUPT)),
        Interval.INSTRUCTION: ((trace, logs.TAKE), (events, logs.DONE)),
        Interval.DISPATCHED: ((events, logs.DISPATCH), (events, logs.DONE)),
        Interval.CHAIN: ((events, logs.DISPATCH), (events, logs.DONE)),
        Interval.TURNS: ((events, logs.DISPATCH), (events, logs.DISPATCH)),
    }[case.interval]
    begins, ends = cycles(*first), cycles(*last)
    if not begins or len(begins) != len(ends):
        raise ValueError(f"{case.name}: {len(begins)} begins and {len(ends)} ends in the logs")
    return ends[-1] - begins[0]


def _figures(case: Benchmark, program: Sequence[Instruction], execution: Execution) -> RunFigures:
    finish = execution.finish
    counters = finish.counters
    return RunFigures(
        cycles=interval(case, program, execution.events, execution.trace),
        program_cycles=counters.cycles,
        bytes_read=16 * counters.read_beats,
        bytes_written=16 * counters.write_beats,
        macs=counters.macs,
        seconds=finish.waited.seconds,
        python_callbacks=finish.waited.entries,
    )


async def _measure_port(dut: Dut, case: Benchmark) -> None:
    """Run a benchmark of the command port; the register port is on the way to all that it does."""
    session = await CommandSession.start(dut, case.knobs)
    bench = session.bench
    started, entries = time.process_time(), callbacks.count()
    assert case.drive is not None
    await case.drive(session)
    seconds, entered = time.process_time() - started, callbacks.count() - entries
    await session.compare()
    await bench.sync()
    events = np.fromfile(bench.run_dir / logs.EVENTS_FILE, logs.EVENT)
    trace = np.fromfile(bench.run_dir / logs.TRACE_FILE, logs.EVENT)
    rtl = session.bus.rtl
    read, written, cycles, macs = [
        await rtl.read32(CMD_BASE + register)
        for register in (
            CmdReg.DESC_BYTES_READ,
            CmdReg.DESC_BYTES_WRITTEN,
            CmdReg.PERF_CYCLES,
            CmdReg.PERF_MACS,
        )
    ]
    timed = interval(case, [], events, trace)
    # The port counts no cycles of programs that are started by registers.
    figures = RunFigures(timed, cycles or timed, read, written, macs, seconds, entered)
    figures.save(bench.run_dir, case.name)


async def _measure_coprocessor(dut: Dut, case: Benchmark) -> None:
    """Run a benchmark of the coprocessor; the session compares all that its lists leave."""
    session = await CopSession.start(dut, case.knobs)
    started, entries = time.process_time(), callbacks.count()
    assert case.run is not None
    cycles = await case.run(session)
    seconds, entered = time.process_time() - started, callbacks.count() - entries
    read, written, busy = [
        int(signal.value) for signal in (dut.cop_reads, dut.cop_writes, dut.cop_cycles)
    ]
    figures = RunFigures(cycles, busy, 16 * read, 16 * written, 0, seconds, entered)
    figures.save(session.bench.run_dir, case.name)


async def measure(dut: Dut, case: Benchmark) -> None:
    """Run a benchmark; chip and model must agree in every byte before there are any figures."""
    if case.run is not None:
        await _measure_coprocessor(dut, case)
        return
    if case.load is None:
        await _measure_port(dut, case)
        return
    bench = await Bench.start(dut, replace(case.knobs, trace=int(case.traced)))
    load = case.load(bench.random)
    for address, data in load.pieces:
        bench.memory.stage(address, data)
    if case.name == LONG_RUN:
        bench.memory.data.tofile(bench.run_dir / START_MEMORY)
        (bench.run_dir / START_WRITES).write_text(
            json.dumps([(it.address, it.value) for it in start_accesses(load.runs[-1].start)])
        )
    figures = []
    for run in load.runs:
        for address, data in run.pieces:
            bench.memory.stage(address, data)
        execution = await bench.run(run.program, run.start, limit=case.limit)
        assert execution.finish.error is None, str(execution.finish.error)
        address, expected = run.expected
        written = bench.memory.read(address, len(expected))
        assert written == expected, f"tokens: {written.hex()}, of golden: {expected.hex()}"
        if run.timed:
            figures.append(_figures(case, run.program, execution))
    (bench.run_dir / PROGRAM).write_bytes(encode_image(list(load.runs[-1].program)))
    RunFigures.total(figures).save(bench.run_dir, case.name)


def _test(case: Benchmark) -> object:
    async def run(dut: Dut) -> None:
        await measure(dut, case)

    return cocotb.test(name=case.name)(run)


globals().update({case.name: _test(case) for case in (CASES | NIGHTLY).values()})
