# SPDX-License-Identifier: Apache-2.0
"""A chip as its host drives it: what it is, how it is set up, and programs by register.

Everything goes through a `Bus`, so that the same calls run on the RTL, on the reference and on
hardware. `npu.driver.command` drives the command port of the same chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from npu.driver.bus import Bus, RegisterAccess, access
from npu.driver.counters import REGISTERS, ChipCounters
from npu.driver.errors import WORD, DeviceError, ProgramFailed, whole
from npu.driver.identity import ChipInfo, chip_info
from spec.isa import Engine, ErrorCode, ErrorReport
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    SeqReg,
    StartState,
)

PAGE = 1 << 12
"""Regions begin and end at multiples of this many bytes."""
REGIONS = 8
INTERRUPTS = CHIP_FIELDS["IRQ_ENABLE_SEQ_DONE"].mask | CHIP_FIELDS["IRQ_ENABLE_CMD"].mask
_ENDED = CHIP_FIELDS["IRQ_STATUS_SEQ_DONE"].mask
_STATUS_FIELDS = ("DONE", "BUSY", "ERROR", "ERROR_CODE", "ERROR_ENGINE")
_REPORT = (SeqReg.STATUS, SeqReg.ERROR_INSTR, SeqReg.ERROR_ADDR)


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """What programs and descriptors may do in a part of memory.

    Attributes:
        first: address of its first byte, a multiple of PAGE.
        size: bytes, a multiple of PAGE.
        read, write: whether they may.
    """

    first: int
    size: int
    read: bool
    write: bool


@dataclass(frozen=True, slots=True)
class LastState:
    """What the current or last program has left in its registers.

    Attributes:
        out_count: tokens written, OUTCNT.
        token, pos: TOKEN and POS.
    """

    out_count: int
    token: int
    pos: int


@dataclass(frozen=True)
class Finish:
    """How a program ended.

    Attributes:
        error: None without one.
        last: the machine's registers at the end.
        counters: the performance counters.
    """

    error: ErrorReport | None
    last: LastState
    counters: ChipCounters


def start_accesses(state: StartState) -> list[RegisterAccess]:
    """Return the register writes that start a program: its state, the interrupt, CTRL.START."""
    return [
        *(RegisterAccess(SEQ_BASE + register, value) for register, value in state.writes()),
        RegisterAccess(CHIP_BASE + ChipReg.IRQ_STATUS, _ENDED),
        RegisterAccess(CHIP_BASE + ChipReg.IRQ_ENABLE, INTERRUPTS),
        RegisterAccess(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask),
    ]


def region_accesses(
    index: int, region: MemoryRegion | None, *, lock: bool = False
) -> list[RegisterAccess]:
    """Return the register writes that set a region of memory; None closes it."""
    region = region or MemoryRegion(0, PAGE, read=False, write=False)
    values = {
        "BASE": region.first,
        "LIMIT": region.first + region.size - PAGE,
        "CTRL": CHIP_FIELDS[f"REGION{index}_CTRL_READ"].put(region.read)
        | CHIP_FIELDS[f"REGION{index}_CTRL_WRITE"].put(region.write)
        | CHIP_FIELDS[f"REGION{index}_CTRL_LOCK"].put(lock),
    }
    return [
        RegisterAccess(CHIP_BASE + ChipReg[f"REGION{index}_{name}"], value)
        for name, value in values.items()
    ]


def _report(status: int, instr: int, address: int) -> ErrorReport | None:
    """Return the error that STATUS, ERROR_INSTR and ERROR_ADDR show, None if there is none."""
    if not SEQ_FIELDS["STATUS_ERROR"].get(status):
        return None
    code = ErrorCode(SEQ_FIELDS["STATUS_ERROR_CODE"].get(status))
    engine = Engine(SEQ_FIELDS["STATUS_ERROR_ENGINE"].get(status))
    return ErrorReport(code, engine, instr, address)


def _state(status: int) -> dict[str, int]:
    return {name: SEQ_FIELDS[f"STATUS_{name}"].get(status) for name in _STATUS_FIELDS}


class Chip:
    """A chip behind a bus. Made by `connect`.

    Attributes:
        bus: the way to the chip.
        info: what it says about itself.
    """

    def __init__(self, bus: Bus, info: ChipInfo) -> None:
        self.bus = bus
        self.info = info

    @classmethod
    async def connect(cls, bus: Bus) -> Self:
        """Return the chip behind a bus; it is only read.

        Raises:
            RequestError: another chip, register map or instruction set.
        """
        return cls(bus, await chip_info(bus))

    async def read_seq(self, register: SeqReg) -> int:
        """Return a register of the sequencer's window."""
        return await self.bus.read32(SEQ_BASE + register)

    async def write_seq(self, register: SeqReg, value: int) -> None:
        """Write a register of the sequencer's window."""
        await self.bus.write32(SEQ_BASE + register, value)

    async def read_chip(self, register: ChipReg) -> int:
        """Return a register of the chip's window."""
        return await self.bus.read32(CHIP_BASE + register)

    async def write_chip(self, register: ChipReg, value: int) -> None:
        """Write a register of the chip's window."""
        await self.bus.write32(CHIP_BASE + register, value)

    # ---------------------------------------------------------------------------------------------
    # Setting up
    # ---------------------------------------------------------------------------------------------
    async def set_region(
        self, index: int, region: MemoryRegion | None, *, lock: bool = False
    ) -> None:
        """Set a region of memory; None closes it. What no region permits, the chip refuses.

        Args:
            index: 0 to 7; after a reset region 0 is open and the others are closed.
            region: what may be done where.
            lock: it stays so until the next reset.

        Raises:
            RequestError: an argument is outside its range.
        """
        whole("set_region.index", index, 0, REGIONS - 1)
        if region is not None:
            whole("MemoryRegion.first", region.first, 0, WORD + 1 - PAGE, PAGE)
            whole("MemoryRegion.size", region.size, PAGE, WORD + 1 - region.first, PAGE)
        await access(self.bus, region_accesses(index, region, lock=lock))

    async def protect(self, regions: Sequence[MemoryRegion]) -> None:
        """Set all regions; those not given are closed."""
        whole("protect.regions", len(regions), 0, REGIONS)
        for index in range(REGIONS):
            await self.set_region(index, regions[index] if index < len(regions) else None)

    async def set_timeout(self, cycles: int) -> None:
        """Bound each wait of a program for the memory, in cycles; 0 waits for ever."""
        most = (1 << CHIP_FIELDS["MEM_TIMEOUT_CYCLES"].width) - 1
        await self.write_chip(
            ChipReg.MEM_TIMEOUT, whole("Chip.set_timeout.cycles", cycles, 0, most)
        )

    async def set_stream_limit(self, bursts: int) -> None:
        """Let the parameter stream have so many bursts under way; 0 leaves it to the chip."""
        most = (1 << SEQ_FIELDS["STREAM_LIMIT_BURSTS"].width) - 1
        await self.write_seq(SeqReg.STREAM_LIMIT, whole("set_stream_limit.bursts", bursts, 0, most))

    async def enable_interrupts(self, *, program: bool, command: bool) -> None:
        """Say what raises the interrupt line: the end of a program, the command port."""
        enabled = CHIP_FIELDS["IRQ_ENABLE_SEQ_DONE"].put(program)
        enabled |= CHIP_FIELDS["IRQ_ENABLE_CMD"].put(command)
        await self.write_chip(ChipReg.IRQ_ENABLE, enabled)

    def stage(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put pieces of (address, bytes) into memory, such as `Placement.pieces`."""
        for address, data in pieces:
            self.bus.write_memory(address, data)

    # ---------------------------------------------------------------------------------------------
    # Programs
    # ---------------------------------------------------------------------------------------------
    async def start(self, state: StartState) -> None:
        """Write what a program needs, clear and enable the interrupt, and start."""
        await access(self.bus, start_accesses(state))

    async def finish(self) -> Finish:
        """Acknowledge the end of a program and return how it ended.

        Raises:
            DeviceError: the chip is busy, or neither done nor in error.
        """
        places = (*_REPORT, SeqReg.OUTCNT, SeqReg.LAST_TOKEN, SeqReg.LAST_POS)
        _, *values = await access(
            self.bus,
            [
                RegisterAccess(CHIP_BASE + ChipReg.IRQ_STATUS, _ENDED),
                *(RegisterAccess(SEQ_BASE + place) for place in places),
            ],
        )
        self._check_ended(values[0])
        return Finish(_report(*values[:3]), LastState(*values[3:]), await self.counters())

    async def run(self, state: StartState) -> Finish:
        """Start a program, wait for its end, and return how it ended, with or without an error.

        Raises:
            DeviceError: no interrupt came, or it did not mean the end of the program.
        """
        await self.start(state)
        await self.bus.wait_interrupt()
        return await self.finish()

    async def execute(self, state: StartState) -> Finish:
        """Run a program that must end without an error.

        Raises:
            ProgramFailed: with code, engine, instruction and address.
            DeviceError: as `run`.
        """
        finish = await self.run(state)
        if finish.error is not None:
            raise ProgramFailed(finish.error)
        return finish

    async def abort(self) -> None:
        """End the running program with ABORTED; without effect on an idle chip."""
        await self.write_seq(SeqReg.CTRL, SEQ_FIELDS["CTRL_ABORT"].mask)

    async def soft_reset(self) -> None:
        """Stop everything and report nothing; the registers stay. Busy until the bus is quiet."""
        await self.write_seq(SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)

    async def clear_error(self) -> None:
        """Clear the report of an error."""
        await self.write_seq(SeqReg.STATUS, SEQ_FIELDS["STATUS_ERROR"].mask)

    # ---------------------------------------------------------------------------------------------
    # State
    # ---------------------------------------------------------------------------------------------
    @staticmethod
    def _check_ended(status: int) -> None:
        now = _state(status)
        if now["BUSY"] or not (now["DONE"] or now["ERROR"]):
            raise DeviceError(f"STATUS is {now} after the interrupt, expected the end of a program")

    async def state(self) -> dict[str, int]:
        """Return the fields of STATUS by name."""
        return _state(await self.read_seq(SeqReg.STATUS))

    async def report(self) -> ErrorReport | None:
        """Return the error that the status registers show, None if there is none; busy or not."""
        return _report(
            *await access(self.bus, [RegisterAccess(SEQ_BASE + place) for place in _REPORT])
        )

    async def status(self) -> ErrorReport | None:
        """Return the error of a program that has ended, None if there is none.

        Raises:
            DeviceError: the chip is busy, or neither done nor in error.
        """
        values = await access(self.bus, [RegisterAccess(SEQ_BASE + place) for place in _REPORT])
        self._check_ended(values[0])
        return _report(*values)

    async def last(self) -> LastState:
        """Return what the current or last program has left in its registers."""
        registers = (SeqReg.OUTCNT, SeqReg.LAST_TOKEN, SeqReg.LAST_POS)
        return LastState(
            *await access(self.bus, [RegisterAccess(SEQ_BASE + one) for one in registers])
        )

    async def counters(self) -> ChipCounters:
        """Return the performance counters; the chip must be idle."""
        values = await access(self.bus, [RegisterAccess(CHIP_BASE + one) for one in REGISTERS])
        return ChipCounters.of_registers(dict(zip(REGISTERS, values, strict=True)))

    async def clear_counters(self) -> None:
        """Clear the performance counters."""
        await self.write_chip(ChipReg.PERF_CTRL, CHIP_FIELDS["PERF_CTRL_CLEAR"].mask)
