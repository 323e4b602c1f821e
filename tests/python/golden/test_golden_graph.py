# SPDX-License-Identifier: Apache-2.0
"""The integer meaning of fused graphs against integers one by one, floats, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from golden.gemm import Post, accumulate, combined, per_channel, postprocess
from golden.graph import MEANINGS, run
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    GraphError,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from tb.stimulus.random_graphs import MAKERS, random_graph
from tests.python.golden.golden_support import integers, seeded
from tests.python.graph.graph_slow import SLOW, Index, SlowCall

ELEMENTS = 25
"""Of each result that are computed one by one."""
PLAIN = Quantisation((0.05,))
POST: dict[str, Attribute] = {
    "relu": False,
    "combine": "",
    "product_mult": 0,
    "product_shift": 0,
}
MATMUL: dict[str, Attribute] = {
    "transpose_a": False,
    "transpose_b": False,
    "a_zero": 0,
    "b_zero": 0,
    **POST,
}


def single(
    kind: str,
    inputs: list[Array],
    result: TensorType,
    attributes: Mapping[str, Attribute],
    arrays: Mapping[str, Array] | None = None,
) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of one operation of the chip, and its inputs."""
    names = tuple(f"x{number}" for number in range(len(inputs)))
    place = OperationPlace(Target.NPU, "test")
    one = Operation("one", kind, names, ("y",), attributes, kind, place, arrays or {})
    tensors = {
        name: Tensor(name, TensorType(value.shape, Element.of(value.dtype), PLAIN))
        for name, value in zip(names, inputs, strict=True)
    }
    graph = Graph("single", names, ("y",), {**tensors, "y": Tensor("y", result)}, (one,))
    return graph, dict(zip(names, inputs, strict=True))


def check(graph: Graph, inputs: Mapping[str, Array], seed: int) -> None:
    """Compare some elements of the result of each operation of the chip."""
    rng = np.random.default_rng(seed)
    values = run(graph, inputs, keep=tuple(graph.tensors))
    for one in graph.operations:
        if not one.on_chip:
            continue
        result = values[one.outputs[0]]
        case = SlowCall(one, [values[name] for name in one.inputs], graph.type(one.outputs[0]))
        for place in rng.permutation(result.size)[:ELEMENTS]:
            index: Index = tuple(int(i) for i in np.unravel_index(int(place), result.shape))
            expected = SLOW[one.kind](case, index)
            assert int(result[index]) == expected, f"seed {seed}, {one.name}{list(index)}"


@pytest.mark.parametrize("kind", MAKERS)
def test_each_kind_equals_integers_one_by_one(kind: str) -> None:
    """Random operations of one kind; the other witness knows no numpy and no table."""
    for seed in range(12):
        check(*random_graph(seed, operations=(1, 5), only=kind), seed)


def test_whole_graphs_equal_integers_one_by_one() -> None:
    """All kinds behind one another."""
    for seed in range(1000, 1015):
        check(*random_graph(seed), seed)


def test_every_meaning_has_a_slow_one() -> None:
    """A kind of the chip without the other witness cannot be added."""
    assert set(MEANINGS) == set(SLOW)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_products_equal_those_of_the_gemm(dtype: type[np.integer[Any]]) -> None:
    """Sums, bias, factors, ReLU and table of the engine's own reference."""
    rng = seeded(31)
    for relu in (False, True):
        a, b = integers(rng, dtype, (9, 70)), integers(rng, np.int8, (70, 19))
        bias = rng.integers(-5000, 5000, 19).astype(np.int32)
        mult = rng.integers(1 << 14, 1 << 15, 19).astype(np.uint16)
        shift = rng.integers(24, 28, 19).astype(np.uint8)
        table = integers(rng, np.int8, (256,))
        graph, inputs = single(
            "matmul",
            [a, b],
            TensorType((9, 19), Element.I8, PLAIN),
            {**MATMUL, "relu": relu},
            {"bias": bias, "mult": mult, "shift": shift, "table": table},
        )
        expected = postprocess(
            combined(accumulate(a, b)),
            per_channel(mult, shift, bias),
            Post(relu=relu, table=table),
        )
        assert np.array_equal(run(graph, inputs)["y"], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_zero_points_mean_the_real_numbers(dtype: type[np.integer[Any]]) -> None:
    """A product of two activations with zero points is that of the real numbers, but rounding."""
    rng = seeded(32)
    a, b = integers(rng, dtype, (2, 7, 33)), integers(rng, np.int8, (2, 33, 5))
    shift = 27 if dtype == np.int8 else 32
    factor = 20000 / 2.0**shift
    graph, inputs = single(
        "matmul",
        [a, b],
        TensorType((2, 7, 5), Element.I16, PLAIN),
        {**MATMUL, "a_zero": -7, "b_zero": 100},
        {
            "bias": np.zeros(5, np.int32),
            "mult": np.array([20000], np.uint16),
            "shift": np.array([shift], np.uint8),
        },
    )
    exact = (a.astype(np.float64) + 7) @ (b.astype(np.float64) - 100) * factor
    assert np.abs(run(graph, inputs)["y"] - exact.clip(-32768, 32767)).max() <= 0.5


def test_pads_of_the_input_zero_point_add_nothing() -> None:
    """With pad_value = zero point and its share in the bias, pads are real zeros."""
    rng = seeded(33)
    zero = -5
    x, w = integers(rng, np.int8, (1, 5, 6, 3)), integers(rng, np.int8, (3, 3, 3, 4))
    attributes: dict[str, Attribute] = {
        "strides": (1, 1),
        "pads": (1, 2, 0, 1),
        "dilations": (1, 1),
        "groups": 1,
        "pad_value": zero,
        "x_zero": 0,
        "w_zero": 0,
        **POST,
    }
    result = TensorType((1, 4, 7, 4), Element.I32, PLAIN)
    bias = (-zero * w.astype(np.int32).sum(axis=(0, 1, 2))).astype(np.int32)
    graph, inputs = single("conv", [x, w], result, attributes, {"bias": bias})
    border = ((0, 0), (1, 0), (2, 1), (0, 0))
    wide = np.pad(x.astype(np.int64) - zero, border)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(1, 2))
    expected = np.einsum("bhwcyx,yxco->bhwo", windows, w.astype(np.int64))
    assert np.array_equal(run(graph, inputs)["y"], expected)


