# SPDX-License-Identifier: Apache-2.0
"""How scales are found in samples, and what the integers of a network lose."""

from __future__ import annotations

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Graph, GraphError
from npu.graph.passes.quantising.calibrate import BINS, METHODS, telling
from npu.graph.prepare import prepare
from npu.planner.build_plan import CompileOptions, build_plan
from tessera import accuracy
from tests.python.compiler.small_networks import Net, grown


def tailed(net: Net) -> str:
    """Return two products, one behind the other."""
    return net.linear(net.linear(net.input("x", 4, 32), 32), 16)


def heavy(count: int, seed: int) -> dict[str, Array]:
    """Return samples of which one element in 500 is 30 times as large."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal((count, 4, 32)) * np.where(rng.random((count, 4, 32)) < 0.002, 30, 1)
    return {"x": data.astype(np.float32)}


def noise(graph: Graph, method: str) -> float:
    """Return the median error of what integers make of other samples."""
    fused = prepare(graph, samples=heavy(256, 0), calibration=method)
    errors = []
    for value in heavy(32, 1)["x"]:
        (real,), (made,) = (
            evaluate(graph, {"x": value}).values(),
            run(fused, {"x": value}).values(),
        )
        errors.append(float(np.sqrt(np.mean((made - real) ** 2))))
    return float(np.median(errors))


def test_the_methods_differ_and_entropy_loses_least_of_what_is_common() -> None:
    """Where a few values are far out, what covers them all is coarse for the rest."""
    graph = grown(tailed)
    found = {method: noise(graph, method) for method in METHODS}
    assert len(set(found.values())) == len(METHODS)
    assert found["entropy"] < 0.8 * found["max"]


def test_an_end_that_tells_most_is_where_values_thin_out() -> None:
    """Of a normal distribution with a single value far out, the end of the distribution."""
    rng = np.random.default_rng(2)
    values = np.abs(np.append(rng.standard_normal(100_000), 64.0))
    counts = np.histogram(values, BINS, (0.0, 64.0))[0]
    assert 2.5 < telling(counts) * 64 / BINS < 8
    flat = np.full(BINS, 50)
    assert telling(flat) > 0.95 * BINS


def test_another_method_is_refused() -> None:
    """The words that are allowed are listed."""
    graph = grown(tailed)
    with pytest.raises(GraphError, match="calibration 'best', allowed percentile, entropy, max"):
        prepare(graph, samples=heavy(2, 0), calibration="best")


def test_the_loss_names_the_operation_that_loses_most() -> None:
    """A product whose columns are far apart in size loses most behind it."""

    def make(net: Net) -> str:
        x = net.linear(net.input("x", 4, 32), 32)
        apart = np.where(np.arange(32) < 31, 0.002, 1.0).astype(np.float32)
        y = net.build.add("mul", [x, net.build.constant(apart)])
        even = net.build.constant((1 / apart).astype(np.float32))
        return net.linear(net.build.add("mul", [net.table(y, "tanh"), even]), 16)

    graph = grown(make)
    samples = {"x": np.random.default_rng(0).standard_normal((16, 4, 32)).astype(np.float32)}
    built = build_plan(graph, CompileOptions(calibrate=samples))
    loss = accuracy.loss_of(built, samples)
    assert loss.output > 0.05
    assert len(loss.operations) == accuracy.NAMED
    assert loss.operations[0][1] >= loss.operations[-1][1]
    said = accuracy.held(built, 1.0)
    assert said == f"outputs at most {loss.output:.2%} of the largest value off"
    with pytest.raises(accuracy.AccuracyError, match=r"allowed 1% .* what loses most: \w+"):
        accuracy.held(built, 0.01)


def test_the_loss_is_the_same_with_integers_at_the_borders() -> None:
    """What the host made of the inputs and outputs, who runs the network makes."""
    graph, samples = grown(tailed), heavy(8, 3)
    losses = [
        accuracy.loss_of(
            build_plan(graph, CompileOptions(calibrate=samples, io=io)), samples
        ).output
        for io in ("float", "int8")
    ]
    assert losses[0] == losses[1] > 0
