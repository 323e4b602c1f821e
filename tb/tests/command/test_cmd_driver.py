# SPDX-License-Identifier: Apache-2.0
"""The driver of the command port on the chip: documented sessions, extended batches."""

from __future__ import annotations

import cocotb
from cocotb.triggers import ClockCycles

from golden.command.model import ModelBus
from npu.driver.bus import Bus
from npu.driver.command import Command, CommandBuffer, CommandPort, CompletionRing, scalars
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.command.command_session import RECORDS, RING
from tb.command.driver_examples import BARE, EXAMPLES
from tb.command.random_descriptors import TARGET

TAGS = ("cmd",)

SCRATCH_BYTES = (64, 128, 256)


async def _results(name: str, bus: Bus) -> object:
    if name in BARE:
        return await BARE[name](bus)
    return await EXAMPLES[name](await CommandPort.connect(bus))


@cocotb.test
async def test_cmd_driver_documented_sessions(dut: Dut) -> None:
    """Every example of the documentation gives on the chip what the page shows of the model."""
    scratch_bytes = int(str(cocotb.plusargs["scratch_bytes"]))
    for name in (*BARE, *EXAMPLES):
        bench = await Bench.start(dut)
        model = ModelBus(bench.memory.snapshot(), config=bench.config, scratch_bytes=scratch_bytes)
        expected = await _results(name, model)
        actual = await _results(name, bench.bus)
        assert actual == expected, f"{name}: {actual}, the model gives {expected}"


@cocotb.test
async def test_cmd_driver_extend(dut: Dut) -> None:
    """A batch is extended while it runs, or when it has just ended; every result comes once."""
    bench = await Bench.start(dut, Knobs(read_latency=15, write_latency=10))
    port = await CommandPort.connect(bench.bus)
    completions = await CompletionRing.enable(port, RECORDS, log2_size=6)
    buffer = await CommandBuffer.open(port, RING + 4)
    number = 0

    def made() -> Command:
        nonlocal number
        number += 1
        a, b = (int(word) for word in bench.random.integers(0, 1 << 32, 2))
        wanted.append(a * b)
        return Command(scalars.mul_lo(a, b), writeback=TARGET + 8 * (number % 64), tag=number % 256)

    for _ in range(60 if full() else 15):
        wanted: list[int] = []
        first = number
        buffer.add(made())
        await buffer.submit()
        taken = []
        for _ in range(4):
            await ClockCycles(dut.clk, int(bench.random.integers(1, 130)))
            while buffer.room < 2:  # that of a descriptor with a writeback
                await buffer.extend()
            await buffer.extend(made())
            taken += buffer.results()
        taken += await buffer.wait()
        assert [result.value for result in taken] == wanted
        records = await completions.take(by_phase=True)
        assert [record.tag for record in records] == [n % 256 for n in range(first + 1, number + 1)]
        assert [record.result for record in records] == wanted
        assert await completions.take() == []
    assert (await port.counters()).errors == 0
