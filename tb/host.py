# SPDX-License-Identifier: Apache-2.0
"""The host CPU: accesses the registers over AXI4-Lite and sleeps until the interrupt."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cocotb
import numpy as np
from cocotb.triggers import First, Lock, RisingEdge, Timer, ValueChange

from golden.machine import ErrorReport, StartState
from npu.isa import Engine, ErrorCode
from npu.regs.generated import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, SEQ_FIELDS, ChipReg, SeqReg
from tb import accesses, callbacks
from tb.accesses import Access
from tb.counters import REGISTERS, Counters, compare_counters, monitored
from tb.dut import CLOCK_NS, Dut

ACCESS_LIMIT = 100
"""Cycles within which a register access must be answered."""


class HostError(RuntimeError):
    """The chip did not do what a host may expect of it."""


class RegisterError(HostError):
    """The register port answered SLVERR or DECERR."""


@dataclass(frozen=True)
class Generated:
    """What a program leaves in its registers for the host.

    Attributes:
        out_count: tokens written, OUTCNT.
        token: TOKEN.
        pos: POS.
    """

    out_count: int
    token: int
    pos: int


@dataclass(frozen=True)
class Finish:
    """How a program ended, as the host sees it.

    Attributes:
        error: what the status registers say, None without an error.
        generated: the machine's registers at the end.
        counters: the performance counters.
        seconds: processor time of the simulation from start to interrupt.
        python_entries: how often the simulator entered Python in that time.
    """

    error: ErrorReport | None
    generated: Generated
    counters: Counters
    seconds: float
    python_entries: int


def start_writes(start: StartState) -> list[tuple[int, int]]:
    """Return the (address, value) of the register writes that start a program, in order."""
    values = {
        SeqReg.UCODE_BASE: start.ucode_base,
        SeqReg.UCODE_LEN: start.ucode_len,
        SeqReg.DDR_BASE_WGT: start.stream_base,
        SeqReg.STREAM_LEN: start.stream_len,
        SeqReg.POS: start.pos,
        SeqReg.TOKEN: start.token,
        SeqReg.WINDOW: start.window,
        SeqReg.LOOPLEFT: start.loop_left,
        SeqReg.EOS: start.eos,
        SeqReg.DDR_BASE_KV: start.kv_base,
        SeqReg.KVLAYER: start.kv_layer,
        SeqReg.KVHEAD: start.kv_head,
        SeqReg.KVVOFF: start.kv_voff,
        SeqReg.KVCAP: start.kv_cap,
        SeqReg.KV_CTRL: SEQ_FIELDS["KV_CTRL_IN_MEMORY"].put(start.kv_in_memory),
        SeqReg.DDR_BASE_ACT: start.bases[0],
        SeqReg.DDR_BASE_OUT: start.bases[1],
    }
    for index in range(2, 8):
        values[SeqReg[f"BASE{index}"]] = start.bases[index]
    writes = [(SEQ_BASE + register, value) for register, value in values.items()]
    writes += [(CHIP_BASE + ChipReg.IRQ_STATUS, 1), (CHIP_BASE + ChipReg.IRQ_ENABLE, _INTERRUPTS)]
    return [*writes, (SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_START"].mask)]


class Host:
    """A host on the register port of `tb_top`."""

    def __init__(self, dut: Dut) -> None:
        self._dut = dut
        path = Path(str(cocotb.plusargs["run_dir"])) / accesses.FILE
        self._list = np.memmap(path, dtype=accesses.RECORD, mode="r+")
        self._port = Lock()

    async def access(self, several: Sequence[Access]) -> list[int]:
        """Make accesses one after the other, without Python between them; the first error ends it.

        Returns:
            the value of the register at each read, the given one at each write.

        Raises:
            RegisterError: the port answered with an error.
            HostError: no answer, or a reset while it was under way.
        """
        async with self._port:
            await self._play(several)
            for one, answer in zip(several, self._list[: len(several)], strict=True):
                resp = int(answer["resp"])
                if resp == accesses.NO_ANSWER:
                    raise HostError(f"{one}: a reset came before the answer")
                if resp:
                    raise RegisterError(f"{one}: {accesses.RESP[resp]}")
            return [int(value) for value in self._list["data"][: len(several)]]

    async def _play(self, several: Sequence[Access]) -> None:
        dut, count = self._dut, len(several)
        self._list[:count] = accesses.records(several)
        played = dut.access_played
        dut.access_count.value = count
        dut.access_play.value = 1 - int(played.value)
        patience = Timer(count * ACCESS_LIMIT * CLOCK_NS, "ns")
        if await First(ValueChange(played), patience) is patience:
            stuck = several[int(dut.access_index.value)]
            raise HostError(f"{stuck}: no answer within {count * ACCESS_LIMIT} cycles")

    async def read32(self, address: int) -> int:
        """Return the register at byte `address`.

        Raises:
            RegisterError: the port answered with an error.
        """
        (value,) = await self.access([Access(address)])
        return value

    async def write32(self, address: int, value: int, strobe: int = 0xF) -> None:
        """Write `value` to the register at byte `address`; `strobe` has one bit per byte.

        Raises:
            RegisterError: the port answered with an error.
        """
        await self.access([Access(address, value, strobe)])

    async def read_seq(self, register: SeqReg) -> int:
        """Return a register of the sequencer's window."""
        return await self.read32(SEQ_BASE + register)

    async def write_seq(self, register: SeqReg, value: int) -> None:
        """Write a register of the sequencer's window."""
        await self.write32(SEQ_BASE + register, value)

    async def read_chip(self, register: ChipReg) -> int:
        """Return a register of the chip's window."""
        return await self.read32(CHIP_BASE + register)

    async def write_chip(self, register: ChipReg, value: int) -> None:
        """Write a register of the chip's window."""
        await self.write32(CHIP_BASE + register, value)

    async def start_program(self, start: StartState) -> None:
        """Write what a program needs, clear and enable the interrupt, and start."""
        await self.access([Access(address, value) for address, value in start_writes(start)])

    async def wait_interrupt(self, limit_cycles: int) -> tuple[float, int]:
        """Sleep until the interrupt.

        Returns:
            the processor seconds that it took, and how often Python woke in that time.

        Raises:
            HostError: no interrupt within `limit_cycles`; says where the chip stands.
        """
        started, entries = time.process_time(), callbacks.count()
        if not int(self._dut.irq.value):
            await First(RisingEdge(self._dut.irq), Timer(limit_cycles * CLOCK_NS, "ns"))
        if not int(self._dut.irq.value):
            raise HostError(f"no interrupt within {limit_cycles} cycles: {self.where()}")
        return time.process_time() - started, callbacks.count() - entries

    def where(self) -> str:
        """Say where the chip stands: the last dispatched word and what each engine works on."""
        dut = self._dut
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

    async def status(self) -> ErrorReport | None:
        """Return the error that the status registers show, None if there is none.

        Raises:
            HostError: the chip is busy, or neither done nor in error.
        """
        now = await self.state()
        if now["BUSY"] or not (now["DONE"] or now["ERROR"]):
            raise HostError(f"STATUS is {now} after the interrupt: {self.where()}")
        return await self.report()

    async def state(self) -> dict[str, int]:
        """Return the fields of STATUS by name."""
        value = await self.read_seq(SeqReg.STATUS)
        return {name: SEQ_FIELDS[f"STATUS_{name}"].get(value) for name in _STATUS_FIELDS}

    async def report(self) -> ErrorReport | None:
        """Return the error that the status registers show, None if there is none; busy or not."""
        now = await self.state()
        if not now["ERROR"]:
            return None
        return ErrorReport(
            ErrorCode(now["ERROR_CODE"]),
            Engine(now["ERROR_ENGINE"]),
            await self.read_seq(SeqReg.ERROR_INSTR),
            await self.read_seq(SeqReg.ERROR_ADDR),
        )

    async def generated(self) -> Generated:
        """Return what the current or last program left in its registers."""
        registers = (SeqReg.OUTCNT, SeqReg.LAST_TOKEN, SeqReg.LAST_POS)
        return Generated(*await self.access([Access(SEQ_BASE + one) for one in registers]))

    async def counters(self) -> Counters:
        """Return the performance counters; the chip must be idle.

        Raises:
            MismatchError: they are not what the bench has counted itself.
        """
        values = await self.access([Access(CHIP_BASE + register) for register in REGISTERS])
        counters = Counters.of_registers(dict(zip(REGISTERS, values, strict=True)))
        compare_counters(monitored(self._dut), counters)
        return counters

    async def run_program(self, start: StartState, limit_cycles: int) -> Finish:
        """Start a program, sleep until its end, acknowledge, and say how it ended."""
        await self.start_program(start)
        seconds, entries = await self.wait_interrupt(limit_cycles)
        await self.write_chip(ChipReg.IRQ_STATUS, 1)
        error, generated = await self.status(), await self.generated()
        return Finish(error, generated, await self.counters(), seconds, entries)


_INTERRUPTS = CHIP_FIELDS["IRQ_ENABLE_SEQ_DONE"].mask | CHIP_FIELDS["IRQ_ENABLE_CMD"].mask
_STATUS_FIELDS = ("DONE", "BUSY", "ERROR", "ERROR_CODE", "ERROR_ENGINE")
