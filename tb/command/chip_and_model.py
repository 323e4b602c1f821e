# SPDX-License-Identifier: Apache-2.0
"""The chip and its model as a host sees them, side by side, as a bus of the driver."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import IntEnum

import numpy as np

from golden.command.model import CYCLE_ADDRESSES, ModelBus
from spec.regs import (
    CHIP_BASE,
    CHIP_FIELDS,
    CMD_BASE,
    CMD_FIELDS,
    COP_BASE,
    COP_FIELDS,
    SEQ_BASE,
    SEQ_FIELDS,
    ChipReg,
    CmdReg,
    CopReg,
    RegField,
    SeqReg,
)
from tb.bench.host import RtlBus
from tb.bench.scoreboard import MismatchError
from tb.command.faulty_memory import ModelMemory

_REMEMBERED = 14


_WINDOWS: tuple[tuple[int, type[IntEnum], Mapping[str, RegField]], ...] = (
    (CMD_BASE, CmdReg, CMD_FIELDS),
    (SEQ_BASE, SeqReg, SEQ_FIELDS),
    (COP_BASE, CopReg, COP_FIELDS),
    (CHIP_BASE, ChipReg, CHIP_FIELDS),
)
_NAMES = {base + each: each.name for base, registers, _ in _WINDOWS for each in registers}
"""Of all registers, by address."""


def _name(address: int) -> str:
    return f"{_NAMES[address]} ({address:#05x})" if address in _NAMES else f"{address:#05x}"


def _cycle_mask(address: int) -> int:
    """Return the bits of a register that count cycles."""
    if address == CMD_BASE + CmdReg.DEBUG:
        return CMD_FIELDS["DEBUG_BUSY_COUNT"].mask
    return 0xFFFF_FFFF * (address in CYCLE_ADDRESSES)


def _differing(address: int, expected: int, actual: int) -> str:
    """Return the fields of a register that differ."""
    shown = []
    for base, _, fields in _WINDOWS:
        for name, field in fields.items():
            was, is_now = field.get(expected), field.get(actual)
            if base + field.register == address and was != is_now:
                short = name.removeprefix(f"{_NAMES[address]}_")
                shown.append(f"{short} expected {was:#x}, actual {is_now:#x}")
    return "; ".join(shown)


class PairBus:
    """Chip and model side by side: both get every write, every read must agree.

    The model finishes everything within the write that starts it. So what is written while the
    chip is busy, and must have another effect than on an idle one, goes to `rtl` and `model` one
    by one.

    Attributes:
        rtl, model: the two.
        memory: the model's memory.
        records: where completion records lie; their cycles are not compared.
    """

    def __init__(self, rtl: RtlBus, model: ModelBus, memory: ModelMemory) -> None:
        self.rtl = rtl
        self.model = model
        self.memory = memory
        self.records: list[range] = []
        self._undefined: list[tuple[int, int]] = []
        self._history: deque[str] = deque(maxlen=_REMEMBERED)

    def note(self, text: str) -> None:
        """Remember something for the message of a mismatch."""
        self._history.append(text)

    def mismatch(self, text: str) -> MismatchError:
        """Return an error that tells what happened last."""
        cycle = int(self.rtl.dut.cycle.value)
        happened = "".join(f"\n    {line}" for line in self._history)
        return MismatchError(f"{text} (cycle {cycle}); last accesses:{happened}")

    def _check(self, address: int, expected: int, actual: int) -> None:
        """Compare what model and chip read from a register.

        Raises:
            MismatchError: names register and fields.
        """
        known = ~_cycle_mask(address)
        if (expected ^ actual) & known:
            fields = _differing(address, expected & known, actual & known)
            raise self.mismatch(
                f"{_name(address)}: expected {expected:#010x}, actual {actual:#010x}: {fields}"
            )

    async def read32(self, address: int) -> int:
        """Return a register of the chip, which must agree with the model's."""
        actual = await self._same(address)
        self.note(f"read  {_name(address)} {actual:#010x}")
        return actual

    async def _same(self, address: int) -> int:
        """Return a register in which chip and model agree."""
        actual = await self.rtl.read32(address)
        self._check(address, await self.model.read32(address), actual)
        return actual

    async def write32(self, address: int, value: int) -> None:
        """Write a register of both."""
        self.note(f"write {_name(address)} {value:#010x}")
        await self.model.write32(address, value)
        await self.rtl.write32(address, value)

    async def wait_interrupt(self) -> None:
        """Sleep until the chip's interrupt; the model's line must be high as well."""
        await self.rtl.wait_interrupt()
        self.note("interrupt")
        if not await self.model_line():
            raise self.mismatch("interrupt line: expected 0, actual 1")

    async def model_line(self) -> int:
        """Return the model's interrupt line."""
        status = await self.model.read32(CHIP_BASE + ChipReg.IRQ_STATUS)
        enable = await self.model.read32(CHIP_BASE + ChipReg.IRQ_ENABLE)
        return int(status & enable != 0)

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of the chip's memory, which must agree with the model's."""
        actual, expected = self.rtl.read_memory(address, size), self._expected(address, size)
        if actual != expected:
            raise self.mismatch(
                f"memory {address:#x}: expected {expected.hex()}, actual {actual.hex()}"
            )
        return actual

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into both memories."""
        self.rtl.write_memory(address, data)
        self.model.write_memory(address, data)

    def _expected(self, address: int, size: int) -> bytes:
        return self.model.read_memory(address, size)

    async def compare(self) -> None:
        """Compare all registers of the command port, the scratchpad, line and memory.

        Raises:
            MismatchError: the first difference.
        """
        for address in _read_back():
            await self._same(address)
        await self.compare_scratch()
        expected, line = await self.model_line(), int(self.rtl.dut.irq.value)
        if line != expected:
            raise self.mismatch(f"interrupt line: expected {expected}, actual {line}")
        self.compare_memory()

    async def compare_scratch(self) -> None:
        """Compare the scratchpad; SCRATCH_PAGE keeps its value.

        Raises:
            MismatchError: the first word that differs.
        """
        page = await self._same(CMD_BASE + CmdReg.SCRATCH_PAGE)
        scratch_bytes = await self._same(CMD_BASE + CmdReg.CMD_CONFIG)
        for other in range(scratch_bytes // 64):
            if scratch_bytes > 64:
                await self.write32(CMD_BASE + CmdReg.SCRATCH_PAGE, other)
            for word in range(16):
                await self._same(CMD_BASE + CmdReg.SCRATCH0 + 4 * word)
        if scratch_bytes > 64:
            await self.write32(CMD_BASE + CmdReg.SCRATCH_PAGE, page)

    def adopt_undefined(self, *, late: bool) -> None:
        """Let the model have what failed writebacks and records have left in the chip's memory.

        Args:
            late: the memory may still come to write them, so do the same next time.
        """
        self._undefined += self.model.port.undefined
        self.model.port.undefined.clear()
        for address, size in self._undefined:
            inside = max(0, min(size, self.memory.data.size - address))
            if inside:
                self.model.write_memory(address, self.rtl.read_memory(address, inside))
        if not late:
            self._undefined.clear()

    def compare_memory(self) -> None:
        """Compare the whole memory, but for the cycles in completion records.

        Raises:
            MismatchError: the first difference.
        """
        expected, actual = self.memory.data, self.rtl.memory.data
        if np.array_equal(expected, actual):
            return
        wrong = np.flatnonzero(expected != actual)
        for area in self.records:
            inside = (wrong >= area.start) & (wrong < area.stop)
            wrong = wrong[~(inside & (wrong % 16 >= 12))]
        if wrong.size:
            first = int(wrong[0])
            raise self.mismatch(
                f"memory differs in {wrong.size} bytes, first at {first:#x}: expected "
                f"{self._expected(first & -16, 16).hex(' ', 4)}, actual "
                f"{self.rtl.read_memory(first & -16, 16).hex(' ', 4)} from {first & -16:#x}"
            )


def _read_back() -> Iterator[int]:
    """Yield the addresses of the command port's registers but for the scratchpad."""
    scratch = range(CmdReg.SCRATCH0, CmdReg.SCRATCH15 + 4)
    yield from (CMD_BASE + register for register in CmdReg if register not in scratch)
    yield CHIP_BASE + ChipReg.IRQ_STATUS
