# SPDX-License-Identifier: Apache-2.0
"""Ranges from samples, and what the integers of each tensor stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, GraphError, Quantisation, TensorType
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.placing.place import place
from npu.graph.passes.placing.place_rules import UNIT
from npu.graph.passes.quantising.calibrate import calibrate
from npu.graph.passes.quantising.quantise import quantise
from npu.graph.passes.quantising.samples import random_samples, read_samples
from npu.graph.passes.quantising.weight_integers import quantised_weights
from npu.graph.prepare import prepare
from npu.graph.text import parse
from npu.graph.verify import verify
from tests.python.compiler.small_networks import (
    NETWORKS,
    PLAIN,
    SAME,
    Net,
    first,
    grown,
    integer_weights,
    integers,
    network,
    quantised,
    quantised_input,
    samples,
)


def done(graph: Graph, given: dict[str, Array] | None = None) -> Graph:
    """Return a network after the pass."""
    placed = place(canonicalise(graph))
    result = quantise(placed, None if given is None else calibrate(placed, given))
    verify(result, placed=True)
    return result


def scale(graph: Graph, name: str) -> float:
    """Return the scale of a tensor."""
    found = graph.type(name).quantisation
    assert found is not None
    return found.scale


def results(graph: Graph, kind: str) -> list[str]:
    """Return what operations of a kind on the chip make."""
    return [one.outputs[0] for one in graph.operations if one.kind == kind and one.on_chip]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_networks_keep_their_results_in_integers(name: str, seed: int) -> None:
    """Networks keep their results in integers."""
    graph = network(name, seed)
    given = samples(graph, seed)
    (wanted,) = evaluate(graph, first(given)).values()
    (found,) = evaluate(done(graph, given), first(given)).values()
    assert np.abs(found - wanted).max() <= 0.04 * np.abs(wanted).max(), f"seed {seed}"


@pytest.mark.parametrize("name", NETWORKS)
def test_the_chip_touches_integers_with_scales_only(name: str) -> None:
    """The chip touches integers with scales only."""
    graph = network(name)
    result = done(graph, samples(graph))
    for one in result.operations:
        if one.on_chip:
            assert result.type(one.inputs[0]).quantisation is not None
            assert result.type(one.outputs[0]).quantisation is not None


def test_what_follows_a_product_is_clipped_and_the_rest_is_not() -> None:
    """What follows a product is clipped and the rest is not."""

    def make(net: Net) -> str:
        weight = net.build.constant(np.eye(100, dtype=np.float32))
        return net.build.add("matmul", [net.input("x", 200, 100), weight], **PLAIN)

    graph = place(grown(make))
    data = np.linspace(-1, 1, 20000, dtype=np.float32).reshape(1, 200, 100)
    data[0, 0, :2] = 50, 60
    found = calibrate(graph, {"x": data})
    assert found["x"].magnitude == 60
    assert found["matmul"].magnitude == pytest.approx(1.0, abs=1e-3)
    assert found["matmul"].low == pytest.approx(-0.99, abs=0.01)
    assert found["matmul"].high == 60


def test_of_few_values_the_largest_counts() -> None:
    """Of few values the largest counts."""
    graph = place(grown(lambda net: net.linear(net.input("x", 1, 3), 2)))
    data = np.array([[[1, 2, 30]]], np.float32)
    (wanted,) = evaluate(graph, {"x": data[0]}).values()
    found = calibrate(graph, {"x": data})
    assert found[graph.outputs[0]].magnitude == np.abs(wanted).max()


BAD: dict[str, tuple[dict[str, Any] | str, str]] = {
    "name": ({"y": np.zeros((2, 4, 16))}, "unknown 'y'.*'x': float32"),
    "missing": ({}, "missing 'x'"),
    "shape": (
        {"x": np.zeros((2, 5, 16), np.float32)},
        r"given shape \[2, 5, 16\], allowed .*4, 16",
    ),
    "type": ({"x": np.zeros((2, 4, 16), complex)}, "given complex128, allowed float32"),
    "nan": ({"x": np.full((2, 4, 16), np.nan, np.float32)}, "given nan at .*finite"),
    "none": ({"x": np.zeros((0, 4, 16), np.float32)}, "0 samples"),
    "text": ("some", "allowed a file or random:N"),
    "random": ("random:0", "allowed random:1"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_samples_are_refused_with_what_is_allowed(what: str) -> None:
    """Bad samples are refused with what is allowed."""
    graph = grown(lambda net: net.linear(net.input("x", 4, 16), 8))
    given, message = BAD[what]
    with pytest.raises(GraphError, match=message):
        read_samples(graph, given)


def test_inputs_need_the_same_number_of_samples() -> None:
    """Inputs need the same number of samples."""
    graph = grown(lambda net: net.build.add("add", [net.input("x", 4, 16), net.input("y", 4, 16)]))
    given = {"x": np.zeros((2, 4, 16), np.float32), "y": np.zeros((3, 4, 16), np.float32)}
    with pytest.raises(GraphError, match="'x': 2, 'y': 3; allowed the same"):
        read_samples(graph, given)


def test_samples_may_be_batches_behind_each_other() -> None:
    """Samples may be batches behind each other."""
    graph = grown(lambda net: net.linear(net.input("x", 2, 16), 8))
    found = read_samples(graph, {"x": np.arange(96, dtype=np.float32).reshape(6, 16)})
    assert [one["x"].shape for one in found] == [(2, 16)] * 3


def test_random_integers_are_all_that_the_type_has() -> None:
    """A comparison on 0 and 1 alone would show nothing of large values; indices stay in range."""
    graph = parse(
        'graph "integers"\ninput %a : int8[999] scale [0.5] zero 3\ninput %b : uint8[999]\n'
        "input %c : int64[999]\noutput %a\noutput %b\noutput %c\n"
    )
    drawn = random_samples(graph, 9)
    found = {name: (data.min(), data.max()) for name, data in drawn.items()}
    assert found == {"a": (-128, 127), "b": (0, 255), "c": (0, 1)}


def test_random_samples_are_the_same_each_time() -> None:
    """Random samples are the same each time."""
    graph = network("transformer")
    one, other = random_samples(graph, 3), random_samples(graph, 3)
    assert np.array_equal(one["x"], other["x"])
    assert one["x"].shape == (3, 1, 8, 32)


def test_a_network_in_float_without_samples_says_what_samples_must_be() -> None:
    """A network in float without samples says what samples must be."""
    with pytest.raises(GraphError, match=r"needs samples .*'x': float32\[samples, 1, 12, 12, 3\]"):
        done(network("residual_images"))


def test_weights_have_a_scale_per_column_and_zeros_a_scale_of_their_own() -> None:
    """Weights have a scale per column and zeros a scale of their own."""
    data = np.array([[1.01, 0.0, -8.0], [-2.0, 0.0, 4.04]], np.float32)
    found, scales = quantised_weights(data, 1, 0.1, None)
    assert found.tolist() == [[64, 0, -127], [-127, 0, 64]]
    assert scales == pytest.approx([2 / 127, 8 / 127, 8 / 127])
    _, alone = quantised_weights(np.zeros((2, 2), np.float32), 1, 0.1, None)
    assert alone.tolist() == [1, 1]


def test_a_large_bias_makes_the_scale_of_its_column_coarser() -> None:
    """A large bias makes the scale of its column coarser."""
    data, bias = np.full((4, 2), 1e-6, np.float32), np.array([0.0, 1000.0])
    _, scales = quantised_weights(data, 1, 1e-4, bias)
    assert np.abs(bias / (scales * 1e-4)).max() <= 2**30 * (1 + 1e-6)


def test_operands_and_result_of_a_sum_share_a_scale_where_that_is_free() -> None:
    """Operands and result of a sum share a scale where that is free."""

    def make(net: Net) -> str:
        x = net.input("x", 4, 16)
        return net.build.add("add", [net.table(x, "tanh"), net.table(x, "sin")])

    graph = grown(make)
    result = done(graph, samples(graph))
    (total,) = results(result, "add")
    one = next(one for one in result.operations if one.kind == "add")
    assert {scale(result, name) for name in one.inputs} == {scale(result, total)}


def test_operands_of_very_different_size_keep_their_resolution() -> None:
    """Operands of very different size keep their resolution."""

    def make(net: Net) -> str:
        x = net.input("x", 4, 16)
        big = net.build.add("table", [x], functions=("tanh", "scale"), parameters=(20.0,))
        return net.build.add("add", [big, net.table(x, "sin")])

    graph = grown(make)
    result = done(graph, samples(graph))
    one = next(one for one in result.operations if one.kind == "add")
    small, large = sorted(scale(result, name) for name in one.inputs)
    assert large > 10 * small


def test_the_residual_stream_and_logits_are_int16() -> None:
    """The residual stream and logits are int16."""
    graph = network("transformer")
    result = done(graph, samples(graph))
    assert {result.type(name).element for name in results(result, "add")} == {Element.I16}
    last = [one for one in result.operations if one.on_chip][-1]
    assert result.type(last.outputs[0]).element == Element.I16
    assert result.type("x.int16").element == Element.I16


def test_scores_come_from_their_product_in_the_unit_of_softmax() -> None:
    """Scores come from their product in the unit of softmax."""
    graph = grown(
        lambda net: net.build.add("softmax", [net.linear(net.input("x", 4, 16), 8)], axis=1)
    )
    result = done(graph, samples(graph))
    (scores,) = results(result, "matmul")
    assert result.type(scores).element == Element.I16
    assert scale(result, scores) == UNIT
    (rows,) = results(result, "softmax")
    assert (result.type(rows).element, scale(result, rows)) == (Element.U8, 1 / 256)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (np.linspace(0, 400, 64), "calibration saw scores of 400, the chip takes +-355"),
        (np.zeros(64), "no probability above 0.0156"),
    ],
)
def test_softmax_that_the_chip_cannot_hold_goes_to_the_host(data: Array, reason: str) -> None:
    """Softmax that the chip cannot hold goes to the host."""
    graph = grown(
        lambda net: net.build.add(
            "reshape",
            [net.build.add("softmax", [net.input("x", 1, 64)], axis=1)],
            shape=(64,),
        )
    )
    result = done(graph, {"x": data.astype(np.float32).reshape(1, 1, 64)})
    one = next(one for one in result.operations if one.kind == "softmax")
    assert not one.on_chip
    assert one.place is not None
    assert reason in one.place.reason
    assert not any(each.on_chip for each in result.operations), "a move alone on the chip"


def test_results_that_are_never_negative_use_the_whole_byte() -> None:
    """Results that are never negative use the whole byte."""
    graph = grown(lambda net: net.linear(net.table(net.input("x", 4, 16), "sigmoid"), 8))
    result = done(graph, samples(graph))
    (name,) = results(result, "table")
    found = result.type(name).quantisation
    assert found is not None
    assert found.zero == -128


def test_a_tensor_of_zeros_has_scale_1() -> None:
    """A tensor of zeros has scale 1."""
    graph = grown(lambda net: net.table(net.input("x", 4, 16), "tanh"))
    result = done(graph, {"x": np.zeros((1, 4, 16), np.float32)})
    assert scale(result, "x.int8") == 1.0


def _given(net: Net, element: Element, zero: int, low: int, high: int) -> str:
    x = quantised_input(net, "x", (1, 6, 6, 16), 0.03, 120, Element.U8)
    w = integer_weights(net, (3, 3, 16, 8), (0.005,), element, zero, low, high)
    y = net.build.add("conv", [x, w], **SAME)
    return quantised(net, y, 0.1, 130, Element.U8)


@pytest.mark.parametrize(
    ("element", "zero", "low", "high", "kept"),
    [
        (Element.I8, 0, -128, 127, 0),
        (Element.U8, 131, 4, 250, 0),
        (Element.U8, 20, 0, 255, 20 - 128),
    ],
)
def test_given_integers_stay_what_they_are(
    element: Element, zero: int, low: int, high: int, kept: int
) -> None:
    """Given integers stay what they are."""
    graph = grown(lambda net: _given(net, element, zero, low, high))
    result = done(graph)
    one = next(one for one in result.operations if one.kind == "conv")
    x, w, y = (result.type(name) for name in (*one.inputs, one.outputs[0]))
    assert x.quantisation is not None
    assert w.quantisation is not None
    assert y.quantisation is not None
    assert (x.element, x.quantisation.zero) == (Element.I8, 120 - 128)
    assert (y.element, y.quantisation.zero) == (Element.I8, 130 - 128)
    assert w.quantisation.zero == kept
    stored = next(t for t in graph.tensors.values() if t.name == "w").data
    held = result.constant(one.inputs[1])
    assert stored is not None
    assert held is not None
    assert np.array_equal(held.astype(int) - kept, stored.astype(int) - zero)


def test_given_integers_give_what_the_network_gives() -> None:
    """Given integers give what the network gives."""
    graph = grown(lambda net: _given(net, Element.U8, 131, 4, 250))
    inputs = integers(graph)
    (wanted,) = evaluate(graph, inputs).values()
    (found,) = evaluate(done(graph), inputs).values()
    assert np.array_equal(found, wanted)


def test_what_a_quantised_network_leaves_in_float_goes_to_the_host() -> None:
    """What a quantised network leaves in float goes to the host, with its reason."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (4, 16), 0.03)
        w = integer_weights(net, (16, 16), (0.01,))
        y = net.build.add(
            "dequantise", [quantised(net, net.build.add("matmul", [x, w], **PLAIN), 0.1)]
        )
        y = net.build.add("matmul", [y, integer_weights(net, (16, 8), (0.01,))], **PLAIN)
        return quantised(net, net.table(net.table(y, "gelu"), "tanh"), 0.01)

    result = done(grown(make))
    assert [one.on_chip for one in result.operations if one.kind == "matmul"] == [True, False]
    second = [one for one in result.operations if one.kind == "matmul"][1]
    assert second.place is not None
    assert "has no scale" in second.place.reason


