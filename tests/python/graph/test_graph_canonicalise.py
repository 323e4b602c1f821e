# SPDX-License-Identifier: Apache-2.0
"""One network gives one graph, whatever the layout and the habits of its source."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, Quantisation, TensorType
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.canonical.layout import groups
from npu.graph.passes.canonical.order import alike
from npu.graph.verify import verify

SEEDS = range(3)
Random = np.random.Generator


def normal(random: Random, *shape: int) -> Array:
    """Return normal numbers as float32."""
    return random.standard_normal(shape).astype(np.float32)


def conv(build: Builder, x: str, weight: str, *bias: str, name: str, pads: Any = (1,) * 4) -> str:  # noqa: ANN401
    """Add a convolution of stride 1."""
    return build.add(
        "conv",
        [x, weight, *bias],
        wish=name,
        source="Conv",
        strides=(1, 1),
        pads=pads,
        dilations=(1, 1),
        groups=1,
    )


def table(build: Builder, x: str, *functions: str, parameters: Any = ()) -> str:  # noqa: ANN401
    """Add functions of one variable."""
    return build.add("table", [x], functions=functions, parameters=parameters)


def matmul(build: Builder, a: str, b: str, **flags: bool) -> str:
    """Add a matrix product."""
    given: dict[str, Any] = {"transpose_a": False, "transpose_b": False, **flags}
    return build.add("matmul", [a, b], **given)


def kinds(graph: Graph) -> list[str]:
    """Return the kinds of the operations in their order."""
    return [one.kind for one in graph.operations]


def checked(graph: Graph, seed: int, atol: float = 1e-5) -> Graph:
    """Return the canonical graph, after comparing what both compute."""
    random = np.random.default_rng(seed)
    inputs = {
        name: normal(random, *graph.type(name).shape)
        if graph.type(name).element == Element.F32
        else random.integers(-9, 9, graph.type(name).shape).astype(graph.type(name).element.dtype)
        for name in graph.inputs
    }
    verify(graph)
    after = canonicalise(graph)
    verify(after)
    assert (after.inputs, after.outputs) == (graph.inputs, graph.outputs)
    one, other = evaluate(graph, inputs), evaluate(after, inputs)
    for name in graph.outputs:
        assert after.type(name) == graph.type(name)
        np.testing.assert_allclose(other[name], one[name], rtol=1e-4, atol=atol)
    assert alike(canonicalise(after), after)
    return after


def weights(seed: int) -> dict[str, Array]:
    """Return the weights of the network below."""
    random = np.random.default_rng(seed)
    return {
        "w1": normal(random, 3, 3, 4, 8),
        "b1": normal(random, 8),
        "gain": normal(random, 8),
        "beta": normal(random, 8),
        "w2": normal(random, 1, 1, 8, 8),
        "w3": normal(random, 5 * 3 * 8, 10),
        "b3": normal(random, 10),
    }


def channels_last(seed: int) -> Graph:
    """Return the network as JAX writes it: (B, H, W, C), bias by broadcast, scale by mul."""
    given, build = weights(seed), Builder("last")
    build.input("image", TensorType((1, 4, 10, 6)))
    x = build.add("transpose", ["image"], order=(0, 2, 3, 1))
    x = conv(build, x, build.constant(given["w1"]), name="c1")
    bias = build.add(
        "expand", [build.constant(given["b1"].reshape(1, 1, 1, 8))], shape=(1, 10, 6, 8)
    )
    x = build.add("add", [bias, x])
    x = build.add("mul", [x, build.constant(given["gain"])])
    x = build.add("add", [x, build.constant(given["beta"])])
    zero = build.add("expand", [build.constant(np.zeros((), np.float32))], shape=(1, 10, 6, 8))
    x = build.add("max", [x, zero])
    y = conv(build, x, build.constant(given["w2"]), name="c2", pads=(0,) * 4)
    x = build.add("add", [y, x])
    x = build.add("maxpool", [x], window=(2, 2), strides=(2, 2), pads=(0,) * 4, dilations=(1, 1))
    x = build.add("reshape", [x], shape=(1, 120))
    x = matmul(build, x, build.constant(given["w3"]))
    x = build.add("add", [x, build.constant(given["b3"].reshape(1, 10))])
    x = build.add("div", [x, build.constant(np.float32(4))])
    return build.finish([table(build, x, "tanh")])


def channels_first(seed: int) -> Graph:
    """Return the network as ONNX writes it: (B, C, H, W), batch norm, Gemm with transB."""
    given, build = weights(seed), Builder("first")

    def image(x: str) -> str:
        return build.add("transpose", [x], order=(0, 2, 3, 1))

    def back(x: str) -> str:
        return build.add("transpose", [x], order=(0, 3, 1, 2))

    def column(name: str) -> str:
        return build.constant(given[name].reshape(8, 1, 1))

    build.input("x", TensorType((1, 4, 10, 6)))
    x = back(
        conv(build, image("x"), build.constant(given["w1"]), build.constant(given["b1"]), name="a")
    )
    x = build.add("add", [build.add("mul", [column("gain"), x]), column("beta")])
    x = table(build, x, "relu")
    y = back(conv(build, image(x), build.constant(given["w2"]), name="b", pads=(0,) * 4))
    x = build.add("identity", [build.add("add", [x, y])])
    x = back(
        build.add(
            "maxpool", [image(x)], window=(2, 2), strides=(2, 2), pads=(0,) * 4, dilations=(1, 1)
        )
    )
    x = build.add("reshape", [build.add("reshape", [x], shape=(8, 15))], shape=(1, 120))
    rows = given["w3"].reshape(5, 3, 8, 10).transpose(2, 0, 1, 3).reshape(120, 10)
    x = matmul(build, x, build.constant(rows.T), transpose_b=True)
    x = build.add("add", [x, build.constant(given["b3"])])
    x = table(build, x, "scale", parameters=[0.25])
    return build.finish([table(build, x, "tanh")])


@pytest.mark.parametrize("seed", SEEDS)
def test_both_layouts_give_one_graph(seed: int) -> None:
    """Bit for bit, weights included, but for names; and nothing is left to transpose inside."""
    last, first = checked(channels_last(seed), seed), checked(channels_first(seed), seed)
    assert kinds(last) == [
        *("transpose", "conv", "table", "conv", "add", "maxpool", "reshape", "matmul", "table")
    ]
    assert last.operations[-1]["functions"] == ("tanh",)
    assert alike(last, first)


def test_another_weight_gives_another_graph() -> None:
    """What compares graphs sees the last bit of a weight."""
    one, other = channels_last(0), channels_last(0)
    name = next(iter(name for name, tensor in other.tensors.items() if tensor.constant))
    data = other[name].data
    assert data is not None
    data.reshape(-1)[0] = np.nextafter(data.reshape(-1)[0], np.float32(9))
    assert not alike(canonicalise(one), canonicalise(other))


@pytest.mark.parametrize("seed", SEEDS)
def test_shuffled_channels_keep_one_transpose(seed: int) -> None:
    """Groups of channels taken apart, exchanged and joined between two convolutions."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((1, 5, 4, 6)))
    x = conv(build, "x", build.constant(normal(random, 1, 1, 6, 12)), name="a", pads=(0,) * 4)
    x = build.add("transpose", [x], order=(0, 3, 1, 2))
    x = build.add("reshape", [x], shape=(1, 3, 4, 5, 4))
    x = build.add("transpose", [x], order=(0, 2, 1, 3, 4))
    x = build.add("reshape", [x], shape=(1, 12, 5, 4))
    x = build.add("transpose", [x], order=(0, 2, 3, 1))
    x = conv(build, x, build.constant(normal(random, 1, 1, 12, 2)), name="b", pads=(0,) * 4)
    after = checked(build.finish([x]), seed)
    assert kinds(after) == ["conv", "reshape", "transpose", "reshape", "conv"]
    assert after.operations[2]["order"] == (0, 1, 2, 4, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_image_of_one_pixel_hides_no_function_from_its_convolution(seed: int) -> None:
    """Channels first or last, it is the same row: nothing is left between conv, clip, matmul."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((1, 3, 1, 6)))
    weights = build.constant(normal(random, 3, 1, 6, 8))
    x = conv(build, "x", weights, name="a", pads=(0,) * 4)
    x = build.add("transpose", [x], order=(0, 3, 1, 2))
    x = build.add("clip", [x], low=0.0, high=1.0)
    x = build.add("reshape", [x], shape=(1, 8))
    x = matmul(build, x, build.constant(normal(random, 8, 3)))
    after = checked(build.finish([x]), seed)
    assert kinds(after) == ["conv", "clip", "reshape", "matmul"]


def test_a_reshape_that_ends_in_a_new_axis_of_one_joins_nothing() -> None:
    """What it is multiplied with has one row: there is nothing to permute."""
    build = Builder()
    build.input("x", TensorType((2, 3, 4)))
    x = build.add("transpose", ["x"], order=(1, 2, 0))
    x = build.add("reshape", [x], shape=(3, 4, 2, 1))
    x = matmul(build, x, build.constant(normal(np.random.default_rng(0), 1, 5)))
    assert kinds(checked(build.finish([x]), 0)) == ["transpose", "reshape", "matmul"]


def test_a_reshape_that_joins_pixels_stays_before_a_function() -> None:
    """Rows of another length are another layout."""
    build = Builder()
    build.input("x", TensorType((1, 3, 1, 6)))
    x = build.add("clip", [build.add("reshape", ["x"], shape=(1, 18))], low=0.0, high=1.0)
    assert kinds(checked(build.finish([x]), 0)) == ["reshape", "clip"]


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_that_are_integers_keep_their_scales(seed: int) -> None:
    """Given quantisation: transposes move the integers, nothing is folded into them."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((1, 4, 5, 5)))
    scale = Quantisation((0.5,), 3)
    filters = Quantisation(tuple(random.uniform(0.1, 1, 6).tolist()), 0, 0)
    integers = random.integers(-128, 128, (6, 4, 3, 3)).astype(np.int8)
    x = build.add("quantise", ["x"], result=TensorType((1, 4, 5, 5), Element.I8, scale))
    x = build.add("dequantise", [x])
    w = build.add("dequantise", [build.constant(integers, "w", filters)])
    x = build.add("transpose", [x], order=(0, 2, 3, 1))
    w = build.add("transpose", [w], order=(2, 3, 1, 0))
    b = build.add(
        "dequantise",
        [build.constant(np.arange(6, dtype=np.int32), "b", Quantisation((0.25,)))],
    )
    y = conv(build, x, w, b, name="c", pads=(0,) * 4)
    y = build.add("transpose", [y], order=(0, 3, 1, 2))
    y = build.add("quantise", [y], output="y", result=TensorType((1, 6, 3, 3), Element.I8, scale))
    after = checked(build.finish([y]), seed)
    assert Counter(kinds(after)) == Counter(
        {"quantise": 2, "dequantise": 2, "conv": 1, "transpose": 2}
    )
    (one,) = (one for one in after.operations if one.kind == "conv")
    made = after.producers()[one.inputs[1]]
    data, kind = after[made.inputs[0]].data, after.type(made.inputs[0])
    assert data is not None
    assert np.array_equal(data, integers.transpose(2, 3, 1, 0))
    assert kind.quantisation == Quantisation(filters.scales, 0, 3)
    assert after.constant(one.inputs[2]) is not None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("least", "finer"), [(-127, 1), (-128, 0), (-7, 16), (-1, 64)])
