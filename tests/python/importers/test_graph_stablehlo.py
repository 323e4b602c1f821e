# SPDX-License-Identifier: Apache-2.0
"""Graphs read from StableHLO compute what jax computes, from every form that a module has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, GraphError
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import jax
import jax.numpy as jnp
from jax import lax

import tessera.jax as composites
from npu.graph.importers import stablehlo
from npu.graph.passes.canonical.canonicalise import canonicalise

Function = Callable[..., Any]


def normal(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def kinds(graph: Graph) -> list[str]:
    """Return the kinds of the operations in their order."""
    return [one.kind for one in graph.operations]


def same(function: Function, *arguments: Array, tolerance: float = 1e-5) -> Graph:
    """Read a function and compare the graph's outputs with those of jax."""
    graph = stablehlo.from_jax(function, arguments)
    compare(graph, function, *arguments, tolerance=tolerance)
    return graph


def compare(graph: Graph, function: Function, *arguments: Array, tolerance: float = 1e-5) -> None:
    """Compare the outputs of a graph with those of a function."""
    verify(graph)
    found = evaluate(graph, dict(zip(graph.inputs, arguments, strict=True)))
    wanted = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*arguments))]
    for name, want in zip(graph.outputs, wanted, strict=True):
        assert found[name].dtype == want.dtype
        np.testing.assert_allclose(found[name], want, rtol=tolerance, atol=tolerance)


X = normal(1, 1, 8, 8, 4)
W = normal(2, 3, 3, 4, 6)
ELEMENTWISE: dict[str, Function] = {
    "gelu by tanh": jax.nn.gelu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "relu6": jax.nn.relu6,
    "hard swish": jax.nn.hard_swish,
    "elu": jax.nn.elu,
    "leaky relu": jax.nn.leaky_relu,
    "mish": jax.nn.mish,
    "divided": lambda x: x / 4 - 1,
    "power": lambda x: jnp.abs(x) ** 1.5,
    "round": jnp.round,
    "where": lambda x: jnp.where(x > 0.5, x, -x),
    "clip": lambda x: jnp.clip(x, -0.5, 0.7),
    "clip by a tensor": lambda x: jnp.clip(x, -0.5, x[:, :1]),
    "mixed": lambda x: jnp.sin(x) * jnp.cos(x) + jnp.floor(x) - jnp.ceil(x) * jnp.sign(x),
    "expm1": lambda x: jnp.expm1(x) + jnp.log1p(jnp.abs(x)),
    "remainder": lambda x: jnp.fmod(x, 0.3) * (jnp.isnan(x) ^ True),
    "row times column": lambda x: x[:, :, :1] * x[:, :1] + x[0, 0, 0],
}
MOVES: dict[str, Function] = {
    "slice": lambda x: x[:, 1:3, ::2],
    "row": lambda x: x[0],
    "last row": lambda x: x[:, -1],
    "flip": lambda x: jnp.flip(x, (1, 3)),
    "pad": lambda x: jnp.pad(x, ((0, 0), (1, 2), (0, 0), (0, 1)), constant_values=2.5),
    "negative pad": lambda x: jax.lax.pad(x, 1.0, ((0, 0, 0), (-1, 2, 0), (0, -3, 0), (0, 0, 0))),
    "transpose": lambda x: jnp.transpose(x, (0, 3, 1, 2)).reshape(4, -1),
    "concat": lambda x: jnp.concatenate([x, x[:, :2]], 1),
    "repeat": lambda x: jnp.repeat(x, 3, axis=2),
    "tile": lambda x: jnp.tile(x, (2, 1, 1, 2)),
    "broadcast": lambda x: jnp.broadcast_to(x[0, 0], (3, 8, 4)),
    "lower triangle": jnp.tril,
    "dynamic slice": lambda x: jax.lax.dynamic_slice(x, (0, 7, 1, 0), (1, 3, 2, 4)),
    "stack": lambda x: jnp.stack([x, x * 2], axis=2),
    "one hot": lambda x: jax.nn.one_hot(jnp.argmax(x, -1), 4),
}
SUMS: dict[str, Function] = {
    "sum": lambda x: x.sum((1, 2)),
    "mean": lambda x: x.mean(),
    "max": lambda x: x.max(-1, keepdims=True),
    "min": lambda x: x.min(0),
    "prod": lambda x: x.prod(3),
    "any": lambda x: (x > 2).any((1, 2)),
    "all": lambda x: (x > -2).all((0, 3)),
    "var": lambda x: jnp.var(x, -1),
    "softmax": jax.nn.softmax,
    "log softmax": jax.nn.log_softmax,
    "log sum exp": lambda x: jax.nn.logsumexp(x, -1),
    "finite": lambda x: jnp.isfinite(1 / jnp.floor(x)),
    "argmax": lambda x: jnp.argmax(x, 2),
    "from another start": lambda x: jax.lax.reduce(x, 1.7, jax.lax.max, (1, 2)),
    "sum from another start": lambda x: jax.lax.reduce(x, 0.5, jax.lax.add, (3,)),
}


