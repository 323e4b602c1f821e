# SPDX-License-Identifier: Apache-2.0
"""The instruction-level model: runs a program on a memory image and an SRAM, in program order."""

from __future__ import annotations

import numpy as np

from golden.gemm import running_argmax
from golden.machine.decode import EngineOperation, Operation, decode_word
from golden.machine.execute import execute
from golden.machine.legal import HeldPrefix, read_prefix
from golden.machine.operands import block
from golden.machine.operations import Barrier, Dropped, End, GemmOperation, Loop, Nop, SetRegister
from golden.machine.races import RaceDetector
from golden.machine.registers import Registers
from golden.machine.state import (
    Bytes,
    ChipConfig,
    MemoryWrite,
    ProgramError,
    RunResult,
    SramWrite,
)
from golden.machine.transfers import Gather, StoreToken
from spec.isa import WORD, Engine, ErrorCode, ErrorReport, Instruction, Opcode, SetReg
from spec.regs import StartState


class Machine:
    """A chip with its SRAM and the memory behind its bus.

    Args:
        config: the chip's parameters.
        memory: the whole address space from 0 on, (n,) uint8, n a multiple of 16; changed in place.
            An access beyond it is answered as a bus error.
        sram: (config.sram_bytes,) uint8; changed in place.
        races: whether to look for races.

    """

    def __init__(
        self, config: ChipConfig, memory: Bytes, sram: Bytes, *, races: bool = True
    ) -> None:
        """Check the two arrays and keep them; nothing is copied."""
        for name, array, size in (("memory", memory, None), ("sram", sram, config.sram_bytes)):
            fits = array.dtype == np.uint8 and array.ndim == 1 and array.size % WORD == 0
            if not fits or not array.flags.c_contiguous or size not in (None, array.size):
                raise ValueError(
                    f"Machine.{name}: given {array.dtype}{array.shape}, allowed contiguous uint8, "
                    + ("a multiple of 16 bytes" if size is None else f"{size} bytes")
                )
        self.config = config
        self.memory = memory
        self.sram = sram
        self._with_races = races

    def run(self, start: StartState) -> RunResult:
        """Run from the start state to END or to the first error.

        The program is executed in order; with a race in it the result of the hardware is undefined
        and may differ. On an error everything older has finished, and the refused instruction and
        everything younger has changed nothing.
        """
        run = _Run(self.config, self.memory, self.sram, start, self._with_races)
        return run.to_end()


