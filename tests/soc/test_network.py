# SPDX-License-Identifier: Apache-2.0
"""The plan of a network on the machine: firmware binds and replays it, golden's bytes come out."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.network import compile_network
from npu.firmware.plan import IMAGE, PlanError, firmware_network
from npu.graph.operations.borders import quantised
from npu.graph.prepare import Io
from npu.planner.build_plan import CompileOptions, build_plan
from npu.planner.network_plan import plan_of
from npu.runtime.plan import Action, Plan
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import bases_from, prepare
from npu.runtime.tensor_rows import from_rows
from spec.isa.generated import ErrorCode
from tb.soc import given_program, program_run
from tb.soc.elf_file import Elf
from tb.stimulus.random_graphs import random_graph
from tessera.golden_chip import run_on_golden
from tests.needs import needs
from tests.python.compiler.user_networks import model, one_input, samples
from tests.soc import support

SEEDS = range(3)
MOST = 600
"""Elements of outputs: a core prints them in hex."""


def _drawn(seed: int) -> tuple[Plan, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return a network whose operations all run in programs, in three segments if it can be."""
    for number in range(1000 * seed, 1000 * seed + 1000):
        graph, inputs = random_graph(number, operations=(5, 12))
        network = compile_network(graph)
        small = sum(graph.type(name).size for name in graph.outputs) <= MOST
        whole = all(one.on_chip for one in network.graph.operations) and network.segments
        if small and whole:
            names = list(network.segments[0].first_word)[:-1]
            cut = compile_network(graph, split=names[:: max(1, len(names) // 2)][:2])
            plan = plan_from(files_of(plan_of(cut)))
            return plan, inputs, run(graph, inputs)
    raise AssertionError("no network without a host")


def _run(plan: Plan, inputs: dict[str, np.ndarray], name: str) -> program_run.Ran:
    laid = firmware_network(plan, inputs)
    program = given_program.compiled("network", laid, place=name)
    elf = Elf.load(program.path, IMAGE)
    return program_run.run_program(
        support.machine(), elf, name=name, image=program.image, memory_end=program.end
    )


def test_a_program_of_ones_own_has_a_network(tmp_path: Path) -> None:
    """C sources include npu_plan.h, made of the folder of a plan, whose image is in memory."""
    source, folder = tmp_path / "own_network.c", tmp_path / "plan"
    folder.mkdir()
    plan = build_plan(model(), CompileOptions(calibrate=samples(4), io="int8")).plan
    for name, data in files_of(plan).items():
        (folder / name).write_bytes(data)
    text = """#include "npu_plan.h"
#include "plan.h"
int main(void) { return npu_replay(&npu_plan, &npu_bases).outcome == NPU_RAN ? 42 : 1; }
"""
    source.write_text(text, encoding="utf-8")
    words = {**given_program.DEFAULTS, "program": [str(source)], "model": str(folder)}
    program = given_program.program_of(argparse.Namespace(**words))
    ran = program_run.run_program(
        support.machine(),
        Elf.load(program.path, IMAGE),
        name=f"test-own-network-{tmp_path.name}",
        image=program.image,
        memory_end=program.end,
    )
    assert ran.code == 42


@pytest.mark.parametrize("seed", SEEDS)
def test_outputs_are_goldens(seed: int, tmp_path: Path) -> None:
    """Printed tensors, and those in memory, at the addresses that firmware has worked out."""
    plan, inputs, expected = _drawn(seed)
    ran = _run(plan, inputs, f"test-network-{tmp_path.name}")
    assert ran.code == 0
    found = dict(line.split(" ") for line in ran.output.decode().splitlines())
    prepared = prepare(plan, bases_from(plan, IMAGE))
    crossing = [name for name in expected if name in found]
    assert crossing
    for name in crossing:
        kind = plan.graph.type(name)
        size = plan.places[name].bytes
        data = bytes(ran.memory.data[prepared.address(name) :][:size])
        assert bytes.fromhex(found[name]) == data, name
        assert np.array_equal(from_rows(data, kind), expected[name]), name


@pytest.mark.parametrize("io", get_args(Io))
def test_a_network_in_float_runs(io: Io, tmp_path: Path) -> None:
    """Quantised and packed by the host that lays it out; the core finds golden's integers."""
    needs("graphs")
    plan = build_plan(model(), CompileOptions(calibrate=samples(8), io=io)).plan
    inputs = one_input()
    if io != "float":
        inputs = {"x": quantised(inputs["x"], plan.graph.type("x"))}
    ran = _run(plan, inputs, f"test-network-{io}-{tmp_path.name}")
    assert ran.code == 0
    (line,) = ran.output.decode().splitlines()
    name, data = line.split(" ")
    expected = run_on_golden(plan, inputs, inner=True).tensors[name]
    assert np.array_equal(from_rows(bytes.fromhex(data), plan.graph.type(name)), expected)


def test_an_error_of_the_chip_is_said(tmp_path: Path) -> None:
    """A program that stops is explained, and what stands behind it has not begun."""
    plan, inputs, _ = _drawn(0)
    first = plan.segments[0]
    broken = replace(plan, segments=(replace(first, image=b"\xff" * 16 + first.image[16:]),))
    broken = replace(broken, steps=tuple(one for one in plan.steps if one.segment < 1))
    laid = firmware_network(broken, inputs)
    program = given_program.compiled("network", laid, place=f"test-broken-{tmp_path.name}")
    ran = program_run.run_program(
        support.machine(),
        Elf.load(program.path, IMAGE),
        name=f"test-broken-{tmp_path.name}",
        image=program.image,
        memory_end=program.end,
    )
    assert ran.code == 1
    assert re.match(rb"chip: error \d+ of engine \d+ at instruction 0, address", ran.output)
    assert int(ran.output.split()[2]) in (ErrorCode.ILLEGAL_FIELD, ErrorCode.ILLEGAL_OPCODE)


@pytest.mark.parametrize(
    ("name", "entry", "other"),
    [
        ("segment", r"\.of = 0u", ".of = 77u"),
        ("register", r"\.register_ = \d+u", ".register_ = 8u"),
        ("area", r"\.area = \w+", ".area = (enum npu_plan_area)2"),
        ("words", r"\.words = \d+u", ".words = 0u"),
        ("address", r"\.programs = 0x[0-9a-f]+u", ".programs = 0x00100010u"),
    ],
)
def test_an_entry_that_no_plan_has_is_refused(name: str, entry: str, other: str) -> None:
    """The host verifies plans; the core looks at what would lead itself astray."""
    plan, inputs, _ = _drawn(0)
    laid = firmware_network(plan, inputs)
    header, count = re.subn(entry, other, laid.header, count=1)
    assert count == 1
    place = f"test-entry-{name}"
    program = given_program.compiled("network", replace(laid, header=header), place=place)
    elf = Elf.load(program.path, IMAGE)
    ran = program_run.run_program(support.machine(), elf, name=place, image=program.image)
    said = rb"plan: steps\[\d+\]: given a segment, base, address or tensor that no plan has\n"
    assert ran.code == 1
    assert re.fullmatch(said, ran.output)


def test_a_network_with_a_host_between_its_launches_is_refused() -> None:
    """Named by step and operation, before anything is written."""
    for seed in range(200):
        graph, inputs = random_graph(seed, operations=(5, 12))
        plan = plan_of(compile_network(graph))
        order = [step.action for step in plan.steps]
        if order.count(Action.LAUNCH) > 1:
            first = order.index(Action.LAUNCH)
            last = len(order) - order[::-1].index(Action.LAUNCH)
            if Action.HOST in order[first:last]:
                break
    with pytest.raises(PlanError, match=r"steps\[\d+\]: given host '.*', allowed a network whose"):
        firmware_network(plan, inputs)
