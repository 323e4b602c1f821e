# SPDX-License-Identifier: Apache-2.0
"""The descriptor ring: from a start to its end, with completion records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from golden.command import tiles
from golden.command.descriptor import (
    ENTRY_BYTES,
    Descriptor,
    DescriptorError,
    LaunchWords,
)
from golden.command.memory import (
    ADDRESS_LIMIT,
    MemoryFaultError,
    MemorySilenceError,
    PortMemory,
    pieces,
)
from golden.command.scalar import ReservedLaneError
from golden.command.state import PortCommand, PortState
from golden.command.tiles import ON_SCRATCHPAD, TilesRefusedError
from spec.regs import DESC_RECORD, CmdReg, RingStatus

PLACES = 8
"""Entries of the ring."""
RECORD_BYTES = DESC_RECORD.size
INDICES = 1 << 16
"""CQ_HEAD and CQ_TAIL count modulo this."""


class EndlessWaitError(RuntimeError):
    """The hardware would wait for ever: a silent memory without a time-out."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a launched program ended.

    Attributes:
        out_count: OUTCNT.
        error: bits 14:8 of the sequencer's STATUS in place; 0 without an error.

    """

    out_count: int
    error: int


Launch = Callable[[LaunchWords], ProgramEnd]
"""Runs a program to its end."""


@dataclass(slots=True)
class _Outcome:
    """What a completion record says about a descriptor.

    Attributes:
        index: its first ring entry.
        length: its ring entries.
        code: how it ended.
        fetched: the descriptor, None if it could not be fetched.
        words: words 1 and 2 of the record.

    """

    index: int
    length: int = 1
    code: RingStatus = RingStatus.DONE
    fetched: Descriptor | None = None
    words: tuple[int, int] = (0, 0)


class Ring:
    """One run of the descriptor ring.

    Args:
        state: the port's; changed in place.
        memory: where ring, streams and results are.
        launch: runs a program.

    """

    def __init__(self, state: PortState, memory: PortMemory, launch: Launch) -> None:
        """Latch what a start latches."""
        self._state = state
        self._memory = memory
        self._launch = launch
        self._base = state.stored[CmdReg.DESC_BASE]
        self._shape = state.shape
        self._is_ternary = bool(state.get("CMD_PARAM_TERNARY"))

    def run(self) -> Iterator[None]:
        """Run to the end; yields while the completion ring has no room."""
        state = self._state
        state.status = state.index = 0
        if self._base % 4:
            self._end(RingStatus.BASE, self._tail)
            return
        if not self._pending:
            self._end(RingStatus.EMPTY, self._tail)
            return
        while True:
            outcome = self._one()
            yield from self._finish(outcome)
            if outcome.code != RingStatus.DONE or not self._pending:
                self._end(outcome.code, outcome.index)
                return

    @property
    def _tail(self) -> int:
        return self._state.stored[CmdReg.DESC_TAIL]

    @property
    def _pending(self) -> int:
        return (self._state.stored[CmdReg.DESC_HEAD] - self._tail) % PLACES

    def _end(self, code: RingStatus, index: int) -> None:
        """Report the end of the run."""
        self._state.status, self._state.index = code, index
        self._state.done = True
        if code != RingStatus.DONE:
            self._state.fail()

    @contextmanager
    def _waiting(self, code: RingStatus) -> Iterator[None]:
        """Turn what the memory does into the failure of a descriptor."""
        try:
            yield
        except MemoryFaultError as fault:
            raise DescriptorError(code, str(fault)) from fault
        except MemorySilenceError as silence:
            if not self._state.stored[CmdReg.DESC_TIMEOUT]:
                raise EndlessWaitError(f"DESC_TIMEOUT is 0 and: {silence}") from silence
            raise DescriptorError(RingStatus.TIMEOUT, str(silence)) from silence

    def _one(self) -> _Outcome:
        """Carry out the descriptor at the tail."""
        outcome = _Outcome(self._tail)
        try:
            self._steps(outcome)
        except DescriptorError as error:
            outcome.code = error.code
        return outcome

    def _steps(self, outcome: _Outcome) -> None:
        """Take a descriptor through its steps up to the writeback.

        Raises:
            DescriptorError: the first step that fails.

        """
        with self._waiting(RingStatus.FETCH):
            self._memory.settle()
        descriptor = self._fetch(outcome)
        if descriptor.is_program:
            self._program(descriptor.program, outcome)
            return
        work = self._work(descriptor)
        if descriptor.has_stream:
            descriptor.check_stream()
        if descriptor.has_writeback:
            descriptor.check_writeback(self._state.tile(work))
        if descriptor.has_stream:
            self._stream(descriptor)
        try:
            self._state.execute(work)
        except (TilesRefusedError, ReservedLaneError) as refused:
            raise DescriptorError(RingStatus.OPERATION, str(refused)) from refused
        if descriptor.has_writeback:
            self._writeback(descriptor, work)
        if work.op not in ON_SCRATCHPAD:
            outcome.words = self._state.result, self._state.result_hi

    def _entry(self, index: int) -> bytes:
        """Take one entry from the ring."""
        with self._waiting(RingStatus.FETCH):
            at = self._base + ENTRY_BYTES * (index % PLACES)
            data = self._memory.read(at % ADDRESS_LIMIT, ENTRY_BYTES)
        self._state.count_bytes("READ", ENTRY_BYTES)
        return data

    def _fetch(self, outcome: _Outcome) -> Descriptor:
        """Return the descriptor at the tail, its owner bit and extension checked."""
        size = len(self._state.scratch)
        data = self._entry(outcome.index)
        outcome.fetched = descriptor = Descriptor.parse(data, size)
        if not descriptor.is_owned:
            raise DescriptorError(RingStatus.OWNER, "no owner bit")
        if not descriptor.is_extended:
            return descriptor
        if self._pending < 2:
            raise DescriptorError(RingStatus.OPERATION, "the second entry is not pending")
        outcome.fetched, outcome.length = None, 2
        data += self._entry(outcome.index + 1)
        outcome.fetched = descriptor = Descriptor.parse(data, size)
        descriptor.check_extension()
        return descriptor

    def _work(self, descriptor: Descriptor) -> PortCommand:
        """Return the operation of a descriptor."""
        _, a, b, acc = descriptor.words[:4]
        shape = self._shape
        if descriptor.is_extended:
            shape = descriptor.words[5], descriptor.words[6], descriptor.words[7]
        return PortCommand(descriptor.op, (a, b, acc), shape, self._is_ternary)

    def _stream(self, descriptor: Descriptor) -> None:
        """Copy the stream into the scratchpad, memory word by memory word."""
        source, offset, size = descriptor.stream
        at = offset
        for address, count in pieces(source, size):
            with self._waiting(RingStatus.STREAM_READ):
                self._state.scratch[at : at + count] = self._memory.read(address, count)
            at += count
        self._state.count_bytes("READ", size)
        self._state.count(CmdReg.PERF_SCRATCH_BYTES, size)

    def _writeback(self, descriptor: Descriptor, work: PortCommand) -> None:
        """Send the result to memory."""
        state = self._state
        from_scratchpad = work.op in ON_SCRATCHPAD
        if from_scratchpad:
            data = tiles.result(work.op, state.tile(work), state.scratch)
        else:
            data = state.result.to_bytes(4, "little") + state.result_hi.to_bytes(4, "little")
        self._write(descriptor.destination, data)
        state.count_bytes("WRITTEN", len(data))
        if from_scratchpad:
            state.count(CmdReg.PERF_SCRATCH_BYTES, len(data))

    def _write(self, address: int, data: bytes) -> None:
        """Write to memory; after a failure the bytes there are undefined."""
        try:
            with self._waiting(RingStatus.WRITEBACK_WRITE):
                self._memory.write(address, data)
        except DescriptorError:
            self._state.undefined += pieces(address, len(data))
            raise

    def _program(self, program: LaunchWords, outcome: _Outcome) -> None:
        """Launch a program and take its end."""
        self._state.count(CmdReg.PERF_OPS)
        end = self._launch(program)
        outcome.words = end.out_count, end.error
        if end.error:
            raise DescriptorError(RingStatus.OPERATION, f"the program ended with {end.error:#x}")

    def _finish(self, outcome: _Outcome) -> Iterator[None]:
        """Write the record, then move the tail and raise the interrupt of the entry."""
        state = self._state
        if state.get("CQ_CTRL_ENABLE") and outcome.code != RingStatus.TIMEOUT:
            yield from self._record(outcome)
        if outcome.code == RingStatus.DONE:
            state.stored[CmdReg.DESC_TAIL] = (outcome.index + outcome.length) % PLACES
        state.entry |= state.per_entry
        state.index = outcome.index

    def _record(self, outcome: _Outcome) -> Iterator[None]:
        """Wait for room and write the completion record."""
        state = self._state
        size = 1 << state.get("CQ_CTRL_LOG2_SIZE")
        while (state.cq_head - state.stored[CmdReg.CQ_TAIL]) % INDICES == size:
            yield
        lap, place = divmod(state.cq_head, size)
        fields = {"code": int(outcome.code), "index": outcome.index, "phase": int(not lap & 1)}
        fields |= {"result": outcome.words[0], "result_hi": outcome.words[1]}
        descriptor = outcome.fetched
        if descriptor is not None:
            fields |= {"tag": descriptor.tag, "launch": int(descriptor.is_program)}
            fields["opcode"] = 0 if descriptor.is_program else int(descriptor.op)
        address = (state.stored[CmdReg.CQ_BASE] + RECORD_BYTES * place) % ADDRESS_LIMIT
        try:
            self._write(address, DESC_RECORD.image(**fields))
        except DescriptorError as error:
            # The first failure is the one that is reported.
            outcome.code = error.code if outcome.code == RingStatus.DONE else outcome.code
        else:
            state.cq_head = (state.cq_head + 1) % INDICES