@pytest.mark.parametrize("name", [*ELEMENTWISE, *MOVES, *SUMS])
def test_a_function_of_jax_means_the_same_as_a_graph(name: str) -> None:
    """Elementwise functions, moves and reductions, none of them opaque."""
    function = {**ELEMENTWISE, **MOVES, **SUMS}[name]
    graph = same(function, X)
    assert "host" not in kinds(graph) or name == "remainder"


CONVOLUTIONS: dict[str, tuple[Function, str]] = {
    "valid": (lambda x: _conv(x, W, "VALID"), "conv"),
    "same, stride 2": (lambda x: _conv(x, W, "SAME", strides=(2, 2)), "conv"),
    "dilated": (lambda x: _conv(x, W, "SAME", rhs_dilation=(2, 1)), "conv"),
    "depthwise": (lambda x: _conv(x, normal(3, 3, 3, 1, 8), "SAME", groups=4), "conv"),
    "pads of four": (lambda x: _conv(x, W, ((1, 2), (0, 3))), "conv"),
    "transposed": (lambda x: jax.lax.conv_transpose(x, W, (2, 2), "SAME"), "host"),
    "NCHW": (
        lambda x: jax.lax.conv_general_dilated(
            x.transpose(0, 3, 1, 2),
            W.transpose(3, 2, 0, 1),
            (1, 2),
            "SAME",
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        ),
        "conv",
    ),
    "one dimension": (
        lambda x: jax.lax.conv_general_dilated(
            x[0], W[0], (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        ),
        "conv",
    ),
    "one dimension, channels first": (
        lambda x: jax.lax.conv_general_dilated(
            x[0], normal(3, 5, 8, 3), (1,), "SAME", dimension_numbers=("NCW", "OIW", "NCW")
        ),
        "conv",
    ),
}


def _conv(x: Any, w: Array, pads: Any, strides: Any = (1, 1), groups: int = 1, **more: Any) -> Any:  # noqa: ANN401
    return jax.lax.conv_general_dilated(
        x,
        w,
        strides,
        pads,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
        **more,
    )


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_of_any_layout_becomes_nhwc(name: str) -> None:
    """With transposes around it where the layout is another one."""
    function, kind = CONVOLUTIONS[name]
    assert kind in kinds(same(function, X))


PRODUCTS = {
    "bhsd,bhtd->bhst": ((1, 2, 3, 4), (1, 2, 5, 4)),
    "bshd,bthd->bhst": ((2, 3, 2, 4), (2, 5, 2, 4)),
    "bhst,bthd->bshd": ((2, 3, 5, 4), (2, 4, 3, 6)),
    "bshd,hdm->bsm": ((2, 3, 2, 4), (2, 4, 5)),
    "bsm,mhd->bshd": ((2, 3, 8), (8, 2, 4)),
    "ij,kj->ik": ((3, 4), (5, 4)),
    "ji,jk->ik": ((4, 3), (4, 5)),
    "i,i->": ((8,), (8,)),
    "i,j->ij": ((3,), (4,)),
    "ij,j->i": ((3, 4), (4,)),
    "bij,bjk->ikb": ((2, 3, 4), (2, 4, 5)),
    "abij,bcj->aic": ((2, 3, 4, 5), (3, 6, 5)),
}


@pytest.mark.parametrize("equation", PRODUCTS)
@pytest.mark.parametrize("constant", [False, True])
def test_a_product_over_any_axes_becomes_a_product_of_matrices(
    equation: str, constant: bool
) -> None:
    """Batches, several inner axes, either side constant."""
    left, right = (normal(index, *shape) for index, shape in enumerate(PRODUCTS[equation]))
    if constant:
        graph = same(lambda a: jnp.einsum(equation, a, right), left)
    else:
        graph = same(lambda a, b: jnp.einsum(equation, a, b), left, right)
    assert kinds(graph).count("matmul") == 1
    assert set(kinds(graph)) <= {"matmul", "reshape", "transpose"}


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("pads", ["VALID", "SAME"])
def test_windows_of_either_layout_become_pools(layout: str, pads: str) -> None:
    """Sums become the mean times the number of elements."""
    sizes = (1, 3, 2, 1) if layout == "NHWC" else (1, 1, 3, 2)
    steps = (1, 2, 1, 1) if layout == "NHWC" else (1, 1, 2, 1)
    high = same(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, sizes, steps, pads), X)
    total = same(lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, sizes, steps, pads), X)
    turned = ["transpose"] if layout == "NCHW" else []
    assert kinds(high) == [*turned, "maxpool", *turned]
    assert kinds(total) == [*turned, "avgpool", "mul", *turned]


