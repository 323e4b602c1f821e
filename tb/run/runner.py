# SPDX-License-Identifier: Apache-2.0
"""Runs tests on a built model: each in a process and a folder of its own, side by side.

The folder of a run holds everything about it: the shared memory and SRAM images, the logs of the
bench, the simulator's output (`log.txt`), the result (`results.xml`) and what the test wrote.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from pathlib import Path

import cocotb_tools.config
import find_libpython

from npu.commands import build_folder
from spec.paths import BUILD, ROOT
from tb.bench import accesses, failure
from tb.bench.dut import CLOCK_NS
from tb.run import parallel, processes
from tb.run.build import Configuration
from tb.run.registry import BenchTest

SRAM_BYTES = 256 << 10
LOG = "log.txt"
"""Name of the simulator's output in the run's folder."""


class Fill(IntEnum):
    """What every bit of a register holds before the first reset, as Verilator numbers it."""

    ZEROS = 0
    ONES = 1
    RANDOM = 2


@dataclass(frozen=True)
class PowerUp:
    """The state of registers and SRAM before the first reset; `seed` is that of random bits."""

    fill: Fill
    seed: int = 1

    @property
    def arguments(self) -> list[str]:
        """What tells the simulator."""
        return [
            f"+verilator+rand+reset+{self.fill.value}",
            f"+verilator+seed+{self.seed % 0x7FFFFFFF or 1}",
        ]

    def __str__(self) -> str:
        return f"random bits {self.seed}" if self.fill is Fill.RANDOM else f"all {self.fill.name}"


@dataclass(frozen=True)
class Job:
    """One test with one seed on one configuration.

    Attributes:
        test: what runs.
        configuration: the model that it runs on.
        seed: seed of all random choices.
        waves: waveform file to write; needs the debug build.
        hostile: seed of a hostile memory for tests that ask for none (`Knobs.hostile`), 0: none.
        memory: a DRAM for tests that ask for none (`MemoryKind` in small letters), else nothing.
        window: the first and the last cycle that the waveform has, by default all.
        companions: more tests for the same process, each of which resets the chip.
        binary: the simulator, by default the configuration's own.
        place: folder of the run, by default one in build/runs.
        full: whether tests with a long form run it (`make regress` does).
        plusargs: more arguments of the simulation, without the plus sign.
        keep: the scene of a random test that runs, and which of its parts (`Keep`); "" for all.
        limit_s: wall-clock limit of the process.
        processor_s: limit of its processor time.
        until_failure: whether a process of several tests ends with the first that fails.
    """

    test: BenchTest
    configuration: Configuration
    seed: int = 1
    waves: Path | None = None
    place: Path | None = None
    full: bool = False
    plusargs: tuple[str, ...] = ()
    hostile: int = 0
    memory: str = ""
    window: tuple[int, int] | None = None
    companions: tuple[BenchTest, ...] = ()
    binary: Path | None = None
    keep: str = ""
    limit_s: float = processes.TIME_LIMIT_S
    processor_s: float = math.inf
    until_failure: bool = False

    @property
    def tests(self) -> tuple[BenchTest, ...]:
        """All that the simulator runs, in the order of their modules and of their places there."""
        return tuple(sorted((self.test, *self.companions), key=lambda test: test.group))

    @property
    def power_ups(self) -> list[PowerUp]:
        """The states that it runs from, one after the other; an eighth of them in short form."""
        count = self.test.power_ups if self.full else -(-self.test.power_ups // 8)
        if not count:
            return [PowerUp(Fill.RANDOM, self.seed)]
        first = 1 + (self.seed - 1) * count
        seeds = range(first, first + count)
        random = [PowerUp(Fill.RANDOM, seed) for seed in seeds]
        return [PowerUp(Fill.ZEROS), PowerUp(Fill.ONES), *random]

    @property
    def folder(self) -> Path:
        """The run's folder."""
        if self.place is not None:
            return self.place
        return BUILD / "runs" / self.configuration.folder.name / f"{self.test.name}-{self.seed}"

    @property
    def repro(self) -> str:
        """The command that repeats exactly this run."""
        names = ",".join(test.name for test in self.tests)
        words = self.configuration.repeat(names, self.seed)
        if self.full:
            words.append("FULL=1")
        words += [f"HOSTILE={self.hostile}"] if self.hostile else []
        words += [f"MEMORY={self.memory}"] if self.memory else []
        words += ["TOGETHER=1"] if self.companions else []
        words += [f"KEEP={self.keep}"] if self.keep else []
        return " ".join(words)


