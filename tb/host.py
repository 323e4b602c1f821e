# SPDX-License-Identifier: Apache-2.0
"""The host CPU: programs the registers over AXI4-Lite and sleeps until the interrupt."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cocotb.triggers import (
    ClockCycles,
    First,
    ReadOnly,
    RisingEdge,
    SimTimeoutError,
    Timer,
    with_timeout,
)
from cocotb_bus.drivers.amba import AXI4LiteMaster, AXIBurst, AXIProtocolError

from golden.machine import ErrorReport, StartState
from npu.isa import Engine, ErrorCode
from npu.regs.generated import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, SEQ_FIELDS, ChipReg, SeqReg
from tb import callbacks
from tb.counters import REGISTERS, Counters, compare_counters, monitored
from tb.dut import CLOCK_NS, Dut

T = TypeVar("T")

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


class _Master(AXI4LiteMaster):  # type: ignore[misc]
    """AXI4-Lite master that samples WREADY before the clock edge, as it does AWREADY.

    The library's own looks after the edge, when a slave that accepted the word has already lowered
    WREADY again.
    """

    async def _send_write_data(
        self,
        address: int,
        data: Sequence[int],
        burst: AXIBurst,
        size: int,
        delay: int,
        byte_enable: Sequence[int | None],
        sync: bool,
    ) -> None:
        del address, burst, size
        async with self.write_data_busy:
            if sync:
                await RisingEdge(self.clock)
            await ClockCycles(self.clock, delay)
            strobe = byte_enable[0]
            self.bus.WVALID.value = 1
            self.bus.WDATA.value = data[0]
            self.bus.WSTRB.value = 0xF if strobe is None else strobe
            while True:
                await ReadOnly()
                accepted = bool(self.bus.WREADY.value)
                await RisingEdge(self.clock)
                if accepted:
                    break
            self.bus.WVALID.value = 0


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
        self._bus = _Master(dut, "S_AXIL", dut.clk)

    async def read32(self, address: int) -> int:
        """Return the register at byte `address`.

        Raises:
            RegisterError: the port answered with an error.
        """
        return int(await self._access(self._bus.read(address), f"read of register {address:#05x}"))

    async def write32(self, address: int, value: int, strobe: int = 0xF) -> None:
        """Write `value` to the register at byte `address`; `strobe` has one bit per byte.

        Raises:
            RegisterError: the port answered with an error.
        """
        access = self._bus.write(address, value, byte_enable=strobe)
        await self._access(access, f"write of register {address:#05x}")

    async def _access(self, access: Coroutine[Any, Any, T], what: str) -> T:
        try:
            return await with_timeout(access, ACCESS_LIMIT * CLOCK_NS, "ns")
        except AXIProtocolError as error:
            raise RegisterError(f"{what}: {error.xresp.name}") from error
        except SimTimeoutError as error:
            raise HostError(f"{what}: no answer within {ACCESS_LIMIT} cycles") from error

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
        for address, value in start_writes(start):
            await self.write32(address, value)

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
        return Generated(*[await self.read_seq(register) for register in registers])

    async def counters(self) -> Counters:
        """Return the performance counters; the chip must be idle.

        Raises:
            MismatchError: they are not what the bench has counted itself.
        """
        values = {register: await self.read_chip(register) for register in REGISTERS}
        counters = Counters.of_registers(values)
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
