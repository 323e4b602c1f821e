# SPDX-License-Identifier: Apache-2.0
"""Tensors that live from run to run: in graphs, in golden and on the chip."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import tessera
from golden.graph import run_steps
from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError, Quantisation, State, TensorType
from npu.graph.operations.borders import quantised
from npu.graph.passes.canonical.order import anonymous
from npu.graph.passes.quantising.calibrate import calibrate
from npu.graph.states import States, with_states
from npu.graph.text import equal, parse, write
from npu.graph.verify import verify
from npu.planner.build_plan import CompileOptions, build_plan
from tests.python.graph.state_networks import CELLS, PAIRS, cell, lstm_cell, samples


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
    assert len(anonymous(graph).states) == 1


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


def test_the_last_sample_counts_for_what_a_state_is_read_as() -> None:
    """No run finds in a state what the last one leaves, and its scale covers that as well."""
    x = samples(8)
    x[-1] *= 8
    graph = build_plan(lstm_cell(), CompileOptions(calibrate={"x": x}, state=PAIRS)).passes["fuse"]
    assert all(graph.type(name).element == Element.I8 for name in PAIRS)


def test_a_first_value_in_real_numbers_becomes_integers_with_the_state() -> None:
    """In the scale that the samples give, and the chip begins with it."""
    graph = cell().passes["import"]
    first = np.full((1, CELLS), 0.5, np.float32)
    states = tuple(replace(one, initial=first) for one in graph.states)
    made = build_plan(replace(graph, states=states), CompileOptions(calibrate={"x": samples(64)}))
    fused = made.passes["fuse"]
    for one in fused.states:
        kind = fused.type(one.input)
        assert kind.element == Element.I8
        assert one.initial is not None
        np.testing.assert_array_equal(one.initial, quantised(first, kind))
    x = samples(3)
    session = tessera.Session(made.plan)
    found = np.stack([session.run({"x": one})["y"] for one in x])
    np.testing.assert_array_equal(found, run_steps(fused, {"x": x})["y"])
    assert not np.array_equal(found[0], run_steps(cell().passes["fuse"], {"x": x})["y"][0])


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
