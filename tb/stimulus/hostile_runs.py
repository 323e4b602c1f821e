# SPDX-License-Identifier: Apache-2.0
"""Runs of a program on a hostile memory and under a hostile host, and what may become of them.

All knobs of the memory are drawn together, the host accesses registers all the while, and errors,
silence, aborts and resets come on top. A program that nothing has hit must end as the model says,
byte for byte. One that was hit may have stopped anywhere: every byte is then an old one or one that
some instruction of the program leaves there, every word that was written to the SRAM is a word that
its instruction writes there, and the report names something that can have happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import cocotb
import numpy as np
import numpy.typing as npt
from cocotb.triggers import ClockCycles, First, RisingEdge

from golden.command.scalar import compute
from golden.machine import ErrorReport, Machine, RunResult, StartState
from golden.machine.operations import Accesses
from npu.driver.chip import start_accesses
from spec.isa import WORD, Engine, ErrorCode
from spec.regs import CMD_BASE, CMD_FIELDS, CmdOp, CmdReg
from spec.regs.generated import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, ChipReg, SeqReg
from spec.regs.source import load_all
from tb.bench import logs
from tb.bench.environment import PROGRAM, STREAM, Bench, reset
from tb.bench.knobs import Knobs
from tb.bench.memory import Bytes
from tb.bench.recovery import command, wait_idle
from tb.bench.scoreboard import MismatchError, Writes, compare_images, compare_writes, describe
from tb.stimulus.dependent_programs import Dependent

BURST_WORDS = 32
PATIENCE = 1500
"""MEM_TIMEOUT in cycles: more than the slowest of these memories ever needs."""
LIMIT = 60_000
"""Cycles until the end of a program must have been reported."""
LATE = 8_000
"""Cycles that the chip may stay busy when the memory answers again."""
STOPS = ("ABORT", "SOFT_RESET", "RESET")
DEAF = {"read_silent": 1, "write_silent": 1, "silent_first": 0, "silent_last": 0xFFFF_FFFF}
"""Knobs of a memory that accepts and answers nothing."""
FAULTS = ("READ_ERROR", "WRITE_ERROR", "TIMEOUT", *STOPS)
"""Everything that may strike a run."""


@dataclass(frozen=True)
class HostilePlan:
    """What is to happen to a run.

    Attributes:
        knobs: the memory.
        stop: what the host does to the program, "" for nothing.
        at: after how many cycles.
        silence: after how many cycles the whole memory falls silent, 0 for never.
    """

    knobs: Knobs
    stop: str
    at: int
    silence: int


@dataclass(frozen=True)
class HostileScene:
    """A program, ready to run, and what the model makes of it.

    Attributes:
        program: the program.
        start: how it starts.
        model: what the model returned; it knows no faults.
        old, new: (SRAM, memory) before, and after the complete program.
    """

    program: Dependent
    start: StartState
    model: RunResult
    old: tuple[Bytes, Bytes]
    new: tuple[Bytes, Bytes]

    @classmethod
    async def set(cls, bench: Bench, program: Dependent) -> HostileScene:
        """Put a program into memory and run it on the model."""
        draft = program.draft
        start = bench.load(program.words, program.stream, **draft.registers)
        old = await bench.sync(), bench.memory.snapshot()
        sram, memory = old[0].copy(), old[1].copy()
        model = Machine(bench.config, memory, sram, races=False).run(start)
        return cls(program, start, model, old, (sram, memory))

    def touched(self, *, written: bool) -> npt.NDArray[np.int64]:
        """Return the words of memory that the program writes, or reads."""
        parts = [
            operand.words()
            for _, operation in self.model.dispatched
            if isinstance(operation, Accesses)
            for operand in (operation.memory_writes if written else operation.memory_reads)
        ]
        if not written:
            parts += [self._words(PROGRAM, WORD * len(self.program.words))]
            parts += [self._words(STREAM, len(self.program.stream))]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)

    @staticmethod
    def _words(address: int, size: int) -> npt.NDArray[np.int64]:
        return np.arange(address // WORD, (address + size) // WORD, dtype=np.int64)

    def uses(self, engine: Engine, instr: int, word: int, *, written: bool) -> bool:
        """Whether an instruction, the program or the stream uses a word of memory."""
        if engine == Engine.SEQ:
            return word == PROGRAM // WORD + instr and instr < len(self.program.words)
        if engine == Engine.STREAM:
            return instr == 0 and word in self._words(STREAM, len(self.program.stream))
        return any(
            index == instr
            and isinstance(operation, Accesses)
            and operation.engine == engine
            and any(
                word in operand.words()
                for operand in (operation.memory_writes if written else operation.memory_reads)
            )
            for index, operation in self.model.dispatched
        )


# --------------------------------------------------------------------------------------------------
# What is to happen
# --------------------------------------------------------------------------------------------------
def _range(random: np.random.Generator, words: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Return first and last byte of one to some words around one that is touched."""
    first = WORD * int(random.choice(words))
    return first, first + WORD * int(random.choice((1, 1, 2, 40))) - 1


