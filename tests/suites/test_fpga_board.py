# SPDX-License-Identifier: Apache-2.0
"""The board of `make fpga` in Verilator, over its UART, by what would drive the real one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dev.fpga import boards, self_test, simulation
from golden.session import generate
from npu.asm import assemble
from npu.compiler import compile_model
from npu.driver.chip import Chip
from npu.driver.errors import BusError, RequestError
from npu.driver.serial_bus import SerialBus, SerialPort
from npu.planner.placement import Placement
from spec.regs import SEQ_BASE, SeqReg, StartState
from tb.run import build
from weights.synthetic import random_gpt2, shape_of

BOARD = boards.USUAL
CYCLES = {16: 1_250, 24: 1_800}
"""More than any token of a microGPT takes, by its width."""
SLOWEST = 10_000
"""Cycles a second of a simulated board."""


@pytest.fixture(scope="module")
def binary() -> Path:
    """The board as a program."""
    build.generate()
    return simulation.build_board(BOARD)


@pytest.fixture
def bus(binary: Path) -> Iterator[SerialBus]:
    """The bus of a board behind a reset."""
    with simulation.simulated(binary, BOARD.memory_bytes) as found:
        yield found


def test_the_self_test_passes(bus: SerialBus) -> None:
    """A block of GPT-2 on four tokens is golden's, twice."""
    for _ in range(2):
        found = asyncio.run(self_test.run_block(bus, BOARD.limits))
        assert found.passed, str(found)


@pytest.mark.parametrize("width", self_test.WIDTHS)
def test_a_microgpt_fills_its_context(bus: SerialBus, width: int) -> None:
    """Its tokens are golden's, in no more cycles than it took."""
    found = asyncio.run(self_test.run_microgpt(bus, BOARD.limits, width))
    assert max(found.first, found.mean, found.last) < CYCLES[width], found


def test_memory_and_registers(bus: SerialBus) -> None:
    """Random pieces of memory; its end; registers; errors, behind which all goes on."""
    random = np.random.default_rng(3)
    mirror = bytearray(bus.read_memory(0, 4096))
    for _ in range(30):
        address, size = int(random.integers(0, 4000)), int(random.integers(1, 90))
        bus.write_memory(address, data := random.bytes(size))
        mirror[address : address + size] = data
    assert bus.read_memory(0, 4096) == mirror
    bus.write_memory(BOARD.memory_bytes - 16, bytes(range(16)))
    assert bus.read_memory(BOARD.memory_bytes - 8, 8) == bytes(range(8, 16))
    assert bus.read_memory(0, 4096) == mirror, "the end is another place than the beginning"
    bus.size *= 2
    with pytest.raises(BusError, match="the board has no such"):
        bus.read_memory(BOARD.memory_bytes, 16)
    with pytest.raises(BusError, match="the board has no such"):
        bus.write_memory(BOARD.memory_bytes, bytes(16))
    assert bus.read_memory(0, 16) == mirror[:16], "what lies behind the end is nowhere"
    place = SEQ_BASE + SeqReg.UCODE_BASE
    asyncio.run(bus.write32(place, 0x12345670))
    assert asyncio.run(bus.read32(place)) == 0x12345670
    with pytest.raises(BusError, match="SLVERR"):
        asyncio.run(bus.read32(2))
    with pytest.raises(BusError, match="SLVERR"):
        asyncio.run(bus.write32(2, 0))
    assert not bus.state()


def test_a_broken_request_is_forgotten(binary: Path) -> None:
    """A host that ends in the middle of one does not end the next host."""
    with simulation.running(binary) as path:
        for part in (b"w", b"w\x01\0\0\0\0" + bytes(20)):
            port = SerialPort(path)
            port.write(part)
            time.sleep(simulation.IDLE / SLOWEST)
            port.close()
            with simulation.real(path, BOARD.memory_bytes, seconds=60.0) as bus:
                assert not bus.state()
        port = SerialPort(path)
        port.write(b"x\0\0\0\0\0")
        assert port.read(2, 5.0) == b"\x41", "no such request, which has no data"
        port.close()


def test_the_host_reads_while_the_chip_runs(bus: SerialBus) -> None:
    """And writes; neither disturbs the other."""
    shape = shape_of("gpt2", hidden=16, layers=1, heads=4, ffn=64, vocab=27, context=16)
    model = random_gpt2(shape, 5)
    placement = Placement(compile_model(model, limits=BOARD.limits))
    plan = placement.plan([3], count=16)
    free = placement.end

    async def run() -> list[int]:
        chip = await Chip.connect(bus)
        chip.stage(placement.pieces)
        await chip.start(replace(plan.greedy, loop_left=15))
        data, asked = b"", 0
        while not bus.state():
            asked += 1
            data += bytes([asked % 256]) * 16
            bus.write_memory(free + 16 * (asked - 1), data[-16:])
            assert bus.read_memory(free, 16) == data[:16]
        assert asked > 2
        assert bus.read_memory(free, len(data)) == data
        finish = await chip.finish()
        assert finish.error is None
        return [int(i) for i in np.frombuffer(bus.read_memory(plan.tokens, 64), "<u4")]

    assert asyncio.run(run()) == generate(model, [3], 16)


def test_a_store_of_five_bytes(bus: SerialBus) -> None:
    """Leaves those beside them as they were."""
    text = """
        DMA_LOAD dst=0 off=0 M=1 N=16 b=0
        BARRIER ld
        DMA_STORE dst=0 off=0 M=1 N=5 b=1
        END
    """
    image = assemble(text, limits=BOARD.limits).image()
    bus.write_memory(0, image)
    bus.write_memory(0x1000, bytes(range(1, 17)))
    bus.write_memory(0x2000, b"\xff" * 32)
    start = StartState(0, len(image) // 16, bases=(0x1000, 0x2000, *[0] * 6))

    async def run() -> None:
        await (await Chip.connect(bus)).execute(start)

    asyncio.run(run())
    assert bus.read_memory(0x2000, 32) == bytes(range(1, 6)) + b"\xff" * 27


def test_a_swapped_byte_is_seen(tmp_path: Path) -> None:
    """A bridge that begins with the second byte: the host does not know the chip."""
    source = boards.HOME / "npu_board_bridge.sv"
    text = source.read_text(encoding="utf-8")
    right = "(state_q == StReply) ? data_q[7:0]"
    assert text.count(right) == 1
    changed = tmp_path / source.name
    wrong = text.replace(right, "(state_q == StReply) ? data_q[15:8]")
    changed.write_text(wrong, encoding="utf-8")
    broken = simulation.build_board(BOARD, tmp_path / "board", {source: changed})
    with (
        simulation.simulated(broken, BOARD.memory_bytes) as bus,
        pytest.raises(RequestError, match="ID: given"),
    ):
        asyncio.run(self_test.run_block(bus, BOARD.limits))
