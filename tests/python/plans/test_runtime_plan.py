# SPDX-License-Identifier: Apache-2.0
"""Plans as files, and the costs that they tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")


from golden.machine import ChipConfig, Machine
from npu.driver.counters import ChipCounters
from npu.graph.text import parse
from npu.runtime.account import Cost, total, word_costs
from npu.runtime.network_account import disagreements, report_of
from npu.runtime.plan import Action, Plan
from npu.runtime.plan_files import files_of, read_plan
from npu.runtime.prepare import prepare
from spec.isa.generated import Opcode
from tessera.golden_chip import run_on_golden
from tests.python.compiler.user_networks import built, one_input


def _written(folder: Path) -> Path:
    for name, data in files_of(built().plan).items():
        (folder / name).write_bytes(data)
    return folder


def test_a_plan_read_back_runs_to_the_same_tensors(tmp_path: Path) -> None:
    """Files hold all that running takes: two segments, an operation of the host between them."""
    plan = built().plan
    again = read_plan(_written(tmp_path))
    first, second = (run_on_golden(one, one_input()) for one in (plan, again))
    assert len(plan.segments) == 2
    assert sum(step.action is Action.HOST for step in plan.steps) > 3
    assert first.tensors.keys() == second.tensors.keys()
    for name, tensor in first.tensors.items():
        np.testing.assert_array_equal(second.tensors[name], tensor)
        assert np.unique(tensor).size > 3


def test_the_files_of_a_plan_are_the_same_every_time() -> None:
    """Nothing of time or place is in them."""
    assert files_of(built().plan) == files_of(built().plan)


def test_a_plan_holds_no_weights_beside_its_image(tmp_path: Path) -> None:
    """Constants of the chip are in the image, those of the host in the graph."""
    read = read_plan(_written(tmp_path)).graph
    kept = {name for name, tensor in read.tensors.items() if tensor.constant}
    host = {name for one in read.operations if not one.on_chip for name in one.used}
    assert kept
    assert kept <= host


def test_the_text_of_each_pass_parses_if_it_is_whole() -> None:
    """`--keep` writes graphs, without it a text for people."""
    whole = dict(built().texts(whole=True))
    short = dict(built().texts())
    assert whole.keys() == short.keys()
    for name in list(whole)[:5]:
        assert parse(whole[name]).outputs == ("y",)
        assert len(short[name]) <= len(whole[name])
    assert next(iter(whole)) == "1-import.txt"
    assert "segment 1" in whole["6-schedule.txt"]
    assert whole["7-segment1.npu"].rstrip().endswith("END")


def test_costs_are_those_of_the_programs_that_ran() -> None:
    """The report has the multiplications and bytes that the instruction model has seen."""
    plan = built().plan
    prepared = prepare(plan)
    memory = np.zeros(prepared.end, np.uint8)
    for address, data in prepared.memory:
        memory[address : address + len(data)] = np.frombuffer(data, np.uint8)
    config = ChipConfig(16, plan.limits.sram_bytes, plan.limits.acc_rows)
    for line, start in zip(report_of(plan).segments, prepared.starts, strict=True):
        result = Machine(config, memory, np.zeros(config.sram_bytes, np.uint8)).run(start)
        assert result.error is None
        assert result.macs == line.cost.macs > 0
        assert result.executed == line.cost.instructions
        assert sum(one.data.size for one in result.memory_writes) == line.cost.store_bytes


def test_totals_are_sums_of_lines() -> None:
    """Operations and the end of a program make a segment, segments the network."""
    report = report_of(built().plan)
    for one in report.segments:
        lines = [line.cost for line in report.operations if line.segment == one.number]
        assert total([one.end, *lines]) == one.cost
        words = word_costs(built().plan.segments[one.number].program, built().plan.limits)
        assert total(words) == one.cost
    assert report.cost == total(one.cost for one in report.segments)
    record = report.to_json()
    assert record["total"]["macs"] == sum(
        one["macs"] for one in record["operations"] if one["segment"] >= 0
    )


def test_every_operation_has_a_place_and_a_reason() -> None:
    """The user's wish, the borders and the chip's instructions are told apart."""
    lines = {one.name: one for one in report_of(built().plan).operations}
    assert (lines["c2"].target, lines["c2"].reason) == ("host", "the user wants it on the host")
    assert lines["c1"].segment == 0
    assert lines["y"].segment == 1
    assert lines["y.out"].bound == "host"
    assert all(one.reason for one in lines.values())
    assert lines["c1"].macs == lines["c1"].cost.macs  # whole windows without padding


def test_words_belong_to_operations_up_to_the_last_that_works() -> None:
    """What restores the stream and ends the program belongs to none."""
    segment = built().plan.segments[0]
    names = segment.owners
    assert len(names) == len(segment.program)
    assert names[-1] == ""
    assert segment.program[-1].opcode == Opcode.END
    assert [name for name in dict.fromkeys(names) if name] == list(segment.first_word)


def _counters(plan: Plan, **changes: Any) -> list[ChipCounters]:  # noqa: ANN401
    """Return counters that agree with a plan's first segment but for changes."""
    found = []
    for number, one in enumerate(report_of(plan).segments):
        cost: Cost = one.cost
        stream = cost.stream_bytes // 16
        counters = ChipCounters(
            cycles=1000,
            macs=cost.macs,
            instrs=cost.instructions,
            read_beats=cost.load_bytes // 16 + cost.words + stream,
            write_beats=cost.store_bytes // 16,
            stream_beats=stream,
            busy=(0,) * 6,
            stall=(0,) * 6,
        )
        found.append(counters if number else replace(counters, **changes))
    return found


@pytest.mark.parametrize(
    ("counter", "by", "sentence"),
    [
        ("macs", 1, "segment 0: MACs: counted"),
        ("instrs", -1, "segment 0: instructions: counted"),
        ("read_beats", 1, "segment 0: beats of loads and microcode: counted"),
        ("write_beats", -1, "segment 0: beats of stores: counted"),
        ("stream_beats", -1, "segment 0: beats of"),
    ],
)
def test_a_counter_that_is_off_by_one_is_told(counter: str, by: int, sentence: str) -> None:
    """A report that the chip does not confirm is wrong, whichever of the two errs."""
    plan = built().plan
    right = _counters(plan)
    assert disagreements(report_of(plan, right)) == []
    wrong = _counters(plan, **{counter: getattr(right[0], counter) + by})
    found = disagreements(report_of(plan, wrong))
    assert found
    assert found[0].startswith(sentence)
