# SPDX-License-Identifier: Apache-2.0
"""Plans on a chip that is busy or whose memory fails: named, nothing harmed, the next one runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden import session
from golden.graph import run
from npu.compiler import compile_model
from npu.compiler.network import compile_network
from npu.driver.chip import PAGE
from npu.driver.command import Command, CommandBuffer, CommandPort, scalars
from npu.driver.errors import RequestError
from npu.graph.operations.port import TILED
from npu.planner.decoder_plan import plan_of_decoder
from npu.planner.network_plan import plan_of
from npu.runtime.accesses import transfers
from npu.runtime.plan import Action, Plan
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import Prepared, bases_from, prepare, sizes_of
from npu.runtime.replay import DrivenChip, Replay, ReplayError
from npu.runtime.sequence import SequenceEntry, run_sequence
from spec.isa import ErrorCode
from spec.regs import SEQ_FIELDS, SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.tests.models.plans import BOTH, LIMIT, compare, drawn, loaded, product, spread
from weights.quantize import quantize_checkpoint
from weights.shipped import CHECKPOINTS

TAGS = ("plans", "faults")

SLOW = 2_000
"""Cycles until the memory acknowledges what comes late."""
LONG = 20_000
"""Cycles that the ring waits for its descriptors while the host tries to go on."""
IDLE_PORT = "command port: given a running ring, allowed an idle command port"


@contextmanager
def _spared(bench: Bench, *prepared: Prepared) -> Iterator[None]:
    """Check that only arenas and rings of plans change."""
    before = bench.memory.snapshot()
    yield
    after = bench.memory.snapshot()
    for one in prepared:
        for name in ("arena", "ring"):
            first = one.bases.of(name)
            part = slice(first, first + sizes_of(one.plan)[name])
            after[part] = before[part]
    differ = np.flatnonzero(before != after)
    assert not differ.size, f"{differ.size} bytes outside the arena, the first at {differ[0]:#x}"


async def _refused(attempt: Awaitable[object], message: str) -> None:
    try:
        await attempt
    except RequestError as error:
        assert str(error) == message, error
    else:
        raise AssertionError(f"not refused: {message}")


async def _stopped(attempt: Awaitable[object]) -> ReplayError:
    """Return the error of a run that the memory has stopped, one line."""
    try:
        await attempt
    except ReplayError as error:
        assert "\n" not in str(error), error
        return error
    raise AssertionError("no error")


@asynccontextmanager
async def _failing(bench: Bench, kind: str, address: int) -> AsyncIterator[None]:
    """Let reads or writes of one word of memory fail, late."""
    latency = int(bench.random.choice([40, SLOW]))
    await bench.set_knobs(
        Knobs(
            read_latency=latency,
            write_latency=latency,
            read_error=int(kind == "read"),
            write_error=int(kind == "write"),
            error_first=address,
            error_last=address + 15,
        )
    )
    yield
    await bench.set_knobs(Knobs())


@cocotb.test
async def test_plans_stopped_by_the_bus(dut: Dut) -> None:
    """An error of the memory names the segment; nothing outside the arena; the next run works."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    places: list[list[int]] = [[]]
    while not all(places):
        plan, inputs, expected = drawn(bench, 3)
        places = _own_places(plan)
    prepared = prepare(plan, bases_from(plan, PAGE))
    for number in range(3):
        for by in BOTH:
            replay = await loaded(bench, prepared)
            address = prepared.bases.arena + int(bench.random.choice(places[number]))
            with _spared(bench, prepared):
                async with _failing(bench, "write", address):
                    bench.memory.stage(prepared.bases.arena, bench.random.bytes(plan.arena))
                    error = await _stopped(replay.run(inputs, by))
            where = f"launch {number}, {by}, write of {address:#x}: {error}"
            step = plan.steps[error.step]
            assert (step.action, step.segment) == (Action.LAUNCH, number), where
            assert error.path == f"segments[{number}]", where
            assert ErrorCode.WRITE_ERROR.name in str(error), where
            # The address is that of the burst.
            assert address - 1024 < _address(str(error)) <= address, where
            compare(await replay.run(inputs, by), expected, "the run behind")


def _own_places(plan: Plan) -> list[list[int]]:
    """Return words of the arena that each segment stores to and none before it: ends of stores."""
    found: list[list[int]] = []
    taken: list[tuple[int, int]] = []
    for segment in plan.segments:
        stores = [(one.first, one.end) for one in transfers(segment.program) if one.writes]
        ends = {at - at % 16 for first, end in stores for at in (first, end - 1)}
        found.append(
            [at for at in sorted(ends) if not any(a < at + 16 and at < b for a, b in taken)]
        )
        taken += stores
    return found


def _address(text: str) -> int:
    """Return the address that a report names last."""
    return int(text.rpartition("0x")[2].split()[0].rstrip(".,"), 16)


