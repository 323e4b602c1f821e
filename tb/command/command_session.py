# SPDX-License-Identifier: Apache-2.0
"""A session on the command port: chip and model do the same work and must agree in everything."""

from __future__ import annotations

from dataclasses import dataclass, field

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.command.model import ModelBus
from spec.regs import CMD_BASE, CMD_FIELDS, CmdOp, CmdReg, RingStatus
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.host import PATIENCE
from tb.bench.knobs import Knobs
from tb.command.chip_and_model import PairBus
from tb.command.command_coverage import ring_row, row, used
from tb.command.descriptor_words import ENTRIES, ENTRY_BYTES, DescriptorWords, TileWords
from tb.command.faulty_memory import ModelMemory

RING = 0x0030_0000
"""Where descriptors are put unless a test says otherwise."""
RECORDS = 0x0038_0000
"""Where completion records are put."""
START, CLEAR = CMD_FIELDS["CTRL_STATUS_START"].mask, CMD_FIELDS["CTRL_STATUS_CLEAR"].mask
DONE = CMD_FIELDS["CTRL_STATUS_DONE"].mask
BUSY, ERROR = CMD_FIELDS["CTRL_STATUS_BUSY"].mask, CMD_FIELDS["CTRL_STATUS_ERROR"].mask
DESCRIPTOR, TERNARY = CMD_FIELDS["CMD_PARAM_DESCRIPTOR"].mask, CMD_FIELDS["CMD_PARAM_TERNARY"].mask
HOSTILE = (
    Knobs(read_latency=1, write_latency=1),
    Knobs(read_latency=90, write_latency=70, read_gap=40, write_gap=30, interleave=1),
    Knobs(read_latency=5, write_latency=9, ar_stall=70, aw_stall=60, w_stall=60),
    Knobs(read_latency=30, write_latency=3, read_gap=80, ar_stall=30, w_stall=85, interleave=1),
)
"""Memories that are quick, slow, or move in fits and starts."""