def test_real_numbers_that_are_rounded_too_keep_what_rounding_loses() -> None:
    """One reader takes integers, another one the real numbers themselves."""
    kind = TensorType((4, 16), Element.I8, Quantisation((1.0,)))

    def make(net: Net) -> str:
        x = net.build.input("x", TensorType((4, 16), Element.F32))
        whole = net.build.add("dequantise", [net.build.add("quantise", [x], result=kind)])
        rest = net.build.add("sub", [x, whole])
        unsigned = replace(kind, element=Element.U8)
        return net.build.add("dequantise", [net.build.add("quantise", [rest], result=unsigned)])

    graph = grown(make)
    x = np.arange(64, dtype=np.float32).reshape(4, 16) * 4
    (found,) = run(prepare(graph), {"x": x}).values()
    np.testing.assert_array_equal(found, np.maximum(x - 127, 0))


def test_terms_of_a_given_sum_meet_before_it_saturates() -> None:
    """A sum in a sum, of which the network gives no scale, is not clipped to that of the result."""
    kind = TensorType((4, 16), Element.I8, Quantisation((1.0,)))

    def make(net: Net) -> str:
        a, b, c = (
            net.build.add("dequantise", [net.build.input(name, kind)]) for name in ("a", "b", "c")
        )
        total = net.build.add("add", [net.build.add("add", [a, b]), c])
        return net.build.add("quantise", [total], result=kind)

    random = np.random.default_rng(0)
    values = {name: random.integers(-128, 128, (4, 16)).astype(np.int8) for name in "abc"}
    wanted = np.clip(sum(one.astype(int) for one in values.values()), -128, 127)
    (found,) = run(prepare(grown(make)), values).values()
    np.testing.assert_array_equal(found, wanted)


def test_infinities_stay_on_the_host() -> None:
    """A scale that covers what is finite would make a number of an infinity."""

    def make(net: Net) -> str:
        x = net.linear(net.input("x", 4, 16), 16)
        y = net.build.add("div", [x, net.build.constant(np.zeros(16, np.float32))])
        return net.build.add(
            "matmul", [x, net.build.add("add", [y, x])], transpose_a=False, transpose_b=True
        )

    graph = grown(make)
    result = done(graph, samples(graph))
    one = next(one for one in result.operations if one.kind == "add")
    assert one.place is not None
    assert "calibration saw infinities or NaN" in one.place.reason
    assert [each.on_chip for each in result.operations if each.kind == "matmul"] == [True, False]
