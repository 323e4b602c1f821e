# SPDX-License-Identifier: Apache-2.0
"""The descriptor ring: batches of descriptors, started at once, extended while they run."""

from __future__ import annotations

from dataclasses import dataclass

from npu.driver.command.descriptor import (
    ENTRY,
    Command,
    Descriptor,
    ProgramDescriptor,
    Words,
    tile_words,
)
from npu.driver.command.operation import Scalar
from npu.driver.command.port import CommandPort
from npu.driver.command.scalars import signed
from npu.driver.command.status import meaning
from npu.driver.errors import WORD, CommandFailed, RequestError, whole
from spec.isa import Engine, ErrorCode
from spec.regs import CMD_FIELDS, SEQ_BASE, SEQ_FIELDS, CmdOp, CmdReg, RingStatus, SeqReg

PLACES = 8
"""Entries of the ring."""
ROOM = PLACES - 1
"""Entries that can be pending: a full ring would look empty."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A descriptor that has completed.

    Attributes:
        descriptor: what was asked.
        index: ring index of its first entry.
        data: what lay at the destination of its writeback when the result was taken; empty without.
    """

    descriptor: Descriptor
    index: int
    data: bytes

    @property
    def value(self) -> int:
        """RESULT and RESULT_HI of a scalar operation as one number of 64 bits."""
        return int.from_bytes(self.data, "little")

    @property
    def words(self) -> list[int]:
        """The data as signed 32-bit words."""
        words = (
            int.from_bytes(self.data[i : i + 4], "little") for i in range(0, len(self.data), 4)
        )
        return [signed(word) for word in words]


@dataclass(frozen=True, slots=True)
class _Queued:
    descriptor: Descriptor
    index: int
    image: bytes

    @property
    def places(self) -> int:
        return len(self.image) // ENTRY