class _Run:
    """The state of one run."""

    def __init__(
        self, config: ChipConfig, memory: Bytes, sram: Bytes, start: StartState, races: bool
    ) -> None:
        """Copy the start state into the machine's registers."""
        self.config = config
        self.memory = memory
        self.sram = sram
        self.start = start
        self.registers = Registers.at_start(start, config)
        self.writes: list[SramWrite] = []
        self.memory_writes: list[MemoryWrite] = []
        self.dispatched: list[tuple[int, Operation]] = []
        self.executed = 0
        self.macs = 0
        self.index = 0
        self.detector: RaceDetector | None = None
        if races:
            program = block(start.ucode_base, start.ucode_len * WORD)
            stream = block(start.stream_base, start.stream_len) if start.stream_len else None
            self.detector = RaceDetector(sram.size // WORD, memory.size // WORD, program, stream)

    def to_end(self) -> RunResult:
        """Execute words until END or a fault."""
        error = None
        try:
            while not self._step():
                pass
        except ProgramError as fault:
            # The stream runs ahead of instructions: its errors belong to none of them.
            index = 0 if fault.engine == Engine.STREAM else self.index
            error = ErrorReport(fault.code, fault.engine, index, fault.address)
        races = [] if self.detector is None else self.detector.races
        registers = self.registers
        return RunResult(
            error=error,
            sram_writes=self.writes,
            executed=self.executed,
            macs=self.macs,
            races=races,
            stream_offset=registers.stream_offset,
            token=registers[SetReg.TOKEN],
            out_count=registers[SetReg.OUTCNT],
            pos=registers[SetReg.POS],
            dispatched=self.dispatched,
            memory_writes=self.memory_writes,
        )

    def _fetch(self) -> Instruction:
        """Return the word at the current index."""
        if self.index >= self.start.ucode_len:
            raise ProgramError(ErrorCode.NO_END)
        address = self.start.ucode_base + self.index * WORD
        if address + WORD > self.memory.size:
            raise ProgramError(ErrorCode.READ_ERROR, address)
        return Instruction.decode(self.memory[address : address + WORD].tobytes())

    def _step(self) -> bool:
        """Execute one instruction with its prefix; return whether it was END."""
        word, prefix = self._fetch(), HeldPrefix()
        if word.opcode == Opcode.PFX:
            prefix = read_prefix(word)
            self.index += 1
            word = self._fetch()
        operation = decode_word(word, prefix, self.config, self.registers)
        self.dispatched.append((self.index, self._dispatch(operation)))
        self.executed += 1
        self.index += 1
        if isinstance(operation, Loop) and operation.target is not None:
            self.index = operation.target
        return isinstance(operation, End)

    def _dispatch(self, operation: Operation) -> Operation:
        """Carry out a decoded operation; return it with everything known that it touches."""
        match operation:
            case Nop() | End():
                pass
            case Barrier():
                if self.detector is not None:
                    self.detector.barrier(operation)
            case SetRegister(register, value, add):
                self.registers.set(register, value, add=add)
            case Loop():
                if operation.target is not None:
                    self._turn()
            case Dropped():
                self._take(operation.share)
            case _:
                return self._engine(operation)
        return operation

    def _turn(self) -> None:
        """Count a turn of a loop."""
        self.registers.set(SetReg.LOOPLEFT, -1, add=True)
        self.registers.set(SetReg.POS, 1, add=True)
        self.registers.set(SetReg.STREAM, 0)

    def _engine(self, operation: EngineOperation) -> EngineOperation:
        """Take the share, execute, log the written words and look for races."""
        share = self._take(operation.share)
        if isinstance(operation, GemmOperation):
            self.macs += operation.macs
        elif isinstance(operation, Gather):
            operation = operation.located(self.sram)
        elif isinstance(operation, StoreToken):
            self.registers.argmax = None
            self.registers.set(SetReg.TOKEN, operation.token)
            self.registers.set(SetReg.OUTCNT, 1, add=True)
        compared = execute(operation, self.memory, self.sram, share, self.config.tile)
        if compared is not None:
            self.registers.argmax = running_argmax(self.registers.argmax, compared)
        self._log(operation)
        self._log_memory(operation)
        if self.detector is not None:
            self.detector.add(self.index, operation)
        return operation

    def _take(self, size: int) -> Bytes:
        """Return the next `size` bytes of the stream, which are known to exist; not a copy.

        What takes a share writes to SRAM only.
        """
        first = self.start.stream_base + self.registers.stream_offset
        if first + size > self.memory.size and size:
            raise ProgramError(ErrorCode.READ_ERROR, max(first, self.memory.size), Engine.STREAM)
        self.registers.stream_offset += size
        return self.memory[first : first + size]

    def _log(self, operation: EngineOperation) -> None:
        """Log the final contents of every word that the operation has written."""
        if not operation.writes:
            return
        words = np.concatenate([operand.words() for operand in operation.writes])
        if words.size > 1 and not bool(np.all(np.diff(words) > 0)):
            words = np.unique(words)
        data = self.sram.reshape(-1, WORD)[words]
        breaks = np.flatnonzero(np.diff(words) != 1) + 1
        starts = words[np.concatenate([[0], breaks])].tolist()
        for first, run in zip(starts, np.split(data, breaks), strict=True):
            self.writes.append(SramWrite(self.index, first, run))

    def _log_memory(self, operation: EngineOperation) -> None:
        """Log the final contents of the words of memory that the operation has written to."""
        for operand in operation.memory_writes:
            words = operand.words()
            data = self.memory.reshape(-1, WORD)[words]
            self.memory_writes.append(MemoryWrite(self.index, words, data))
