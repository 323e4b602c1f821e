# SPDX-License-Identifier: Apache-2.0
"""Plans, addresses, inputs that do not fit: one line, nothing changed, and the next run works."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.command.model import ModelBus
from golden.graph import run
from golden.machine import ChipConfig
from npu.driver.bus import Bus
from npu.driver.chip import PAGE, Chip
from npu.driver.command import Command, CommandBuffer, CommandPort, scalars
from npu.driver.command.buffer import PLACES
from npu.driver.command.descriptor import ENTRY
from npu.runtime.plan import Plan
from npu.runtime.plan_files import IMAGE, PLAN, files_of, plan_from
from npu.runtime.prepare import Prepared, bases_from, prepare, sizes_of
from npu.runtime.replay import By, DrivenChip, NetworkRun, Replay, ReplayError
from npu.runtime.sequence import SequenceEntry, run_sequence
from spec.isa.operands import up
from tb.stimulus.random_graphs import random_graph
from tests.python.command.command_support import SlowBus
from tests.python.compiler.user_networks import one_input
from tests.python.plans.damaged_plans import decoder, port, three, two
from tests.python.plans.plan_damage import flipped, with_image, with_record

Attempt = Callable[["Ready"], Awaitable[object]]


@dataclass
class Ready:
    """A chip that has replayed a plan.

    Attributes:
        prepared: the plan.
        model: the chip.
        bus: the way to it.
        chip: behind the driver.
    """

    prepared: Prepared
    model: ModelBus
    bus: Bus
    chip: DrivenChip

    async def run(self) -> NetworkRun:
        """Replay the plan once more, without a reset."""
        await self.chip.load(self.prepared)
        return await Replay(self.prepared, self.chip).run(one_input(), "ring")

    def outside(self) -> bytes:
        """Return memory but for arena and ring."""
        memory = bytearray(self.model.read_memory(0, up(self.prepared.end)))
        for name in ("arena", "ring"):
            first = self.prepared.bases.of(name)
            size = sizes_of(self.prepared.plan)[name]
            memory[first : first + size] = bytes(size)
        return bytes(memory)


def refused(attempt: Attempt) -> str:
    """Return the line that an attempt is refused with.

    Nothing outside the arena may have changed, and the plan before it must run as before.
    """

    async def whole() -> str:
        prepared = prepare(three())
        memory = np.random.default_rng(3).integers(0, 256, 1 << 20, np.uint8)
        model = ModelBus(memory, config=ChipConfig())
        bus = SlowBus(model)
        ready = Ready(prepared, model, bus, DrivenChip(await Chip.connect(bus)))
        expected = (await ready.run()).outputs["y"]
        before = ready.outside()
        with pytest.raises((ValueError, RuntimeError)) as caught:
            await attempt(ready)
        assert ready.outside() == before
        np.testing.assert_array_equal((await ready.run()).outputs["y"], expected)
        return str(caught.value)

    line = asyncio.run(whole())
    assert "\n" not in line
    return line


def _files(change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> Attempt:
    """Return the attempt to load the plan's files with something else in them."""

    async def attempt(ready: Ready) -> None:
        await ready.chip.load(prepare(plan_from(change(files_of(three())))))

    return attempt


def _record(change: Callable[[dict[str, Any]], object]) -> Attempt:
    def changed(files: dict[str, bytes]) -> dict[str, bytes]:
        record = json.loads(files[PLAN])
        change(record)
        return with_record(files, record)

    return _files(changed)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            _files(lambda files: files | {IMAGE: files_of(two())[IMAGE]}),
            r"image.bytes: given \d+, allowed \d+, those of image.bin",
        ),
        (
            _files(lambda files: files | {IMAGE: flipped(files[IMAGE], 8 * len(files[IMAGE]) - 1)}),
            r"image.sha256: given '.*', allowed .*, that of image.bin",
        ),
        (
            _files(lambda files: with_image(files, flipped(files[IMAGE], 8 * 2000))),
            r"CRC-32 of the payload: given 0x.*, allowed 0x",
        ),
        (_record(lambda record: record.update(format=1)), "format: given 1, allowed 2"),
        (_record(lambda record: record.update(format=3)), "format: given 3, allowed 2"),
        (
            _record(lambda record: record.update(batches=[[0, 1, 2, 2]])),
            r"batches\[0\]: given 4 entries, allowed 1 to 3",
        ),
    ],
)
def test_files_that_do_not_fit(attempt: Attempt, message: str) -> None:
    """Another image, another checksum, another format, more launches than the ring holds."""
    assert re.fullmatch(rf"plan/(plan\.json|image\.bin): {message}.*", refused(attempt))


