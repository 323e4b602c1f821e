# SPDX-License-Identifier: Apache-2.0
"""A scrub on the model: chips of all sizes, and what it refuses."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.driver.chip import Chip
from npu.driver.command.port import CommandPort
from npu.driver.command.status import Counters
from npu.driver.errors import RequestError
from npu.driver.identity import ChipInfo
from npu.driver.scrub import scrub, scrub_of
from spec.isa.operands import Limits
from spec.regs import CMD_BASE, CMD_FIELDS, CmdReg

MEMORY = 0x1_0000
USUAL = Limits()
INFO = ChipInfo((0, 1), USUAL, 32768, 16)
CHIPS = {
    "usual": (USUAL, 32768),
    "of a board": (Limits(4, 32 << 10, 128, 128, narrow_formats=False), 4096),
    "array 8": (replace(USUAL, array_dim=8), 32768),
    "array 32, large FIFO": (replace(USUAL, array_dim=32, norm_max=1024), 65536),
    "odd SRAM": (replace(USUAL, sram_bytes=200 << 10, norm_max=2048), 32768),
}


def _chip(limits: Limits, fifo_bytes: int) -> tuple[ModelBus, npt.NDArray[np.uint8]]:
    random = np.random.default_rng(1)
    sram = random.integers(1, 256, limits.sram_bytes, np.uint8)
    sizes = limits.array_dim, limits.sram_bytes, limits.acc_rows, limits.norm_max
    bus = ModelBus(
        random.integers(0, 256, 1 << 18, np.uint8),
        config=ChipConfig(*sizes, narrow_formats=limits.narrow_formats),
        sram=sram,
        fifo_bytes=fifo_bytes,
        races=True,
    )
    return bus, sram


@pytest.mark.parametrize("name", CHIPS)
def test_sram_and_scratchpad_are_zero_behind_it(name: str) -> None:
    """On chips of every size, without a race and within the piece of memory that it is given."""
    bus, sram = _chip(*CHIPS[name])

    async def run() -> Counters:
        chip = await Chip.connect(bus)
        port = await CommandPort.connect(bus)
        await port.write_scratch(0, bytes(range(1, 65)))
        assert await port.mul_lo(3, 5) == 15
        size = len(scrub_of(chip.info).image)
        behind = bus.read_memory(MEMORY + size, 4096)
        await scrub(chip, MEMORY)
        assert bus.read_memory(MEMORY + size, 4096) == behind
        assert await port.read_scratch(0, 64) == bytes(64)
        assert not (await port.status()).done
        return await port.counters()

    counters = asyncio.run(run())
    assert not sram.any()
    assert counters.ops == 0


@pytest.mark.parametrize("name", CHIPS)
def test_its_stream_is_as_long_as_the_fifo(name: str) -> None:
    """Every word of the FIFO is written."""
    limits, fifo_bytes = CHIPS[name]
    made = scrub_of(ChipInfo((0, 1), limits, fifo_bytes, 16))
    assert fifo_bytes <= made.stream_bytes < 2 * fifo_bytes + 4096


def test_a_small_sram_is_refused() -> None:
    """Given and allowed are both there."""
    small = replace(INFO, limits=replace(USUAL, sram_bytes=16 << 10))
    with pytest.raises(RequestError, match="16,384 bytes of SRAM, allowed 49,152 or more"):
        scrub_of(small)


@pytest.mark.parametrize("memory", [-64, 8, 1 << 32, (1 << 32) - 64])
def test_a_wrong_place_is_refused(memory: int) -> None:
    """Before anything is written."""
    bus, sram = _chip(USUAL, 32768)
    before = sram.copy()

    async def run() -> None:
        await scrub(await Chip.connect(bus), memory)

    with pytest.raises(RequestError, match=r"scrub\.memory"):
        asyncio.run(run())
    assert np.array_equal(sram, before)


def test_a_busy_command_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a register is written."""
    bus, sram = _chip(USUAL, 32768)
    before, read = sram.copy(), bus.read32

    async def busy(address: int) -> int:
        found = await read(address)
        is_status = address == CMD_BASE + CmdReg.CTRL_STATUS
        return found | is_status * CMD_FIELDS["CTRL_STATUS_BUSY"].mask

    async def never(address: int, value: int) -> None:
        raise AssertionError(f"{address:#x} was written with {value:#x}")

    monkeypatch.setattr(bus, "read32", busy)
    monkeypatch.setattr(bus, "write32", never)

    async def run() -> None:
        await scrub(await Chip.connect(bus), MEMORY)

    with pytest.raises(RequestError, match="a running operation of the command port"):
        asyncio.run(run())
    assert np.array_equal(sram, before)