def test_windows_over_lines_become_pools_of_height_one() -> None:
    """Rank 3, and running sums, which are none."""
    line = X[0]
    take = same(
        lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 1), (1, 2, 1), "SAME"),
        line,
    )
    assert "maxpool" in kinds(take)
    same(lambda x: jnp.cumsum(x, 1), line)
    started = same(
        lambda x: jax.lax.reduce_window(x, 2.0, jax.lax.max, (1, 3, 1), (1, 2, 1), "SAME"), line
    )
    assert "maxpool" not in kinds(started)


def test_rows_are_taken_by_gather() -> None:
    """Along either axis, with indices of any rank; jax counts negative ones from behind."""
    table = normal(5, 10, 4)
    for axis, places in ((0, [1, -2, 3]), (1, [[0, 3], [-1, 2]])):
        indices = np.array(places, dtype=np.int32)
        graph = same(lambda x, i, axis=axis: jnp.take(x, i, axis=axis), table, indices)
        assert kinds(graph).count("gather") == 1
        assert "host" not in kinds(graph)


def test_int8_products_are_read_as_real_numbers_between_borders() -> None:
    """int32 results with a bias, a factor, rounding and a clamp, equal in every element."""
    random = np.random.default_rng(7)
    x = random.integers(-128, 128, (4, 16), dtype=np.int8)
    w = random.integers(-128, 128, (16, 3), dtype=np.int8)
    bias = random.integers(-1000, 1000, (3,), dtype=np.int32)

    def function(x: Any) -> Any:  # noqa: ANN401
        numbers = (((1,), (0,)), ((), ()))
        y = jax.lax.dot_general(x, w, numbers, preferred_element_type=jnp.int32) + bias
        return jnp.clip(jnp.round(y.astype(jnp.float32) * 0.005), -128, 127).astype(jnp.int8)

    graph = same(function, x, tolerance=0)
    assert kinds(graph)[:3] == ["dequantise", "dequantise", "matmul"]
    assert not {"host", "quantise"} & set(kinds(graph))
    assert graph.type(graph.inputs[0]).quantisation is not None