@pytest.mark.parametrize(
    ("name", "other"),
    [("array_dim", 8), ("sram_bytes", 131072), ("acc_rows", 64), ("norm_max", 4096)],
)
def test_plans_for_another_chip(name: str, other: int) -> None:
    """Each size counts, although the chip could be made ready for such a plan."""
    limits: dict[str, Any] = {name: other}

    async def attempt(ready: Ready) -> None:
        plan = replace(three(), limits=replace(three().limits, **limits))
        await ready.chip.load(prepare(plan, ready.prepared.bases))

    has = getattr(three().limits, name)
    assert refused(attempt) == f"chip.{name}: given a plan for {other}, allowed {has}, " + (
        "that of the chip"
    )


def test_a_batch_that_the_ring_does_not_hold() -> None:
    """Seven entries, of which a launch takes two."""

    async def attempt(ready: Ready) -> None:
        (batch,) = ready.prepared.batches
        longer = replace(
            batch,
            launches=(*batch.launches, 2),
            tags=(*batch.tags, 2),
            words=(*batch.words, *batch.words[-8:]),
        )
        await ready.chip.load(replace(ready.prepared, batches=(longer,)))

    assert refused(attempt) == "batches[0].launches: given 4 entries, allowed 3"


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        (three, {"arena": 0x2020}, "bases.arena: given 8224, allowed multiples of 64"),
        (decoder, {"arena": 0x40040}, "bases.arena: given 262208, allowed multiples of 256"),
        (three, {"stream": 1 << 32}, "bases.stream: given 4294967296, allowed 0 to 0xffff"),
        (three, {"ring": -64}, "bases.ring: given -64, allowed 0 to 0xffff"),
        (three, {"arena": 0x1000}, "bases.arena: given 4096, allowed a place beside stream"),
        (port, {"ring": 0x1000}, "bases.ring: given 4096, allowed a place beside stream"),
    ],
)
def test_addresses_that_do_not_fit(
    plan: Callable[[], Plan], change: dict[str, int], message: str
) -> None:
    """Unaligned, outside the memory, on one another."""

    async def attempt(ready: Ready) -> None:
        await ready.chip.load(prepare(plan(), replace(bases_from(plan()), **change)))

    assert refused(attempt).startswith(message)


def test_a_ring_with_what_products_stage_on_the_arena() -> None:
    """It is longer than seven descriptors: each byte of it counts."""
    plan = port()
    bases = bases_from(plan)
    size = sizes_of(plan)["ring"]
    assert size > PAGE / 4
    for arena, fits in ((bases.ring + size - 64, False), (bases.ring + size, True)):

        async def attempt(ready: Ready, arena: int = arena) -> None:
            await ready.chip.load(prepare(plan, replace(bases, arena=arena)))

        if fits:
            prepare(plan, replace(bases, arena=arena))
        else:
            allowed = f"a place beside arena, at {arena:#x} to {arena + plan.arena - 1:#x}"
            assert refused(attempt) == f"bases.ring: given {bases.ring}, allowed {allowed}"