@dataclass(frozen=True)
class TestResult:
    """How a run ended.

    Attributes:
        job: what ran.
        passed: True if the test ran and passed.
        message: the reason of a failure, one or a few lines.
        output: what the test itself printed, without the simulator's own chatter.
        seconds: wall-clock time.
        cycles: of the clock.
    """

    job: Job
    passed: bool
    message: str
    output: str
    seconds: float
    cycles: int = 0


def _environment(job: Job) -> dict[str, str]:
    libpython = find_libpython.find_libpython()
    if libpython is None:
        raise RuntimeError(
            "cocotb needs Python's shared library: install the Debian package libpython3-dev"
        )
    # Each simulation imports the bench anew, with assertions rewritten by pytest: a second of work
    # unless Python may keep the result.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {
        # Other simulations have the other processors; threads for small products only wait.
        "OPENBLAS_NUM_THREADS": "1",
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        "PYGPI_PYTHON_BIN": sys.executable,
        # A simulator that comes from another machine was linked where cocotb lies there.
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [str(cocotb_tools.config.libs_dir), os.environ.get("LD_LIBRARY_PATH")])
        ),
        "GPI_USERS": f"{libpython};{cocotb_tools.config.pygpi_entry_point()}",
        "COCOTB_TOPLEVEL": job.configuration.top,
        "COCOTB_TEST_MODULES": ",".join(dict.fromkeys(test.module for test in job.tests)),
        "COCOTB_TEST_FILTER": rf"\.({'|'.join(test.name for test in job.tests)})$",
        "COCOTB_RANDOM_SEED": str(job.seed),
        "COCOTB_RESULTS_FILE": str(job.folder / "results.xml"),
        "COCOTB_TRUST_INERTIAL_WRITES": "1",
        "COCOTB_MAX_FAILURES": str(int(job.until_failure)),
        "COCOTB_ANSI_OUTPUT": "0",
        "TOPLEVEL_LANG": "verilog",
    }


