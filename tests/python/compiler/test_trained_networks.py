# SPDX-License-Identifier: Apache-2.0
"""Networks trained here and now: what integers lose, and that three sources make one artefact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import jax

from golden.graph import run
from npu.compiler.network import CompiledNetwork, compile_network
from npu.graph.form import Array, Graph
from npu.graph.importers import onnx_file, stablehlo, tflite_file
from npu.graph.prepare import prepare
from tests.python.compiler.network_runs import run_compiled
from tests.python.compiler.trained_networks import Examples, logits, pictures, questions, train
from tests.python.graph import graph_networks as networks

SAMPLES, HELD_OUT, ON_MODEL = 128, 1000, 4
MOST_LOST = 0.005
"""Of the held-out accuracy."""


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Attributes:
        function: of jax.
        graphs: as imported, by source.
        samples: for calibration, (n, 1, ...) as jax takes them.
        held_out: examples that neither training nor calibration has seen.
        turn: the input as a source takes it, from that of jax.
    """

    function: Callable[[Array], Any]
    graphs: Mapping[str, Graph]
    samples: Array
    held_out: Examples
    turn: Callable[[str, Array], Array]

    def fused(self, source: str) -> Graph:
        """Return the fused graph of a source."""
        graph = self.graphs[source]
        samples = np.stack([self.turn(source, one) for one in self.samples])
        return prepare(graph, samples={graph.inputs[0]: samples})


@cache
def _pictures() -> Trained:
    examples = pictures(6000, 1)
    weights = train(
        networks.convolutional(5),
        lambda w: networks.convolutional_jax(w, folded=False),
        examples,
        steps=300,
        batch=64,
        rate=3e-3,
        fixed=("gain", "mean", "variance"),
    )
    function = networks.convolutional_jax(weights, folded=True)
    graphs = {
        "jax": stablehlo.from_jax(function, (examples.inputs[0],)),
        "onnx": onnx_file.read(networks.convolutional_onnx(weights, folded=True)),
        "tflite": tflite_file.read(networks.convolutional_tflite(weights)),
    }

    def turn(source: str, x: Array) -> Array:
        return x.transpose(0, 3, 1, 2) if source == "onnx" else x

    return Trained(function, graphs, examples.inputs[:SAMPLES], pictures(HELD_OUT, 2), turn)


@cache
def _questions() -> Trained:
    examples = questions(8000, 1)
    weights = train(
        networks.block(5), networks.block_jax, examples, steps=1500, batch=128, rate=4e-3
    )
    function = networks.block_jax(weights)
    graphs = {
        "jax": stablehlo.from_jax(function, (examples.inputs[0],)),
        "onnx": onnx_file.read(networks.block_onnx(weights)),
        "tflite": tflite_file.read(networks.block_tflite(weights)),
    }
    samples = examples.inputs[:SAMPLES]
    return Trained(function, graphs, samples, questions(HELD_OUT, 2), lambda _, x: x)


NETWORKS = {"a convolutional network": _pictures, "a block of a transformer": _questions}


def _accuracy(outputs: Array, classes: Array) -> float:
    return float((logits(outputs).argmax(1) == classes).mean())


@pytest.mark.parametrize("name", NETWORKS)
def test_integers_lose_at_most_half_a_point(name: str) -> None:
    """Of the accuracy on held-out examples; the float network has learned, but not everything."""
    trained = NETWORKS[name]()
    inputs, classes = trained.held_out.inputs, trained.held_out.classes
    graph = trained.fused("jax")
    (source,), (result,) = graph.inputs, graph.outputs
    floats = np.asarray(jax.jit(trained.function)(inputs[:, 0]))
    integers = np.concatenate([run(graph, {source: one})[result] for one in inputs])
    assert 0.8 < _accuracy(floats, classes) < 0.99
    assert _accuracy(integers, classes) >= _accuracy(floats, classes) - MOST_LOST
    assert not np.array_equal(floats, integers)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_runs_is_golden(name: str) -> None:
    """On the instruction model, all of it on the chip but for the borders."""
    trained = NETWORKS[name]()
    graph = trained.fused("jax")
    network = compile_network(graph)
    (source,), (result,) = graph.inputs, graph.outputs
    for one in trained.held_out.inputs[:ON_MODEL]:
        found = run_compiled(network, {source: one}).outputs[result]
        np.testing.assert_array_equal(found, run(graph, {source: one})[result])
    assert len(network.segments) == 1


@pytest.mark.parametrize("name", NETWORKS)
def test_three_sources_are_one_artefact(name: str) -> None:
    """Programs, stream and constants, byte for byte."""
    trained = NETWORKS[name]()
    made: dict[str, CompiledNetwork] = {
        source: compile_network(trained.fused(source)) for source in trained.graphs
    }
    assert len(made) == 3
    assert len({one.digest() for one in made.values()}) == 1
    x = trained.held_out.inputs[0]
    outputs = [
        run_compiled(one, {one.graph.inputs[0]: trained.turn(source, x)}).outputs
        for source, one in made.items()
    ]
    values = [next(iter(one.values())) for one in outputs]
    for value in values[1:]:
        np.testing.assert_array_equal(value, values[0])
