# SPDX-License-Identifier: Apache-2.0
"""Tensors that live from run to run: in graphs, on the chip, in plans and for users."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx

import tessera
from golden.command.model import ModelBus
from golden.graph import run_steps
from npu.cli import command_line
from npu.driver.chip import Chip
from npu.firmware.plan import PlanError, firmware_network
from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError, Quantisation, State, TensorType
from npu.graph.passes.calibrate import calibrate
from npu.graph.passes.order import anonymous
from npu.graph.states import States, with_states
from npu.graph.text import equal, parse, write
from npu.graph.verify import verify
from npu.planner.build_plan import Built, build_plan
from npu.planner.partition import partition
from npu.runtime.plan_files import PLAN, PlanFileError, files_of, plan_from
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip
from npu.runtime.sequence import Entry, load_sequence, run_sequence
from spec.isa.operands import up
from tests.python.plan_damage import damages, with_record
from tests.python.state_networks import CELLS, PAIRS, lstm_cell, lstm_operator, samples

STEPS = 100


@cache
def cell(*wide: str) -> Built:
    """Return an LSTM of operations of the chip."""
    given = {"x": samples(64)}
    return build_plan(lstm_cell(), calibrate=given, state=PAIRS, wide=wide)


def counter(initial: bool = False) -> Graph:
    """Return a graph that adds its input to a state and gives the sum."""
    build = Builder()
    kind = TensorType((2,), Element.F32)
    x, h = build.input("x", kind), build.input("h", kind)
    both = build.add("add", [x, h], output="h_out")
    y = build.add("identity", [both], output="y")
    first = np.array([5, -3], np.float32) if initial else None
    return replace(build.finish([y, both]), states=(State("h", "h_out", first),))


@pytest.mark.parametrize("initial", [False, True])
def test_a_graph_with_states_is_the_same_after_its_text(initial: bool) -> None:
    """What they hold at first as well; a graph without names keeps them."""
    graph = counter(initial)
    verify(graph)
    again = parse(write(graph))
    assert equal(graph, again)
    assert (graph.arguments, graph.results) == (("x",), ("y",))
    assert not equal(graph, replace(again, states=()))
    assert not equal(counter(not initial), again)
    verify(anonymous(graph))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State("z", "h_out"), "state 'z': input 'z', allowed one of x, h"),
        (State("h", "x"), "state 'h': output 'x', allowed one of y, h_out"),
        (
            State("h", "h_out", np.zeros(3, np.float32)),
            "state 'h' begins with float32[3], its type is float32[2]",
        ),
        (State("h", "y"), "input 'h' of two states, allowed each once"),
    ],
)
def test_a_state_that_is_none_is_refused(state: State, message: str) -> None:
    """In a line that says what is allowed."""
    graph = counter()
    states = (*graph.states, state) if state.output == "y" else (state,)
    with pytest.raises(GraphError, match=re.escape(message)):
        verify(replace(graph, states=states))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"q": "h_out"}, "state q=h_out: given 'q', allowed inputs x, h, c"),
        ({"h": "q"}, "state h=q: given 'q', allowed outputs y, h_out, c_out"),
        ({"h": "h_out", "c": "h_out"}, "state c=h_out: given 'h_out', allowed outputs y, c_out"),
        ({"x": "y"}, "state x=y: given float32[1,12] and float32[1,4], allowed one type"),
    ],
)
def test_a_pair_that_is_none_is_refused(pairs: dict[str, str], message: str) -> None:
    """By its names, before anything is compiled."""
    with pytest.raises(GraphError, match=re.escape(message)):
        tessera.load(lstm_cell(), calibrate="random:2", state=pairs)


def test_golden_hands_on_what_a_run_leaves() -> None:
    """From what the first run finds, which are zeros or what the graph says."""
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    sums, first = np.cumsum(x, 0), np.array([5, -3])
    np.testing.assert_array_equal(run_steps(counter(), {"x": x})["y"], sums)
    np.testing.assert_array_equal(run_steps(counter(True), {"x": x})["y"], sums + first)
    with pytest.raises(GraphError, match=r"steps: given \[\], allowed one number"):
        run_steps(counter(), {})


def test_samples_are_runs_one_after_another() -> None:
    """A state is calibrated with what it grows to, and none is given for it."""
    placed = cell().passes["place"]
    states, seen = States(placed), []
    for x in samples(64):
        made = evaluate(placed, {"x": x, **states.values})
        states.advance(made)
        seen.append(np.abs(made["c_out"]).max())
    found = calibrate(placed, {"x": samples(64)}, "max")
    assert found["c"].high < found["c_out"].magnitude == max(seen)
    assert max(seen) > 3 * seen[0]
    with pytest.raises(GraphError, match="input 'c': given a value, allowed none: it is a state"):
        calibrate(placed, {"x": samples(64), "c": np.zeros((64, 1, CELLS), np.float32)})


@pytest.mark.parametrize("wide", [(), ("c", "c_out")])
def test_a_state_of_the_chip_has_one_scale_and_is_handed_on_in_integers(
    wide: tuple[str, ...],
) -> None:
    """Nothing of the host lies between two runs, whatever the width."""
    graph = cell(*wide).passes["fuse"]
    for one in graph.states:
        assert graph.type(one.input) == graph.type(one.output)
        assert graph.type(one.input).quantisation is not None
    assert graph.type("c").element == (Element.I16 if wide else Element.I8)
    assert [one.name for one in graph.operations if not one.on_chip] == ["x.in", "y.out"]


def test_a_hundred_runs_of_an_lstm_are_those_of_golden() -> None:
    """Bit by bit, and near those in real numbers."""
    x, graph = samples(STEPS, 5), cell().passes["fuse"]
    wanted = run_steps(graph, {"x": x})["y"]
    session = tessera.Session(cell().plan)
    found = np.stack([session.run({"x": one})["y"] for one in x])
    np.testing.assert_array_equal(found, wanted)
    real = run_steps(cell().passes["import"], {"x": x})["y"]
    assert np.abs(found - real).max() < 0.1 * np.abs(real).max()
    alone = np.stack([run_steps(graph, {"x": one[None]})["y"][0] for one in x])
    assert np.abs(alone - real).max() > 0.3 * np.abs(real).max()


def test_an_lstm_of_the_host_hands_on_real_numbers() -> None:
    """Its state is no integer anywhere; onnxruntime says what it leaves."""
    import onnxruntime

    x = samples(6)[:, None]
    session = tessera.load(lstm_operator(), calibrate={"x": samples(32)[:, None]}, state=PAIRS)
    other = onnxruntime.InferenceSession(lstm_operator().SerializeToString())
    h = c = np.zeros((1, 1, CELLS), np.float32)
    for one in x:
        wanted, h, c = other.run(None, {"x": one, "h": h, "c": c})
        (found,) = session.run(None, {"x": one})
        assert np.abs(found - wanted).max() < 0.05
    assert np.abs(h).max() > 0.1


def test_a_session_keeps_states_until_it_is_reset() -> None:
    """They are neither taken nor given; what a user gives for one is refused."""
    session, x = tessera.Session(cell().plan), samples(2)
    assert (session.inputs, session.outputs) == (("x",), ("y",))
    first, second = (session.run({"x": x[0]})["y"] for _ in range(2))
    assert not np.array_equal(first, second)
    session.reset()
    np.testing.assert_array_equal(session.run({"x": x[0]})["y"], first)
    with pytest.raises(GraphError, match="input 'h': given a value, allowed none: it is a state"):
        session.run({"x": x[0], "h": np.zeros((1, CELLS), np.int8)})
    np.testing.assert_array_equal(session.run({"x": x[0]})["y"], second)
    assert "State c: 16 bytes, kept by the host." in str(session.report())


def test_plans_of_a_sequence_share_states() -> None:
    """Three entries of one plan are three runs; without states each begins anew."""
    prepared, x = prepare(cell().plan), samples(3)

    async def run(states: States | None) -> np.ndarray:
        chip = DrivenChip(await Chip.connect(ModelBus(np.zeros(up(prepared.end), np.uint8))))
        entries = [
            Entry(name, prepared, {"x": f"x{name}"}, states=states) for name in ("0", "1", "2")
        ]
        await load_sequence(chip, entries)
        given = {f"x{number}": one for number, one in enumerate(x)}
        runs = await run_sequence(chip, entries, given)
        return np.stack([one.outputs["y"] for one in runs])

    graph = cell().passes["fuse"]
    wanted = run_steps(graph, {"x": x})["y"]
    found = asyncio.run(run(States(cell().plan.graph)))
    np.testing.assert_array_equal(found, wanted)
    anew = asyncio.run(run(None))
    np.testing.assert_array_equal(anew[1], run_steps(graph, {"x": x[1:2]})["y"][0])
    assert not np.array_equal(anew, wanted)


def test_every_entry_of_a_state_in_a_plan_is_refused_when_it_is_another() -> None:
    """And entries of states in a plan that has none."""
    files = files_of(cell().plan)
    record = json.loads(files[PLAN])
    assert record["states"][0] == {
        "input": "h",
        "output": "h_out",
        "bytes": CELLS,
        "kept": "host",
    }
    assert plan_from(files).graph.states[1].input == "c"
    tried = 0
    for damage in damages(record):
        if damage.path.startswith("states"):
            with pytest.raises(PlanFileError, match=r"states.*: given .*, allowed "):
                plan_from(with_record(files, damage.record))
            tried += 1
    assert tried > 30
    plain = build_plan(lstm_cell(), calibrate="random:2").plan
    without = files_of(plain)
    assert "states" not in json.loads(without[PLAN])
    with pytest.raises(PlanFileError, match=r"states: given .*, allowed nothing"):
        plan_from(with_record(without, json.loads(without[PLAN]) | {"states": record["states"]}))


def test_the_command_line_runs_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many outputs as inputs, which golden says beforehand."""
    onnx.save(lstm_cell(), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", samples(5))
    np.savez(tmp_path / "samples.npz", x=samples(64))
    arguments = ["compile", f"{tmp_path}/net.onnx", "-o", f"{tmp_path}/net"]
    arguments += ["--calibrate", f"{tmp_path}/samples.npz", "--state", "h=h_out"]
    assert command_line.main([*arguments, "--state", "c=c_out"]) == 0
    told = capsys.readouterr().out
    assert "1 of 1 outputs equal golden.graph on 3 drawn inputs, and states behind each" in told
    assert "int8[1,16] scale" in told
    assert "next c_out" in told
    run = ["run", f"{tmp_path}/net", "--input", f"{tmp_path}/x.npy", "--steps"]
    assert command_line.main([*run, "5"]) == 0
    found = np.load(tmp_path / "net" / "run" / "outputs.npz")
    wanted = run_steps(cell().passes["fuse"], {"x": samples(5)})
    assert found.files == ["y"]
    np.testing.assert_array_equal(found["y"], wanted["y"])
    capsys.readouterr()
    for line, message in (
        ([*run, "4"], "--steps 4: given input 'x' of shape [5, 1, 12], allowed a first axis of 4"),
        (run[:-1], "input 'x' has shape [5, 1, 12], allowed [1, 12]"),
        ([*arguments, "--state", "h=c_out"], "--state: given an input twice, allowed each once"),
    ):
        assert command_line.main(line) != 0
        assert message in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit):
        command_line.main([*arguments, "--state", "h"])
    assert "given 'h', allowed INPUT=OUTPUT" in capsys.readouterr().err


def test_what_runs_a_network_once_or_in_parts_refuses_states() -> None:
    """A core, and delegates."""
    x = {"x": samples(1)[0]}
    with pytest.raises(PlanError, match="plan: given states h, c, allowed none"):
        firmware_network(cell().plan, x)
    with pytest.raises(GraphError, match="state 'h': given one, allowed none"):
        partition(cell().passes["import"], calibrate="random:2")


def test_a_state_with_two_scales_stays_in_real_numbers() -> None:
    """Where a network says so itself, the host turns one into the other."""
    build = Builder()
    shape = (4, 16)
    h = build.input("h", TensorType(shape, Element.F32))
    scales = [TensorType(shape, Element.I8, Quantisation((one,))) for one in (0.5, 0.25)]
    taken = build.add("dequantise", [build.add("quantise", [h], result=scales[0])])
    turned = build.add("table", [taken], functions=("tanh",), parameters=())
    left = build.add(
        "dequantise", [build.add("quantise", [turned], result=scales[1])], output="out"
    )
    graph = with_states(
        build.finish([left, build.add("identity", [left], output="y")]), {"h": "out"}
    )
    fused = build_plan(graph).passes["fuse"]
    assert fused.type("h") == fused.type("out") == TensorType(shape, Element.F32)