def prepare(job: Job) -> None:
    """Make the run's folder with an empty memory and SRAM in it.

    Raises:
        OSError: there is no room for them. Found here, for a mapped file without room kills whoever
            writes to it.
    """
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir(parents=True)
    for name, size in (
        ("memory.bin", max(test.memory_bytes for test in job.tests)),
        ("sram.bin", SRAM_BYTES),
        (accesses.FILE, accesses.MOST * accesses.RECORD.itemsize),
    ):
        path = job.folder / name
        with path.open("wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None


def cases_of(folder: Path) -> list[ElementTree.Element]:
    """Return what cocotb reports of the tests that have run in `folder`, in order."""
    results = folder / "results.xml"
    if not results.exists():
        return []
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    return [case for case in cases if case.find("skipped") is None]


def reason_of(case: ElementTree.Element) -> str:
    """Return why a test of a report failed, "" if it passed."""
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            kind_of_error = found.get("error_type") or found.get("type") or kind
            text = found.get("error_msg") or found.get("message") or found.text or ""
            return f"{kind_of_error}: {text}".strip()
    return ""


def cycles_of(cases: Iterable[ElementTree.Element]) -> int:
    """Return the clock cycles that tests of a report took.

    A test starts the bench at the next cycle: only whole ones count, so that the number is the same
    behind another test, which may have ended within a cycle.
    """
    spans = map(span_of, cases)
    return sum(stop // CLOCK_NS + -start // CLOCK_NS for start, stop in spans)


def span_of(case: ElementTree.Element) -> tuple[int, int]:
    """Return the simulated time at the start and at the stop of a test of a report, in ns."""
    return _time(case, "start"), _time(case, "stop")


def _time(case: ElementTree.Element, what: str) -> int:
    """Return the simulated time at the start or stop of a test, 0 if the report lacks it."""
    found = case.find(f".//property[@name='sim_time_{what}']")
    return 0 if found is None else int(float(found.get("value", "0")))


def _tail(log: Path, lines: int = 25) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


def simulator_error(log: Path) -> str:
    """Return the first error of the simulator itself, such as a failed assertion, or ""."""
    with log.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if "%Error" in line or line.startswith("tb: "):
                return line.strip()
    return ""


def command(job: Job, binary: Path, folder: Path, power_up: PowerUp | None = None) -> list[str]:
    """Return the command that simulates a job in `folder`, by default from its first state."""
    return [
        str(binary),
        f"+run_dir={folder}",
        f"+array_dim={job.configuration.chip.array_dim}",
        f"+scratch_bytes={job.configuration.chip.scratch_bytes}",
        f"+cop_sources={job.configuration.chip.cop_sources}",
        *(["+full=1"] if job.full else []),
        *([f"+hostile={job.hostile}"] if job.hostile else []),
        *([f"+memory={job.memory}"] if job.memory else []),
        *([f"+keep={job.keep}"] if job.keep else []),
        *(power_up or job.power_ups[0]).arguments,
        *(f"+{argument}" for argument in job.plusargs),
    ]


def launch(job: Job, power_up: PowerUp | None = None) -> subprocess.Popen[bytes]:
    """Start the simulator in a prepared folder, in a process group of its own."""
    arguments = command(job, job.binary or job.configuration.binary, job.folder, power_up)
    if job.waves is not None:
        arguments += ["--trace", "--trace-file", str(job.waves)]
        if job.window is not None:
            first, last = job.window
            arguments += [f"+wave_from={first * CLOCK_NS}", f"+wave_to={last * CLOCK_NS}"]
    with (job.folder / LOG).open("wb") as file:
        return processes.start(arguments, job.folder, _environment(job), file)


def outcome(job: Job, status: int | str, seconds: float) -> TestResult:
    """Say how a run has ended whose simulator ended with `status`.

    Raises:
        OSError: it failed, and its folder has no room left, which is reason enough.
    """
    log = job.folder / LOG
    cases = cases_of(job.folder)
    reason = next(filter(None, map(reason_of, cases)), "")
    message = reason
    stopped = simulator_error(log)
    if stopped:
        message = f"the simulator stopped: {stopped}"
    elif not cases:
        message = f"the simulator ended ({status}) before any test had run:\n{_tail(log)}"
    elif not reason and status != 0:
        message = f"the test passed but the simulator ended with {status}:\n{_tail(log)}"
    if message:
        if build_folder.is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(job.folder))
        failure.save(job.folder, failure.of_run(job.folder, log, job.test.name, message))
    return TestResult(job, not message, message, printed(job), seconds, cycles_of(cases))


def printed(job: Job) -> str:
    """Return what a test has left to print."""
    report = job.folder / f"{job.test.name}.report.txt"
    return report.read_text(encoding="utf-8") if report.exists() else ""


def discard_images(job: Job) -> None:
    """Remove the images and logs of a run, tens of megabytes; what it printed and covered stays."""
    for path in job.folder.glob("*.bin"):
        path.unlink()


def run(job: Job) -> TestResult:
    """Run one test, from each of its power-up states until one fails, and say how it ended.

    A run that passed in the usual place leaves no images: those of all tests would fill a disk. In
    a place of its own they stay for who chose it.
    """
    started = time.monotonic()
    for power_up in job.power_ups:
        result = _simulate(job, power_up)
        if not result.passed:
            break
    if result.passed and job.place is None:
        discard_images(job)
    seconds = time.monotonic() - started
    told = f"from {power_up}: {result.message}" if job.test.power_ups else result.message
    return replace(result, message="" if result.passed else told, seconds=seconds)


def _simulate(job: Job, power_up: PowerUp) -> TestResult:
    """Run one simulation and say how it ended."""
    started = time.monotonic()
    status = simulate(job, power_up)
    return outcome(job, status, time.monotonic() - started)


def simulate(job: Job, power_up: PowerUp) -> int | str:
    """Run one simulation in an empty folder and return its exit status, or why there is none."""
    prepare(job)
    return processes.wait(launch(job, power_up), job.limit_s, job.processor_s)


def run_all(
    jobs: Sequence[Job], workers: int, on_result: Callable[[TestResult], None] | None = None
) -> list[TestResult]:
    """Run `jobs`, at most `workers` at a time; return the results in the order of the jobs."""

    def one(job: Job) -> TestResult:
        result = run(job)
        if on_result is not None:
            on_result(result)
        return result

    return parallel.in_order([partial(one, job) for job in jobs], workers)
