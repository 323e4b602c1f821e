# SPDX-License-Identifier: Apache-2.0
"""Plans bound to addresses and run: anywhere, by registers and by the ring, without compiler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.command.model import ModelBus
from golden.machine import ChipConfig
from npu.driver.chip import PAGE, Chip
from npu.driver.errors import RequestError
from npu.graph.form import Array, GraphError
from npu.runtime.prepare import (
    Bases,
    Prepared,
    bases_from,
    check_prepared,
    prepare,
    sizes_of,
)
from npu.runtime.replay import By, DrivenChip, NetworkRun, Replay
from npu.runtime.schema import EntryError
from spec.isa.operands import up
from spec.paths import REPORTS
from tests.python.compiler.user_networks import built, one_input
from tests.python.plans.damaged_plans import three
from tests.python.plans.mixed_networks import replays_as_golden
from tests.python.plans.other_process import replayed
from tests.python.plans.plan_damage import prepared_damages, prepared_memory

MOST_SECONDS = 0.5
"""Of processor time until a process is ready to replay."""
STEP = 211
"""Of the bits of memory that are tried here."""


def bus_for(prepared: Prepared, size: int = 0) -> ModelBus:
    """Return a chip whose memory holds random bytes."""
    random = np.random.default_rng(3)
    memory = random.integers(0, 256, max(size, up(prepared.end)), np.uint8)
    return ModelBus(memory, config=ChipConfig(), races=True)


def run(prepared: Prepared, by: By, inputs: Mapping[str, Array] | None = None) -> NetworkRun:
    """Run a prepared plan on the instruction model."""

    async def whole() -> NetworkRun:
        driven = DrivenChip(await Chip.connect(bus_for(prepared)))
        await driven.load(prepared)
        return await Replay(prepared, driven).run(inputs or one_input(), by)

    return asyncio.run(whole())


def same(one: NetworkRun, other: NetworkRun) -> None:
    """Check that two runs have left the same."""
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in one.tensors.items():
        np.testing.assert_array_equal(tensor, other.tensors[name])
        assert np.unique(tensor).size > 3


@pytest.mark.parametrize("by", ["registers", "ring"])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_gives_the_same_wherever_it_lies(seed: int, by: By) -> None:
    """Parts in any order, at multiples of 64, with launches alone or three at a time."""
    random = np.random.default_rng(seed)
    for plan in (built().plan, three()):
        order = [str(name) for name in random.permutation(Bases.names())]
        placed = bases_from(plan, 64 * int(random.integers(1 << 14)), order)
        # Each part has a page of its own, in which it moves.
        moved = {name: getattr(placed, name) + PAGE * i for i, name in enumerate(order)}
        sizes = sizes_of(plan)
        shifts = {name: 64 * int(random.integers(1 + -sizes[name] % PAGE // 64)) for name in order}
        bases = Bases(**{name: moved[name] + shifts[name] for name in order})
        same(run(prepare(plan, bases), by), run(prepare(plan), "registers"))


def test_a_process_with_numpy_alone_replays_a_plan(tmp_path: Path) -> None:
    """No compiler, no importer, no onnx; ready within half a second of processor time.

    `build/reports/replay_process.json` says what it took.
    """
    report: dict[str, object] = {"most_seconds": MOST_SECONDS}
    seconds: list[float] = []
    ways: tuple[By, ...] = ("registers", "ring")
    for number, by in enumerate(3 * ways):  # other work beside it only makes it slower
        place = tmp_path / str(number)
        place.mkdir()
        (outputs,), process = replayed(place, [(three(), one_input())], by)
        np.testing.assert_array_equal(outputs["y"], run(prepare(three()), "ring").outputs["y"])
        assert process["packages"] == ["numpy"]
        foreign = (
            "npu.compiler",
            "npu.planner",
            "npu.asm",
            "npu.graph.importers",
            "npu.cli",
            "npu.commands",
        )
        assert [name for name in process["modules"] if name.startswith(foreign)] == []
        report[by] = {"seconds": process["ready"], "packages": process["packages"]}
        seconds.append(process["ready"])
    # The first one may have had to compile what it imports.
    assert min(seconds) < MOST_SECONDS
    REPORTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1) + "\n"
    (REPORTS / "replay_process.json").write_text(text, encoding="utf-8")


def test_mixed_networks_replay_in_another_process(tmp_path: Path) -> None:
    """A sample of what `make regress` replays."""
    replays_as_golden(tmp_path, range(1000, 1010))


def test_every_bit_of_what_is_prepared_counts() -> None:
    """Descriptor words, registers, addresses, and a sample of memory: `make regress` tries all."""
    prepared = prepare(three())
    check_prepared(prepared)
    pieces = [prepared_memory(prepared, one, STEP) for one in range(len(prepared.memory))]
    tried = 0
    for path, changed in chain(prepared_damages(prepared), *pieces):
        with pytest.raises(EntryError) as caught:
            check_prepared(changed)
        assert caught.value.path.startswith(path)
        tried += 1
    assert tried > 5000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arena": 0x2020}, r"bases.arena: given 8224, allowed multiples of 64"),
        ({"ring": True}, r"bases.ring: given True, allowed multiples of 64"),
        ({"stream": 1 << 32}, r"bases.stream: given 4294967296, allowed 0 to 0xffff"),
        ({"arena": (1 << 32) - 64}, r"bases.arena: given 4294967232, allowed 0 to 0xffff"),
        ({"arena": 0x1000}, r"bases.arena: given 4096, allowed a place beside stream, at 0x1000"),
        ({"ring": 0x1040}, r"bases.ring: given 4160, allowed a place beside stream"),
    ],
)
def test_bases_that_do_not_fit_are_refused(change: dict[str, int], message: str) -> None:
    """Unaligned, outside the memory, on one another."""
    plan = built().plan
    with pytest.raises(EntryError, match=message):
        prepare(plan, replace(bases_from(plan), **change))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs: missing 'x'; allowed are 'x': float32"),
        ({"z": np.zeros(1)}, "inputs: unknown 'z'; allowed are 'x'"),
        ({"x": np.zeros((1, 1, 28, 27), np.float32)}, r"input 'x' has shape \[1, 1, 28, 27\]"),
        ({"x": np.zeros((1, 1, 28, 28), complex)}, "input 'x': given complex128, allowed float32"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: dict[str, Array], message: str) -> None:
    """Before the first write behind those that make the chip ready."""
    prepared = prepare(built().plan)
    bus = bus_for(prepared)

    async def refused() -> None:
        driven = DrivenChip(await Chip.connect(bus))
        await driven.load(prepared)
        before = _memory(bus)
        with pytest.raises(GraphError, match=message):
            await Replay(prepared, driven).run(inputs)
        assert _memory(bus) == before

    asyncio.run(refused())


def _memory(bus: ModelBus) -> bytes:
    return bus.read_memory(0, 0x8000)


def _refused_load(prepared: Prepared, bus: ModelBus, error: type[Exception], message: str) -> None:
    """Check that a chip is not made ready, and that nothing has changed."""

    async def load() -> None:
        driven = DrivenChip(await Chip.connect(bus))
        before = _memory(bus)
        with pytest.raises(error, match=message):
            await driven.load(prepared)
        assert _memory(bus) == before

    asyncio.run(load())


def test_a_plan_for_another_chip_is_refused() -> None:
    """Each size counts."""
    prepared = prepare(built().plan)
    for config, message in (
        (ChipConfig(8), "chip.array_dim: given a plan for 16, allowed 8, that of the chip"),
        (ChipConfig(16, 128 * 1024), "chip.sram_bytes: given a plan for 262144, allowed 131072"),
        (ChipConfig(16, acc_rows=64), "chip.acc_rows: given a plan for 128, allowed 64"),
    ):
        bus = ModelBus(np.zeros(0x40000, np.uint8), config=config)
        _refused_load(prepared, bus, RequestError, message)


def test_a_damaged_prepared_plan_is_refused_before_the_first_write() -> None:
    """Loading checks it again."""
    prepared = prepare(three())
    (batch,) = prepared.batches
    words = (batch.words[0] ^ 1, *batch.words[1:])
    damaged = replace(prepared, batches=(replace(batch, words=words),))
    message = r"batches\[0\].words\[0\]: given .*, allowed"
    _refused_load(damaged, bus_for(prepared), EntryError, message)


def test_a_way_to_start_that_there_is_not_is_refused() -> None:
    """Registers and the ring are all."""
    with pytest.raises(RequestError, match="by: given 'dma', allowed registers, ring"):
        run(prepare(built().plan), "dma")  # type: ignore[arg-type]
