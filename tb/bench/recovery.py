# SPDX-License-Identifier: Apache-2.0
"""Programs that something stops on the way, and the one that must run right afterwards.

What a stopped program had reached is not specified to the byte, so it is compared loosely: every
byte of memory and of SRAM is either as before or as the complete program leaves it. Its report is
compared exactly, and so is everything about the next program, which starts without a reset.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from cocotb.triggers import ClockCycles

from golden.machine import ErrorReport, Machine, StartState
from npu.asm import assemble
from spec.isa import Engine, ErrorCode, Instruction, Opcode
from spec.regs.generated import SEQ_FIELDS, SeqReg
from tb.bench import logs
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT, PROGRAM, STREAM, Bench, Execution
from tb.bench.scoreboard import MismatchError, compare_errors

EVERY_ENGINE = """
    DMA_LOAD dst=0x0 M=8 N=256 b=0
    DMA_LOAD dst=0x8000 M=16 N=256 b=0 off=0x4000
    GELU dst=0x20000 src0=0x20000 M=32 N=128 stream
    SOFTMAX dst=0x24000 src0=0x28000 src1=0x2C000 M=16 N=100 out=u8
    LAYERNORM dst=0x30000 src0=0x32000 M=8 N=128 stream
    GEMM dst=0x14000 src0=0x18000 M=16 N=32 K=128 B=stream out=i32
    BARRIER ld vec
    GEMM dst=0x10000 src0=0x0 src1=0x8000 M=32 N=64 K=64 q=imm mul=20000 sh=26
    VEC op=add dst=0x4000 src0=0x4000 src1=0xC000 M=16 N=128
    BARRIER
    DMA_STORE dst=0x10000 M=32 N=64 b=1
    DMA_STORE dst=0x4000 M=16 N=128 b=1 off=0x4000
    END
"""
"""Keeps the bus, the stream and every engine busy for about a thousand cycles."""
STREAM_BYTES = 256 + (64 + 4 * 128) + 32 * 128
"""Its stream: a table, the parameters of a norm, and weights."""
BEYOND = 1 << 16
"""Bytes past the end of memory that the model of a stopped program may touch."""
LOAD_AT, STORE_AT = (
    [index for index, word in enumerate(assemble(EVERY_ENGINE).instructions) if word.opcode == code]
    for code in (Opcode.DMA_LOAD, Opcode.DMA_STORE)
)
"""The instructions of `EVERY_ENGINE` that use memory."""

Command = Literal["START", "SOFT_RESET", "ABORT"]


def program(text: str) -> list[Instruction]:
    """Return the words of a program text."""
    return list(assemble(text).instructions)


def load_every_engine(bench: Bench) -> StartState:
    """Put `EVERY_ENGINE` and a random stream into memory; return how to start it."""
    stream = bench.random.integers(0, 256, STREAM_BYTES, np.uint8).tobytes()
    return bench.load(program(EVERY_ENGINE), stream)


def user_of(address: int) -> tuple[Engine, int]:
    """Return the engine and the instruction of `EVERY_ENGINE` that use the word at `address`."""
    if PROGRAM <= address < STREAM:
        return Engine.SEQ, (address - PROGRAM) // 16
    if address >= STREAM:
        return Engine.STREAM, 0
    if address < OUTPUT:
        return Engine.LD, LOAD_AT[address >= INPUT + 0x4000]
    return Engine.ST, STORE_AT[address >= OUTPUT + 0x4000]


async def start_and_wait(bench: Bench, cycles: int) -> None:
    """Start `EVERY_ENGINE` and let some cycles pass."""
    await bench.chip.start(load_every_engine(bench))
    await ClockCycles(bench.dut.clk, cycles)


async def next_program_runs(bench: Bench) -> Execution:
    """Run a program that needs every engine, bus and stream; it must be right bit for bit."""
    execution = await bench.run(program(EVERY_ENGINE), load_every_engine(bench))
    assert execution.finish.error is None, f"the next program: {execution.finish.error}"
    return execution


async def command(bench: Bench, name: Command) -> None:
    """Write one bit of CTRL."""
    await bench.chip.write_seq(SeqReg.CTRL, SEQ_FIELDS[f"CTRL_{name}"].mask)


async def wait_idle(bench: Bench, limit: int = 2000) -> None:
    """Return when BUSY has fallen; the counters of what has run are compared then.

    Raises:
        AssertionError: it did not within `limit` cycles.
    """
    for _ in range(limit // 20 + 1):
        if not (await bench.chip.state())["BUSY"]:
            await bench.chip.counters()
            return
        await ClockCycles(bench.dut.clk, 20)
    raise AssertionError(f"still busy after {limit} cycles: {bench.bus.where()}")


def old_or_new(
    what: str,
    old: npt.NDArray[np.uint8],
    new: npt.NDArray[np.uint8],
    actual: npt.NDArray[np.uint8],
) -> None:
    """Raise MismatchError at a byte of `actual`, (bytes,), that is neither `old` nor `new`."""
    wrong = np.flatnonzero((actual != old) & (actual != new))
    if wrong.size:
        first = int(wrong[0])
        raise MismatchError(
            f"{what} has {wrong.size} bytes that are neither old nor the program's, first at "
            f"{first:#x}: old {int(old[first]):#04x}, the program's {int(new[first]):#04x}, "
            f"actual {int(actual[first]):#04x}"
        )


async def run_stopped(bench: Bench, start: StartState, expected: ErrorReport) -> None:
    """Run a loaded program that ends with the error `expected` and has changed nothing beyond it.

    Every byte of memory and SRAM may be written by one instruction of the program at most.

    Args:
        bench: the bench, idle.
        start: as `Bench.load` returned it.
        expected: the report.

    Raises:
        MismatchError: another report, or a byte that is neither old nor the complete program's.
        DeviceError: the chip did not end.
    """
    sram, memory = await bench.sync(), bench.memory.snapshot()
    new_sram = sram.copy()
    new_memory = np.concatenate([memory, np.zeros(BEYOND, np.uint8)])
    Machine(bench.config, new_memory, new_sram, races=False).run(start)
    finish = await bench.chip.run(start, DEFAULT_LIMIT)
    compare_errors(expected, finish.error)
    old_or_new("memory", memory, new_memory[: memory.size], bench.memory.data)
    old_or_new("SRAM", sram, new_sram, await bench.sync())


class Aborts:
    """Aborts programs, and knows out of the bench's log what their report may be."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._log = logs.Log(bench.run_dir / "events.bin", logs.EVENT)

    async def start_and_wait(self, cycles: int) -> None:
        """Start `EVERY_ENGINE` and let some cycles pass."""
        await self._bench.sync()
        self._log.take()
        await start_and_wait(self._bench, cycles)

    async def abort(self) -> set[ErrorReport]:
        """Abort the program; return the reports of an abort at any moment of the register access.

        The report names the word dispatched last, 0 if there was none.
        """
        since = int(self._bench.dut.cycle.value)
        await command(self._bench, "ABORT")
        await self._bench.sync()
        events = self._log.take()
        words = events[events["kind"] == logs.DISPATCH]
        before = words["instr"][words["cycle"] < since]
        during = words["instr"][words["cycle"] >= since]
        possible = [*before[-1:], *during] if before.size else [0, *during]
        return {ErrorReport(ErrorCode.ABORTED, Engine.SEQ, int(word), 0) for word in possible}

    async def dispatched_since(self) -> list[int]:
        """Return the words that were dispatched after the register access of `abort`."""
        await self._bench.sync()
        events = self._log.take()
        return [int(word) for word in events["instr"][events["kind"] == logs.DISPATCH]]
