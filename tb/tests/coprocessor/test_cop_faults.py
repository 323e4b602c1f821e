# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: every fault of every instruction, with its place, and what follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import cocotb
from cocotb.triggers import ClockCycles

from golden.coprocessor import FaultCode
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopOp, encode
from spec.regs.generated import CopReg
from tb.bench.bursts import PAGE, ReadBursts
from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.bench.memory_regions import OPEN, RegionRegisters
from tb.bench.offers import Offer
from tb.bench.scoreboard import MismatchError
from tb.cop.cop_session import CopSession, ListScene
from tb.cop.random_offers import BORDER, OfferMaker, limit_bytes

TAGS = ("cop", "faults")

COP_SOURCES = (3,)
ELEMENTS, FAILING = 29, 18
"""Elements of an array, and the first that fails."""
FAR = BORDER - 0x800
"""Where an array lies that does not fail."""
ERRING = BORDER - 0x400
"""A bus word that the memory answers with an error."""
CLOSED = RegionRegisters(BORDER, (1 << 32) - 1, False, False)
PATIENCE = 800
"""Limit of waits, in cycles: longer than a DRAM takes to refresh."""
AHEAD, LONG = 64, 1 << 14
"""Words of an operand that are read ahead, and elements of a long one."""
NEAR = 0x200
"""Bytes of it in front of the first that fails."""
SHORT = 300
"""Longer than each wait of a slow memory, shorter than it takes for a burst."""
RELU = Offer(encode(CopOp.RELU, 1, 2), (5, 0, 0))
FLOATS_NAN = 0x7FC0_0000
USERS = [op for op, info in COP_INSTRUCTIONS.items() if info.element]


@dataclass(frozen=True)
class Strike:
    """An access that fails.

    Attributes:
        op: the instruction.
        which: number of its address operand, 0 for rs1.
        shift: bytes by which the array is not aligned.
    """

    op: CopOp
    which: int
    shift: int

    @property
    def count(self) -> int:
        """Elements of the arrays."""
        return ELEMENTS if COP_INSTRUCTIONS[self.op].counted else 1

    @property
    def index(self) -> int:
        """The element that fails: the first with a byte behind the border."""
        return FAILING if COP_INSTRUCTIONS[self.op].counted else 0

    @property
    def address(self) -> int:
        """Where the array begins that fails."""
        size = COP_INSTRUCTIONS[self.op].element
        return BORDER - self.index * size - (self.shift % size)

    def offer(self) -> Offer:
        """Return the instruction."""
        info = COP_INSTRUCTIONS[self.op]
        other = FAR + self.shift
        rs1 = self.address if self.which == 0 else other
        rs2 = self.address if self.which == 1 else other
        if info.rs2 == "count":
            rs2 = self.count
        return Offer(encode(self.op, 10, 11, 12), (rs1, rs2, self.count))


def _strikes() -> Iterator[Strike]:
    for op in USERS:
        places = [0] + [1] * (COP_INSTRUCTIONS[op].rs2 in ("source", "destination", "both"))
        for which in places:
            yield from (Strike(op, which, shift) for shift in (0, 3, 6))


async def _expect(session: CopSession, strike: Strike, code: FaultCode) -> None:
    """Run an instruction that must fail, and everything that must follow."""
    maker = OfferMaker(session.random)
    scalar = maker.scalar(CopOp.MACC), maker.scalar(CopOp.FMACC)
    answers = await session.run(*scalar, strike.offer(), RELU)
    fault = session.model.fault
    assert fault is not None, f"{strike}: golden knows no fault"
    found = fault.code, fault.index, fault.address
    size = COP_INSTRUCTIONS[strike.op].element
    expected = code, strike.index, strike.address + strike.index * size
    if found != expected:
        raise MismatchError(f"{strike}: expected {expected}, golden and chip say {found}")
    assert [answer.accepted for answer in answers] == [True, True, True, False]
    if answers[2].we:
        floating = COP_INSTRUCTIONS[strike.op].rd == "float"
        assert answers[2].data == FLOATS_NAN * floating
    if code == FaultCode.TIMEOUT:
        await session.set_knobs(Knobs())
        await session.settle()
    await session.clear()
    answers = await session.run(RELU, Offer(encode(CopOp.VREDUCE, 1, 2, 3), (FAR, 9, 0)))
    assert all(answer.accepted for answer in answers)
    assert session.model.fault is None