@dataclass
class CommandSession:
    """Chip and model after reset, with the same memory.

    Attributes:
        bench: the bench around the chip.
        bus: both of them.
        memory: the model's memory, where faults are placed.
        scratch_bytes: size of the scratchpad.
        base: address of the descriptor ring.
        head: index of the ring behind the last descriptor that was put.
        param: CMD_PARAM of the next start without DESCRIPTOR.
    """

    bench: Bench
    bus: PairBus
    memory: ModelMemory
    scratch_bytes: int
    base: int = RING
    head: int = 0
    param: int = 0
    _pending: list[DescriptorWords] = field(default_factory=list)
    _written: dict[int, int] = field(default_factory=dict)

    @classmethod
    async def start(
        cls, dut: Dut, knobs: Knobs | None = None, limit: int = PATIENCE, *, sram: bool = False
    ) -> CommandSession:
        """Reset chip and model; with `sram` the model's SRAM holds what the chip's does."""
        knobs = knobs or Knobs()
        return await cls.around(await Bench.start(dut, knobs), knobs, limit, sram=sram)

    @classmethod
    async def around(
        cls, bench: Bench, knobs: Knobs, limit: int = PATIENCE, *, sram: bool = False
    ) -> CommandSession:
        """Put a model beside a chip that has been reset and not used yet; see `start`."""
        scratch_bytes = int(str(cocotb.plusargs["scratch_bytes"]))
        memory = ModelMemory(bench.memory.snapshot())
        memory.obey(knobs)
        model = ModelBus(
            memory.data,
            config=bench.config,
            scratch_bytes=scratch_bytes,
            faults=memory,
            sram=await bench.sync() if sram else None,
        )
        bench.bus.limit = limit
        session = cls(bench, PairBus(bench.bus, model, memory), memory, scratch_bytes)
        await session.write(CmdReg.DESC_BASE, RING)
        return session

    @property
    def random(self) -> np.random.Generator:
        """The test's random generator."""
        return self.bench.random

    def word(self) -> int:
        """Return 32 random bits."""
        return int(self.random.integers(1 << 32))

    async def read(self, register: CmdReg) -> int:
        """Read a register of the command port; chip and model agree."""
        return await self.bus.read32(CMD_BASE + register)

    async def write(self, register: CmdReg, value: int) -> None:
        """Write a register of the command port."""
        self._written[register] = value
        await self.bus.write32(CMD_BASE + register, value)

    async def _set(self, register: CmdReg, value: int) -> None:
        """Write a register unless it was given this value last."""
        if self._written.get(register) != value:
            await self.write(register, value)

    async def wait(self) -> bool:
        """Sleep until the interrupt; return whether chip and model ended without an error."""
        await self.bus.wait_interrupt()
        if self._written.get(CmdReg.CMD_IRQ, 0) & 1:  # it may be that of an entry
            await self._wait_idle()
        return not await self.read(CmdReg.CTRL_STATUS) & ERROR

    async def _wait_idle(self) -> None:
        """Return when the command port is not busy."""
        for _ in range(self.bus.rtl.limit // 10):
            if not await self.bus.rtl.read32(CMD_BASE + CmdReg.CTRL_STATUS) & BUSY:
                return
            await ClockCycles(self.bench.dut.clk, 10)
        raise self.bus.mismatch(f"busy for more than {self.bus.rtl.limit} cycles")

    # ----------------------------------------------------------------------------------------------
    # By register
    # ----------------------------------------------------------------------------------------------
    async def operate(
        self, op: CmdOp, a: int = 0, b: int = 0, acc: int = 0, tile: TileWords | None = None
    ) -> bool:
        """Run one operation; compare RESULT; return whether it ended without an error."""
        for register, value in (
            (CmdReg.OPCODE, op),
            (CmdReg.OP_A, a),
            (CmdReg.OP_B, b),
            (CmdReg.ACC, acc),
            (CmdReg.CMD_PARAM, self.param),
        ):
            await self._set(register, value)
        if tile is not None:
            await self.set_tile(tile)
        await self.write(CmdReg.CTRL_STATUS, START)
        right = await self.wait()
        await self.read(CmdReg.RESULT)
        await self.read(CmdReg.RESULT_HI)
        if right:
            self.count({row(op, "register")})
            if self.param & TERNARY and op == CmdOp.DOT16_S2:
                self.count({row(op, "register ternary")})
        return right

    async def set_tile(self, tile: TileWords) -> None:
        """Write GEMM_*."""
        await self._set(CmdReg.GEMM_CFG, tile.cfg)
        await self._set(CmdReg.GEMM_BASE, tile.base)
        await self._set(CmdReg.GEMM_STRIDE, tile.stride)

    async def fill_scratch(self, words: int = 16) -> None:
        """Write so many random words of the scratchpad with random bits."""
        places = self.random.permutation(self.scratch_bytes // 4)[:words]
        for place in sorted(int(place) for place in places):
            if self.scratch_bytes > 64:
                await self._set(CmdReg.SCRATCH_PAGE, place // 16)
            await self.write(CmdReg(CmdReg.SCRATCH0 + 4 * (place % 16)), self.word())

    # ----------------------------------------------------------------------------------------------
    # By descriptor
    # ----------------------------------------------------------------------------------------------
    def place(self, index: int) -> int:
        """Return the address of entry `index`."""
        return self.base + ENTRY_BYTES * (index % ENTRIES)

    def put(self, *descriptors: DescriptorWords) -> None:
        """Put descriptors into the ring behind the last ones; the chip does not know yet."""
        for descriptor in descriptors:
            words = descriptor.words
            for place in range(descriptor.places):
                data = np.array(words[4 * place : 4 * place + 4], "<u4").tobytes()
                self.bus.write_memory(self.place(self.head), data)
                self.bus.note(f"entry {self.head}: {data.hex(' ', 4)}")
                self.head = (self.head + 1) % ENTRIES
            self._pending.append(descriptor)

    async def move_base(self, base: int) -> None:
        """Have the ring somewhere else from the next descriptor on; it must be empty."""
        self.base = base
        await self.write(CmdReg.DESC_BASE, base)

    async def begin(self) -> None:
        """Move DESC_HEAD behind what was put, and start."""
        await self.write(CmdReg.DESC_HEAD, self.head)
        await self._set(CmdReg.CMD_PARAM, self.param | DESCRIPTOR)
        await self.write(CmdReg.CTRL_STATUS, START)

    async def finish(self) -> bool:
        """Wait for the end of the ring; return whether it ended without an error."""
        right = await self.wait()
        self.bus.adopt_undefined(late=bool(self.memory.knobs.write_silent))
        status = await self.read(CmdReg.DESC_STATUS) & 0xFF
        tail = await self.read(CmdReg.DESC_TAIL)
        ended = sum(one.places for one in self._pending) - (self.head - tail) % ENTRIES
        if status and status != RingStatus.DONE:
            self.count({ring_row(status, tail)})
        while self._pending and ended > 0:
            self.count({ring_row(RingStatus.DONE, tail - ended)})
            ended -= self._pending[0].places
            self.count(used(self._pending.pop(0), ternary=bool(self.param & TERNARY)))
        return right

    async def run(self, *descriptors: DescriptorWords) -> bool:
        """Put descriptors, start, wait; return whether all ended without an error."""
        self.put(*descriptors)
        await self.begin()
        return await self.finish()

    async def skip(self) -> None:
        """Give up the descriptor that has failed; those behind it stay."""
        failed = self._pending.pop(0)
        await self.write(CmdReg.DESC_TAIL, (await self.read(CmdReg.DESC_TAIL) + failed.places) % 8)

    @property
    def pending(self) -> int:
        """How many descriptors wait."""
        return len(self._pending)

    async def drop(self) -> None:
        """Give up the descriptors that a failed one has left in the ring."""
        self._pending.clear()
        await self.write(CmdReg.DESC_TAIL, self.head)

    async def set_knobs(self, knobs: Knobs) -> None:
        """Change the behaviour of both memories."""
        self.memory.obey(knobs)
        await self.bench.set_knobs(knobs)

    async def settle(self, cycles: int = 200) -> None:
        """Let late answers of the memory arrive."""
        await ClockCycles(self.bench.dut.clk, cycles)

    async def use_records(self, log2_size: int, base: int = RECORDS) -> None:
        """Have a record of every descriptor written, from the start of a fresh ring on."""
        await self.write(CmdReg.CQ_CTRL, 0)
        await self.write(CmdReg.CQ_BASE, base)
        await self.write(CmdReg.CQ_TAIL, 0)
        await self.write(CmdReg.CQ_CTRL, 1 | log2_size << 8)
        self.bus.records.append(range(base, base + (16 << log2_size)))

    async def consume_records(self) -> int:
        """Move CQ_TAIL to CQ_HEAD; return it."""
        head = await self.read(CmdReg.CQ_HEAD)
        await self.write(CmdReg.CQ_TAIL, head)
        return head

    # ----------------------------------------------------------------------------------------------
    # Chip and model
    # ----------------------------------------------------------------------------------------------
    async def compare(self) -> None:
        """Compare all registers, the scratchpad, the interrupt line and the memory.

        Of the chip's own counters those of the last program, unless one is running.
        """
        await self.bus.compare()
        if not (await self.bench.chip.state())["BUSY"]:
            await self.bench.chip.counters()

    async def compare_scratch(self) -> None:
        """Compare the scratchpad only."""
        await self.bus.compare_scratch()

    def count(self, rows: set[str]) -> None:
        """Count rows of the table of `make regress` as executed."""
        self.bench.add_hits(rows)

    def data(self, address: int, size: int) -> bytes:
        """Put random bytes into both memories; return them."""
        data = self.random.integers(0, 256, size, np.uint8).tobytes()
        self.bus.write_memory(address, data)
        return data