def test_a_row_that_sees_no_key_is_zero() -> None:
    """Queries before the first key have numerators of 0."""
    rng = seeded(34)
    q, k, v = (integers(rng, np.int8, (1, 1, 4, 8)) for _ in range(3))
    graph, inputs = single(
        "attention",
        [q, k, v],
        TensorType((1, 1, 4, 8), Element.I8, PLAIN),
        {"scale": 1.0, "causal": True, "offset": -2, "window": 0, "softcap": 0.0},
        {"mult": np.array([16384], np.uint16), "shift": np.array([20], np.uint8)},
    )
    found = run(graph, inputs)["y"][0, 0]
    assert not found[:2].any()
    # The reciprocal is off by 0.39 % at most: one key alone gives its value within 1.
    assert np.abs(found[2].astype(int) - v[0, 0, 0]).max() <= 1


def test_accumulators_that_leave_32_bits_are_refused() -> None:
    """Wrapping would look like a result; 16-bit operands have a sum per byte."""
    for dtype, depth in ((np.uint8, 70_000), (np.int16, 70_000)):
        a = np.full((1, depth), 255 if dtype == np.uint8 else 0x7FFF, dtype)
        b = np.full((depth, 1), 127, np.int8)
        graph, inputs = single("matmul", [a, b], TensorType((1, 1), Element.I32, PLAIN), MATMUL)
        with pytest.raises(GraphError, match=r"operation 'one' \(matmul\).*int32 accumulator"):
            run(graph, inputs)


def test_sums_of_16_bit_operands_have_more_than_32_bits() -> None:
    """High and low bytes fit, their sum does not: it is requantised all the same."""
    a = np.full((1, 1000), -32768, np.int16)
    b = np.full((1000, 1), -128, np.int8)
    arrays: dict[str, Array] = {
        "mult": np.array([16384], np.uint16),
        "shift": np.array([32], np.uint8),
    }
    graph, inputs = single("matmul", [a, b], TensorType((1, 1), Element.I16, PLAIN), MATMUL, arrays)
    assert int(run(graph, inputs)["y"][0, 0]) == -(-(32768 * 128 * 1000 * 16384) // 2**32)


def test_what_cannot_be_run_is_named() -> None:
    """Kinds without meaning, wrong axes, lost attributes, indices and inputs: a sentence each."""
    x = np.zeros((2, 3), np.int8)
    kind = TensorType((2, 3), Element.I8, PLAIN)
    refused: list[tuple[str, dict[str, Attribute], str]] = [
        ("iota", {}, "no integer meaning on the chip, allowed add, attention"),
        ("softmax", {"axis": 0}, "axis 0 of"),
        ("clip", {"low": 0.0}, "'low_int' missing"),
    ]
    for name, attributes, words in refused:
        graph, inputs = single(name, [x], kind, attributes)
        with pytest.raises(GraphError, match=rf"operation 'one' \({name}\).*{words}"):
            run(graph, inputs)
    rows: list[Array] = [x, x.reshape(3, 2)]
    graph, _ = single("concat", rows, replace(kind, shape=(4, 3)), {"axis": 0})
    wrong: list[tuple[dict[str, Array], str]] = [
        ({}, "input 'x0' is missing"),
        ({"x0": x.T, "x1": rows[1]}, r"int8\[3, 2\], allowed int8\[2, 3\]"),
        ({"x0": x + np.int16(300), "x1": rows[1]}, "no int8"),
        ({"x0": x + 0.5, "x1": rows[1]}, "allowed int8"),
    ]
    for given, words in wrong:
        with pytest.raises(GraphError, match=words):
            run(graph, given)
    with pytest.raises(GraphError, match="tensor 'nobody' does not exist"):
        run(graph, inputs, keep=["nobody"])


def test_results_beyond_their_type_are_refused_not_wrapped() -> None:
    """A larger int16 in a tensor of int8 is an error of whoever made the graph."""
    x = np.array([[300]], np.int16)
    graph, inputs = single("identity", [x], TensorType((1, 1), Element.I8, PLAIN), {})
    with pytest.raises(GraphError, match=r"makes 300\.\.300, the graph has int8"):
        run(graph, inputs)


def test_the_host_is_asked_for_everything_that_is_not_on_the_chip() -> None:
    """And for nothing else; borders are its work wherever they are placed."""
    seen = []

    def host(graph: Graph, one: Operation, values: object) -> list[Array]:
        seen.append(one.name)
        return [np.zeros(graph.type(n).shape, graph.type(n).element.dtype) for n in one.outputs]

    for seed in range(10):
        graph, inputs = random_graph(seed)
        seen.clear()
        run(graph, inputs, host=host)
        assert seen == [one.name for one in graph.operations if not one.on_chip]