@pytest.mark.parametrize("element", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("source", ["float16", "float32"])
def test_floats_beyond_an_integer_type_become_its_limits(source: str, element: str) -> None:
    """As XLA has it; C, numpy and ONNX leave open what they become."""
    apart = [0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31, 2**32, 1e20, np.inf]
    with np.errstate(over="ignore"):
        x = np.array([sign * one for one in apart for sign in (1, -1)]).astype(source)
    graph = same(lambda x: x.astype(element), x, tolerance=0)
    assert "host" not in kinds(graph)
    low, high = (np.array(one, source) for one in (0, 100))
    once = same(lambda x: jax.lax.clamp(low, x, high).astype(element), x, tolerance=0)
    assert kinds(once).count("clip") == 1


def test_int8_convolutions_give_int32_of_scale_one() -> None:
    """As the graph's own output."""
    random = np.random.default_rng(8)
    x = random.integers(-128, 128, (1, 5, 5, 3), dtype=np.int8)
    w = random.integers(-128, 128, (3, 3, 3, 4), dtype=np.int8)
    graph = same(lambda x: _conv(x, w, "VALID", preferred_element_type=jnp.int32), x, tolerance=0)
    assert kinds(graph) == ["dequantise", "dequantise", "conv", "quantise"]
    assert graph.type(graph.outputs[0]).element == Element.I32


def _composite_cases() -> dict[str, tuple[Function, tuple[tuple[int, ...], ...], str]]:
    angles = normal(9, 3, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    heads = ((1, 4, 3, 8), (1, 2, 5, 8))
    gain, beta, mask = normal(10, 4) + 1, normal(11, 4), normal(12, 3, 5)
    seen = mask > 0
    return {
        "layer norm": (lambda x: composites.layer_norm(x, gain, beta), ((2, 3, 4),), "layernorm"),
        "beta alone": (lambda x: composites.layer_norm(x, None, beta), ((2, 3, 4),), "layernorm"),
        "rms norm": (lambda x: composites.rms_norm(x, axes=2), ((2, 3, 4),), "rmsnorm"),
        "softmax": (lambda x: composites.softmax(x, axis=1), ((2, 3, 4),), "softmax"),
        "gelu": (composites.gelu, ((5, 6),), "table"),
        "gelu tanh": (lambda x: composites.gelu(x, approximate=True), ((5, 6),), "table"),
        "silu": (composites.silu, ((5, 6),), "table"),
        "causal": (
            lambda q, k: composites.attention(
                q, k, k, causal=True, offset=1, window=2, softcap=5.0
            ),
            heads,
            "attention",
        ),
        "masked": (lambda q, k: composites.attention(q, k, k, mask), heads, "attention"),
        "seen": (lambda q, k: composites.attention(q, k, k, seen), heads, "attention"),
        "rope": (
            lambda x: composites.rope(x, cos, sin, heads_axis=1),
            ((1, 2, 3, 8),),
            "rope",
        ),
        "rope, pairs": (
            lambda x: composites.rope(x, cos, sin, heads_axis=-2, interleaved=True),
            ((1, 3, 2, 8),),
            "rope",
        ),
    }


@pytest.mark.parametrize("name", _composite_cases())
def test_a_composite_of_tessera_is_one_operation(name: str) -> None:
    """And means what jax makes of its definition."""
    function, shapes, kind = _composite_cases()[name]
    inputs = [normal(20 + index, *shape) for index, shape in enumerate(shapes)]
    assert kinds(same(function, *inputs)) == [kind]


def test_composites_quantize_with_given_scales() -> None:
    """Borders with zero points, and scales for each column of a matrix."""
    w = np.random.default_rng(3).integers(-127, 128, (4, 5), dtype=np.int8)

    def function(x: Any) -> Any:  # noqa: ANN401
        x = composites.dequantize(composites.quantize(x, 0.02, 3), 0.02, 3)
        columns = composites.dequantize(w, np.linspace(0.01, 0.02, 5).tolist(), axis=1)
        return composites.quantize(x @ columns, 0.05)

    graph = same(function, normal(4, 3, 4))
    assert kinds(graph) == ["quantise", "dequantise", "dequantise", "matmul", "quantise"]


def test_what_nobody_knows_is_evaluated_by_jax() -> None:
    """Loops with captured values, sorting, transposed convolution."""

    def function(x: Any) -> Any:  # noqa: ANN401
        limit = x.sum() + 100
        grown = jax.lax.while_loop(lambda c: c.sum() < limit, lambda c: c * 2 + x, jnp.abs(x) + 1)
        return jnp.sort(grown, -1), jnp.linalg.norm(x)

    graph = same(function, X[0, 0])
    assert "host" in kinds(graph)
    payload = next(one for one in graph.operations if one.kind == "host")
    assert b"func.func @main" in payload["payload"]


def test_all_forms_of_a_module_give_the_same_graph(tmp_path: Path) -> None:
    """Live, text, bytecode, export, and files of these."""

    def function(x: Any) -> Any:  # noqa: ANN401
        return jax.nn.gelu(_conv(x, W, "SAME"))

    lowered = jax.jit(function).lower(X)
    export = jax.export.export(jax.jit(function))(jax.ShapeDtypeStruct(X.shape, X.dtype))
    live = lowered.compiler_ir("stablehlo")
    path = tmp_path / "network.mlirbc"
    path.write_bytes(export.mlir_module_serialized)
    sources = [live, str(live), export.mlir_module_serialized, bytes(export.serialize()), path]
    graphs = [stablehlo.read(source) for source in sources]
    assert graphs[-1].name == "network"
    for graph in graphs:
        assert kinds(graph) == kinds(graphs[0])
        compare(graph, function, X)


def test_free_dimensions_are_bound_by_name() -> None:
    """An export for any number of rows, read for two."""
    rows = jax.export.symbolic_shape("b, 3")
    spec = jax.ShapeDtypeStruct(rows, np.float32)

    def function(x: Any) -> Any:  # noqa: ANN401
        return jnp.tanh(x @ normal(1, 3, 2)).reshape(-1)

    data = bytes(jax.export.export(jax.jit(function))(spec).serialize())
    with pytest.raises(GraphError, match="--shape arg0=1,3"):
        stablehlo.read(data)
    compare(stablehlo.read(data, shapes={"arg0": (2, 3)}), function, normal(2, 2, 3))


def test_a_shape_of_no_input_is_refused() -> None:
    """A wrong name would else leave the shape of the file."""
    text = jax.jit(lambda x: 2 * x).lower(normal(1, 2, 3)).as_text()
    with pytest.raises(GraphError, match=r"shape of 'z': no such input, allowed arg0$"):
        stablehlo.read(text, shapes={"z": (2, 3)})


def test_parameters_become_weights_and_inputs_keep_their_names() -> None:
    """A tree of parameters as constants, one as inputs."""
    parameters = {"w": normal(1, 4, 3), "b": normal(2, 3)}

    def network(parameters: Any, x: Any) -> Any:  # noqa: ANN401
        return {"logits": x @ parameters["w"] + parameters["b"], "same": x}

    x = normal(3, 2, 4)
    closed = stablehlo.from_jax(network, (parameters, x), constants=(0,))
    assert kinds(closed) == ["matmul", "add", "identity"]
    assert closed.name == "network"
    assert len(closed.inputs) == 1
    assert closed.outputs == ("result['logits']", "result['same']")
    opened = stablehlo.from_jax(network, (parameters, x))
    assert opened.inputs == ("parameters['b']", "parameters['w']", "x")
    with pytest.raises(GraphError, match=r"constant 5, allowed 0\.\.1"):
        stablehlo.from_jax(network, (parameters, x), constants=(5,))


def test_operations_that_jax_no_longer_writes_are_read() -> None:
    """The old product, and batch norms as other frameworks export them."""
    weights = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
    rows = ", ".join("[" + ", ".join(str(float(one)) for one in row) + "]" for row in weights)
    vectors = {"g": [1.0, 2.0, 3.0], "b": [0.5, 0.0, -1.0], "m": [1.0, 2.0, 0.0]}
    vectors["v"] = [1.0, 4.0, 0.25]
    constants = "".join(
        f"%{name} = stablehlo.constant dense<{value}> : tensor<3xf32>\n"
        for name, value in vectors.items()
    )
    text = f"""module {{ func.func @main(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {{
      %w = stablehlo.constant dense<[{rows}]> : tensor<4x3xf32>
      {constants}
      %y = stablehlo.dot %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %z = "stablehlo.batch_norm_inference"(%y, %g, %b, %m, %v)
        {{epsilon = 0.001 : f32, feature_index = 1 : i64}} :
        (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
        -> tensor<2x3xf32>
      return %z : tensor<2x3xf32> }} }}"""
    graph = stablehlo.read(text)
    verify(graph)
    x = normal(1, 2, 4)
    g, b, m, v = (np.array(vectors[name], np.float32) for name in "gbmv")
    wanted = (x @ weights - m) / np.sqrt(v + 1e-3) * g + b
    np.testing.assert_allclose(
        evaluate(graph, {graph.inputs[0]: x})[graph.outputs[0]], wanted, rtol=1e-5, atol=1e-5
    )


def test_loops_sorts_and_special_functions_run_on_the_host() -> None:
    """Scans, the largest few, inverse functions: each as jax computes it."""

    def function(x: Any) -> Any:  # noqa: ANN401
        total, steps = jax.lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(8), x)
        values, places = jax.lax.top_k(x, 3)
        other = jax.lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, x)
        return total, steps, values, places, jax.lax.erf_inv(jnp.tanh(x)), other

    graph = same(function, X[0, 0, :, :2].repeat(4, axis=1))
    assert "host" in kinds(graph)


