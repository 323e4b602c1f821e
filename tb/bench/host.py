# SPDX-License-Identifier: Apache-2.0
"""The RTL as a bus of the driver, and the driver's chip with the checks of the bench."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, First, Lock, RisingEdge, Timer, ValueChange

from npu.driver.bus import RegisterAccess
from npu.driver.chip import Chip, Finish
from npu.driver.counters import ChipCounters
from npu.driver.errors import BusError, DeviceError
from npu.driver.identity import ChipInfo
from spec.isa import Engine, ErrorReport
from spec.regs import StartState
from tb.bench import accesses, callbacks
from tb.bench.accesses import PortAccess
from tb.bench.counters import compare_counters, monitored
from tb.bench.dut import CLOCK_NS, Dut
from tb.bench.memory import Memory
from tb.bench.memory_kinds import MemoryKind

ACCESS_LIMIT = 100
"""Cycles within which a register access must be answered."""
PATIENCE = 20_000
"""Cycles until an interrupt must have come unless a test says otherwise."""


HOSTILE_PATIENCE = 25
"""How many times as long everything may take on a hostile memory (the plusarg `hostile`)."""


DRAM_PATIENCE = 5
"""How many times as long on a DRAM (the plusarg `memory`)."""


def hostile_seed() -> int:
    """Return the seed of the hostile memory that all tests of this run are on, 0 for none."""
    return int(str(cocotb.plusargs.get("hostile", 0)))


def wanted_memory() -> MemoryKind:
    """Return the memory that all tests of this run are on which ask for none."""
    return MemoryKind[str(cocotb.plusargs.get("memory", "fixed")).upper()]


def memory_words() -> str:
    """Return what a table says of the memory of a test that asks for none."""
    kind = wanted_memory()
    return f"memory {kind.name.lower()}" if kind else "memory latency 40"


def _patient(cycles: int) -> int:
    if hostile_seed():
        return cycles * HOSTILE_PATIENCE
    return cycles * (DRAM_PATIENCE if wanted_memory() else 1)


class Waited(NamedTuple):
    """What a wait for the interrupt cost: processor seconds, and how often Python woke."""

    seconds: float
    entries: int


class RtlBus:
    """The register port, the interrupt line and the memory of `tb_top`, as the driver's bus.

    Attributes:
        dut: the bench top.
        memory: the memory behind the chip.
        limit: cycles until an interrupt must have come.
        waited: of the last wait for the interrupt.
    """

    def __init__(self, dut: Dut, memory: Memory, limit: int = PATIENCE) -> None:
        self.dut = dut
        self.memory = memory
        self.limit = limit
        self.waited = Waited(0.0, 0)
        path = Path(str(cocotb.plusargs["run_dir"])) / accesses.FILE
        self._list = np.memmap(path, dtype=accesses.RECORD, mode="r+")
        self._port = Lock()

    async def access(self, several: Sequence[RegisterAccess]) -> list[int]:
        """Make accesses one after the other, without Python between them; the first error ends it.

        Returns:
            the value of the register at each read, the given one at each write.

        Raises:
            BusError: the port answered with an error.
            DeviceError: no answer, or a reset while it was under way.
        """
        async with self._port:
            await self._play(several)
            for one, answer in zip(several, self._list[: len(several)], strict=True):
                resp = int(answer["resp"])
                if resp == accesses.NO_ANSWER:
                    raise DeviceError(f"{one}: a reset came before the answer")
                if resp:
                    raise BusError(f"{one}: {accesses.RESP[resp]}")
            return [int(value) for value in self._list["data"][: len(several)]]

    async def _play(self, several: Sequence[RegisterAccess]) -> None:
        dut, count = self.dut, len(several)
        self._list[:count] = accesses.records(several)
        played = dut.access_played
        dut.access_count.value = count
        dut.access_play.value = 1 - int(played.value)
        limit = _patient(count * ACCESS_LIMIT)
        patience = Timer(limit * CLOCK_NS, "ns")
        if await First(ValueChange(played), patience) is patience:
            stuck = several[int(dut.access_index.value)]
            raise DeviceError(f"{stuck}: no answer within {limit} cycles")

    async def read32(self, address: int) -> int:
        """Return the register at byte `address`.

        Raises:
            BusError: the port answered with an error.
        """
        (value,) = await self.access([RegisterAccess(address)])
        return value

    async def write32(self, address: int, value: int, strobe: int = 0xF) -> None:
        """Write `value` to the register at byte `address`; `strobe` has one bit per byte.

        Raises:
            BusError: the port answered with an error.
        """
        await self.access([PortAccess(address, value, strobe)])

    async def wait_interrupt(self, limit: int | None = None) -> None:
        """Sleep until the interrupt line is high.

        Args:
            limit: cycles until it must be, by default those of the bus.

        Raises:
            DeviceError: no interrupt within `limit` cycles; says where the chip stands.
        """
        limit = _patient(self.limit if limit is None else limit)
        started, entries = time.process_time(), callbacks.count()
        if int(self.dut.irq.value):
            # A write that lowers the line has done so two cycles after its response.
            await ClockCycles(self.dut.clk, 2)
        if not int(self.dut.irq.value):
            await First(RisingEdge(self.dut.irq), Timer(limit * CLOCK_NS, "ns"))
        if not int(self.dut.irq.value):
            raise DeviceError(f"no interrupt within {limit} cycles: {self.where()}")
        self.waited = Waited(time.process_time() - started, callbacks.count() - entries)

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return self.memory.read(address, size)

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self.memory.stage(address, data)

    def where(self) -> str:
        """Say where the chip stands: the last dispatched word and what each engine works on."""
        dut = self.dut
        busy, stall = int(dut.engine_busy.value), int(dut.engine_stall.value)
        indices = int(dut.engine_instr.value)
        parts = [
            f"cycle {int(dut.cycle.value)}",
            f"last dispatched {int(dut.last_dispatched.value)}",
        ]
        for engine in range(6):
            if busy >> engine & 1:
                state = "stalled" if stall >> engine & 1 else "busy"
                at = indices >> 32 * engine & 0xFFFF_FFFF
                parts.append(f"{Engine(engine).name.lower()} {state} on {at}")
        if int(dut.barrier_wait.value):
            parts.append("a barrier waits")
        return ", ".join(parts)


@dataclass(frozen=True)
class TimedFinish(Finish):
    """How a program ended, and what simulating it cost.

    Attributes:
        waited: from the start to the interrupt.
    """

    waited: Waited


class RtlChip(Chip):
    """The driver's chip on the RTL; whatever it counts is compared with the bench's monitors.

    Attributes:
        bus: the way to the chip.
        finishes: how the programs of `run` have ended.
        on_error: is told of every error that is read.
    """

    bus: RtlBus

    def __init__(self, bus: RtlBus, info: ChipInfo) -> None:
        super().__init__(bus, info)
        self.finishes: list[TimedFinish] = []
        self.on_error: Callable[[ErrorReport], None] = lambda _: None

    async def counters(self) -> ChipCounters:
        """Return the performance counters; the chip must be idle.

        Raises:
            MismatchError: they are not what the bench has counted itself.
        """
        counters = await super().counters()
        compare_counters(monitored(self.bus.dut), counters)
        return counters

    async def finish(self) -> Finish:
        """Return how a program ended; see `Chip.finish`."""
        finish = await super().finish()
        self._tell(finish.error)
        return finish

    async def report(self) -> ErrorReport | None:
        """Return the error that the registers show, busy or not; see `Chip.report`."""
        error = await super().report()
        self._tell(error)
        return error

    async def status(self) -> ErrorReport | None:
        """Return the error of a program that has ended; see `Chip.status`."""
        error = await super().status()
        self._tell(error)
        return error

    def _tell(self, error: ErrorReport | None) -> None:
        if error is not None:
            self.on_error(error)

    async def run(self, state: StartState, limit: int | None = None) -> TimedFinish:
        """Start a program, sleep until its end, acknowledge, and say how it ended.

        Args:
            state: what it starts with.
            limit: cycles until the interrupt must have come, by default those of the bus.
        """
        before = self.bus.limit
        self.bus.limit = before if limit is None else limit
        try:
            finish = await super().run(state)
        finally:
            self.bus.limit = before
        timed = TimedFinish(finish.error, finish.last, finish.counters, self.bus.waited)
        self.finishes.append(timed)
        return timed
