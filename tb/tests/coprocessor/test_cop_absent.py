# SPDX-License-Identifier: Apache-2.0
"""A chip that is built without the coprocessor (EnableCop = 0)."""

from __future__ import annotations

import cocotb

from spec.isa.coprocessor import CopOp
from spec.regs import CHIP_BASE
from spec.regs.generated import COP_BASE, ChipReg
from tb.bench.bursts import ReadBursts
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.offers import OfferPlayer
from tb.bench.recovery import next_program_runs
from tb.cop.random_offers import OfferMaker

TAGS = ("cop",)

COP_SOURCES = (0,)


@cocotb.test
async def test_cop_absent(dut: Dut) -> None:
    """The window reads 0 and ignores writes, every word is refused, the rest of the chip works."""
    bench = await Bench.start(dut)
    bus, reads = bench.bus, ReadBursts(dut)
    for value in (0xFFFF_FFFF, int(bench.random.integers(1 << 32)) | 1):
        for at in range(0, 0x100, 4):
            await bus.write32(COP_BASE + at, value)
        for at in range(0, 0x100, 4):
            actual = await bus.read32(COP_BASE + at)
            assert actual == 0, f"{at:#04x} reads {actual:#010x}"
    maker = OfferMaker(bench.random)
    offers = [maker.instruction(op) for op in CopOp for _ in range(4)]
    answers = await OfferPlayer(dut, bench.run_dir).play(offers)
    assert not any(answer.accepted for answer in answers)
    assert not reads.bursts, "something was read from memory"
    assert not int(dut.irq.value)
    await bench.chip.write_chip(ChipReg.IRQ_ENABLE, 7)
    assert await bus.read32(CHIP_BASE + ChipReg.IRQ_STATUS) == 0
    await next_program_runs(bench)