def test_exported_regions_have_their_constants() -> None:
    """An export has the constants of a comparison in front of it, where XLA does not look."""
    exported = jax.export.export(jax.jit(lambda x: jnp.sort(x, axis=1)))(X[0, 0])
    found = evaluate(stablehlo.read(exported), {"x": X[0, 0]})
    np.testing.assert_array_equal(next(iter(found.values())), np.sort(X[0, 0], axis=1))


def test_numbers_of_64_bits_stay_so_on_the_host() -> None:
    """Whether jax is set to them or not."""
    text = """module { func.func @main(%a: tensor<2xi64>, %b: tensor<2xf64>) ->
      (tensor<2xi64>, tensor<2xf64>) {
      %r = stablehlo.popcnt %a : tensor<2xi64>
      %s = stablehlo.cbrt %b : tensor<2xf64>
      return %r, %s : tensor<2xi64>, tensor<2xf64> } }"""
    graph = stablehlo.read(text)
    given = (np.array([3, 2**40 - 1]), np.array([27.0, 1.0 + 3e-12]))
    count, root = evaluate(graph, dict(zip(graph.inputs, given, strict=True))).values()
    assert count.tolist() == [2, 40]
    np.testing.assert_allclose(root, [3.0, 1.0 + 1e-12], rtol=1e-15)


ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
BY_INDEX: dict[str, Function] = {
    "gather": lambda x, i: lax.gather(x, i[:, None], ROWS, (1, 4), mode="promise_in_bounds"),
    "gather, clipped": lambda x, i: lax.gather(x, i[:, None], ROWS, (1, 4), mode="clip"),
    "dynamic slice": lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 2)),
    "dynamic update": lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i[0], i[1])),
    "take": lambda x, i: jnp.take(x, i, axis=0),
    "take, clipped": lambda x, i: jnp.take(x, i, axis=0, mode="clip"),
    "index": lambda x, i: x[i],
}


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("name", BY_INDEX)
def test_indices_that_are_outside(name: str, constant: bool) -> None:
    """What jax makes of them: none counts from behind by itself, the nearest place is taken."""
    x, function = np.arange(24, dtype=np.float32).reshape(6, 4), BY_INDEX[name]
    edge = np.iinfo(np.int32)
    for pair in ((0, 5), (-1, -7), (6, 100), (2, edge.min), (edge.max, 3)):
        indices = np.array(pair, np.int32)
        if constant:
            same(lambda x, i=indices: function(x, jnp.asarray(i)), x)
        else:
            same(function, x, indices)