async def _fill(session: CopSession) -> None:
    """Fill memory and the vector registers."""
    maker = OfferMaker(session.random)
    for address, data in maker.pieces.items():
        session.put(address, data)
    session.put(FAR, session.random.bytes(0x400))
    loads = (Offer(encode(CopOp.LDVEC, rd, 1), (FAR + 4 * rd, 0, 0)) for rd in range(4))
    await session.run(*loads)


@cocotb.test
async def test_cop_faults_denied(dut: Dut) -> None:
    """An element on a page that is closed: DENIED, for each operand of each instruction."""
    session = await CopSession.start(dut)
    await _fill(session)
    below = RegionRegisters(0, BORDER - 1, True, True)
    for strike in _strikes():
        written = COP_INSTRUCTIONS[strike.op].rs2 == "destination" and strike.which == 1
        written |= COP_INSTRUCTIONS[strike.op].rs1 == "destination"
        above = RegionRegisters(BORDER, (1 << 32) - 1, written, False)
        await session.set_regions((below, above))
        await _expect(session, strike, FaultCode.DENIED)


@cocotb.test
async def test_cop_faults_ask_for_no_more(dut: Dut) -> None:
    """The other operand of an element that may not be read is not read to its end."""
    session = await CopSession.start(dut)
    await _fill(session)
    below = RegionRegisters(0, BORDER - 1, True, True)
    await session.set_regions((below, CLOSED))
    await session.write(CopReg.LIMIT, 0)
    asked = ReadBursts(dut)
    first, other = BORDER - NEAR, BORDER - 4 * LONG
    for addresses in ((first, other), (other, first)):
        asked.bursts.clear()
        await session.run(Offer(encode(CopOp.VMAC, 10, 11, 12), (*addresses, LONG)))
        await ClockCycles(dut.clk, LONG)
        assert session.model.fault is not None
        words = sum(burst.beats for burst in asked.bursts if burst.address < first)
        assert 0 < words <= NEAR // 16 + AHEAD, f"{words} words of an operand"
        await session.clear()


@cocotb.test
async def test_cop_faults_bus(dut: Dut) -> None:
    """An element that the memory answers with an error: BUS, for each operand."""
    session = await CopSession.start(dut)
    await _fill(session)
    for strike in _strikes():
        knobs = Knobs(read_error=1, write_error=1, error_first=BORDER, error_last=BORDER + 15)
        await session.set_knobs(knobs)
        await _expect(session, strike, FaultCode.BUS)


@cocotb.test
async def test_cop_faults_order(dut: Dut) -> None:
    """Two operands fail, or both words of one element: the first access of the first element."""
    session = await CopSession.start(dut)
    await _fill(session)
    rest = RegionRegisters(0, BORDER - 1, True, True), CLOSED
    await session.set_regions(rest)
    for op in (op for op in USERS if COP_INSTRUCTIONS[op].rs2 in ("source", "destination", "both")):
        size = COP_INSTRUCTIONS[op].element
        for one, other in ((5, 5), (5, 6), (6, 5)):
            for closed_first in (False, True):
                starts = (ERRING, BORDER) if not closed_first else (BORDER, ERRING)
                rs = starts[0] - one * size, starts[1] - other * size, 9
                code = FaultCode.DENIED if closed_first == (one <= other) else FaultCode.BUS
                address = starts[0] if one <= other else starts[1]
                await session.set_knobs(_errors(ERRING))
                await session.run(Offer(encode(op, 1, 2, 3), rs))
                _check_fault(session, op, code, address, min(one, other))
                await session.clear()
    await session.set_knobs(_errors(BORDER - 16))
    for strike in _strikes():
        info, start = COP_INSTRUCTIONS[strike.op], BORDER - 2
        if info.element == 1 or strike.shift:
            continue
        rs2 = 3 if info.rs2 == "count" else FAR
        given = (start, rs2, 3) if strike.which == 0 else (FAR, start, 3)
        await session.run(Offer(encode(strike.op, 1, 2, 3), given))
        _check_fault(session, strike.op, FaultCode.DENIED, start, 0)
        await session.clear()


