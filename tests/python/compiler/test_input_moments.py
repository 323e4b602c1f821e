# SPDX-License-Identifier: Apache-2.0
"""Weights of networks that make up for one another: what is seen of inputs, and what it gains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Graph
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.passes.quantising.input_moments import MOST, GraphMoments, input_rows
from npu.graph.weight_rows import stream_matrices
from npu.planner.build_plan import CompileOptions, build_plan
from tests.python.compiler.small_networks import Net, grown
from weights.calibrate import calibration_tokens
from weights.formats.recipe import WORDS
from weights.importer import load_checkpoint
from weights.shipped import CHECKPOINTS

INT4 = WORDS["int4g32"]


def convolution(**form: Any) -> Graph:  # noqa: ANN401
    """Return a convolution of images of 9 x 8 with 5 channels."""
    plain = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "groups": 1, **form}
    size = (3, 2, 5 // plain["groups"], 10)

    def make(net: Net) -> str:
        filters = net.build.constant(np.random.default_rng(1).normal(0, 1, size).astype(np.float32))
        return net.build.add("conv", [net.input("x", 2, 9, 8, 5), filters], output="y", **plain)

    return grown(make)


def product(turned: bool) -> Graph:
    """Return a product with a matrix of weights."""

    def make(net: Net) -> str:
        b = net.build.constant(np.random.default_rng(1).normal(0, 1, (6, 7)).astype(np.float32))
        x = net.input("x", 3, 6, 4) if turned else net.input("x", 3, 4, 6)
        return net.build.add("matmul", [x, b], output="y", transpose_a=turned, transpose_b=False)

    return grown(make)


GRAPHS = {
    "rows": product(False),
    "columns": product(True),
    "windows": convolution(),
    "strides": convolution(strides=(2, 3), pads=(1, 0, 2, 1)),
    "dilations": convolution(dilations=(2, 3), pads=(0, 2, 1, 3)),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_rows_times_the_matrix_of_the_stream_are_the_product(name: str) -> None:
    """Moments are of the rows that weights are multiplied with, in the order of the weights."""
    graph = GRAPHS[name]
    (op,) = graph.operations
    x = np.random.default_rng(2).normal(0, 1, graph.type("x").shape).astype(np.float32)
    weights = graph.constant(op.inputs[1])
    assert weights is not None
    rows = input_rows(op, x, weights.shape)
    assert rows is not None
    (matrix,) = stream_matrices(op, weights.astype(np.float64))
    wanted = evaluate(graph, {"x": x})["y"]
    np.testing.assert_allclose((rows @ matrix).reshape(wanted.shape), wanted, rtol=0, atol=1e-5)


def test_what_is_not_watched_is_rounded_to_nearest() -> None:
    """Groups of channels, very long rows, and fewer rows than weights in a column."""
    (grouped,) = convolution(groups=5).operations
    assert input_rows(grouped, np.zeros((2, 9, 8, 5)), (3, 2, 1, 10)) is None
    (long,) = GRAPHS["rows"].operations
    assert input_rows(long, np.zeros((2, MOST + 1)), (MOST + 1, 7)) is None
    moments = GraphMoments(GRAPHS["rows"], {long.name: INT4})
    moments.add({"x": np.ones((1, 5, 6))})
    assert moments.roundings()[long.name].learned is None
    moments.add({"x": np.ones((1, 1, 6))})
    assert moments.roundings()[long.name].learned is not None


def test_moments_are_those_of_all_samples() -> None:
    """Sums over samples; a sample with what is no number counts for nothing."""
    (op,) = GRAPHS["rows"].operations
    x = np.random.default_rng(3).normal(0, 1, (4, 3, 4, 6))
    moments = GraphMoments(GRAPHS["rows"], {op.name: INT4})
    for one in (*x, np.full((3, 4, 6), np.nan)):
        moments.add({"x": one})
    rows = x.reshape(-1, 6)
    np.testing.assert_allclose(moments.sums[op.name], rows.T @ rows)
    assert moments.counts[op.name] == len(rows)


def test_four_bits_lose_less_with_what_calibration_has_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Much of the error of a decoder's logits goes, on a text that did not calibrate."""
    checkpoint = load_checkpoint(CHECKPOINTS / "gpt2-tiny")
    options = CompileOptions(shapes={TOKENS: (1, 32)}, weights="int4g32,logits=int8")
    text = {TOKENS: calibration_tokens(checkpoint)[-1:, :32].astype(np.int32)}
    learned = build_plan(checkpoint, options).passes
    monkeypatch.setattr(GraphMoments, "add", lambda self, values: None)
    nearest = build_plan(checkpoint, options).passes
    wanted = evaluate(learned["import"], text)["logits"]
    errors = (evaluate(one["quantise"], text)["logits"] - wanted for one in (learned, nearest))
    with_moments, without = (float(np.square(error).mean()) for error in errors)
    assert with_moments < 0.7 * without
