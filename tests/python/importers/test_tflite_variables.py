# SPDX-License-Identifier: Apache-2.0
"""Variables of TFLite are states: read before they are assigned, kept from run to run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import tessera
from golden.graph import run_steps
from npu.graph.form import Array, GraphError
from npu.graph.importers import tflite_file
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.prepare import prepare
from npu.graph.verify import verify
from tests.python.importers.tflite_variables import (
    BEGINS,
    CELLS,
    FRAMES,
    SCALE,
    WIDTH,
    ZERO,
    Variables,
    frames_of,
    network,
    weights_of_the_network,
)

STEPS = 50


def own_integers(begins: tuple[int, int], frames: Array) -> Array:
    """Return what the network gives, computed here number by number."""
    first, second = weights_of_the_network()
    window = np.full((FRAMES - 1, WIDTH), begins[0])
    cells = np.full(CELLS, begins[1])
    made = []

    def product(x: Array, weights: Array, scale: float) -> Array:
        factor = Fraction(float(np.float32(scale)))
        sums = weights.astype(int) @ (x - ZERO)
        return np.array(
            [min(max(floor(factor * int(one) + Fraction(1, 2)) + ZERO, -128), 127) for one in sums]
        )

    for frame in frames:
        seen = np.concatenate([window, frame.reshape(1, WIDTH)]).astype(int)
        window = seen[1:]
        cells = product(np.concatenate([product(seen.reshape(-1), first, 0.004), cells]), second, 1)
        made.append(cells)
    return np.stack(made)[:, None]


@pytest.mark.parametrize("begins", [True, False])
def test_fifty_runs_are_those_of_own_integers(begins: bool) -> None:
    """On the chip and in golden, with first values from the file or zero points."""
    frames = frames_of(STEPS)
    wanted = own_integers(BEGINS if begins else (ZERO, ZERO), frames)
    session = tessera.load(network(begins=begins))
    found = np.stack([session.run({"x": frame})["y"] for frame in frames])
    np.testing.assert_array_equal(found, wanted)
    fused = prepare(tflite_file.read(network(begins=begins)))
    np.testing.assert_array_equal(run_steps(fused, {"x": frames})["y"], wanted)
    other = own_integers((ZERO, ZERO) if begins else BEGINS, frames)
    assert (found != other).any()


def test_variables_are_states_with_their_names_and_first_values() -> None:
    """They end with the scale with which they begin."""
    graph = tflite_file.read(network())
    verify(graph)
    assert graph.arguments == ("x",)
    assert graph.results == ("y",)
    found = {one.input: one.initial for one in graph.states}
    assert sorted(found) == ["cells", "window"]
    for name, value in (("window", BEGINS[0]), ("cells", BEGINS[1])):
        first = found[name]
        assert first is not None
        assert set(first.reshape(-1).tolist()) == {value}
    assert len(canonicalise(graph).states) == 2
    assert all(one.initial is None for one in tflite_file.read(network(begins=False)).states)


def _assigned_first(writer: Variables, x: int) -> int:
    handle = writer.handle("v")
    writer.assign(handle, x)
    return writer.read(handle, "y", (2, 4))


def _never_assigned(writer: Variables, x: int) -> int:
    held = writer.read(writer.handle("v"), "held", (2, 4))
    y = writer.int8("y", 2, 4)
    writer.operator("ADD", (x, held), (y,), fused=0)
    return y


@pytest.mark.parametrize(("make", "states"), [(_assigned_first, 0), (_never_assigned, 1)])
def test_what_is_assigned_before_it_is_read_is_no_state(
    make: Callable[[Variables, int], int], states: int
) -> None:
    """And what nobody assigns keeps what it begins with."""
    writer = Variables()
    x = writer.int8("x", 2, 4)
    graph = tflite_file.read(writer.write((x,), (make(writer, x),)))
    verify(graph)
    assert len(graph.states) == states
    given = np.arange(24, dtype=np.int8).reshape(3, 2, 4)
    found = run_steps(prepare(graph), {"x": given})
    np.testing.assert_array_equal(found[graph.results[0]], given)


def _other_scale(writer: Variables, x: int) -> int:
    handle = writer.handle("v")
    y = writer.read(handle, "y", (2, 4), scale=2 * SCALE)
    writer.assign(handle, x)
    return y


def _no_handle(writer: Variables, x: int) -> int:
    return writer.read(x, "y", (2, 4))


def _free(writer: Variables, x: int) -> int:
    handle = writer.handle("v")
    return writer.read(handle, "y", (2, 4), signature=(-1, 4))


def _no_subgraph(writer: Variables, x: int) -> int:
    writer.operator("CALL_ONCE", (), (), subgraph=3)
    return x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_other_scale, r"ASSIGN_VARIABLE\): given int8.*0.05.* for a variable of int8.*0.1"),
        (_no_handle, r"READ_VARIABLE\) 'y': input 0 is no variable, allowed the result of a VAR"),
        (_free, r"READ_VARIABLE\) 'y': free dimensions, allowed a type with its sizes"),
        (_no_subgraph, r"subgraph 3, allowed 0..0"),
    ],
)
def test_variables_that_make_no_sense_are_refused(
    make: Callable[[Variables, int], int], message: str
) -> None:
    """In a line that names the operator."""
    writer = Variables()
    x = writer.int8("x", 2, 4)
    with pytest.raises(GraphError, match=message):
        tflite_file.read(writer.write((x,), (make(writer, x),)))


@pytest.mark.parametrize("again", [True, False])
def test_a_beginning_that_is_computed_or_calls_again_is_refused(again: bool) -> None:
    """It says constants, once."""
    writer, once = Variables(), Variables()
    writer.operator("CALL_ONCE", (), (), subgraph=1)
    x = writer.int8("x", 2, 4)
    if again:
        once.operator("CALL_ONCE", (), (), subgraph=1)
    else:
        handle = once.handle("v")
        once.assign(handle, once.read(handle, "held", (2, 4)))
    allowed = "in the first subgraph" if again else "a constant"
    with pytest.raises(GraphError, match=f"allowed {allowed}"):
        tflite_file.read(writer.write((x,), (x,), once=once))
