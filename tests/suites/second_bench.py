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
import numpy.typing as npt
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, First, RisingEdge, Timer
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

from golden.command import ModelBus
from golden.coprocessor import Coprocessor
from golden.coprocessor.memory import ArrayMemory
from npu.compiler import compile_block, compile_model
from npu.driver.bus import Bus
from npu.driver.chip import Chip
from npu.driver.command import Command, CommandBuffer, CommandPort, scalars
from npu.driver.generate import sampled
from npu.planner.placement import Placement
from spec.regs import StartState
from tb.bench.offers import Offer
from tb.cop.random_offers import OfferMaker, describe
from tb.models.sample_model import CHECKPOINT, TEXT
from weights.quantize import quantize_checkpoint

MEMORY = 1 << 23
"""Bytes."""
CLOCK_NS = 10
PATIENCE = 400_000
"""Cycles until an interrupt must have come."""
ROWS = 5
PROMPT, STEPS = 4, 3
RING = 20
INSTRUCTIONS = 200
COPROCESSOR = (
    *("issue_valid", "issue_instr", "issue_hartid", "issue_id", "register_valid"),
    *("register_hartid", "register_id", "register_rs", "register_rs_valid", "commit_valid"),
    *("commit_hartid", "commit_id", "commit_kill", "result_ready"),
)
"""Inputs of its port."""
ANSWERS = ("issue_accept", "issue_writeback", "result_rd", "result_we", "result_data")
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


async def _started(dut: Any) -> tuple[AxiBench, npt.NDArray[np.uint8]]:  # noqa: ANN401
    """Reset the chip; return it, and what its memory holds."""
    for name in COPROCESSOR:
        getattr(dut, f"x_{name}").value = 0
    bench = AxiBench(dut)
    Clock(dut.aclk, CLOCK_NS, "ns").start()
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 4)
    memory = np.random.default_rng(1).integers(0, 256, MEMORY, np.uint8)
    bench.write_memory(0, memory.tobytes())
    return bench, memory


def _compare(found: bytes, expected: npt.NDArray[np.uint8], before: npt.NDArray[np.uint8]) -> None:
    """Hold the chip's memory against the reference's."""
    differ = np.flatnonzero(np.frombuffer(found, np.uint8) != expected)
    assert not differ.size, f"{differ.size} bytes differ, the first at {differ[0]:#x}"
    changed = int((expected != before).sum())
    assert changed, "nothing has happened"
    cocotb.log.info("%d bytes changed, 0 of %d differ", changed, MEMORY)


async def _same(dut: Any, session: Session, spoilt: int | None = None) -> None:  # noqa: ANN401
    """Run a session on the chip and on the reference; all of memory and what it says are equal.

    Args:
        dut: the wrapper.
        session: what the host does.
        spoilt: place of a byte that is changed before the comparison.
    """
    bench, before = await _started(dut)
    memory = before.copy()
    said = await session(bench)
    expected = await session(ModelBus(memory))
    assert said == expected, (said, expected)
    found = bytearray(bench.read_memory(0, MEMORY))
    if spoilt is not None:
        found[spoilt] ^= 1
    _compare(bytes(found), memory, before)


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


async def _offered(dut: Any, number: int, offer: Offer) -> tuple[object, ...]:  # noqa: ANN401
    """Offer an instruction with its operands, commit it in the same cycle, and wait for its end.

    Returns:
        whether it was accepted and has a result; of an accepted one rd, whether it is written, and
        what with.
    """

    async def until(signal: Any, at_first: Any = None) -> tuple[int, ...]:  # noqa: ANN401
        for _ in range(PATIENCE):
            await Timer(CLOCK_NS // 4, "ns")
            ended = int(signal.value)
            values = tuple(int(getattr(dut, f"x_{name}").value) for name in ANSWERS)
            await FallingEdge(dut.aclk)
            if at_first is not None:
                at_first.value = 0
            if ended:
                return values
        raise AssertionError(f"{describe(offer)}: no answer")

    await FallingEdge(dut.aclk)
    dut.x_issue_instr.value = offer.word
    dut.x_register_rs.value = sum(value << 32 * at for at, value in enumerate(offer.rs))
    dut.x_register_rs_valid.value = 7
    dut.x_result_ready.value = 1
    for name in ("issue", "register", "commit"):
        getattr(dut, f"x_{name}_id").value = number
        getattr(dut, f"x_{name}_valid").value = 1
    accept, writeback, *_ = await until(dut.x_issue_ready, dut.x_commit_valid)
    dut.x_issue_valid.value = dut.x_register_valid.value = 0
    if not accept:
        return (False,)
    _, _, rd, we, data = await until(dut.x_result_valid)
    return (True, bool(writeback), rd, bool(we), data if we else 0)


@cocotb.test
async def test_coprocessor(dut: Any) -> None:  # noqa: ANN401
    """Two hundred random instructions, one after the other; every result and all of memory."""
    maker = OfferMaker(np.random.default_rng(3), wild=0.0, cuts=False)
    offers = maker.list(INSTRUCTIONS)
    bench, before = await _started(dut)
    for address, data in maker.pieces.items():
        bench.write_memory(address, data)
        before[address : address + len(data)] = np.frombuffer(data, np.uint8)
    memory = before.copy()
    model = Coprocessor(ArrayMemory(memory))
    results = 0
    for number, offer in enumerate(offers):
        said = await _offered(dut, number % 16, offer)
        answer = model.offer(offer.word)
        expected: tuple[object, ...] = (False,)
        if answer.accept:
            ended = model.execute(offer.word, *offer.rs)
            expected = (True, answer.writeback, ended.rd, ended.we, ended.data)
            results += 1
        assert said == expected, (number, describe(offer), said, expected)
    assert len(offers) == INSTRUCTIONS
    assert results > INSTRUCTIONS * 0.9
    _compare(bench.read_memory(0, MEMORY), memory, before)


@cocotb.test
async def test_a_difference_is_seen(dut: Any) -> None:  # noqa: ANN401
    """Of one bit of the last result."""
    try:
        await _same(dut, _ring, spoilt=ARENA + 16 * (RING - 1))
    except AssertionError as error:
        assert "1 bytes differ" in str(error)
    else:
        raise AssertionError("a spoilt byte is not noticed")
