# SPDX-License-Identifier: Apache-2.0
"""The driver's chip on the reference: what it sets, what it refuses, what it says of errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from golden.command import ModelBus
from golden.machine import ChipConfig
from npu.driver.bus import RegisterAccess, access
from npu.driver.chip import PAGE, Chip, MemoryRegion, start_accesses
from npu.driver.errors import DeviceError, ProgramFailed, RequestError
from spec.isa import Engine, ErrorCode
from spec.regs import CHIP_BASE, SEQ_BASE, ChipReg, SeqReg, StartState
from tb.stimulus.driver_session import COPY, INPUT, OUTPUT, PROGRAM, session

DATA = bytes(range(64))


def _bus(**options: object) -> ModelBus:
    return ModelBus(np.zeros(1 << 18, np.uint8), **options)  # type: ignore[arg-type]


def _chip(bus: ModelBus | None = None) -> Chip:
    return asyncio.run(Chip.connect(bus or _bus()))


def test_a_session_from_identification_to_the_program_after_an_error() -> None:
    """Every line of it."""
    assert asyncio.run(session(_chip(), DATA)) == [
        "chip (0, 1) with beats of 16 bytes",
        "MEM_TIMEOUT 0x1388",
        "IRQ_ENABLE 0x1",
        "REGION0_LIMIT 0x10000",
        "REGION1_CTRL 0x3",
        "REGION2_CTRL 0x0",
        "STREAM_LIMIT 4",
        f"copied {DATA.hex()}",
        "left LastState(out_count=0, token=3, pos=11)",
        "report None",
        "refused: CONTEXT_FULL by engine seq at instruction 1, address 0x0",
        "report True",
        "cleared None {'DONE': 1, 'BUSY': 0, 'ERROR': 0, 'ERROR_CODE': 0, 'ERROR_ENGINE': 0}",
        f"copied {DATA[::-1].hex()}",
        "at the end {'DONE': 1, 'BUSY': 0, 'ERROR': 0, 'ERROR_CODE': 0, 'ERROR_ENGINE': 0}",
    ]


def test_sizes_come_from_the_chip() -> None:
    """Every configuration register has its place."""
    config = ChipConfig(array_dim=32, sram_bytes=1 << 19, acc_rows=64, norm_max=1024)
    info = _chip(_bus(config=config, fifo_bytes=8192)).info
    limits = info.limits
    assert (limits.array_dim, limits.sram_bytes) == (32, 1 << 19)
    assert (limits.acc_rows, limits.norm_max, info.fifo_bytes) == (64, 1024, 8192)
    assert limits.narrow_formats
    assert not _chip(_bus(config=replace(config, narrow_formats=False))).info.limits.narrow_formats


class _OtherChip(ModelBus):
    """A chip with a register that reads otherwise."""

    def __init__(self, address: int, value: int) -> None:
        super().__init__(np.zeros(4096, np.uint8))
        self._other = address, value

    async def read32(self, address: int) -> int:
        return self._other[1] if address == self._other[0] else await super().read32(address)


@pytest.mark.parametrize(
    ("register", "value", "message"),
    [
        (ChipReg.ID, 0, "ID: given 0x00000000, allowed 0x41525354"),
        (ChipReg.VERSION, 0x0000_0103, "VERSION.REG_MAP: given 3, allowed 2"),
        (ChipReg.VERSION, 0x0000_FF02, "VERSION.ISA: given 255, allowed"),
    ],
)
def test_another_chip_is_refused(register: ChipReg, value: int, message: str) -> None:
    """The driver goes on with nothing that it does not know."""
    with pytest.raises(RequestError, match=message):
        asyncio.run(Chip.connect(_OtherChip(CHIP_BASE + register, value)))


WHOLE = MemoryRegion(0, 1 << 32, read=True, write=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.set_region(8, None), "set_region.index: given 8, allowed 0 to 7"),
        (
            lambda c: c.set_region(0, MemoryRegion(16, PAGE, True, True)),
            "MemoryRegion.first: given 16, allowed multiples of 4096 0 to 4294963200",
        ),
        (
            lambda c: c.set_region(0, MemoryRegion(PAGE, 1 << 32, True, True)),
            "MemoryRegion.size: given 4294967296, allowed multiples of 4096 4096 to 4294963200",
        ),
        (lambda c: c.protect([WHOLE] * 9), "protect.regions: given 9, allowed 0 to 8"),
        (lambda c: c.set_timeout(1 << 24), "set_timeout.cycles: given 16777216, allowed 0 to"),
        (lambda c: c.set_stream_limit(32), "set_stream_limit.bursts: given 32, allowed 0 to 31"),
    ],
)
def test_settings_outside_their_range_are_refused(
    call: Callable[[Chip], Awaitable[None]], message: str
) -> None:
    """Nothing is written then."""

    async def check() -> None:
        chip = await Chip.connect(_bus())
        before = [await chip.read_chip(ChipReg(place)) for place in ChipReg]
        with pytest.raises(RequestError, match=message):
            await call(chip)
        assert before == [await chip.read_chip(ChipReg(place)) for place in ChipReg]

    asyncio.run(check())


def test_a_locked_region_stays() -> None:
    """Whatever is written afterwards."""

    async def check() -> None:
        chip = await Chip.connect(_bus())
        await chip.set_region(3, MemoryRegion(PAGE, 2 * PAGE, read=True, write=False), lock=True)
        await chip.set_region(3, WHOLE)
        places = (ChipReg.REGION3_BASE, ChipReg.REGION3_LIMIT, ChipReg.REGION3_CTRL)
        assert [await chip.read_chip(place) for place in places] == [PAGE, 2 * PAGE, 0b101]

    asyncio.run(check())


def test_an_error_has_code_engine_instruction_and_address() -> None:
    """As fields of the exception, and in its text; `run` returns it instead."""
    chip = _chip()
    chip.stage([(PROGRAM, COPY.image())])
    outside = StartState(PROGRAM, 4, bases=(1 << 20, INPUT, 0, 0, 0, 0, 0, 0))
    with pytest.raises(ProgramFailed, match="READ_ERROR by engine ld at instruction 0") as caught:
        asyncio.run(chip.execute(outside))
    report = caught.value.report
    assert (report.code, report.engine) == (ErrorCode.READ_ERROR, Engine.LD)
    assert (report.instr, report.address) == (0, 1 << 20)
    assert asyncio.run(chip.run(outside)).error == report


def test_an_interrupt_before_the_end_is_an_error_of_the_device() -> None:
    """STATUS says neither DONE nor ERROR."""
    with pytest.raises(DeviceError, match=r"STATUS is .*'DONE': 0.* after the interrupt"):
        asyncio.run(_chip().finish())


def test_races_are_refused_where_asked_for() -> None:
    """The reference knows programs whose result on a chip is open."""
    image = COPY.image()
    chip = _chip(_bus(races=True))
    chip.stage([(PROGRAM, image[:16] + image[32:])])
    with pytest.raises(ValueError, match="the program has 1 races, first: RAW race in sram"):
        asyncio.run(chip.run(StartState(PROGRAM, 3, bases=(INPUT, OUTPUT, 0, 0, 0, 0, 0, 0))))


class _Batching(ModelBus):
    """A bus that takes several accesses in one go, and counts how often it is called."""

    def __init__(self) -> None:
        super().__init__(np.zeros(1 << 18, np.uint8))
        self.lists: list[int] = []

    async def access(self, several: Sequence[RegisterAccess]) -> list[int]:
        self.lists.append(len(several))
        return [await self._one(one) for one in several]

    async def _one(self, one: RegisterAccess) -> int:
        if one.value is None:
            return await self.read32(one.address)
        await self.write32(one.address, one.value)
        return one.value


def test_a_program_takes_three_lists_of_accesses() -> None:
    """The start, the end, the counters: on a bus with lists not one call for each register."""

    async def check() -> None:
        bus = _Batching()
        chip = await Chip.connect(bus)
        chip.stage([(PROGRAM, COPY.image())])
        bus.lists.clear()
        start = StartState(PROGRAM, 4, bases=(INPUT, OUTPUT, 0, 0, 0, 0, 0, 0))
        await chip.run(start)
        assert bus.lists == [len(start_accesses(start)), 7, 20]

    asyncio.run(check())


def test_accesses_loop_without_lists() -> None:
    """Reads give the register, writes what was given, in order."""
    place = SEQ_BASE + SeqReg.POS
    several = [RegisterAccess(place), RegisterAccess(place, 5), RegisterAccess(place)]
    assert asyncio.run(access(_bus(), several)) == [0, 5, 5]