@cocotb.test
async def test_cop_faults_leave_nothing(dut: Dut) -> None:
    """What a failed instruction has not asked for is not asked for beside the next one either."""
    session = await CopSession.start(dut)
    await _fill(session)
    await session.write(CopReg.LIMIT, 0)
    # A memory that takes requests slowly has failed before as many are made as there is room for.
    await session.set_knobs(replace(_errors(ERRING), read_latency=5, ar_stall=60))
    long, apart, both = 2048, FAR - 0x8000, ("both", "source")
    for op in (op for op in USERS if COP_INSTRUCTIONS[op].rs2 in both):
        for rs in ((ERRING, apart, long), (apart, ERRING, long)):
            await session.run(Offer(encode(op, 1, 2, 3), rs))
            _check_fault(session, op, FaultCode.BUS, ERRING, 0)
            await session.clear()
            await session.run(Offer(encode(CopOp.VMAX, 1, 2, 3), (FAR, 1, 0)))


def _errors(first: int) -> Knobs:
    """Return a memory of which a bus word answers with an error."""
    return Knobs(read_error=1, write_error=1, error_first=first, error_last=first + 15)


def _check_fault(session: CopSession, op: CopOp, code: FaultCode, address: int, index: int) -> None:
    fault = session.model.fault
    expected = code, address, index
    if fault is None or (fault.code, fault.address, fault.index) != expected:
        raise MismatchError(f"{op.name}: expected {expected}, golden and chip say {fault}")


@cocotb.test
async def test_cop_faults_slow(dut: Dut) -> None:
    """MEM_TIMEOUT is for one wait: long arrays may take many times as long."""
    slow = Knobs(60, 60, read_gap=80, ar_stall=70, aw_stall=70, w_stall=70)
    session = await CopSession.start(dut, slow)
    await _fill(session)
    await session.set_timeout(SHORT)
    await session.write(CopReg.LIMIT, 0)
    for op in (op for op in USERS if COP_INSTRUCTIONS[op].counted):
        count = 4000 // COP_INSTRUCTIONS[op].element
        if op in (CopOp.VEXP, CopOp.FVEXP, CopOp.FVGELU):
            count = 99
        other = count if COP_INSTRUCTIONS[op].rs2 == "count" else FAR + 0x1000
        await session.run(Offer(encode(op, 1, 2, 3), (FAR - 0x1001, other, count)))
        assert session.model.fault is None


@cocotb.test
async def test_cop_faults_timeout(dut: Dut) -> None:
    """An element that the memory does not answer: TIMEOUT, for each operand."""
    session = await CopSession.start(dut)
    await _fill(session)
    await session.set_timeout(PATIENCE)
    for strike in _strikes():
        knobs = Knobs(read_silent=1, write_silent=1, silent_first=BORDER, silent_last=BORDER + 15)
        await session.set_knobs(knobs)
        await _expect(session, strike, FaultCode.TIMEOUT)


@cocotb.test
async def test_cop_faults_silence(dut: Dut) -> None:
    """Behind a time-out the next instruction waits for what is owed: TIMEOUT without an access."""
    session = await CopSession.start(dut)
    await _fill(session)
    await session.set_timeout(PATIENCE)
    accepts_all, accepts_nothing = BORDER + PAGE, (1 << 32) - 1
    for op in USERS:
        for last in (accepts_all, accepts_nothing):
            await session.set_knobs(Knobs(read_silent=1, write_silent=1, silent_last=last))
            for turn in range(3):
                start = FAR + 5 * turn
                other = 9 if COP_INSTRUCTIONS[op].rs2 == "count" else FAR + 0x200
                before = await session.read(CopReg.BEATS)
                await session.run(Offer(encode(op, 1, 2, 3), (start, other, 9)))
                _check_fault(session, op, FaultCode.TIMEOUT, start, 0)
                beats = await session.read(CopReg.BEATS) - before
                assert turn == 0 or beats == 0, f"{op.name}: {beats} beats"
                await session.clear()
            await session.set_knobs(Knobs())
            await session.settle()
            await session.run(RELU, Offer(encode(CopOp.VREDUCE, 1, 2, 3), (FAR, 9, 0)))
            assert session.model.fault is None