@pytest.mark.parametrize("name", ["index", "take, clipped", "take, filled", "take, wrapped"])
def test_indices_that_are_outside_stay_so_in_canonical_form(name: str) -> None:
    """Those that count from behind do so in a graph too, the others do not."""

    def filled(x: Any, i: Any) -> Any:  # noqa: ANN401
        return jnp.take(x, i, axis=0, mode="fill", fill_value=7.0)

    def wrapped(x: Any, i: Any) -> Any:  # noqa: ANN401
        return jnp.take(x, i, axis=0, mode="wrap")

    more = {"take, filled": filled, "take, wrapped": wrapped}
    x, function = normal(5, 6, 4), {**BY_INDEX, **more}[name]
    indices = np.array([0, -1, -6, -7, 5, 6, 99], np.int32)
    compare(canonicalise(same(function, x, indices)), function, x, indices)


@pytest.mark.parametrize("function", [jnp.linalg.svd, jnp.linalg.cholesky, jnp.linalg.inv])
def test_calls_of_another_library_are_refused_by_name(function: Function) -> None:
    """Jax has no operations of StableHLO for them; one line says what it calls."""
    with pytest.raises(GraphError, match=r'custom_call "lapack_[a-z_]+", allowed') as caught:
        stablehlo.from_jax(function, [normal(4, 3, 3)])
    assert "\n" not in str(caught.value)


def test_calls_end() -> None:
    """Each function calls the next twice."""
    kind = "(tensor<2xf32>) -> tensor<2xf32>"
    lines = ["module {"]
    for one in range(30):
        head = "public @main" if not one else f"private @f{one}"
        lines += [f"func.func {head}(%a: tensor<2xf32>) -> tensor<2xf32> {{"]
        lines += [f"%0 = call @f{one + 1}(%a) : {kind}", f"%1 = call @f{one + 1}(%0) : {kind}"]
        lines += ["return %1 : tensor<2xf32> }"]
    lines += ["func.func private @f30(%a: tensor<2xf32>) -> tensor<2xf32> {"]
    lines += ["return %a : tensor<2xf32> }", "}"]
    with pytest.raises(GraphError, match="calls and loops stand for more than 32,768 operations"):
        stablehlo.read("\n".join(lines))