def plan(random: np.random.Generator, scene: HostileScene, faults: Sequence[str]) -> HostilePlan:
    """Return a plan in which some of FAULTS may strike."""
    knobs, silence = Knobs.hostile(random), 0
    reads, writes = scene.touched(written=False), scene.touched(written=True)
    targets = [reads] * ("READ_ERROR" in faults) + [writes] * ("WRITE_ERROR" in faults)
    targets = [words for words in targets if words.size]
    if targets:
        first, last = _range(random, targets[int(random.integers(len(targets)))])
        knobs = replace(
            knobs,
            read_error=int("READ_ERROR" in faults),
            write_error=int("WRITE_ERROR" in faults),
            error_first=first,
            error_last=last,
        )
    if "TIMEOUT" in faults and random.random() < 0.4:
        silence = int(random.integers(1, 1200))
    elif "TIMEOUT" in faults:
        both = np.concatenate([reads, writes])
        first, last = _range(random, both)
        knobs = replace(knobs, read_silent=1, write_silent=1, silent_first=first, silent_last=last)
    stops = [fault for fault in faults if fault in STOPS]
    stop = stops[0] if stops else ""
    return HostilePlan(knobs, stop, int(random.integers(1, 1200)), silence)


# --------------------------------------------------------------------------------------------------
# The host
# --------------------------------------------------------------------------------------------------
_ACTING = {
    SEQ_BASE + SeqReg.CTRL,
    CHIP_BASE + ChipReg.IRQ_STATUS,
    CHIP_BASE + ChipReg.IRQ_ENABLE,
}
"""Registers of a start whose writes do something at once."""
_OPERATIONS = (CmdOp.ADD, CmdOp.SUB, CmdOp.MUL_LO, CmdOp.MAC_S16, CmdOp.DOT4_S8, CmdOp.DOT8_S4)
"""Operations of the command port that take any operands."""


