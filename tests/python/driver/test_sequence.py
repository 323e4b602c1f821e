# SPDX-License-Identifier: Apache-2.0
"""Sequences of plans: dependencies, places, order, and what happens when one fails."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.command.model import ModelBus
from golden.graph import run
from golden.machine import ChipConfig
from npu.compiler.network import compile_network
from npu.driver.chip import Chip
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.prepare import prepare as prepared_graph
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Action, Plan
from npu.runtime.prepare import bases_from, prepare
from npu.runtime.replay import By, DrivenChip, NetworkRun
from npu.runtime.schema import EntryError
from npu.runtime.sequence import (
    SequenceEntry,
    SequenceError,
    check_sequence,
    load_sequence,
    run_sequence,
)
from spec.isa.operands import up
from tests.python.compiler.user_networks import built
from tests.python.plans.test_delegate import image, parts

PLACES = (0x1000, 0x20_000, 0x40_000)


def plans() -> list[Plan]:
    """Return a plan of the chip, one of the host, one of the chip; each takes the one before."""
    return [plan_of(compile_network(part.graph)) for part in parts()]


def entries() -> list[SequenceEntry]:
    """Return them as a sequence."""
    found: list[SequenceEntry] = []
    for name, plan, at in zip("abc", plans(), PLACES, strict=True):
        takes = {}
        if found:
            before = found[-1].plan.graph.outputs[0]
            takes = {plan.graph.inputs[0]: f"{found[-1].name}.{before}"}
        by: By = "ring" if name == "c" else "registers"
        prepared = prepare(plan, bases_from(plan, at))
        found.append(SequenceEntry(name, prepared, takes, by))
    return found


def _chip(one: Sequence[SequenceEntry]) -> ModelBus:
    size = up(max(each.prepared.end for each in one))
    return ModelBus(np.zeros(size, np.uint8), config=ChipConfig())


def _run(
    one: Sequence[SequenceEntry], inputs: dict[str, Array], bus: ModelBus | None = None
) -> list[NetworkRun]:
    async def whole() -> list[NetworkRun]:
        chip = DrivenChip(await Chip.connect(bus or _chip(one)))
        await load_sequence(chip, one)
        return await run_sequence(chip, one, inputs)

    return asyncio.run(whole())


def test_a_sequence_is_the_network_that_it_was_split_from() -> None:
    """Three plans, the outputs of each the inputs of the next."""
    from tests.python.plans.test_delegate import model

    found = _run(entries(), {"x": image()})
    whole = prepared_graph(read(model()), host=["SIN"])
    expected = run(whole, {"x": image()})["second"]
    np.testing.assert_array_equal(found[-1].outputs["second"], expected)
    assert [len(one.counters) for one in found] == [1, 0, 0]


def test_one_plan_may_run_several_times_in_one_place() -> None:
    """On inputs of its own each time."""
    first = entries()[0]
    twice = [first, replace(first, name="again", takes={"x": "other"})]
    other = image()[::-1, ::-1].copy()
    found = _run(twice, {"x": image(), "other": other})
    one, two = (next(iter(run.outputs.values())) for run in found)
    assert not np.array_equal(one, two)


def test_dependencies_are_checked() -> None:
    """Names, order, types."""
    a, b, c = entries()
    (take,) = c.plan.graph.inputs
    sine = f"b.{b.plan.graph.outputs[0]}"
    for changed, message in (
        ([a, replace(b, name="a"), c], "entries[1].name: given 'a', allowed a name without a dot"),
        ([a, replace(b, name="b.c"), c], "entries[1].name: given 'b.c', allowed a name without a"),
        ([a, c, b], f"entries[1].takes.{take}: given '{sine}', allowed a."),
        ([b, a, c], "allowed nothing: no plan is before it"),
        ([replace(a, takes={"z": "x"}), b, c], "entries[0].takes: given 'z', allowed inputs x"),
        ([a, b, replace(c, takes={take: "a.x"})], f"entries[2].takes.{take}: given 'a.x', allowed"),
    ):
        with pytest.raises(EntryError, match=re.escape(message)):
            check_sequence(changed)


def test_a_tensor_of_another_type_is_refused() -> None:
    """Shape, element, scale and zero point."""
    needs("graphs")
    a = entries()[0]
    other = prepare(built().plan, bases_from(built().plan, PLACES[1]))
    message = "entries[1].takes.x: given int8[1, 8, 8, 4] of scale 0.05, zero 3, allowed float32[1"
    with pytest.raises(EntryError, match=re.escape(message)):
        check_sequence([a, SequenceEntry("other", other, {"x": f"a.{a.plan.graph.outputs[0]}"})])
    with pytest.raises(EntryError, match=re.escape("entries[1].takes.x: given int8[1, 8, 8, 4]")):
        check_sequence([a, SequenceEntry("other", other)])


def test_plans_on_one_another_are_refused() -> None:
    """Every part counts."""
    a, b, c = entries()
    moved = replace(c, prepared=prepare(c.plan, bases_from(c.plan, a.prepared.bases.arena)))
    with pytest.raises(
        EntryError, match=r"entries\[2\].bases.stream: given .* beside entries\[0\]"
    ):
        check_sequence([a, b, moved])


def test_a_damaged_entry_is_named_and_nothing_is_written() -> None:
    """All of a sequence is checked first."""
    one = entries()
    batch = one[2].prepared.batches[0]
    damaged = replace(batch, words=(batch.words[0] ^ 4, *batch.words[1:]))
    one[2] = replace(one[2], prepared=replace(one[2].prepared, batches=(damaged,)))
    bus = _chip(one)
    with pytest.raises(EntryError, match=r"entries\[2\].batches\[0\].words\[0\]: given"):
        _run(one, {"x": image()}, bus)
    assert not any(bus.read_memory(0, 0x40_000))


def test_inputs_are_those_of_the_sequence() -> None:
    """Neither more nor less."""
    with pytest.raises(GraphError, match=r"inputs: given none, allowed 'x': int8\[1, 8, 8, 4\]"):
        _run(entries(), {})
    with pytest.raises(GraphError, match="inputs: given x, y, allowed 'x'"):
        _run(entries(), {"x": image(), "y": image()})


def test_a_failure_names_the_plan_and_stops_the_sequence() -> None:
    """What was before it is there, nothing behind it has happened."""
    one = entries()
    bus = _chip(one)

    async def whole() -> None:
        chip = DrivenChip(await Chip.connect(bus))
        await load_sequence(chip, one)
        # A program that the chip refuses, in the place of the last one.
        program = one[2].prepared.starts[0].ucode_base
        bus.write_memory(program, b"\xff" * 16)
        with pytest.raises(SequenceError, match="ILLEGAL_FIELD by engine seq") as caught:
            await run_sequence(chip, one, {"x": image()})
        launch = [step.action for step in one[2].plan.steps].index(Action.LAUNCH)
        assert f"entries[2], plan 'c': steps[{launch}], segments[0]: " in str(caught.value)
        assert caught.value.entry == 2
        assert [len(run.outputs) for run in caught.value.done] == [1, 1]
        bus.write_memory(program, one[2].plan.segments[0].image[:16])
        assert len(await run_sequence(chip, one, {"x": image()})) == 3

    asyncio.run(whole())
