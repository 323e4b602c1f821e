# SPDX-License-Identifier: Apache-2.0
"""Repeats a benchmark without Python: the plain C++ host over the same Verilated library.

The host gets the same memory, the same program and the same seed, so everything it leaves behind
must be equal: memory, SRAM, and every event in the same cycle after the start.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npu.driver.bus import RegisterAccess
from tb.bench import accesses, logs
from tb.benchmarks.measure import START_MEMORY, START_WRITES
from tb.run import build, processes, runner

HOST = Path(__file__).with_name("host.cpp")
MAKEFILE = Path(__file__).with_name("host.mk")


class PlainHostError(RuntimeError):
    """The plain host failed, or the chip did something else under it."""


@dataclass(frozen=True)
class PlainRun:
    """A run under the plain host.

    Attributes:
        cycles: the chip's own count.
        seconds: processor time from start to interrupt.
    """

    cycles: int
    seconds: float


def link(configuration: build.Configuration) -> Path:
    """Return the executable of the host over a built model."""
    return build.link_host(configuration, MAKEFILE, HOST)


def _relative(folder: Path) -> tuple[logs.Records, logs.Records]:
    """Return events and trace of a run, with cycles counted from the start of the program."""
    events = np.fromfile(folder / "events.bin", logs.EVENT)
    trace = np.fromfile(folder / "trace.bin", logs.EVENT)
    (start,) = trace["cycle"][trace["kind"] == logs.START]
    for records in (events, trace):
        records["cycle"] -= start
    return events, trace


def _check_equal(expected: Path, actual: Path) -> None:
    for name in ("memory.bin", "sram.bin"):
        if (expected / name).read_bytes() != (actual / name).read_bytes():
            raise PlainHostError(f"{name} is not what the run under cocotb left")
    for left, right in zip(_relative(expected), _relative(actual), strict=True):
        if not np.array_equal(left, right):
            raise PlainHostError("events happen in other cycles than under cocotb")


def run(host: Path, job: runner.Job, place: Path) -> PlainRun:
    """Repeat a long run that passed under cocotb.

    Raises:
        PlainHostError: the host stopped, or the chip did something else.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copyfile(job.folder / START_MEMORY, place / "memory.bin")
    with (place / "sram.bin").open("wb") as file:
        file.truncate(runner.SRAM_BYTES)
    writes = json.loads((job.folder / START_WRITES).read_text(encoding="utf-8"))
    start = accesses.records([RegisterAccess(address, value) for address, value in writes])
    (place / accesses.FILE).write_bytes(start.tobytes())
    command = [*runner.command(job, host, place), f"+accesses={start.size}"]
    done = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=processes.TIME_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise PlainHostError(f"the plain host ended with {done.returncode}: {done.stderr.strip()}")
    answers = np.fromfile(place / accesses.FILE, accesses.RECORD)["resp"]
    if answers.any():
        first = int(answers.nonzero()[0][0])
        raise PlainHostError(f"write of register {writes[first][0]:#05x}: {answers[first]:#x}")
    _check_equal(job.folder, place)
    cycles, seconds = done.stdout.split()
    return PlainRun(int(cycles), float(seconds))