class CommandBuffer:
    """Descriptors for the ring at `base`. Made by `open`.

    `add` checks and collects, `submit` starts, `wait` returns what has completed; in between,
    `extend` adds to the ring that runs. Indices go around the ring from lap to lap. Tiles without a
    tag that lie like the first one of the batch take one entry and the tile registers, all others
    take two.

    Attributes:
        port: the command port.
        base: address of the ring's 128 bytes, a multiple of 4.
    """

    def __init__(self, port: CommandPort, base: int, index: int) -> None:
        self.port = port
        self.base = base
        self._next = index
        self._added: list[_Queued] = []
        self._running: list[_Queued] = []
        self._completed: list[_Queued] = []
        self._shared: Words | None = None
        self._ternary: bool | None = None
        self._submitted = False
        self._per_entry = False

    @classmethod
    async def open(cls, port: CommandPort, base: int) -> CommandBuffer:
        """Return an empty buffer that goes on where the ring stands; `base` as the attribute."""
        whole("CommandBuffer.base", base, 0, WORD + 1 - PLACES * ENTRY, 4)
        port.check_idle()
        return cls(port, base, await port.read(CmdReg.DESC_TAIL))

    @property
    def index(self) -> int:
        """Ring index of the next descriptor."""
        return self._next

    @property
    def room(self) -> int:
        """Entries that can still be added, as far as the ring's progress is known."""
        return ROOM - sum(entry.places for entry in self._running + self._added)

    def add(self, descriptor: Descriptor) -> int:
        """Take a descriptor into the next batch; return its ring index.

        Raises:
            RequestError: the hardware would refuse it, there is no room, or a batch is under way,
                which `extend` adds to. The buffer stays as it was.
        """
        if self._submitted:
            raise RequestError("add", "a descriptor while the batch runs", "extend, or after wait")
        return self._add(descriptor)

    def _add(self, descriptor: Descriptor) -> int:
        if not isinstance(descriptor, Command | ProgramDescriptor):
            raise RequestError(
                "descriptor", type(descriptor).__name__, "Command or ProgramDescriptor"
            )
        descriptor.check(self.port.scratch_bytes)
        ternary = self._ternary
        operation = descriptor.operation if isinstance(descriptor, Command) else None
        if isinstance(operation, Scalar) and operation.op == CmdOp.DOT16_S2:
            if ternary not in (None, operation.ternary):
                raise RequestError(
                    "DOT16_S2.ternary", operation.ternary, f"{ternary}, as the batch has it"
                )
            ternary = operation.ternary
        shared = self._shared_with(descriptor)
        image = descriptor.image(shared)
        if len(image) // ENTRY > self.room:
            raise RequestError(
                "ring", f"a descriptor of {len(image) // ENTRY} entries", f"{self.room} more"
            )
        entry = _Queued(descriptor, self._next, image)
        self._added.append(entry)
        self._next = (self._next + entry.places) % PLACES
        self._shared, self._ternary = shared, ternary
        return entry.index

    def fits(self, descriptor: Descriptor) -> bool:
        """Return whether there is room for a descriptor, as far as progress is known."""
        return len(descriptor.image(self._shared_with(descriptor))) // ENTRY <= self.room

    def _shared_with(self, descriptor: Descriptor) -> Words | None:
        """Return the tile registers of the batch once `descriptor` is part of it."""
        if self._shared is None and not self._submitted and descriptor.tag is None:
            return tile_words(descriptor)
        return self._shared

    def image(self, index: int) -> bytes:
        """Return the 16 bytes of a place of the ring that was added and has not completed."""
        places = {}
        for entry in self._running + self._added:
            for i in range(entry.places):
                place = (entry.index + i) % PLACES
                places[place] = entry.image[ENTRY * i : ENTRY * (i + 1)]
        if index not in places:
            raise RequestError("image.index", index, f"{sorted(places)}, which hold something")
        return places[index]

    async def submit(self, *, per_entry: bool = False) -> None:
        """Put what was added into memory and start the ring.

        Args:
            per_entry: every descriptor that completes raises the interrupt, for `wait_entry`.

        Raises:
            RequestError: nothing was added, or something runs.
        """
        self.port.check_idle()
        if not self._added:
            raise RequestError("submit", "an empty batch", "at least one descriptor")
        self.port.ring_runs = self._submitted = True
        self._per_entry = per_entry
        self._ternary = bool(self._ternary)
        await self.port.write(CmdReg.DESC_BASE, self.base)
        if self._shared is not None:
            await self.port.write_tile(self._shared)
        await self.port.write(CmdReg.CMD_IRQ, CMD_FIELDS["CMD_IRQ_PER_ENTRY"].put(per_entry))
        await self.port.write(
            CmdReg.CMD_PARAM,
            CMD_FIELDS["CMD_PARAM_DESCRIPTOR"].mask
            | CMD_FIELDS["CMD_PARAM_TERNARY"].put(self._ternary),
        )
        await self._stage()
        await self.port.start()

    async def _stage(self) -> None:
        """Write the entries that were added, then move DESC_HEAD behind them."""
        for entry in self._added:
            for i in range(entry.places):
                place = (entry.index + i) % PLACES
                image = entry.image[ENTRY * i : ENTRY * (i + 1)]
                self.port.bus.write_memory(self.base + ENTRY * place, image)
        self._running += self._added
        self._added = []
        await self.port.write(CmdReg.DESC_HEAD, self._next)

    async def extend(self, *descriptors: Descriptor) -> None:
        """Append to the batch under way; start the ring again if it had stopped already.

        Raises:
            RequestError: no batch is under way, or a descriptor is refused; then none is added.
        """
        self._check_submitted("extend")
        await self._progress()
        start = self._next
        try:
            for descriptor in descriptors:
                self._add(descriptor)
        except RequestError:
            self._added, self._next = [], start
            raise
        await self._stage()
        # Idle now means that the ring ended before it saw the new head, or has done it all.
        status = await self.port.read(CmdReg.CTRL_STATUS)
        stopped = not CMD_FIELDS["CTRL_STATUS_BUSY"].get(status)
        failed = CMD_FIELDS["CTRL_STATUS_ERROR"].get(status)
        if stopped and not failed and await self.port.read(CmdReg.DESC_TAIL) != self._next:
            await self.port.start()

    async def wait(self) -> list[Completed]:
        """Wait until the ring is done; return what has completed since the last wait.

        Raises:
            RequestError: no batch is under way.
            CommandFailed: a descriptor failed. It and those behind it are dropped, and the next
                batch begins in its place; `results` returns those before it.
        """
        self._check_submitted("wait")
        while True:
            status = await self._interrupt()
            if CMD_FIELDS["CTRL_STATUS_DONE"].get(status):
                await self._end(status)
                return self.results()

    async def wait_entry(self) -> list[Completed]:
        """Wait for at least one descriptor of a batch submitted with `per_entry`.

        Returns:
            what has completed since the last wait; `wait` ends the batch.

        Raises:
            RequestError: nothing is left to wait for, or the batch is without `per_entry`.
            CommandFailed: as by `wait`.
        """
        self._check_submitted("wait_entry")
        if not self._per_entry:
            raise RequestError("wait_entry", "a batch without per_entry", "one with it")
        if not self._running and not self._completed:
            raise RequestError("wait_entry", "a batch that has completed", "wait, to end it")
        while not self._completed:
            status = await self._interrupt()
            if not self._completed and CMD_FIELDS["CTRL_STATUS_ERROR"].get(status):
                await self._end(status)
        return self.results()

    async def stop(self) -> None:
        """End the batch by CTRL.SOFT_RESET, which also ends a program and reports nothing.

        `results` returns what had completed; all else is dropped, and the next batch begins at the
        descriptor that was under way.
        """
        self._check_submitted("stop")
        mask = SEQ_FIELDS["CTRL_SOFT_RESET"].mask
        await self.port.bus.write32(SEQ_BASE + SeqReg.CTRL, mask)
        await self._progress()
        self._leave(await self.port.read(CmdReg.DESC_TAIL))

    def results(self) -> list[Completed]:
        """Return what has completed since the last wait, without waiting."""
        results = []
        for entry in self._completed:
            data = b""
            if isinstance(entry.descriptor, Command) and entry.descriptor.writeback is not None:
                data = self.port.bus.read_memory(
                    entry.descriptor.writeback, entry.descriptor.writeback_bytes
                )
            results.append(Completed(entry.descriptor, entry.index, data))
        self._completed = []
        return results

    def _check_submitted(self, name: str) -> None:
        if not self._submitted:
            raise RequestError(name, "a ring at rest", "a batch that was submitted")

    async def _interrupt(self) -> int:
        """Wait for the interrupt, see how far the ring is, return CTRL_STATUS."""
        await self.port.bus.wait_interrupt()
        if self._per_entry:
            # Before the look at the tail: what completes behind it raises the line again.
            irq = CMD_FIELDS["CMD_IRQ_ENTRY"].mask | CMD_FIELDS["CMD_IRQ_PER_ENTRY"].mask
            await self.port.write(CmdReg.CMD_IRQ, irq)
        status = await self.port.read(CmdReg.CTRL_STATUS)
        await self._progress()
        return status

    async def _progress(self) -> None:
        """Move the entries that DESC_TAIL has passed from running to completed."""
        if self._running:
            tail = await self.port.read(CmdReg.DESC_TAIL)
            passed = (tail - self._running[0].index) % PLACES
            while passed:
                entry = self._running.pop(0)
                passed -= entry.places
                self._completed.append(entry)

    async def _end(self, status: int) -> None:
        """Leave the ring; raise CommandFailed if it has failed."""
        dropped = self._running
        if not CMD_FIELDS["CTRL_STATUS_ERROR"].get(status):
            self._leave(self._next)
            if dropped:
                raise CommandFailed(f"the ring is done before entry {dropped[0].index}")
            return
        ring = await self.port.read(CmdReg.DESC_STATUS)
        code, index = ring & 0xFF, CMD_FIELDS["DESC_STATUS_INDEX"].get(ring)
        self._leave(index)
        failed = dropped[0].descriptor if dropped else None
        text = f"ring entry {index}: {meaning(code)}; {failed}"
        if code == RingStatus.OPERATION and isinstance(failed, ProgramDescriptor):
            text += f"; {await self._program_error()}"
        raise CommandFailed(text, code, index)

    def _leave(self, index: int) -> None:
        """Be at rest, with the next descriptor at `index`."""
        self._running = []
        self._shared = self._ternary = None
        self.port.ring_runs = self._submitted = False
        self._next = index

    async def _program_error(self) -> str:
        """Return what the sequencer says about a program that failed."""
        bus = self.port.bus
        status = await bus.read32(SEQ_BASE + SeqReg.STATUS)
        code = ErrorCode(SEQ_FIELDS["STATUS_ERROR_CODE"].get(status))
        engine = Engine(SEQ_FIELDS["STATUS_ERROR_ENGINE"].get(status))
        word = await bus.read32(SEQ_BASE + SeqReg.ERROR_INSTR)
        address = await bus.read32(SEQ_BASE + SeqReg.ERROR_ADDR)
        return f"{code.name} by {engine.name} in word {word}, address {address:#010x}"