def test_factors_go_into_the_scales_of_integers(
    seed: int, several: bool, least: int, finer: int
) -> None:
    """Signs into the integers, if these hold them; a factor of 0 makes zeros of its column.

    Those of few bits are as many times larger as a byte holds, so that the bias is as exact.
    """
    random, build = np.random.default_rng(seed), Builder("integers")
    build.input("x", TensorType((3, 8)))
    integers = random.integers(least, -least, (8, 5)).astype(np.int8)
    integers[0] = least
    scales = tuple(random.uniform(0.01, 0.05, 5 if several else 1).tolist())
    given = Quantisation(scales, 0, 1 if several else None)
    w = build.add("dequantise", [build.constant(integers, "w", given)])
    factors = np.array([0.5, -2, 0, 3, -0.25], np.float32)
    y = build.add("mul", [matmul(build, "x", w), build.constant(factors)])
    y = build.add("add", [y, build.constant(normal(random, 5))])
    after = checked(build.finish([y]), seed)
    if not finer:
        assert "mul" in kinds(after)
        return
    assert kinds(after) == ["dequantise", "matmul"]
    (held,) = (one for one in after.tensors.values() if one.type.element == Element.I8)
    assert held.type.quantisation is not None and held.type.quantisation.axis == 1
    np.testing.assert_array_equal(held.data, finer * integers * np.sign(factors))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_quantised_flatten_permutes_integers(seed: int) -> None:
    """The rows of an int8 matrix move, its scales per column stay."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((2, 3, 4, 5)))
    scale = Quantisation((0.1,))
    x = build.add("transpose", ["x"], order=(0, 3, 1, 2))
    x = build.add("reshape", [x], shape=(2, 60))
    x = build.add("quantise", [x], result=TensorType((2, 60), Element.I8, scale))
    x = build.add("dequantise", [x])
    integers = random.integers(-128, 128, (60, 7)).astype(np.int8)
    columns = Quantisation(tuple(random.uniform(0.1, 1, 7).tolist()), 0, 1)
    w = build.add("dequantise", [build.constant(integers, "w", columns)])
    after = checked(build.finish([matmul(build, x, w)]), seed, 1e-3)
    assert "transpose" not in kinds(after)
    assert [one.type.quantisation for one in after.tensors.values() if one.constant] == [columns]


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_of_functions_are_one_table(seed: int) -> None:
    """Arithmetic with numbers composes with what is next to it, in its order."""
    build = Builder()
    build.input("x", TensorType((3, 4)))

    def number(value: float) -> str:
        return build.constant(np.full((1, 1), value, np.float32))

    x = build.add("mul", ["x", number(0.5)])
    x = build.add("mul", [number(4.0), x])
    x = table(build, x, "sigmoid")
    x = build.add("sub", [number(1.0), x])
    x = build.add("pow", [x, number(2.0)])
    x = build.add("min", [build.add("max", [x, number(0.0)]), number(0.75)])
    after = checked(build.finish([x]), seed)
    (one,) = after.operations
    assert one["functions"] == ("scale", "sigmoid", "neg", "shift", "square", "clip")
    assert one["parameters"] == (2.0, 1.0, 0.0, 0.75)


@pytest.mark.parametrize(
    "bounds", [(2.0, 5.0, 6.0, 9.0), (6.0, 9.0, 2.0, 5.0), (2.0, 6.0, 5.0, 9.0)]
)
def test_clips_behind_each_other_are_one(bounds: tuple[float, ...]) -> None:
    """Overlapping or not: the second has the last word."""
    build = Builder()
    build.input("x", TensorType((40,)))
    wide = table(build, "x", "scale", parameters=[8.0])
    first = build.add("clip", [wide], low=bounds[0], high=bounds[1])
    after = checked(build.finish([build.add("clip", [first], low=bounds[2], high=bounds[3])]), 3)
    (one,) = after.operations
    assert one["functions"] == ("scale", "clip")


def test_what_a_constant_makes_longer_stays_long() -> None:
    """Equal rows of a constant, and an expand, that give the result its shape are kept."""
    build = Builder()
    build.input("x", TensorType((1, 3)))
    rows = build.constant(np.tile(np.arange(3, dtype=np.float32), (2, 1)))
    y = build.add("mul", ["x", rows])
    wide = build.add("expand", ["x"], shape=(4, 3))
    z = build.add("add", [wide, "x"])
    after = checked(build.finish([y, z]), 0)
    assert {after.type(name).shape for name in after.outputs} == {(2, 3), (4, 3)}


def test_relu6_has_one_form() -> None:
    """Clip, two bounds one after the other, and relu below a bound are one clip."""
    forms = []
    for form in range(3):
        build = Builder()
        build.input("x", TensorType((3,)))
        if form == 0:
            y = build.add("clip", ["x"], low=0.0, high=6.0)
        elif form == 1:
            six = build.constant(np.float32(6))
            y = build.add("min", [six, table(build, "x", "relu")])
        else:
            y = build.add(
                "clip", [build.add("clip", ["x"], low=0.0, high=np.inf)], low=-np.inf, high=6.0
            )
        forms.append(checked(build.finish([y]), form))
    assert all(alike(one, other) for one, other in itertools.pairwise(forms))
    assert kinds(forms[0]) == ["clip"]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_addend_finds_the_product_in_a_sum(seed: int) -> None:
    """X + y w + b and x + (y w + b) are one graph, however the sum is put together."""
    forms = []
    for form in range(4):
        random, build = np.random.default_rng(seed), Builder()
        build.input("x", TensorType((2, 3)))
        build.input("y", TensorType((2, 4)))
        product = matmul(build, "y", build.constant(normal(random, 4, 3)))
        bias = build.constant(normal(random, 3))
        order = (["x", product, bias], ["x", bias, product], [product, bias, "x"])[form % 3]
        first = build.add("add", order[:2])
        if form == 3:
            first = build.add("add", [first, "x"])
        total = build.add("add", [first, order[2]])
        forms.append(checked(build.finish([total]), seed))
    assert [kinds(one) for one in forms] == [["matmul", "add"]] * 3 + [["matmul", "add", "add"]]
    assert alike(forms[0], forms[2])


def test_what_two_read_stays() -> None:
    """A product with two readers keeps its weights; its result is not changed under the other."""
    random, build = np.random.default_rng(1), Builder()
    build.input("x", TensorType((2, 3)))
    y = matmul(build, "x", build.constant(normal(random, 3, 3)))
    z = build.add("mul", [y, build.constant(normal(random, 3))])
    after = checked(build.finish([build.add("add", [y, z]), y]), 1)
    assert Counter(kinds(after)) == {"matmul": 1, "mul": 1, "add": 1}


def test_equal_operations_are_computed_once() -> None:
    """Two branches that do the same are one, and the order of operands does not matter."""
    build = Builder()
    build.input("x", TensorType((3,)))
    build.input("y", TensorType((3,)))
    one = table(build, build.add("add", ["x", "y"]), "exp")
    other = table(build, build.add("add", ["y", "x"]), "exp")
    after = checked(build.finish([build.add("sub", [one, other])]), 0)
    assert kinds(after) == ["add", "table", "sub"]


def test_outputs_keep_their_names() -> None:
    """An input, a constant, one tensor twice and what a removed operation gave are outputs."""
    build = Builder()
    build.input("x", TensorType((3,)))
    y = table(build, "x", "exp")
    a = build.add("identity", ["x"], output="a")
    b = build.add("identity", [y], output="b")
    c = build.add("identity", [y], output="c")
    two = build.constant(np.full(3, 2, np.float32), "two")
    d = build.add("mul", [two, two], output="d")
    after = checked(build.finish([a, b, c, d, two]), 0)
    assert after.constant("d") is not None
    assert Counter(kinds(after)) == {"identity": 2, "table": 1}


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax_and_argmax_work_along_rows(seed: int) -> None:
    """Another axis than the last is transposed to it and back."""
    build = Builder()
    build.input("x", TensorType((2, 3, 4)))
    y = build.add("softmax", ["x"], axis=1)
    kept = TensorType((1, 3, 4), Element.I64)
    z = build.add("argmax", ["x"], axis=0, keep=True, result=kept)
    after = checked(build.finish([y, z]), seed)
    axes = {one.kind: one["axis"] for one in after.operations if "axis" in one.attributes}
    assert axes == {"softmax": 2, "argmax": 2}


@pytest.mark.parametrize("seed", SEEDS)
def test_means_have_one_form(seed: int) -> None:
    """A mean with kept axes, without, and a pool over the whole image."""
    forms = []
    for form in range(3):
        build = Builder()
        build.input("x", TensorType((2, 4, 5, 3)))
        if form == 0:
            y = build.add("mean", ["x"], axes=(1, 2), keep=False)
        elif form == 1:
            y = build.add("mean", ["x"], axes=(1, 2), keep=True)
        else:
            y = build.add(
                "avgpool", ["x"], window=(4, 5), strides=(1, 1), pads=(0,) * 4, count_pads=False
            )
        forms.append(checked(build.finish([build.add("reshape", [y], shape=(2, 3))]), seed))
    assert all(alike(one, other) for one, other in itertools.pairwise(forms))
    assert kinds(forms[0]) == ["mean"]


@pytest.mark.parametrize("seed", SEEDS)
def test_pads_in_front_are_pads_of_the_window(seed: int) -> None:
    """Zeros before a convolution and a mean, the lowest number before a maximum."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((1, 5, 5, 2)))
    sides: dict[str, Any] = {"before": (0, 1, 0, 0), "after": (0, 2, 1, 0)}
    zeros = build.add("pad", ["x"], value=0.0, **sides)
    lowest = build.add("pad", ["x"], value=-np.inf, **sides)
    a = conv(build, zeros, build.constant(normal(random, 2, 2, 2, 3)), name="c", pads=(0,) * 4)
    b = build.add(
        "avgpool", [zeros], window=(2, 2), strides=(1, 1), pads=(0,) * 4, count_pads=False
    )
    c = build.add(
        "maxpool", [lowest], window=(2, 2), strides=(1, 1), pads=(0,) * 4, dilations=(1, 1)
    )
    after = checked(build.finish([a, b, c]), seed)
    assert {one["pads"] for one in after.operations} == {(1, 0, 2, 1)}
    assert kinds(after) == ["conv", "avgpool", "maxpool"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_norm_per_channel_alone_is_a_convolution(seed: int) -> None:
    """A factor and addend per channel of an image with no product before it."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((1, 4, 3, 5)))
    x = build.add("mul", ["x", build.constant(normal(random, 5))])
    x = build.add("add", [x, build.constant(normal(random, 5))])
    after = checked(build.finish([table(build, x, "relu")]), seed)
    assert kinds(after) == ["conv", "table"]
    assert after.operations[0]["groups"] == 5


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_compute_the_same(seed: int) -> None:
    """Moves, arithmetic, functions and reductions in any order; the form is a fixed point."""
    random, build = np.random.default_rng(seed), Builder()
    build.input("x", TensorType((2, 3, 4, 5)))
    names = ["x"]
    for _ in range(12):
        x = names[-1] if random.random() < 0.8 else str(random.choice(names))
        names.append(step(random, build, x, names))
    # Only what is finite and small can be compared after sums were exchanged.
    checked(
        build.finish([table(build, names[-1], "tanh"), table(build, names[-3], "tanh")]), seed, 2e-4
    )


def step(random: Random, build: Builder, x: str, names: list[str]) -> str:
    """Add a random operation."""
    shape = build.shape(x)
    choice = int(random.integers(0, 9))
    if choice == 0:
        return build.add("transpose", [x], order=random.permutation(len(shape)).tolist())
    if choice == 1:
        sizes = [size for size in shape for size in ((2, size // 2) if size == 4 else (size,))]
        return build.add("reshape", [x], shape=sizes)
    if choice == 2 and len(shape) > 2:
        axis = int(random.integers(0, len(shape) - 1))
        joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
        return build.add("reshape", [x], shape=joined)
    if choice == 3:
        return table(build, x, str(random.choice(["relu", "tanh", "sigmoid"])))
    if choice == 4:
        axis = int(random.integers(0, len(shape)))
        sizes = [size if index == axis else 1 for index, size in enumerate(shape)]
        kind = str(random.choice(["add", "mul", "sub"]))
        return build.add(kind, [x, build.constant(normal(random, *sizes))])
    if choice == 5:
        kind = str(random.choice(["add", "mul", "sub", "max", "min"]))
        return build.add(kind, [build.constant(np.float32(random.normal())), x])
    if choice == 6:
        same = [name for name in names if build.shape(name) == shape]
        return build.add("add", [x, str(random.choice(same))])
    if choice == 7 and len(shape) > 1:
        return matmul(build, x, build.constant(normal(random, shape[-1], 4) / 2))
    axes = [int(random.integers(0, len(shape)))]
    keep = bool(random.integers(0, 2)) or len(shape) < 3
    return build.add("mean", [x], axes=axes, keep=keep)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((2, 3), (6,), [([0, 1], [0])]),
        ((6,), (2, 3), [([0], [0, 1])]),
        ((1, 4, 5), (1, 2, 2, 5), [([0], [0]), ([1], [1, 2]), ([2], [3])]),
        ((4, 6), (6, 4), [([0, 1], [0, 1])]),
    ],
)
def test_reshapes_split_into_runs(before: Any, after: Any, expected: Any) -> None:  # noqa: ANN401
    """As short as possible, each of equal size on both sides."""
    assert groups(before, after) == expected
