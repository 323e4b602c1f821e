# SPDX-License-Identifier: Apache-2.0
"""What runs inside the simulator of the second bench: the wrapper between models by others.

The memory and the host's bus are those of cocotbext-axi; the sessions are the driver's. Each runs
on the reference as well, with the same memory, and must leave the same bytes and say the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, First, RisingEdge, Timer
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from golden.command import ModelBus
from npu.compiler import compile_block, compile_model
from npu.driver.bus import Bus
from npu.driver.chip import Chip
from npu.driver.command import Command, CommandBuffer, CommandPort, scalars
from npu.driver.generate import sampled
from npu.planner.placement import Placement
from spec.regs import StartState
from tb.models.sample_model import CHECKPOINT, TEXT
from weights.quantize import quantize_checkpoint

MEMORY = 1 << 22
"""Bytes."""
CLOCK_NS = 10
PATIENCE = 400_000
"""Cycles until an interrupt must have come."""
ROWS = 5
PROMPT, STEPS = 4, 3
RING = 20
PROGRAM, STREAM, ARENA = 0x1000, 0x10_0000, 0x20_0000
Session = Callable[[Bus], Awaitable[object]]


class AxiBench:
    """The chip as the driver sees it, through the buses of cocotbext-axi."""

    def __init__(self, dut: Any) -> None:  # noqa: ANN401 (a handle of the simulator)
        self._dut = dut
        words = {"reset": dut.aresetn, "reset_active_level": False}
        self._host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.aclk, **words)
        self.memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.aclk, size=MEMORY, **words)

    async def read32(self, address: int) -> int:
        """Return a register."""
        return int(await self._host.read_dword(address))

    async def write32(self, address: int, value: int) -> None:
        """Write a register."""
        await self._host.write_dword(address, value)

    async def wait_interrupt(self) -> None:
        """Return when the interrupt is high."""
        if not int(self._dut.irq.value):
            late = Timer(PATIENCE * CLOCK_NS, "ns")
            assert await First(RisingEdge(self._dut.irq), late) is not late, "no interrupt"

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of memory."""
        return bytes(self.memory.read(address, size))

    def write_memory(self, address: int, data: bytes) -> None:
        """Put bytes into memory."""
        self.memory.write(address, data)


async def _same(dut: Any, session: Session, spoilt: int | None = None) -> None:  # noqa: ANN401
    """Run a session on the chip and on the reference; all of memory and what it says are equal.

    Args:
        dut: the wrapper.
        session: what the host does.
        spoilt: place of a byte that is changed before the comparison.
    """
    bench = AxiBench(dut)
    Clock(dut.aclk, CLOCK_NS, "ns").start()
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 4)
    before = np.random.default_rng(1).integers(0, 256, MEMORY, np.uint8)
    bench.write_memory(0, before.tobytes())
    memory = before.copy()
    said = await session(bench)
    expected = await session(ModelBus(memory))
    assert said == expected, (said, expected)
    found = np.frombuffer(bench.read_memory(0, MEMORY), np.uint8).copy()
    if spoilt is not None:
        found[spoilt] ^= 1
    differ = np.flatnonzero(found != memory)
    assert not differ.size, f"{differ.size} bytes differ, the first at {differ[0]:#x}"
    changed = int((memory != before).sum())
    assert changed, "nothing has happened"
    cocotb.log.info("%d bytes changed, 0 of %d differ", changed, MEMORY)


@cocotb.test
async def test_block(dut: Any) -> None:  # noqa: ANN401
    """A block of GPT-2 on five rows."""
    model = quantize_checkpoint(str(CHECKPOINT))
    block = compile_block(model, 0, ROWS)

    async def session(bus: Bus) -> object:
        chip = await Chip.connect(bus)
        image = block.program.image()
        x = np.random.default_rng(2).integers(-2000, 2000, block.input_bytes // 2, np.int16)
        bus.write_memory(PROGRAM, image)
        bus.write_memory(STREAM, block.stream)
        bus.write_memory(ARENA + block.input_offset, x.tobytes())
        bases = (ARENA, *[0] * 7)
        start = StartState(PROGRAM, len(image) // 16, STREAM, len(block.stream), bases=bases)
        await chip.execute(start)
        return bus.read_memory(ARENA + block.output_offset, block.output_bytes)

    await _same(dut, session)


@cocotb.test
async def test_decode(dut: Any) -> None:  # noqa: ANN401
    """A prompt and three steps behind it, each started by the host."""
    placement = Placement(compile_model(quantize_checkpoint(str(CHECKPOINT))))
    plan = placement.plan(list(TEXT.encode()[:PROMPT]), logits=True, count=STEPS + 1)

    async def session(bus: Bus) -> object:
        chip = await Chip.connect(bus)
        chip.stage(placement.pieces)
        picked = await sampled(chip, plan, STEPS + 1, lambda logits: int(np.argmax(logits)))
        return picked.ids

    await _same(dut, session)


async def _ring(bus: Bus) -> object:
    port = await CommandPort.connect(bus)
    values: list[object] = []
    for index in range(RING):
        buffer = await CommandBuffer.open(port, PROGRAM)
        product = scalars.mul_lo(1000 + index, 777 - 3 * index)
        buffer.add(Command(product, writeback=ARENA + 16 * index))
        await buffer.submit()
        values += [result.value for result in await buffer.wait()]
    return values


@cocotb.test
async def test_ring(dut: Any) -> None:  # noqa: ANN401
    """Twenty descriptors, around the ring more than twice."""
    await _same(dut, _ring)


@cocotb.test
async def test_a_difference_is_seen(dut: Any) -> None:  # noqa: ANN401
    """Of one bit of the last result."""
    try:
        await _same(dut, _ring, spoilt=ARENA + 16 * (RING - 1))
    except AssertionError as error:
        assert "1 bytes differ" in str(error)
    else:
        raise AssertionError("a spoilt byte is not noticed")
