# SPDX-License-Identifier: Apache-2.0
"""A session on the coprocessor's port: chip and model execute the same lists and must agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.command.memory import GuardedRange
from golden.coprocessor import CopFault, Coprocessor, Uncertain
from npu.driver.bus import RegisterAccess
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, decode
from spec.regs import CHIP_BASE, CHIP_FIELDS, SEQ_BASE, SEQ_FIELDS
from spec.regs.generated import COP_BASE, COP_FIELDS, ChipReg, CopReg, SeqReg
from tb.bench.bursts import PAGE
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.knobs import Knobs
from tb.bench.memory import equal
from tb.bench.memory_regions import OPEN, RegionRegisters, protect
from tb.bench.offers import PATIENCE, Answer, Offer, OfferPlayer
from tb.bench.scoreboard import MismatchError
from tb.cop import cop_coverage
from tb.cop.cop_memory import CopMemory
from tb.cop.random_offers import Pieces, describe

CLEAR, TRAP = COP_FIELDS["CTRL_CLEAR"].mask, COP_FIELDS["CTRL_TRAP"].mask
IRQ = CHIP_FIELDS["IRQ_STATUS_COP"].mask
SLOWEST, TYPICAL = 300_000, 10_000
"""Cycles of a random instruction: one element after the other on a slow memory, and most others."""
_STATE = (
    *(CopReg.ACC_LO, CopReg.ACC_HI, CopReg.VREG0, CopReg.VREG1, CopReg.VREG2, CopReg.VREG3),
    *(CopReg.FACC_LO, CopReg.FACC_HI, CopReg.STATUS, CopReg.CTRL, CopReg.FAULT_INSTR),
    *(CopReg.FAULT_ADDR, CopReg.FAULT_INDEX, CopReg.LIMIT, CopReg.INSTRS, CopReg.CYCLES),
    *(CopReg.BEATS, CopReg.CONFIG),
)
_COUNTERS = (CopReg.INSTRS, CopReg.CYCLES, CopReg.BEATS)


@dataclass(frozen=True)
class ListScene:
    """What a list of instructions is executed in.

    Attributes:
        offers: the list.
        pieces: what is put into memory before.
        limit: the register LIMIT.
        trap: CTRL.TRAP.
        knobs: the memory.
        regions: what the chip may access.
        timeout: MEM_TIMEOUT in cycles.
    """

    offers: Sequence[Offer]
    pieces: Pieces = field(default_factory=dict)
    limit: int = 256
    trap: bool = True
    knobs: Knobs = field(default_factory=Knobs)
    regions: tuple[RegionRegisters, ...] = (OPEN,)
    timeout: int = 4096

    def __str__(self) -> str:
        """The scene without its list."""
        silent = {name: value for name, value in vars(self.knobs).items() if value}
        return (
            f"LIMIT={self.limit} TRAP={int(self.trap)} MEM_TIMEOUT={self.timeout} "
            f"regions={self.regions} knobs={silent}"
        )

    def text(self) -> str:
        """Return all of the scene, an instruction a line."""
        return "\n".join([str(self), *(f"    {describe(one)}  {one}" for one in self.offers)])


@dataclass
class CopSession:
    """Chip and model after reset, with the same memory.

    Attributes:
        bench: the bench around the chip.
        player: the host of the coprocessor's port.
        memory: the model's memory.
        model: the model.
    """

    bench: Bench
    player: OfferPlayer
    memory: CopMemory
    model: Coprocessor
    _regions: tuple[RegionRegisters, ...] = (OPEN,)
    _timeout: int = 4096
    _counted: dict[CopReg, int] = field(default_factory=dict)
    _open: list[Uncertain] = field(default_factory=list)

    @classmethod
    async def start(cls, dut: Dut, knobs: Knobs | None = None) -> CopSession:
        """Reset chip and model."""
        return await cls.around(await Bench.start(dut, knobs), knobs)

    @classmethod
    async def around(cls, bench: Bench, knobs: Knobs | None = None) -> CopSession:
        """Put a model beside a chip that has been reset and not used yet."""
        memory = CopMemory(bench.memory.snapshot(), knobs=knobs or Knobs())
        model = Coprocessor(memory, num_rs=int(str(cocotb.plusargs["cop_sources"])))
        return cls(bench, OfferPlayer(bench.dut, bench.run_dir), memory, model)

    @property
    def _is_silent(self) -> bool:
        return bool(self.memory.knobs.read_silent or self.memory.knobs.write_silent)

    @property
    def random(self) -> np.random.Generator:
        """The test's random generator."""
        return self.bench.random

    # ----------------------------------------------------------------------------------------------
    # Surroundings
    # ----------------------------------------------------------------------------------------------
    async def read(self, register: CopReg) -> int:
        """Return a register of the chip's window."""
        return await self.bench.bus.read32(COP_BASE + register)

    async def write(self, register: CopReg, value: int) -> None:
        """Write a register of the chip's window; the model has it as well."""
        kept = COP_FIELDS["LIMIT_BYTES"].mask if register == CopReg.LIMIT else 0xFFFF_FFFF
        self.model.write(register, value & kept)
        if register in _COUNTERS:
            self._counted[register] = self._monitored(register)
        await self.bench.bus.write32(COP_BASE + register, value)

    async def clear(self) -> None:
        """Forget the fault."""
        await self.write(CopReg.CTRL, CLEAR | TRAP * self.model.trap)

    def put(self, address: int, data: bytes) -> None:
        """Put bytes into both memories."""
        self.bench.memory.stage(address, data)
        self.memory.store(address, data)

    async def set_knobs(self, knobs: Knobs) -> None:
        """Change the behaviour of both memories."""
        self.memory.knobs = knobs
        await self.bench.set_knobs(knobs)

    async def set_regions(self, regions: tuple[RegionRegisters, ...]) -> None:
        """Change what the chip may access."""
        if regions == self._regions:
            return
        self._regions = regions
        await protect(self.bench, regions)
        self.memory.regions = [
            GuardedRange(one.base & -PAGE, one.limit | PAGE - 1, one.read, one.write)
            for one in regions
        ]

    async def set_timeout(self, cycles: int) -> None:
        """Change the patience with the memory."""
        if cycles != self._timeout:
            self._timeout = cycles
            await self.bench.chip.write_chip(ChipReg.MEM_TIMEOUT, cycles)

    async def set_scene(self, scene: ListScene) -> None:
        """Prepare chip and model for a list."""
        for address, data in scene.pieces.items():
            self.put(address, data)
        if scene.limit != self.model.limit:
            await self.write(CopReg.LIMIT, scene.limit)
        if scene.trap != self.model.trap:
            await self.write(CopReg.CTRL, TRAP * scene.trap)
        await self.set_regions(scene.regions)
        await self.set_timeout(scene.timeout)
        if scene.knobs != self.memory.knobs:
            await self.set_knobs(scene.knobs)

    # ----------------------------------------------------------------------------------------------
    # Instructions
    # ----------------------------------------------------------------------------------------------
    async def run(self, *offers: Offer, limit: int = PATIENCE) -> list[Answer]:
        """Have instructions executed; compare every answer and everything that is left.

        Raises:
            MismatchError: chip and model differ.
            DeviceError: the chip did not end.
        """
        answers = await self.player.play(offers, limit)
        self.check(offers, answers)
        await self.compare()
        return answers

    async def run_scene(self, scene: ListScene) -> None:
        """Execute a list to its end: a fault that refuses the rest is cleared.

        Raises:
            MismatchError: chip and model differ.
            DeviceError: the chip did not end.
        """
        await self.set_scene(scene)
        left = list(scene.offers)
        while left:
            answers = await self.player.play(left, SLOWEST + TYPICAL * len(left))
            done = self.check(left, answers)
            await self.compare()
            left = left[done:]
            if self._is_silent and self.model.fault is not None:
                await self.set_knobs(Knobs())
                await self.settle()
            if left or (self.model.fault is not None and self.random.random() < 0.5):
                await self.clear()

    async def settle(self, cycles: int = 300) -> None:
        """Let late answers of the memory arrive, and take what they have brought."""
        await ClockCycles(self.bench.dut.clk, cycles)
        self._adopt()
        self._open.clear()

    async def soft_reset(self) -> None:
        """Reset the chip softly while nothing runs."""
        await self.bench.bus.write32(SEQ_BASE + SeqReg.CTRL, SEQ_FIELDS["CTRL_SOFT_RESET"].mask)
        await ClockCycles(self.bench.dut.clk, 30)
        self.model.soft_reset()

    def check(self, offers: Sequence[Offer], answers: Sequence[Answer]) -> int:
        """Execute on the model what the chip has, and compare each answer.

        Returns:
            how many were answered before the first that only a fault has refused.

        Raises:
            MismatchError: the first difference.
        """
        refused = len(offers)
        rows: list[str] = []
        for index, (offer, answer) in enumerate(zip(offers, answers, strict=True)):
            place = f"instruction {index} of {len(offers)}: {describe(offer)}"
            stands = self.model.fault is not None and self.model.trap
            known = stands and decode(offer.word) is not None
            expected = self.model.offer(offer.word)
            actual = (
                answer.accepted,
                answer.writeback,
                answer.register_read,
                answer.float_registers,
            )
            if tuple(expected) != actual:
                raise MismatchError(f"{place}: expected {expected}, actual {actual}")
            if not expected.accept:
                rows.append(cop_coverage.refused(known=known))
                if known and refused == len(offers):
                    refused = index
                continue
            rows.extend(cop_coverage.samples(offer))
            if answer.killed:
                rows.append(cop_coverage.killed(offer))
                continue
            fault = self._check_result(offer, answer, place)
            rows.extend(cop_coverage.executed(offer, fault))
        self.bench.add_hits(rows)
        return refused

    def _check_result(self, offer: Offer, answer: Answer, place: str) -> CopFault | None:
        result = self.model.execute(offer.word, *offer.rs)
        if result.uncertain is not None:
            self._open.append(result.uncertain)
        if not answer.resulted:
            raise MismatchError(f"{place}: there is no result")
        rd = result.rd if result.we else answer.rd
        data = result.data if result.we else answer.data
        expected, actual = (result.we, rd, data), (answer.we, answer.rd, answer.data)
        if expected != actual:
            raise MismatchError(
                f"{place}: expected we {expected[0]:d} rd {rd} data {data:#010x}, actual "
                f"we {answer.we:d} rd {answer.rd} data {answer.data:#010x} ({result.fault})"
            )
        return result.fault

    # ----------------------------------------------------------------------------------------------
    # Comparison
    # ----------------------------------------------------------------------------------------------
    def _monitored(self, register: CopReg) -> int:
        dut = self.bench.dut
        if register == CopReg.INSTRS:
            return int(dut.cop_instrs.value)
        if register == CopReg.CYCLES:
            return int(dut.cop_cycles.value)
        return int(dut.cop_reads.value) + int(dut.cop_writes.value)

    def _expected(self, register: CopReg) -> int:
        """Return what the window must show of an idle coprocessor."""
        if register in (CopReg.CYCLES, CopReg.BEATS):
            return self._monitored(register) - self._counted.get(register, 0) & 0xFFFF_FFFF
        return self.model.read(register)

    async def compare(self) -> None:
        """Compare the window, the interrupt's status, the memory; nothing may be under way.

        Raises:
            MismatchError: the first difference.
        """
        bus = self.bench.bus
        accesses = [RegisterAccess(COP_BASE + register) for register in _STATE]
        values = await bus.access([*accesses, RegisterAccess(CHIP_BASE + ChipReg.IRQ_STATUS)])
        for register, value in zip(_STATE, values, strict=False):
            expected = self._expected(register)
            if value != expected:
                raise MismatchError(
                    f"{register.name}: expected {expected:#010x}, actual {value:#010x}"
                )
        if bool(values[-1] & IRQ) != (self.model.fault is not None):
            raise MismatchError(f"IRQ_STATUS {values[-1]:#x}, the fault is {self.model.fault}")
        instrs = self._monitored(CopReg.INSTRS) - self._counted.get(CopReg.INSTRS, 0)
        if instrs & 0xFFFF_FFFF != self.model.instructions:
            raise MismatchError(
                f"results: expected {self.model.instructions}, the monitor counted {instrs}"
            )
        left = int(self.bench.dut.cop_open.value), int(self.bench.dut.cop_owed.value)
        if left[0] or (left[1] and not self._is_silent):
            raise MismatchError(f"{left[0]} instructions and {left[1]} bursts left open")
        self._adopt()
        if not equal(self.bench.memory.data, self.memory.data):
            self._tell_memory()

    def _adopt(self) -> None:
        """Let the model have what failed writes have left in the chip's memory.

        Raises:
            MismatchError: a byte is neither the old nor the new one.
        """
        for one in self._open:
            inside = max(0, min(len(one.old), self.memory.data.size - one.address))
            found = self.bench.memory.read(one.address, inside) if inside else b""
            if not one.permits(found + one.old[inside:]):
                raise MismatchError(
                    f"memory from {one.address:#x}: {found.hex()}, old {one.old.hex()}, "
                    f"new {one.new.hex()}"
                )
            self.memory.store(one.address, found)
        if not self._is_silent:
            self._open.clear()

    def _tell_memory(self) -> None:
        expected, actual = self.memory.data, self.bench.memory.data
        wrong = np.flatnonzero(expected != actual)
        first = int(wrong[0])
        shown = slice(first & -16, (first & -16) + 16)
        raise MismatchError(
            f"memory differs in {wrong.size} bytes, first at {first:#x}: expected "
            f"{expected[shown].tobytes().hex(' ', 4)}, actual "
            f"{actual[shown].tobytes().hex(' ', 4)} from {first & -16:#x}"
        )


def uses_memory(op: CopOp) -> bool:
    """Whether an instruction has operands in memory, so that it can fail."""
    return COP_INSTRUCTIONS[op].element > 0
