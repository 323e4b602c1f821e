# SPDX-License-Identifier: Apache-2.0
"""Patterns of primitive operations become one operation, and only where they compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, Operation, Quantisation, TensorType
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.canonical.patterns import replace_patterns
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import jax
import jax.numpy as jnp

from npu.graph.importers import stablehlo

Function = Callable[..., Any]
MOVES = {"reshape", "transpose", "identity", "expand"}


def normal(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def works(graph: Graph) -> list[Operation]:
    """Return the operations that do more than move."""
    return [one for one in graph.operations if one.kind not in MOVES]


def replaced(function: Function, *arguments: Array) -> list[Operation]:
    """Return what is left of a function, after comparing it with jax."""
    graph = canonicalise(stablehlo.from_jax(function, arguments))
    verify(graph)
    found = evaluate(graph, dict(zip(graph.inputs, arguments, strict=True)))
    wanted = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*arguments))]
    for name, want in zip(graph.outputs, wanted, strict=True):
        np.testing.assert_allclose(found[name], want, rtol=1e-5, atol=1e-5)
    return works(graph)


X = normal(1, 2, 3, 8)
GAIN, BETA = normal(2, 8) + 1, normal(3, 8)
FUNCTIONS: dict[str, tuple[Function, str, tuple[float, ...]]] = {
    "relu": (jax.nn.relu, "relu", ()),
    "relu by where": (lambda x: jnp.where(x > 0, x, 0.0), "relu", ()),
    "gelu by tanh": (jax.nn.gelu, "gelu_tanh", ()),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), "gelu", ()),
    "gelu by erf": (lambda x: x * (jax.lax.erf(x / 2**0.5) + 1) * 0.5, "gelu", ()),
    "sigmoid": (jax.nn.sigmoid, "sigmoid", ()),
    "sigmoid by exp": (lambda x: 1 / (1 + jnp.exp(-x)), "sigmoid", ()),
    "sigmoid by tanh": (lambda x: 0.5 * jnp.tanh(x / 2) + 0.5, "sigmoid", ()),
    "silu": (jax.nn.silu, "silu", ()),
    "silu by exp": (lambda x: x / (1 + jnp.exp(-x)), "silu", ()),
    "swish": (lambda x: x * jax.nn.sigmoid(1.702 * x), "swish", (1.702,)),
    "softplus": (jax.nn.softplus, "softplus", ()),
    "softplus by log": (lambda x: jnp.log(1 + jnp.exp(x)), "softplus", ()),
    "mish": (jax.nn.mish, "mish", ()),
    "hard swish": (jax.nn.hard_swish, "hard_swish", ()),
    "hard sigmoid": (jax.nn.hard_sigmoid, "hard_sigmoid", (1 / 6, 0.5)),
    "elu": (jax.nn.elu, "elu", (1.0,)),
    "selu": (jax.nn.selu, "selu", (1.6732632, 1.050701)),
    "leaky relu": (lambda x: jax.nn.leaky_relu(x, 0.2), "leaky_relu", (0.2,)),
    "leaky relu by max": (lambda x: jnp.maximum(x, 0.2 * x), "leaky_relu", (0.2,)),
    "softsign": (jax.nn.soft_sign, "softsign", ()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_one_variable_is_told_by_its_values(name: str) -> None:
    """However it is spelled."""
    function, wanted, parameters = FUNCTIONS[name]
    (one,) = replaced(function, X)
    assert one["functions"] == (wanted,)
    np.testing.assert_allclose(one["parameters"], parameters, rtol=1e-6)


CLIPS: dict[str, tuple[Function, float, float]] = {
    "relu6": (jax.nn.relu6, 0.0, 6.0),
    "hard tanh": (jax.nn.hard_tanh, -1.0, 1.0),
    "where": (lambda x: jnp.where(x > 0.5, 0.5, jnp.where(x < -2, -2.0, x)), -2.0, 0.5),
}


@pytest.mark.parametrize("name", CLIPS)
def test_bounds_become_a_clip(name: str) -> None:
    """Of maximum and minimum, or of choices."""
    function, low, high = CLIPS[name]
    (one,) = replaced(function, X)
    assert (one.kind, one["low"], one["high"]) == ("clip", low, high)


def _layer_norm(x: Any) -> Any:  # noqa: ANN401
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * GAIN + BETA


def _keras_norm(x: Any) -> Any:  # noqa: ANN401
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    factor = jax.lax.rsqrt(variance + 1e-6) * GAIN
    return x * factor + (BETA - mean * factor)


def _square_norm(x: Any) -> Any:  # noqa: ANN401
    mean = x.mean((-1, -2), keepdims=True)
    variance = (x * x).mean((-1, -2), keepdims=True) - mean * mean
    return (x - mean) * jax.lax.rsqrt(variance + 1e-3)


NORMS: dict[str, tuple[Function, str, int, float, int]] = {
    "layer norm": (_layer_norm, "layernorm", 1, 1e-5, 3),
    "as keras": (_keras_norm, "layernorm", 1, 1e-6, 3),
    "two axes": (_square_norm, "layernorm", 2, 1e-3, 1),
    "jax.nn.standardize": (jax.nn.standardize, "layernorm", 1, 1e-5, 1),
    "rms": (
        lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * GAIN,
        "rmsnorm",
        1,
        1e-6,
        2,
    ),
    "rms by sqrt": (
        lambda x: x / jnp.sqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5),
        "rmsnorm",
        1,
        1e-5,
        1,
    ),
    "rms by power": (
        lambda x: GAIN * (x * (jnp.mean(x**2, -1, keepdims=True) + 1e-5) ** -0.5),
        "rmsnorm",
        1,
        1e-5,
        2,
    ),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_any_spelling_become_one_operation(name: str) -> None:
    """With gain and beta bit for bit."""
    function, kind, axes, epsilon, inputs = NORMS[name]
    graph = canonicalise(stablehlo.from_jax(function, (X,)))
    replaced(function, X)
    (one,) = graph.operations
    assert (one.kind, one["axes"], len(one.inputs)) == (kind, axes, inputs)
    np.testing.assert_allclose(one["epsilon"], epsilon, rtol=1e-6)
    for name_, value in zip(one.inputs[1:], (GAIN, BETA), strict=False):
        np.testing.assert_array_equal(graph.constant(name_), value)


ROWS: dict[str, tuple[Function, str]] = {
    "softmax": (jax.nn.softmax, "softmax"),
    "softmax of another axis": (lambda x: jax.nn.softmax(x, 1), "softmax"),
    "plain exponentials": (lambda x: jnp.exp(x) / jnp.exp(x).sum(-1, keepdims=True), "softmax"),
    "mean": (lambda x: x.mean(1), "mean"),
    "mean, kept": (lambda x: x.mean((0, 1), keepdims=True), "mean"),
    "mean by a factor": (lambda x: x.sum((1, 2)) * (1 / 24), "mean"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_become_one_operation(name: str) -> None:
    """Softmax along any axis, means."""
    function, kind = ROWS[name]
    assert [one.kind for one in replaced(function, X)] == [kind]


def _window_mean(x: Any, pads: str, count: bool) -> Any:  # noqa: ANN401
    def total(y: Any) -> Any:  # noqa: ANN401
        return jax.lax.reduce_window(y, 0.0, jax.lax.add, (1, 3, 3, 1), (1, 2, 2, 1), pads)

    return total(x) / (total(jnp.ones_like(x)) if count else 9.0)


@pytest.mark.parametrize("pads", ["VALID", "SAME"])
@pytest.mark.parametrize("count", [False, True])
def test_sums_over_windows_become_average_pools(pads: str, count: bool) -> None:
    """Over what is inside, or over all of the window."""
    image = normal(4, 1, 8, 8, 4)
    (one,) = replaced(lambda x: _window_mean(x, pads, count), image)
    assert one.kind == "avgpool"
    assert pads == "VALID" or one["count_pads"] is not count


@pytest.mark.parametrize("axis", [0, 1])
def test_indices_are_taken_as_they_are(axis: int) -> None:
    """Without the arithmetic that jax puts around them."""
    table = normal(5, 6, 6)
    indices = np.array([[1, -2, 0], [5, 3, -6]], np.int32)
    assert [one.kind for one in replaced(lambda i: jnp.take(table, i, axis=axis), indices)] == [
        "gather"
    ]


LOWER = np.tril(np.ones((6, 6), bool))


def _attention(
    q: Any,  # noqa: ANN401
    k: Any,  # noqa: ANN401
    v: Any,  # noqa: ANN401
    mask: Array | None = None,
    cap: float = 0.0,
) -> Any:  # noqa: ANN401
    scores = jnp.einsum("bhsd,bhtd->bhst", q, k) / jnp.sqrt(8.0)
    if cap:
        scores = cap * jnp.tanh(scores / cap)
    if mask is not None and mask.dtype == np.bool_:
        scores = jnp.where(mask, scores, -1e9)
    elif mask is not None:
        scores = scores + mask
    return jnp.einsum("bhst,bhtd->bhsd", jax.nn.softmax(scores, -1), v)


Q, K, V = normal(6, 1, 4, 6, 8), normal(7, 1, 4, 6, 8), normal(8, 1, 4, 6, 3)
MASK = normal(9, 6, 6) > -0.5
ATTENTIONS: dict[str, tuple[Function, tuple[Array, ...], dict[str, Any], int]] = {
    "plain": (_attention, (Q, K, V), {}, 3),
    "causal": (lambda q, k, v: _attention(q, k, v, LOWER), (Q, K, V), {"causal": True}, 3),
    "causal by minus infinity": (
        lambda q, k, v: _attention(q, k, v, np.where(LOWER, 0, -np.inf).astype(np.float32)),
        (Q, K, V),
        {"causal": True},
        3,
    ),
    "causal with an offset": (
        lambda q, k, v: _attention(q, k, v, LOWER[2:]),
        (Q[:, :, 2:], K, V),
        {"causal": True, "offset": 2},
        3,
    ),
    "window": (
        lambda q, k, v: _attention(q, k, v, LOWER & ~np.tril(LOWER, -3)),
        (Q, K, V),
        {"causal": True, "window": 3},
        3,
    ),
    "mask": (lambda q, k, v: _attention(q, k, v, MASK), (Q, K, V), {}, 4),
    "bias": (lambda q, k, v: _attention(q, k, v, normal(9, 4, 6, 6)), (Q, K, V), {}, 4),
    "softcap": (
        lambda q, k, v: _attention(q, k, v, LOWER, 30.0),
        (Q, K, V),
        {"causal": True, "softcap": 30.0},
        3,
    ),
    "repeated heads": (
        lambda q, k, v: _attention(q, jnp.repeat(k, 2, 1), jnp.repeat(v, 2, 1)),
        (Q, K[:, :2], V[:, :2]),
        {},
        3,
    ),
    "factors in front": (
        lambda q, k, v: jnp.einsum(
            "bhst,bhtd->bhsd",
            jax.nn.softmax(jnp.einsum("bhsd,bhtd->bhst", q * 8**-0.25, k * 8**-0.25), -1),
            v,
        ),
        (Q, K, V),
        {},
        3,
    ),
    **{
        f"jax.nn, {groups} groups, causal {causal}": (
            lambda q, k, causal=causal: jax.nn.dot_product_attention(q, k, k, is_causal=causal),
            (normal(6, 2, 5, 4, 8), normal(7, 2, 5, groups, 8)),
            {"causal": causal},
            3,
        )
        for groups in (1, 2, 4)
        for causal in (False, True)
    },
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_of_any_layout_becomes_one_operation(name: str) -> None:
    """Masks that are causal become flags; heads that share keys take them once."""
    function, inputs, wanted, count = ATTENTIONS[name]
    (one,) = replaced(function, *inputs)
    assert one.kind == "attention"
    assert len(one.used) == count
    expected = {"causal": False, "offset": 0, "window": 0, "softcap": 0.0, **wanted}
    assert {key: one[key] for key in expected} == expected
    np.testing.assert_allclose(one["scale"], 8**-0.5, rtol=1e-6)


ANGLES = normal(10, 6, 4)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)


def _halves(x: Any, cos: Array, sin: Array) -> Any:  # noqa: ANN401
    first, second = jnp.split(x, 2, -1)
    wide = [np.concatenate([one, one], -1) for one in (cos, sin)]
    return x * wide[0] + jnp.concatenate([-second, first], -1) * wide[1]


def _products(x: Any) -> Any:  # noqa: ANN401
    first, second = x[..., :4], x[..., 4:]
    return jnp.concatenate([first * COS - second * SIN, second * COS + first * SIN], -1)


def _pairs(x: Any) -> Any:  # noqa: ANN401
    first, second = x[..., ::2], x[..., 1::2]
    turned = [first * COS - second * SIN, second * COS + first * SIN]
    return jnp.stack(turned, -1).reshape(x.shape)


ROPES: dict[str, tuple[Function, tuple[int, ...], bool, int]] = {
    "halves": (lambda x: _halves(x, COS, SIN), (1, 4, 6, 8), False, 1),
    "rows first": (
        lambda x: _halves(x, COS[:, None], SIN[:, None]),
        (1, 6, 4, 8),
        False,
        2,
    ),
    "four products": (_products, (2, 4, 6, 8), False, 1),
    "pairs": (_pairs, (1, 4, 6, 8), True, 1),
}


@pytest.mark.parametrize("name", ROPES)
def test_rotary_positions_become_one_operation(name: str) -> None:
    """Either pairing, heads on either side of the rows, angles bit for bit."""
    function, shape, interleaved, heads = ROPES[name]
    graph = canonicalise(stablehlo.from_jax(function, (normal(11, *shape),)))
    replaced(function, normal(11, *shape))
    (one,) = graph.operations
    assert (one.kind, one["interleaved"], one["heads_axis"]) == ("rope", interleaved, heads)
    np.testing.assert_array_equal(graph.constant(one.inputs[1]), COS)
    np.testing.assert_array_equal(graph.constant(one.inputs[2]), SIN)


def test_rounding_clamping_and_conversion_are_a_border() -> None:
    """With scale and zero point; int32 sums on the way are floats."""
    (one,) = replaced(lambda x: jnp.clip(jnp.round(x / 0.02) + 3, -128, 127).astype(jnp.int8), X)
    assert one.kind == "quantise"
    w = np.random.default_rng(3).integers(-128, 128, (8, 3), dtype=np.int8)
    x = np.random.default_rng(4).integers(-128, 128, (4, 8), dtype=np.int8)

    def layer(x: Any) -> Any:  # noqa: ANN401
        numbers = (((1,), (0,)), ((), ()))
        y = jax.lax.dot_general(x, w, numbers, preferred_element_type=jnp.int32)
        return jnp.clip(jnp.round(y.astype(jnp.float32) * 0.01), -128, 127).astype(jnp.int8)

    graph = canonicalise(stablehlo.from_jax(layer, (x,)))
    assert [one.kind for one in graph.operations] == [
        "dequantise",
        "dequantise",
        "matmul",
        "quantise",
    ]
    found = graph.type(graph.outputs[0]).quantisation
    assert found is not None
    np.testing.assert_allclose(found.scale, 100.0, rtol=1e-6)
    replaced(layer, x)


def test_a_factor_of_converted_integers_is_their_scale() -> None:
    """Less the zero point."""
    graph = canonicalise(
        stablehlo.from_jax(lambda x: (x.astype(jnp.float32) - 3) * 0.02, (np.zeros(4, np.int8),))
    )
    assert [one.kind for one in graph.operations] == ["dequantise"]
    found = graph.type(graph.inputs[0]).quantisation
    assert found is not None and found.zero == 3


OTHERS: dict[str, tuple[Function, str]] = {
    "variance of a sample": (
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.std(x, -1, ddof=1, keepdims=True),
        "layernorm",
    ),
    "norm of a middle axis": (
        lambda x: (x - x.mean(1, keepdims=True)) / jnp.sqrt(jnp.var(x, 1, keepdims=True) + 1e-5),
        "layernorm",
    ),
    "softmax of two axes": (lambda x: jax.nn.softmax(x, (1, 2)), "softmax"),
    "not quite gelu": (lambda x: 0.5 * x * (1 + jnp.tanh(0.8 * (x + 0.05 * x**3))), "table"),
    "exponentials over one more": (
        lambda x: jnp.exp(x) / (1 + jnp.exp(x).sum(-1, keepdims=True)),
        "softmax",
    ),
    "a small addend": (lambda x: jnp.where(x == x, x + 1e-6, x), "clip"),
    "exponentials over one more, long rows": (
        lambda x: jnp.exp(x.reshape(-1)) / (1e-2 + jnp.exp(x.reshape(-1)).sum()),
        "softmax",
    ),
    "a query that sees nothing": (
        lambda x: _attention(x[None], x[None], x[None], LOWER[:3, 1:4]),
        "attention",
    ),
    "angles of their own for each head": (
        lambda x: _halves(x[None], normal(1, 2, 3, 4), normal(2, 2, 3, 4)),
        "rope",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_computes_something_else_stays(name: str) -> None:
    """One number or axis away from a pattern."""
    function, kind = OTHERS[name]
    found = replaced(function, X)
    names = [
        one.kind for one in found if one.kind != "table" or set(one["functions"]) & {"gelu_tanh"}
    ]
    assert kind not in names


def test_rows_of_integers_keep_their_scale() -> None:
    """Gathered from a table with indices that are counted from behind first."""
    unit = Quantisation((0.5,), 3)
    build = Builder()
    table = build.constant(np.arange(12, dtype=np.int8).reshape(4, 3), "table", unit)
    i = build.input("i", TensorType((2,), Element.I32))
    size, zero = (build.constant(np.array(one, np.int32), f"n{one}") for one in (4, 0))
    below = build.add("compare", [i, zero], direction="LT")
    places = build.add("select", [below, build.add("add", [i, size]), i])
    kind = TensorType((2, 3), Element.I8, unit)
    y = build.add("gather", [table, places], result=kind, axis=0)
    graph = build.finish([y])
    after = replace_patterns(graph)
    verify(after)
    assert [one.kind for one in after.operations] == ["gather"]
    assert after.type(after.outputs[0]) == kind
    found = evaluate(after, {"i": np.array([1, -1], np.int32)})[after.outputs[0]]
    assert found.tolist() == [[3, 4, 5], [9, 10, 11]]


def _build(kind: str) -> tuple[Graph, Mapping[str, Array]]:
    """Spell a norm or a GELU with the primitives that ONNX and TFLite files have."""
    build = Builder()
    x = build.input("x", TensorType((2, 3, 8), Element.F32))
    number = {
        value: build.constant(np.array(value, np.float32), f"c{index}")
        for index, value in enumerate((1e-5, 2.0, 0.5, 1.0, 2.0**0.5))
    }
    if kind == "layernorm":
        mean = build.add("mean", [x], axes=(2,), keep=True)
        centred = build.add("sub", [x, mean])
        square = build.add("pow", [centred, number[2.0]])
        variance = build.add("mean", [square], axes=(2,), keep=True)
        shifted = build.add("add", [variance, number[1e-5]])
        root = build.add("table", [shifted], functions=("sqrt",), parameters=())
        normed = build.add("div", [centred, root])
        gained = build.add("mul", [normed, build.constant(GAIN, "gain")])
        y = build.add("add", [gained, build.constant(BETA, "beta")])
    elif kind == "gelu":
        part = build.add("div", [x, number[2.0**0.5]])
        erf = build.add("table", [part], functions=("erf",), parameters=())
        more = build.add("add", [erf, number[1.0]])
        y = build.add("mul", [build.add("mul", [x, more]), number[0.5]])
    else:
        square = build.add("table", [x], functions=("square",), parameters=())
        mean = build.add("mean", [square], axes=(2,), keep=True)
        shifted = build.add("add", [mean, number[1e-5]])
        root = build.add("table", [shifted], functions=("rsqrt",), parameters=())
        y = build.add("mul", [build.constant(GAIN, "gain"), build.add("mul", [x, root])])
    return build.finish([y]), {"x": X}


@pytest.mark.parametrize("kind", ["layernorm", "gelu", "rmsnorm"])
def test_primitives_of_other_sources_become_one_operation(kind: str) -> None:
    """As ONNX exporters and TFLite converters spell them."""
    graph, inputs = _build(kind)
    after = replace_patterns(graph)
    verify(after)
    (one,) = after.operations
    named = one["functions"][0] if one.kind == "table" else one.kind
    assert named == kind
    before = evaluate(graph, inputs)[graph.outputs[0]]
    np.testing.assert_allclose(
        evaluate(after, inputs)[after.outputs[0]], before, rtol=1e-5, atol=1e-5
    )


def test_what_is_read_elsewhere_too_stays_beside_the_pattern() -> None:
    """The inner results of a norm as outputs of their own."""

    def function(x: Any) -> Any:  # noqa: ANN401
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5), mean

    kinds = [one.kind for one in replaced(function, X)]
    assert sorted(kinds) == ["layernorm", "mean"]


@pytest.mark.parametrize("hiding", [-65504.0, -1e9, -3.4e38])
def test_a_row_that_a_finite_mask_hides_sees_all(hiding: float) -> None:
    """As in float32: scores count beside 65,504, and are lost beside a billion."""
    mask = np.zeros((6, 6), np.float32)
    mask[np.triu_indices(6, 1)] = hiding
    mask[2] = hiding

    def function(q: Any, k: Any, v: Any) -> Any:  # noqa: ANN401
        return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 4 + mask, -1) @ v

    given = [normal(seed, 1, 2, 6, 16) for seed in (1, 2, 3)]
    graph = canonicalise(stablehlo.from_jax(function, given))
    assert [one.kind for one in graph.operations].count("attention") == 1
    found = evaluate(graph, dict(zip(graph.inputs, given, strict=True)))[graph.outputs[0]]
    expected = np.asarray(function(*given))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    if hiding < -1e6:
        mean = np.broadcast_to(given[2].mean(axis=2), expected[:, :, 2].shape)
        np.testing.assert_allclose(expected[:, :, 2], mean, rtol=1e-3, atol=1e-3)
    assert np.abs(found[:, :, 2]).max() > 0.05