@pytest.mark.parametrize("by", get_args(By))
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs: missing 'x'; allowed are 'x': float32[1, 1, 28, 28]"),
        ({"z": np.zeros(1)}, "inputs: unknown 'z'; allowed are 'x': float32[1, 1, 28, 28]"),
        (
            {"x": np.zeros((1, 1, 28, 27), np.float32)},
            "input 'x' has shape [1, 1, 28, 27], allowed [1, 1, 28, 28]",
        ),
        (
            {"x": np.zeros((1, 1, 28, 28), complex)},
            "input 'x': given complex128, allowed float32",
        ),
    ],
)
def test_inputs_that_do_not_fit(inputs: dict[str, Any], message: str, by: By) -> None:
    """Name, shape, type."""
    line = refused(lambda ready: Replay(ready.prepared, ready.chip).run(inputs, by))
    assert line.startswith(message)


@pytest.mark.parametrize(
    "start",
    [
        lambda ready: ready.chip.load(ready.prepared),
        lambda ready: Replay(ready.prepared, ready.chip).run(one_input(), "registers"),
        lambda ready: Replay(ready.prepared, ready.chip).run(one_input(), "ring"),
        lambda ready: run_sequence(ready.chip, [SequenceEntry("one", ready.prepared)], one_input()),
    ],
)
def test_a_ring_that_runs(start: Attempt) -> None:
    """Nothing is written over what it does, and it ends as it should."""

    async def attempt(ready: Ready) -> None:
        connected = await CommandPort.connect(ready.bus)
        buffer = await CommandBuffer.open(connected, ready.prepared.bases.ring)
        buffer.add(Command(scalars.mul_lo(3, 5), writeback=ready.prepared.bases.arena))
        await buffer.submit()
        try:
            await start(ready)
        finally:
            (result,) = await buffer.wait()
            assert result.value == 15
            await connected.clear()

    line = "command port: given a running ring, allowed an idle command port"
    assert refused(attempt) == line


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_product_that_the_memory_fails(kind: str) -> None:
    """Or its descriptors and those of launches: the step is named, the next run is right."""
    graph, inputs = random_graph(1003, operations=(4, 30), mixed=True)

    async def attempt(ready: Ready) -> None:
        plan = port()
        prepared = prepare(plan, bases_from(plan, ready.prepared.end))
        await ready.chip.load(prepared)
        ring, size = prepared.bases.ring, sizes_of(plan)["ring"]
        faults = ready.model.faults
        if kind == "read":
            faults.read_errors.append((ring, ring + PLACES * ENTRY - 1))
        else:
            faults.write_errors.append((ring + PLACES * ENTRY, ring + size - 1))
        try:
            await Replay(prepared, ready.chip).run(inputs, "ring")
        finally:
            faults.read_errors.clear()
            faults.write_errors.clear()
            found = await Replay(prepared, ready.chip).run(inputs, "ring")
            for name, value in run(graph, inputs).items():
                np.testing.assert_array_equal(found.outputs[name], value)

    path = {"read": r"segments\[0\]", "write": r"operation '\w+'"}[kind]
    text = {"read": "0x14, fetching the descriptor", "write": "0x94, writing the result"}[kind]
    assert re.match(rf"steps\[\d+\], {path}: ring entry \d: {text}", refused(attempt))


def test_a_ring_that_cannot_be_read_behind_a_program_that_failed() -> None:
    """What the sequencer still reports of that program is not what is wrong with the ring."""

    async def attempt(ready: Ready) -> None:
        program, ring = ready.prepared.starts[0].ucode_base, ready.prepared.bases.ring
        word = ready.model.read_memory(program, 16)
        replay = Replay(ready.prepared, ready.chip)
        ready.model.write_memory(program, b"\xff" * 16)
        with pytest.raises(ReplayError, match="ILLEGAL_FIELD by engine seq"):
            await replay.run(one_input())
        ready.model.write_memory(program, word)
        ready.model.faults.read_errors.append((ring, ring + PLACES * ENTRY - 1))
        try:
            await replay.run(one_input(), "ring")
        finally:
            ready.model.faults.read_errors.clear()

    text = r"segments\[0\]: ring entry \d: 0x14, fetching the descriptor met an error"
    assert re.fullmatch(rf"steps\[\d+\], {text}", refused(attempt))