@cocotb.test
async def test_cop_faults_length(dut: Dut) -> None:
    """One element over LIMIT is refused before any access, also where the size wraps."""
    session = await CopSession.start(dut)
    await _fill(session)
    for limit in (256, 17, 1, 0):
        await session.write(CopReg.LIMIT, limit)
        for op in (op for op in USERS if COP_INSTRUCTIONS[op].counted):
            info = COP_INSTRUCTIONS[op]
            most = limit_bytes(limit) // info.element
            for count in (most + 1, 1 << 30, (1 << 30) + 1, 1 << 31, (1 << 32) - 1):
                rs2 = count if info.rs2 == "count" else FAR + 0x200
                await session.run(Offer(encode(op, 1, 2, 3), (FAR, rs2, count)))
                fault = session.model.fault
                assert fault is not None and fault.code == FaultCode.LENGTH, f"{op.name} {count}"
                await session.clear()
            if limit and most:
                rs2 = most if info.rs2 == "count" else FAR + 0x200
                await session.run(Offer(encode(op, 1, 2, 3), (FAR, rs2, most)))
                assert session.model.fault is None


@cocotb.test
async def test_cop_faults_end_of_addresses(dut: Dut) -> None:
    """An element past 2^32 is DENIED, though all regions permit it; before it the bus errs."""
    session = await CopSession.start(dut)
    for op, rs in (
        (CopOp.VREDUCE, ((1 << 32) - 2, 3, 0)),
        (CopOp.LDVEC, ((1 << 32) - 3, 0, 0)),
        (CopOp.STVEC, ((1 << 32) - 1, 0, 0)),
        (CopOp.VMAC, (FAR, (1 << 32) - 1, 1)),
    ):
        await session.run(Offer(encode(op, 1, 2, 3), rs))
        fault = session.model.fault
        past = op != CopOp.VMAC
        assert fault is not None and fault.code == (FaultCode.DENIED if past else FaultCode.BUS)
        await session.clear()


@cocotb.test
async def test_cop_faults_no_elements(dut: Dut) -> None:
    """Zero elements touch no memory: nothing is read, written or wrong, wherever they are."""
    session = await CopSession.start(dut)
    await session.set_regions((RegionRegisters(BORDER, BORDER + PAGE - 1, True, True),))
    await session.write(CopReg.LIMIT, 1)
    for op in (op for op in USERS if COP_INSTRUCTIONS[op].counted):
        before = int(dut.cop_reads.value), int(dut.cop_writes.value)
        rs2 = 0 if COP_INSTRUCTIONS[op].rs2 == "count" else 0xFFFF_FFFF
        await session.run(Offer(encode(op, 1, 2, 3), (0xFFFF_FFFF, rs2, 0)))
        assert session.model.fault is None
        assert before == (int(dut.cop_reads.value), int(dut.cop_writes.value))
    await session.set_regions((OPEN,))


@cocotb.test
async def test_cop_faults_first_stays(dut: Dut) -> None:
    """Without TRAP instructions go on behind a fault, and the first one stays until CLEAR."""
    session = await CopSession.start(dut)
    await _fill(session)
    strike = Strike(CopOp.FVADD, 1, 0)
    knobs = Knobs(read_error=1, write_error=1, error_first=BORDER, error_last=BORDER + 15)
    long = Offer(encode(CopOp.VMAX, 1, 2, 3), (FAR, 1000, 0))
    fine = Offer(encode(CopOp.VREDUCE, 1, 2, 3), (FAR, 9, 0))
    scene = ListScene([strike.offer(), fine, long, fine, strike.offer()], trap=False, knobs=knobs)
    await session.set_scene(scene)
    answers = await session.run(*scene.offers)
    assert all(answer.accepted for answer in answers)
    fault = session.model.fault
    assert fault is not None and fault.code == FaultCode.BUS