@cocotb.test
async def test_plans_products_stopped_by_the_bus(dut: Dut) -> None:
    """An error on a product's way names the operation; the next product works."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for kind, place in (("read", 0), ("read", 128), ("write", 128)):
        name = str(bench.random.choice(sorted(TILED)))
        graph, inputs = product(bench.random, name, (3, 17, 3))
        plan = plan_from(files_of(plan_of(compile_network(graph, bench.limits))))
        prepared = prepare(plan, spread(bench.random, plan))
        replay = await loaded(bench, prepared)
        ring, size = prepared.bases.ring, sizes_of(plan)["ring"]
        with _spared(bench, prepared):
            await bench.set_knobs(
                Knobs(
                    read_error=int(kind == "read"),
                    write_error=int(kind == "write"),
                    error_first=ring + place,
                    error_last=ring + size - 1,
                )
            )
            error = await _stopped(replay.run(inputs, "ring"))
            await bench.set_knobs(Knobs())
        assert error.path == "operation 'product'", error
        assert plan.steps[error.step].action is Action.PORT, error
        for by in BOTH:
            compare(await replay.run(inputs, by), run(graph, inputs), f"behind {kind}, {place}")


@cocotb.test
async def test_plans_decoder_stopped_by_the_bus(dut: Dut) -> None:
    """An error at a token in the middle names the program; the next run says all of them."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    family = str(bench.random.choice(["gpt2", "llama"]))
    model = quantize_checkpoint(str(CHECKPOINTS / f"{family}-tiny"))
    compiled = compile_model(model, bench.limits, cache="memory")
    rows = compiled.shape.context - int(bench.random.integers(9, 16))
    most = compiled.shape.context - rows + 1
    ids = bench.random.integers(0, compiled.shape.vocab, rows).astype(np.uint32)
    expected = session.generate(model, ids.tolist(), most)
    plan = plan_from(files_of(plan_of_decoder(compiled, rows, name=family)))
    prepared = prepare(plan, spread(bench.random, plan))
    replay = await loaded(bench, prepared)
    for by in BOTH if full() else ("ring",):
        address = prepared.address("tokens") + 16 * int(bench.random.integers(most // 4))
        with _spared(bench, prepared):
            async with _failing(bench, "write", address):
                error = await _stopped(replay.run({"prompt": ids}, by))
        assert error.path == "segments[0]", error
        assert ErrorCode.WRITE_ERROR.name in str(error), error
        assert _address(str(error)) // 16 * 16 == address, error
        found = await replay.run({"prompt": ids}, by)
        assert found.outputs["tokens"].tolist() == expected, f"{family}, the run behind"


@cocotb.test
async def test_plans_need_an_idle_chip(dut: Dut) -> None:
    """Nothing is written while a program runs."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    plan, inputs, expected = drawn(bench, 3)
    prepared = prepare(plan)
    replay = await loaded(bench, prepared)
    await bench.chip.start(prepared.starts[0])
    with _spared(bench, prepared):
        message = "chip: given a running program, allowed an idle chip"
        await _refused(loaded(bench, prepared), message)
    await bench.chip.abort()
    await bench.bus.wait_interrupt()
    await bench.chip.write_seq(SeqReg.STATUS, SEQ_FIELDS["STATUS_ERROR"].mask)
    compare(await replay.run(inputs, "ring"), expected, "the run behind")


@cocotb.test
async def test_plans_need_an_idle_ring(dut: Dut) -> None:
    """While the ring runs no plan is loaded, nothing starts, and the ring ends as it should."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    plan, inputs, expected = drawn(bench, 3)
    graph, operands = product(bench.random, "int8", (2, 3, 2))
    other = plan_of(compile_network(graph, bench.limits))
    prepared = prepare(plan)
    multiplied = prepare(other, bases_from(other, prepared.end))
    replay = await loaded(bench, prepared)
    chip = DrivenChip(bench.chip)
    port = await CommandPort.connect(bench.bus)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: loaded(bench, prepared),
        lambda: loaded(bench, multiplied),
        lambda: replay.run(inputs),
        lambda: replay.run(inputs, "ring"),
        lambda: Replay(multiplied, chip).run(operands),
        lambda: Replay(multiplied, chip).run(operands, "ring"),
        lambda: run_sequence(chip, [SequenceEntry("one", prepared)], inputs),
    ]
    with _spared(bench, prepared):
        await bench.set_knobs(Knobs(read_latency=LONG))
        buffer = await CommandBuffer.open(port, prepared.bases.ring)
        buffer.add(Command(scalars.mul_lo(3, 5), writeback=prepared.bases.arena))
        await port.set_timeout(0)
        await buffer.submit()
        await ClockCycles(dut.clk, SLOW)
        for attempt in attempts:
            await _refused(attempt(), IDLE_PORT)
        await bench.set_knobs(Knobs())
        (result,) = await buffer.wait()
        assert result.value == 15
        await port.clear()
    compare(await replay.run(inputs, "ring"), expected, "the run behind")
    compare(await replay.run(inputs), expected, "the run behind by registers")
