# SPDX-License-Identifier: Apache-2.0
"""The command port alone, by register and by descriptors, against the golden port."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from operator import xor

import cocotb
import numpy as np

from golden.command import CYCLE_REGISTERS, FaultyMemory, GuardedRange, PortModel, ProgramEnd
from golden.command.descriptor import LaunchWords
from spec.regs import CMD_FIELDS, CmdOp, CmdReg, RingStatus
from tb.bench.dut import Dut
from tb.bench.environment import PROGRAM
from tb.bench.memory import Memory
from tb.command.descriptor_words import SCALARS, TILES, DescriptorWords, TileWords, launch
from tb.command.faulty_descriptors import configuration_faults
from tb.command.random_descriptors import AREA, SOURCE, TARGET, Maker, any_tile, legal_tile
from tb.unit.memory_faults import MemoryFaults
from tb.unit.requests import OBSERVED, REQUEST, SLOT_BYTES
from tb.unit.world import UnitBench, World

LONGEST = 80
"""Cycles in which any operation has ended: a VRELU of 64 bytes may copy one of them at a time."""
SCRATCH = range(CmdReg.SCRATCH0, CmdReg.SCRATCH15 + 4, 4)
SHOWN = (CmdReg.RESULT, CmdReg.RESULT_HI, CmdReg.CTRL_STATUS, CmdReg.PERF_MACS, *SCRATCH)
START = CMD_FIELDS["CTRL_STATUS_START"].mask
OPERATIONS = 90

RING, RECORDS = 0x30_0000, 0x38_0000
"""Where rings and completion rings are, a new one for every batch."""
REGIONS = (
    GuardedRange(0x30_0000, 0x31_2FFF, read=True, write=False),
    GuardedRange(TARGET, TARGET + AREA - 1, read=False, write=True),
    GuardedRange(RECORDS, RECORDS + 0x3FFF, read=False, write=True),
)
STREAM = range(0x32_2040, 0x32_20C0)
"""What the command port may touch, and the stream in use, as `unit_cmd` sets them."""
SCRATCH_BYTES, PLACES, CYCLES = 64, 8, slice(12, 16)
"""Bytes of the scratchpad, entries of a ring, and the bytes of a record that count cycles."""
BATCHES = 45
"""Batches of descriptors in a run; their accesses have room in a slot."""
DESCRIPTOR, TERNARY = CMD_FIELDS["CMD_PARAM_DESCRIPTOR"].mask, CMD_FIELDS["CMD_PARAM_TERNARY"].mask
FEWEST_RUNS, MOST_RUNS = 8, 60
"""Runs until batches have ended in every way."""
COMPARED = [each for each in CmdReg if each not in CYCLE_REGISTERS and each != CmdReg.DEBUG]


@dataclass(frozen=True)
class Access:
    """An access to a register.

    Attributes:
        register: which one.
        value: what is written; None: it is read.
        expected: what is read.
        after_irq: it waits for the interrupt.
    """

    register: CmdReg | int
    value: int | None = None
    expected: int = 0
    after_irq: bool = False


async def play(unit: UnitBench, accesses: list[Access], pauses: list[int]) -> None:
    """Play accesses on the chip's port; what is read must be what golden's port has."""
    requests = np.zeros(len(accesses), REQUEST)
    for index, each in enumerate(accesses):
        word = (each.value or 0) | int(each.register) << 32 | (each.value is not None) << 40
        word |= each.after_irq << 41
        requests["payload"][index] = list(word.to_bytes(14, "little"))
    requests["wait"] = pauses
    unit.memory.stage(PROGRAM, requests.tobytes())
    await unit.run(World.draw(unit.random), 2_000_000, words=len(accesses))
    read = unit.memory.array(OBSERVED + SLOT_BYTES, (len(accesses), 4), np.uint32)[:, 0]
    for index, (each, actual) in enumerate(zip(accesses, read.tolist(), strict=True)):
        if each.value is None and actual != each.expected:
            raise AssertionError(
                f"access {index}, {CmdReg(each.register).name} after {_last_start(accesses, index)}"
                f": expected {each.expected:#010x}, actual {actual:#010x}"
            )


def _last_start(accesses: list[Access], index: int) -> str:
    """Say what has been started before an access."""
    start = (CmdReg.CTRL_STATUS, START)
    starts = [each for each in accesses[:index] if (each.register, each.value) == start]
    writes = [each for each in accesses[:index] if each.register == CmdReg.OPCODE]
    ops = [each.value for each in writes if each.value is not None]
    return f"start {len(starts)}" + (f", {CmdOp(ops[-1]).name}" if ops else "")


# --------------------------------------------------------------------------------------------------
# By register
# --------------------------------------------------------------------------------------------------
def operation(random: np.random.Generator, op: CmdOp) -> list[tuple[int, int]]:
    """Return the registers and values with which an operation runs on random operands."""
    tile = (CmdReg.GEMM_CFG, CmdReg.GEMM_BASE, CmdReg.GEMM_STRIDE)
    filled = random.choice(np.array(SCRATCH), 6, replace=False).tolist()
    random_ones = (CmdReg.OP_A, CmdReg.OP_B, CmdReg.ACC, *tile, *filled)
    writes = [(int(each), int(random.integers(1 << 32))) for each in random_ones]
    if op in (*TILES, CmdOp.VRELU_S8):
        drawn = (legal_tile if random.random() < 0.7 else any_tile)(random, op, SCRATCH_BYTES)
        writes += zip(map(int, tile), (drawn.cfg, drawn.base, drawn.stride), strict=True)
    return [*writes, (CmdReg.OPCODE, int(op)), (CmdReg.CTRL_STATUS, START)]


@cocotb.test
async def unit_cmd_operations(dut: Dut) -> None:
    """Every operation on random operands and tiles, allowed ones and others."""
    unit = UnitBench.of(dut)
    for _ in range(8):
        port = PortModel(FaultyMemory(np.zeros(16, np.uint8)))
        MemoryFaults().stage(unit)
        accesses: list[Access] = []
        pauses: list[int] = []
        for op in unit.random.choice(np.array(list(CmdOp)), OPERATIONS).tolist():
            for register, value in operation(unit.random, CmdOp(op)):
                port.write(register, value)
                accesses.append(Access(register, value))
            accesses += [Access(each, expected=port.read(each)) for each in SHOWN]
            pauses += [0] * (len(accesses) - len(pauses))
            pauses[-len(SHOWN)] = LONGEST
        await play(unit, accesses, pauses)


# --------------------------------------------------------------------------------------------------
# By descriptor
# --------------------------------------------------------------------------------------------------
def program_end(program: LaunchWords) -> ProgramEnd:
    """Return how a program ends, as `unit_cmd` has it."""
    words = (program.token, program.base0, program.base1, program.ucode_base, program.ucode_len)
    error = program.pos & 0x7F00 if program.pos & 1 else 0
    return ProgramEnd(reduce(xor, words), error)


@dataclass
class RingRun:
    """A run of the bench with batches of descriptors, made for golden's port and then played.

    Attributes:
        unit: the bench.
        memory: golden's memory.
        port: golden's port.
        accesses: what is to be played.
        codes: how batches end.
    """

    unit: UnitBench
    memory: FaultyMemory
    port: PortModel
    accesses: list[Access] = field(default_factory=list)
    codes: list[RingStatus] = field(default_factory=list)

    @classmethod
    def of(cls, unit: UnitBench) -> RingRun:
        """Return one in whose memory something answers with an error, or nothing does."""
        area, writes = ((SOURCE, False), (TARGET, True))[int(unit.random.integers(2))]
        first = area + 16 * int(unit.random.integers(0x100))
        errors = range(first, first + int(unit.random.choice([0, 1, 200])))
        MemoryFaults(errors=errors, writes=writes).stage(unit)
        memory = FaultyMemory(unit.memory.snapshot(), regions=REGIONS)
        memory.stream = (STREAM.start, STREAM.stop - 1)
        if errors:
            hit = memory.write_errors if writes else memory.read_errors
            hit.append((errors.start, errors.stop - 1))
        return cls(unit, memory, PortModel(memory, launch=program_end))

    def write(self, register: CmdReg, value: int) -> None:
        """Write a register."""
        self.port.write(int(register), value)
        self.accesses.append(Access(register, value))

    def descriptors(self, op: CmdOp, tile: TileWords, ternary: bool) -> list[DescriptorWords]:
        """Return a batch that fits into a ring, sometimes with something wrong in it."""
        random = self.unit.random
        maker = Maker(random, SCRATCH_BYTES, ternary)
        faults = list(configuration_faults(SCRATCH_BYTES))
        batch: list[DescriptorWords] = []
        while True:
            kind = random.random()
            if kind < 0.05:
                made = faults[int(random.integers(len(faults)))][2]
            elif kind < 0.2:
                token, base0, base1 = random.integers(1 << 32, size=3).tolist()
                pos = int(random.choice([6, 0x7FFE, 0x4301])) if kind < 0.08 else 0
                made = launch(16 * 77, 5, token=token, base0=base0, base1=base1, pos=pos, tag=9)
            elif kind < 0.5:
                made = maker.extended(CmdOp(int(random.integers(16))))
            elif kind < 0.65:
                made = maker.plain(op, tile)
            else:
                made = maker.plain(SCALARS[int(random.integers(len(SCALARS)))], tile)
            if sum(each.places for each in [*batch, made]) >= PLACES:
                return batch or [DescriptorWords(CmdOp.ADD, 1, 2)]
            batch.append(made)

    def batch(self, index: int) -> None:
        """Add a batch in a ring of its own, from a random entry on, and read every register.

        Now and then the ring has no entry, or its base is no multiple of 4.
        """
        random = self.unit.random
        op = (*TILES, CmdOp.VRELU_S8)[int(random.integers(3))]
        tile = legal_tile(random, op, SCRATCH_BYTES)
        ternary = bool(random.random() < 0.5)
        # Of the first ring the first entries must not be read.
        base = RING + 256 * index - 64 * (index == 0) + 4 * int(random.integers(8))
        tail = at = int(random.integers(PLACES))
        empty, odd = (random.random(2) < 0.03).tolist()
        self.write(CmdReg.CMD_PARAM, DESCRIPTOR | TERNARY * ternary)
        for register, value in (
            (CmdReg.GEMM_CFG, tile.cfg),
            (CmdReg.GEMM_BASE, tile.base),
            (CmdReg.GEMM_STRIDE, tile.stride),
            (CmdReg.DESC_BASE, base + odd * int(random.integers(1, 4))),
            (CmdReg.DESC_TAIL, tail),
        ):
            self.write(register, value)
        for descriptor in self.descriptors(op, tile, ternary):
            data = np.array(descriptor.words, "<u4").tobytes()
            for entry in range(descriptor.places):
                place = base + 16 * (at % PLACES)
                for memory in (self.unit.memory, Memory(self.memory.data)):
                    memory.stage(place, data[16 * entry : 16 * entry + 16])
                at += 1
        self.write(CmdReg.DESC_HEAD, tail if empty else at % PLACES)
        self.write(CmdReg.CQ_TAIL, self.port.read(int(CmdReg.CQ_HEAD)))
        self.write(CmdReg.CTRL_STATUS, START)
        self.codes.append(RingStatus(self.port.state.status))
        for number, register in enumerate(COMPARED):
            expected = self.port.read(int(register))
            self.accesses.append(Access(register, None, expected, after_irq=number == 0))

    def compare_memory(self) -> None:
        """Compare memory, but for cycles in records and what failed writes leave undefined.

        Raises:
            AssertionError: the first byte that differs.
        """
        known = np.ones(OBSERVED, np.bool_)
        known[PROGRAM:] = False
        known[RECORDS : RECORDS + 0x4000].reshape(-1, 16)[:, CYCLES] = False
        for address, size in self.port.undefined:
            known[address : address + size] = False
        wrong = np.flatnonzero(
            known & (self.unit.memory.data[:OBSERVED] != self.memory.data[:OBSERVED])
        )
        if wrong.size:
            at = int(wrong[0]) & -16
            raise AssertionError(
                f"memory differs in {wrong.size} bytes, first at {int(wrong[0]):#x}: expected "
                f"{self.memory.data[at : at + 16].tobytes().hex()}, actual "
                f"{self.unit.memory.read(at, 16).hex()}"
            )


@cocotb.test
async def unit_cmd_ring(dut: Dut) -> None:
    """Batches of descriptors, right and wrong, with records, in a memory that has errors."""
    unit = UnitBench.of(dut)
    never = {RingStatus.NONE, RingStatus.TIMEOUT}
    unseen = set(RingStatus) - never
    for number in count():
        assert number < MOST_RUNS, f"no batch ended with {unseen}"
        if not unseen and number >= FEWEST_RUNS:
            return
        run = RingRun.of(unit)
        if unit.random.random() < 0.8:
            run.write(CmdReg.CQ_BASE, RECORDS + 0x100 * int(unit.random.integers(16)))
            run.write(CmdReg.CQ_CTRL, 1 | int(unit.random.integers(3, 7)) << 8)
        for index in unit.random.permutation(BATCHES).tolist():
            run.batch(index)
        pauses = unit.random.choice([0, 0, 0, 3], len(run.accesses))
        # A start takes the interrupt of the one before back first.
        pauses[[each.after_irq for each in run.accesses]] = 4
        await play(unit, run.accesses, pauses.tolist())
        run.compare_memory()
        unseen -= set(run.codes)