class Meddler:
    """A host that accesses registers while a program runs, without a change to what it does.

    It reads every register, writes those that count at a start only, and has the command port
    compute.

    Attributes:
        accesses: what it has done so far.
    """

    def __init__(self, bench: Bench, start: StartState) -> None:
        """Begin."""
        self._bench = bench
        self._addresses = [
            window.base + register.offset for window in load_all() for register in window.registers
        ]
        written = [one.address for one in start_accesses(start)]
        self._at_start = [address for address in written if address not in _ACTING]
        self._has_port = str(cocotb.plusargs["scratch_bytes"]) != "0"
        self._going = True
        self.accesses = 0
        self._access = cocotb.start_soon(self._work())

    async def stop(self) -> None:
        """Finish the access under way and make no more."""
        self._going = False
        await self._access

    async def _work(self) -> None:
        random, bus = self._bench.random, self._bench.bus
        while self._going:
            await ClockCycles(self._bench.dut.clk, int(random.integers(1, 60)))
            kind = random.random()
            if kind < 0.5:
                await bus.read32(int(random.choice(self._addresses)))
            elif kind < 0.6 and self._has_port:
                await self._compute()
            else:
                address = int(random.choice(self._at_start))
                await bus.write32(address, int(random.integers(1 << 32)))
            self.accesses += 1

    async def _compute(self) -> None:
        """Run an operation of the command port; its result is right."""
        random, bus = self._bench.random, self._bench.bus
        op = CmdOp(int(random.choice(_OPERATIONS)))
        a, b, acc = random.integers(1 << 32, size=3).tolist()
        for register, value in (
            *((CmdReg.OPCODE, op), (CmdReg.CMD_PARAM, 0)),
            *((CmdReg.OP_A, a), (CmdReg.OP_B, b), (CmdReg.ACC, acc)),
            (CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_START"].mask),
        ):
            await bus.write32(CMD_BASE + register, int(value))
        result = await bus.read32(CMD_BASE + CmdReg.RESULT)
        await bus.write32(CMD_BASE + CmdReg.CTRL_STATUS, CMD_FIELDS["CTRL_STATUS_CLEAR"].mask)
        if result != compute(op, a, b, acc)[0]:
            raise MismatchError(f"{op.name} of {a:#x}, {b:#x} and {acc:#x} gave {result:#x}")


async def _ends_within(bench: Bench, cycles: int) -> bool:
    """Wait for the interrupt, at most so many cycles; return whether it is there."""
    if not int(bench.dut.irq.value) and cycles > 0:
        await First(RisingEdge(bench.dut.irq), ClockCycles(bench.dut.clk, cycles))
    return bool(int(bench.dut.irq.value))


class HostileRun:
    """One run of a program under a plan, with what the bench has written down about it."""

    def __init__(self, bench: Bench, scene: HostileScene, plan: HostilePlan) -> None:
        """Take the run's place behind all that is in the logs."""
        self._bench, self._scene, self._plan = bench, scene, plan
        self._writes = logs.Log(bench.run_dir / logs.SRAM_WRITES_FILE, logs.SRAM_WRITE)
        self._events = logs.Log(bench.run_dir / logs.EVENTS_FILE, logs.EVENT)

    async def run(self) -> str:
        """Run the program, check everything about its end, and return which of FAULTS has hit it.

        Raises:
            MismatchError: it did not end as it should, or a byte is wrong.
        """
        await self._bench.sync()
        self._writes.take()
        self._events.take()
        struck = await self._strike()
        error = await self._calm_down(struck)
        sram = await self._bench.sync()
        if error is not None:
            self._check_report(error)
            struck = "ABORT" if error.code == ErrorCode.ABORTED else error.code.name
        if struck:
            self._check_stopped(sram)
        else:
            self._check_complete(sram)
        return struck

    async def _strike(self) -> str:
        """Run the program until its end is reported, or until it is reset; say which reset."""
        bench, plan = self._bench, self._plan
        await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, PATIENCE)
        await bench.set_knobs(plan.knobs)
        await bench.chip.start(self._scene.start)
        await bench.chip.write_chip(ChipReg.IRQ_ENABLE, CHIP_FIELDS["IRQ_ENABLE_SEQ_DONE"].mask)
        meddler = Meddler(bench, self._scene.start)
        passed, steps = 0, sorted([(plan.at, plan.stop), (plan.silence, "SILENCE")])
        for at, what in [step for step in steps if step[0] and step[1]]:
            if await _ends_within(bench, at - passed):
                break
            passed = at
            if what == "SILENCE":
                await bench.set_knobs(replace(plan.knobs, **DEAF))
                continue
            await meddler.stop()
            if int(bench.dut.irq.value):
                break
            if what == "RESET":
                await reset(bench.dut, int(bench.random.integers(1, 6)))
                return what
            await command(bench, "ABORT" if what == "ABORT" else "SOFT_RESET")
            # A program that ended in the cycle of the command is reported when this is answered.
            await ClockCycles(bench.dut.clk, 2)
            if what == "SOFT_RESET" and not int(bench.dut.irq.value):
                return what
        ended = await _ends_within(bench, LIMIT)
        await meddler.stop()
        if not ended:
            raise MismatchError(f"no end within {LIMIT} cycles: {bench.bus.where()}")
        return ""

    async def _calm_down(self, reset_by: str) -> ErrorReport | None:
        """Let the memory answer again; return the report, which stays, of what went wrong.

        A reset reports no end; an error that was there before a soft reset stays to be read.
        """
        bench = self._bench
        error = None if reset_by else await bench.chip.report()
        await bench.set_knobs(Knobs())
        await wait_idle(bench, LATE)
        state, now = await bench.chip.state(), await bench.chip.report()
        if reset_by:
            if state["DONE"] or int(bench.dut.irq.value) or (reset_by == "RESET" and now):
                raise MismatchError(f"{reset_by} of a running program is reported: {state}")
        elif now != error or not state["DONE"]:
            raise MismatchError(f"the report {error} became {now}, {state}")
        await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        return now

    def _check_report(self, error: ErrorReport) -> None:
        """Check that what is reported can have happened."""
        scene, plan, word = self._scene, self._plan, error.address // WORD
        failing = range(plan.knobs.error_first // WORD, plan.knobs.error_last // WORD + 1)
        match error.code:
            case ErrorCode.READ_ERROR:
                right = bool(plan.knobs.read_error) and word in failing
                right &= scene.uses(error.engine, error.instr, word, written=False)
            case ErrorCode.WRITE_ERROR:
                right = bool(plan.knobs.write_error) and any(
                    scene.uses(error.engine, error.instr, one, written=True)
                    for one in range(
                        max(word, failing.start), min(word + BURST_WORDS, failing.stop)
                    )
                )
                right &= scene.uses(error.engine, error.instr, word, written=True)
            case ErrorCode.TIMEOUT:
                right = bool(plan.silence or plan.knobs.read_silent or plan.knobs.write_silent)
                written = error.engine == Engine.ST
                right &= scene.uses(error.engine, error.instr, word, written=written)
            case ErrorCode.ABORTED:
                right = plan.stop == "ABORT" and self._is_last(error)
            case _:
                right = False
        if not right:
            name = describe(scene.program.words, error.instr)
            raise MismatchError(f"{error} cannot have happened: {name}")

    def _is_last(self, error: ErrorReport) -> bool:
        """Whether an abort names the word that was dispatched last, 0 if none was."""
        events = self._events.take()
        dispatched = events["instr"][events["kind"] == logs.DISPATCH]
        last = int(dispatched[-1]) if dispatched.size else 0
        return (error.engine, error.instr, error.address) == (Engine.SEQ, last, 0)

    def _check_complete(self, sram: Bytes) -> None:
        """Check a program that nothing has hit: every write, all of SRAM and memory."""
        scene = self._scene
        written = Writes.of_log(self._writes.take())
        compare_writes(Writes.of_model(scene.model), written, scene.program.words)
        compare_images(scene.new[0], sram, "SRAM")
        compare_images(scene.new[1], self._bench.memory.data, "memory")

    def _check_stopped(self, sram: Bytes) -> None:
        """Check a program that was stopped: no word or byte is there that it never leaves there."""
        allowed: dict[tuple[int, int], set[bytes]] = {}
        for index, words, data in self._model_writes():
            for word, line in zip(words.tolist(), data, strict=True):
                allowed.setdefault((index, word), set()).add(line.tobytes())
        for record in self._writes.take():
            key = int(record["instr"]), int(record["word"])
            if record["data"].tobytes() not in allowed.get(key, ()):
                name = describe(self._scene.program.words, key[0])
                raise MismatchError(
                    f"{name}: SRAM word {key[1] * WORD:#x}, which it never writes so: "
                    f"{record['data'].tobytes().hex()} at cycle {record['cycle']}"
                )
        steps = [(words, data) for _, words, data in self._model_writes()]
        one_of("SRAM", self._scene.old[0], steps, sram)
        steps = [(write.words, write.data) for write in self._scene.model.memory_writes]
        one_of("memory", self._scene.old[1], steps, self._bench.memory.data)

    def _model_writes(self) -> Iterator[tuple[int, npt.NDArray[np.int64], Bytes]]:
        """Yield (instruction, word addresses, contents) of the model's SRAM writes, in order."""
        for write in self._scene.model.sram_writes:
            yield write.instr, write.address + np.arange(len(write.data)), write.data


def one_of(
    what: str,
    old: Bytes,
    steps: Sequence[tuple[npt.NDArray[np.int64], Bytes]],
    actual: Bytes,
) -> None:
    """Raise MismatchError at a byte that is neither old nor what some step leaves there.

    Args:
        what: "SRAM" or "memory".
        old: (bytes,) uint8 before the program.
        steps: words that an instruction has written to, and what they hold then.
        actual: (bytes,) uint8 now.
    """
    right = actual == old
    right_words, actual_words = right.reshape(-1, WORD), actual.reshape(-1, WORD)
    for words, data in steps:
        right_words[words] |= actual_words[words] == data
    wrong = np.flatnonzero(~right)
    if wrong.size:
        first = int(wrong[0])
        raise MismatchError(
            f"{what} has {wrong.size} bytes that are neither old nor the program's, first at "
            f"{first:#x}: old {int(old[first]):#04x}, actual {int(actual[first]):#04x}"
        )
