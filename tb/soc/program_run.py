# SPDX-License-Identifier: Apache-2.0
"""Runs a program on the machine while the caller watches what it prints."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from npu.commands import files
from npu.firmware.plan import IMAGE, ROOM
from spec.paths import BUILD
from tb.bench.memory import Memory
from tb.run import processes, runner
from tb.run.machine import MachineConfiguration
from tb.run.registry import MEMORY_MIB, BenchTest
from tb.soc import machine_job as inside
from tb.soc.elf_file import Elf

UART, INPUT = "uart.txt", "uart_in.bin"
"""Output and input of the UART in the run's folder."""
PROFILE = "profile.txt"
"""Lines of an address, how often its instruction has retired, and cycles."""
FOLDER = BUILD / "firmware"
"""Where programs are compiled to."""
LIMIT = 100_000_000
"""Cycles after which a run is over unless the caller says otherwise."""
POLL_S = 0.05
_PAGE = 1 << 12


class MachineError(RuntimeError):
    """A program that did not end, or a simulation that failed."""


@dataclass(frozen=True)
class MachineKnobs:
    """How the machine behaves.

    Attributes:
        latency: of the memory at the chip's port, in cycles.
        memory_gap, core_gap: percent of the cycles in which the memory, and what is behind the
            core's buses, does not answer.
        seed: of the gaps.
        limit: cycles after which the run is over.
    """

    latency: int = 40
    memory_gap: int = 0
    core_gap: int = 0
    seed: int = 1
    limit: int = LIMIT


@dataclass(frozen=True)
class Ran:
    """What a program did.

    Attributes:
        code: that it ended with, 0 to 255.
        output: what it printed.
        times: cycle of each byte of the output, counted from the reset.
        cycles: from the reset to the end.
        start_cycle: of the last start of the chip by a register write.
        entries: into Python between reset and end.
        seconds: processor time of the simulation.
        memory: at the end; in the run's folder unless that is gone.
        elf: the program.
        retired: how often the instruction at each address has retired, where that is counted.
        cycles_at: cycles by address; each is that of the instruction which retires next.
    """

    code: int
    output: bytes
    times: list[int] = field(repr=False)
    cycles: int
    start_cycle: int
    entries: int
    seconds: float
    memory: Memory = field(repr=False)
    elf: Elf = field(repr=False)
    retired: Counter[int] = field(repr=False)
    cycles_at: Counter[int] = field(repr=False)


def image_of(path: Path) -> bytes:
    """Return the bytes of an image.

    Raises:
        FileError: it cannot be read, or does not fit the memory behind the programs.
    """
    data = files.read_bytes(path)
    if not 1 <= len(data) <= ROOM - IMAGE:
        raise files.FileError(f"{path}: given {len(data)} bytes, allowed 1 to {ROOM - IMAGE}")
    return data


def run_program(
    configuration: MachineConfiguration,
    elf: Elf,
    *,
    name: str,
    image: bytes = b"",
    text: bytes = b"",
    memory_end: int = 0,
    knobs: MachineKnobs | None = None,
    on_output: Callable[[bytes], None] | None = None,
    keep: bool = False,
    profile: bool = False,
) -> Ran:
    """Run a program from reset to exit.

    Args:
        configuration: a built model of the machine.
        elf: the program.
        name: of the run's folder.
        image: bytes from address IMAGE on.
        text: what the program reads from the UART.
        memory_end: first address that nobody uses.
        knobs: how the machine behaves.
        on_output: told what the program prints as it comes.
        keep: whether the run's folder stays after success.
        profile: whether instructions and their cycles are counted; not on CVA6.

    Raises:
        MachineError: no exit within the limit; says where the core was. Or the simulation failed.
    """
    knobs = knobs or MachineKnobs()
    size = max(MEMORY_MIB << 20, elf.end, IMAGE + len(image), memory_end)
    size = -(-size // _PAGE) * _PAGE
    test = BenchTest(inside.__name__, inside.run_program.name, "runs a program", size)
    folder = BUILD / "runs" / configuration.folder.name / name
    plusargs = ("profile=1",) if profile else ()
    job = runner.Job(test, configuration, place=folder, plusargs=plusargs)
    runner.prepare(job)
    memory = Memory.map(folder / "memory.bin")
    for address, data, _ in elf.segments:
        memory.stage(address, data)
    memory.stage(IMAGE, image)
    (folder / INPUT).write_bytes(text)
    (folder / inside.REQUEST).write_text(json.dumps({"knobs": asdict(knobs)}), encoding="utf-8")
    started = time.monotonic()
    process = runner.launch(job)
    uart = _Uart(folder / UART)
    try:
        while True:
            over = process.poll() is not None
            new = bytes(uart.more())
            if new and on_output is not None:
                on_output(new)
            if over:
                break
            time.sleep(POLL_S)
    finally:
        processes.kill(process)
    outcome = runner.outcome(job, process.returncode, time.monotonic() - started)
    if not outcome.passed:
        raise MachineError(f"{outcome.message} (log: {folder / runner.LOG})")
    result = json.loads((folder / inside.RESULT).read_text(encoding="utf-8"))
    if not result["exited"]:
        asleep = ", asleep" if result["sleeping"] else ""
        raise MachineError(
            f"{elf.path}: no exit within {knobs.limit:,} cycles: the core was at "
            f"{elf.place(result['pc'])}{asleep}"
        )
    retired, cycles_at = _counted(folder / PROFILE) if profile else (Counter(), Counter())
    kept = memory if keep else Memory(np.array(memory.data))
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return Ran(
        result["code"] & 0xFF,
        bytes(uart.output),
        uart.times,
        result["cycles"],
        result["start_cycle"],
        result["entries"],
        result["seconds"],
        kept,
        elf,
        retired,
        cycles_at,
    )


def _counted(path: Path) -> tuple[Counter[int], Counter[int]]:
    """Return how often the instruction at each address has retired, and its cycles."""
    retired: Counter[int] = Counter()
    cycles: Counter[int] = Counter()
    for line in path.read_text(encoding="ascii").splitlines():
        address, count, time_spent = map(int, line.split())
        retired[address] = count
        cycles[address] = time_spent
    return retired, cycles


class _Uart:
    """What the program has printed so far, from the lines of cycle and byte."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.output = bytearray()
        self.times: list[int] = []

    def more(self) -> Iterator[int]:
        """Yield the bytes that are new."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        for line in data.splitlines():
            cycle, byte = map(int, line.split())
            self.times.append(cycle)
            self.output.append(byte)
            yield byte
