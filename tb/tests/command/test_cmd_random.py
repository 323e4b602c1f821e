# SPDX-License-Identifier: Apache-2.0
"""Random sessions on the command port: everything it can do, in any order, right or wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import cocotb

from npu.asm import assemble
from spec.regs import CHIP_BASE, SEQ_BASE, SEQ_FIELDS, ChipReg, CmdOp, CmdReg
from spec.regs.generated import SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, full
from tb.bench.knobs import Knobs
from tb.command.command_session import CLEAR, HOSTILE, RECORDS, RING, TERNARY, CommandSession
from tb.command.descriptor_words import SCALARS, TILES, DescriptorWords, TileWords, launch
from tb.command.faulty_descriptors import configuration_faults
from tb.command.random_descriptors import AREA, SOURCE, Maker, any_tile, legal_tile, operand

TAGS = ("cmd", "random")

SCRATCH_BYTES = (64, 128, 256)
COPY = """
    DMA_LOAD dst=0x0 M=1 N=96 b=0
    SET OUTCNT v=3
    BARRIER ld
    DMA_STORE dst=0x0 M=1 N=96 b=1
    END
"""
ENDLESS = "NOP\nNOP"
"""A program without END."""


class _Actions:
    """What a session may do next."""

    def __init__(self, session: CommandSession) -> None:
        self.session = session
        self.random = session.random
        self.faults = list(configuration_faults(session.scratch_bytes))
        self.records = False
        self.programs = []
        for number, text in enumerate((COPY, ENDLESS)):
            words = assemble(text).instructions
            place = PROGRAM + 0x1000 * number
            session.bus.write_memory(place, b"".join(word.encode() for word in words))
            self.programs.append((place, len(words)))

    def below(self, limit: int) -> int:
        """Return a random number from 0 on."""
        return int(self.random.integers(limit))

    def _tile(self) -> tuple[CmdOp, TileWords]:
        op = (*TILES, CmdOp.VRELU_S8)[self.below(3)]
        return op, legal_tile(self.random, op, self.session.scratch_bytes)

    def _launch(self, which: int) -> DescriptorWords:
        place, length = self.programs[which]
        source, target = INPUT + 16 * self.below(64), OUTPUT + 16 * self.below(64)
        return launch(
            place,
            length,
            token=self.session.word(),
            base0=source,
            base1=target,
            tag=self.below(256),
        )

    def _descriptor(self, op: CmdOp, tile: TileWords) -> DescriptorWords:
        maker = Maker(self.random, self.session.scratch_bytes, bool(self.session.param & TERNARY))
        kind = self.below(8)
        if kind == 0:
            return self._launch(0)
        if kind <= 2:
            return maker.extended(CmdOp(self.below(16)))
        if kind == 3:
            return maker.plain(op, tile)
        return maker.plain(SCALARS[self.below(len(SCALARS))], tile)

    async def operate(self) -> None:
        """Run anything by register."""
        op = CmdOp(self.below(16))
        tile = None
        if op not in SCALARS:
            tile = any_tile(self.random, op, self.session.scratch_bytes)
        a, b, acc = (operand(self.random) for _ in range(3))
        await self.session.operate(op, a, b, acc, tile)

    async def batch(self) -> None:
        """Run a batch, often with something wrong in it."""
        session = self.session
        op, tile = self._tile()
        await session.set_tile(tile)
        room = 1 + self.below(7)
        while room > 0:
            made = self._descriptor(op, tile)
            if self.below(6) == 0:
                made = self.faults[self.below(len(self.faults))][2]
            elif self.below(30) == 0:
                made = self._launch(1)
            if made.places > room:
                break
            session.put(made)
            room -= made.places
        if self.records:
            await session.consume_records()
        await session.begin()
        while not await session.finish():
            if not session.pending or self.below(3) == 0:
                await session.drop()
                return
            await session.skip()
            if not session.pending:
                return
            if self.records:
                await session.consume_records()
            await session.begin()

    async def settings(self) -> None:
        """Change how the next starts work."""
        session = self.session
        session.param = TERNARY * self.below(2)
        await session.write(CmdReg.CMD_IRQ, 2 * self.below(2) + self.below(2))
        await session.move_base(RING + 4 * self.below(1024))
        if self.below(3) == 0:
            self.records = bool(self.below(2))
            if self.records:
                await session.use_records(3 + self.below(4), RECORDS + 0x1000 * self.below(4))
            else:
                await session.write(CmdReg.CQ_CTRL, 0)

    async def clear(self) -> None:
        """Take back reports or counters, or count an event."""
        session = self.session
        which = self.below(4)
        if which == 0:
            await session.write(CmdReg.CTRL_STATUS, CLEAR)
        elif which == 1:
            await session.write(CmdReg.PERF_ERRORS, session.word())
        elif which == 2:
            await session.write(CmdReg.PERF_THERMAL_THROTTLE, session.word())
        else:
            await session.bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 3)

    async def soft_reset(self) -> None:
        """Reset what runs, which is nothing."""
        await self.session.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await self.session.settle(20)

    async def scratch(self) -> None:
        """Write some of the scratchpad."""
        await self.session.fill_scratch(self.below(8))

    async def memory(self) -> None:
        """Change the temper of the memory."""
        knobs = (Knobs(), *HOSTILE, Knobs(read_latency=3, write_latency=2))
        await self.session.set_knobs(knobs[self.below(len(knobs))])

    async def compare(self) -> None:
        """Compare everything."""
        await self.session.compare()

    def choose(self) -> Callable[[], Awaitable[None]]:
        """Return what happens next."""
        actions = (self.operate, self.batch, self.settings, self.clear, self.scratch, self.memory)
        weights = (8, 10, 2, 1, 2, 1)
        at = self.below(sum(weights) + 3)
        for action, weight in zip(actions, weights, strict=True):
            if at < weight:
                return action
            at -= weight
        return self.compare if at else self.soft_reset


@cocotb.test
async def test_cmd_random(dut: Dut) -> None:
    """A random session; chip and model agree in every access, and in everything at the end."""
    session = await CommandSession.start(dut)
    session.data(SOURCE, AREA)
    actions = _Actions(session)
    for _ in range(1500 if full() else 220):
        action = actions.choose()
        session.bus.note(f"--- {action.__name__}")
        await action()
    await session.compare()
