# SPDX-License-Identifier: Apache-2.0
"""Coprocessor: the register window, its counters against a monitor, its interrupt."""

from __future__ import annotations

import cocotb

from spec.isa.coprocessor import CopOp, encode
from spec.regs import CHIP_BASE
from spec.regs.generated import CHIP_FIELDS, COP_BASE, ChipReg, CopReg
from tb.bench.dut import Dut
from tb.bench.knobs import Knobs
from tb.bench.offers import Offer
from tb.cop.cop_session import CLEAR, TRAP, CopSession
from tb.cop.random_offers import BORDER, MANNERS, OfferMaker

TAGS = ("cop", "registers")

COP_SOURCES = (2, 3)
COP_IRQ = CHIP_FIELDS["IRQ_ENABLE_COP"].mask
TOO_LONG = Offer(encode(CopOp.VREDUCE, 1, 2, 3), (BORDER, 65, 0))
"""An instruction that faults."""
RELU = Offer(encode(CopOp.RELU, 1, 2), (5, 0, 0))


@cocotb.test
async def test_cop_window_reset_values(dut: Dut) -> None:
    """Registers have their reset values, all others read 0, and writes there have no effect."""
    session = await CopSession.start(dut)
    await session.compare()
    known = {COP_BASE + register for register in CopReg}
    for address in range(COP_BASE, COP_BASE + 0x100, 4):
        if address not in known:
            await session.bench.bus.write32(address, 0xFFFF_FFFF)
            assert await session.bench.bus.read32(address) == 0, f"{address:#x}"
    await session.compare()


@cocotb.test
async def test_cop_window_writes(dut: Dut) -> None:
    """Each write clears its own register only; reads disturb nothing; read-only ones stay."""
    session = await CopSession.start(dut)
    maker = OfferMaker(session.random)
    scalars = (CopOp.MACC, CopOp.FMACC)
    for register in CopReg:
        await session.run(*(maker.scalar(scalars[maker.below(2)]) for _ in range(4)))
        value = maker.below(1 << 32)
        if register == CopReg.CTRL:
            value &= TRAP
        await session.write(register, value)
        await session.compare()
        if register == CopReg.LIMIT:
            await session.write(register, 256)


@cocotb.test
async def test_cop_window_counters(dut: Dut) -> None:
    """INSTRS, CYCLES and BEATS agree with the monitor whatever the port and the memory do."""
    session = await CopSession.start(dut)
    for number, manner in enumerate(MANNERS):
        await session.set_knobs(Knobs(read_latency=1 + 30 * number, read_gap=10 * (number % 3)))
        maker = OfferMaker(session.random, manner=manner, wild=0.0)
        for address, data in maker.pieces.items():
            session.put(address, data)
        offers = [maker.instruction(op) for op in CopOp]
        for address, data in maker.pieces.items():
            session.put(address, data)
        await session.run(*offers)
        await session.write((CopReg.INSTRS, CopReg.CYCLES, CopReg.BEATS)[number % 3], 1)
        await session.compare()


@cocotb.test
async def test_cop_interrupt(dut: Dut) -> None:
    """IRQ_STATUS.COP follows the fault, the line its enable bit; CLEAR takes both back."""
    session = await CopSession.start(dut)
    bus = session.bench.bus
    assert not await bus.read32(CHIP_BASE + ChipReg.IRQ_ENABLE) & COP_IRQ
    for enabled in (0, COP_IRQ):
        await bus.write32(CHIP_BASE + ChipReg.IRQ_ENABLE, enabled)
        await session.run(RELU)
        assert not int(dut.irq.value)
        await session.run(TOO_LONG)  # compares IRQ_STATUS
        assert bool(int(dut.irq.value)) == bool(enabled)
        await bus.write32(CHIP_BASE + ChipReg.IRQ_STATUS, 0xFFFF_FFFF)
        await session.compare()
        await session.clear()
        await session.compare()
        assert not int(dut.irq.value)


@cocotb.test
async def test_cop_trap(dut: Dut) -> None:
    """With TRAP everything is refused while a fault stands; without it the first fault stays."""
    session = await CopSession.start(dut)
    other = Offer(encode(CopOp.VMAX, 4, 5, 6), (BORDER, 66, 0))
    first, *rest = await session.run(TOO_LONG, RELU, other, RELU)
    assert first.accepted and not any(answer.accepted for answer in rest)
    await session.write(CopReg.CTRL, 0)  # TRAP off, the fault stays
    answers = await session.run(RELU, other, RELU)
    assert all(answer.accepted for answer in answers)
    assert session.model.fault is not None and session.model.fault.instruction == TOO_LONG.word
    await session.write(CopReg.CTRL, TRAP)
    (refused,) = await session.run(RELU)
    assert not refused.accepted
    await session.write(CopReg.CTRL, CLEAR | TRAP)
    (accepted,) = await session.run(RELU)
    assert accepted.accepted
