# SPDX-License-Identifier: Apache-2.0
"""Quantisation that an ONNX file gives survives import and canonicalise, whatever its form."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, GraphError, Quantisation
from npu.graph.importers import read
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.canonical.order import alike
from npu.graph.prepare import prepare
from tests.needs import needs

needs("graphs")

import onnx
from onnx.reference import ReferenceEvaluator

helper = onnx.helper
SEEDS = range(4)
TYPES = {"int8": onnx.TensorProto.INT8, "uint8": onnx.TensorProto.UINT8}


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[int, tuple[int, ...]]],
    outputs: list[tuple[str, int]],
    weights: dict[str, Any],
) -> Any:  # noqa: ANN401
    """Return a model; inputs are element type and shape."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, kind, ()) for name, kind in outputs],
        [onnx.numpy_helper.from_array(np.asarray(one), name) for name, one in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def settled(graph: Graph) -> Graph:
    """Return the canonical graph: a fixed point whose bytes inside are signed."""
    after = canonicalise(graph)
    assert alike(canonicalise(after), after)
    assert (after.inputs, after.outputs) == (graph.inputs, graph.outputs)
    for name, one in after.tensors.items():
        ends = name in after.inputs or name in after.outputs
        assert one.type.element != Element.U8 or ends, name
        assert not ends or one.type == graph.type(name)
    return after


def compared(source: Any, inputs: dict[str, Array], steps: int = 0) -> Graph:  # noqa: ANN401
    """Return the canonical graph, after comparing it with the reference evaluator of onnx.

    Args:
        source: the model.
        inputs: by name.
        steps: by how many integers a result may differ, in one element of a hundred.
    """
    expected = ReferenceEvaluator(source).run(None, inputs)
    graph = read(source)
    after = settled(graph)
    for one in (graph, after):
        found = evaluate(one, inputs)
        for name, value in zip(one.outputs, expected, strict=True):
            assert found[name].dtype == value.dtype
            apart = np.abs(found[name].astype(np.float64) - value.astype(np.float64))
            assert apart.max() <= steps
            assert np.count_nonzero(apart) <= 0.01 * apart.size
    return after


@pytest.mark.parametrize("element", ["int8", "uint8"])
@pytest.mark.parametrize("seed", SEEDS)
def test_borders_around_a_convolution(seed: int, element: str) -> None:
    """QDQ: weights quantised in the file or by a node, bias int32, relu and pool between."""
    random = np.random.default_rng(seed)
    zero = np.array(int(random.integers(-5, 6)) + (128 if element == "uint8" else 0), element)
    weights: dict[str, Any] = {
        **{
            "s": np.float32(0.05),
            "z": zero,
            "sw": random.uniform(0.01, 0.02, 4).astype(np.float32),
        },
        **{"zw": np.zeros(4, np.int8), "w": random.normal(0, 1, (4, 3, 3, 3)).astype(np.float32)},
        "b": random.integers(-500, 500, 4).astype(np.int32),
        "sb": random.uniform(0.001, 0.002, 4).astype(np.float32),
        **{"zb": np.zeros(4, np.int32), "sy": np.float32(0.1), "zy": zero},
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("QuantizeLinear", ["w", "sw", "zw"], ["wq"], axis=0),
        helper.make_node("DequantizeLinear", ["wq", "sw", "zw"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "sb", "zb"], ["bd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "sy", "zy"], ["rd"]),
        helper.make_node("MaxPool", ["rd"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("QuantizeLinear", ["p", "sy", "zy"], ["pq"]),
        helper.make_node("DequantizeLinear", ["pq", "sy", "zy"], ["y"]),
    ]
    source = model(nodes, {"x": (1, (1, 3, 6, 6))}, [("y", 1)], weights)
    # A convolution added up in another order may round to the neighbour: one step is 0.1.
    x = random.normal(0, 2, (1, 3, 6, 6)).astype(np.float32)
    graph = read(source)
    after = settled(graph)
    expected = ReferenceEvaluator(source).run(None, {"x": x})[0]
    for one in (graph, after):
        apart = np.abs(evaluate(one, {"x": x})["y"] - expected)
        assert apart.max() < 0.11
        assert np.count_nonzero(apart > 0.05) <= 1
    kinds = Counter(one.kind for one in after.operations)
    assert (kinds["conv"], kinds["table"], kinds["maxpool"], kinds["host"]) == (1, 1, 1, 0)
    (conv,) = (one for one in after.operations if one.kind == "conv")
    makers = after.producers()
    kind = after.type(makers[conv.inputs[1]].inputs[0])
    assert kind.quantisation == Quantisation(tuple(map(float, weights["sw"])), 0, 3)
    assert kind.element == Element.I8
    assert after.constant(conv.inputs[2]) is not None


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_on_integers(seed: int) -> None:
    """QLinearConv, pool, reshape and QLinearMatMul: integers move with their scales."""
    random = np.random.default_rng(seed)
    weights: dict[str, Any] = {
        **{"s": np.float32(0.05), "z": np.uint8(120), "sw": np.float32(0.02), "zw": np.int8(0)},
        "w": random.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
        "b": random.integers(-500, 500, 4).astype(np.int32),
        **{"sy": np.float32(0.4), "zy": np.uint8(130), "shape": np.array([1, 16])},
        "m": random.integers(-127, 128, (16, 5)).astype(np.int8),
        **{"sm": np.float32(0.01), "so": np.float32(0.5), "zo": np.uint8(110)},
    }
    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "sw", "zw", "sy", "zy", "b"], ["c"]),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("QLinearMatMul", ["f", "sy", "zy", "m", "sm", "zw", "so", "zo"], ["o"]),
        helper.make_node("DequantizeLinear", ["o", "so", "zo"], ["y"]),
    ]
    source = model(
        nodes, {"x": (TYPES["uint8"], (1, 3, 6, 6))}, [("o", TYPES["uint8"]), ("y", 1)], weights
    )
    x = random.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    graph = read(source)
    assert "host" not in {one.kind for one in graph.operations}
    after = settled(graph)
    expected = ReferenceEvaluator(source).run(None, {"x": x})
    for one in (graph, after):
        found = evaluate(one, {"x": x})
        assert np.abs(found["o"].astype(int) - expected[0].astype(int)).max() <= 1
        np.testing.assert_allclose(found["y"], (found["o"].astype(np.float32) - 110) * 0.5)
    kinds = [one.kind for one in after.operations]
    assert Counter(kinds) == {
        **{"requantise": 2, "transpose": 1, "dequantise": 7, "conv": 1, "quantise": 4},
        **{"maxpool": 1, "reshape": 1, "matmul": 1},
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_products_of_integers_are_exact(seed: int) -> None:
    """MatMulInteger and ConvInteger give the same int32, zero points and all."""
    random = np.random.default_rng(seed)
    weights: dict[str, Any] = {
        "w": random.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8),
        "zw": random.integers(100, 156, 4).astype(np.uint8),
        "z": np.uint8(7),
        "m": random.integers(-128, 128, (6, 5)).astype(np.int8),
    }
    image = model(
        [helper.make_node("ConvInteger", ["x", "w", "z", "zw"], ["y"], pads=[1, 1, 1, 1])],
        {"x": (TYPES["uint8"], (1, 3, 6, 6))},
        [("y", onnx.TensorProto.INT32)],
        weights,
    )
    pixels = random.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    wide = pixels.astype(np.int64) - 7
    padded = np.pad(wide, ((0, 0), (0, 0), (1, 1), (1, 1)))
    filters = weights["w"].astype(np.int64) - weights["zw"].astype(np.int64)[:, None, None, None]
    expected = np.zeros((1, 4, 6, 6), np.int64)
    for row, column in np.ndindex(3, 3):
        part = padded[:, :, row : row + 6, column : column + 6]
        expected += np.einsum("bchw,oc->bohw", part, filters[:, :, row, column])
    after = settled(read(image))
    assert np.array_equal(evaluate(after, {"x": pixels})["y"], expected)
    rows = model(
        [helper.make_node("MatMulInteger", ["x", "m", "z"], ["y"])],
        {"x": (TYPES["uint8"], (3, 6))},
        [("y", onnx.TensorProto.INT32)],
        weights,
    )
    compared(rows, {"x": pixels[0, 0, :3]})


def test_integers_of_two_scales_go_on_as_real_numbers() -> None:
    """int32 that one node gives scale 1 and the next another is scaled by a table."""
    weights = {"m": np.eye(4, dtype=np.int8) * 3, "s": np.float32(0.25)}
    nodes = [
        helper.make_node("MatMulInteger", ["x", "m"], ["i"]),
        helper.make_node("DequantizeLinear", ["i", "s"], ["y"]),
    ]
    source = model(nodes, {"x": (TYPES["int8"], (2, 4))}, [("y", 1)], weights)
    x = np.arange(-4, 4, dtype=np.int8).reshape(2, 4)
    after = compared(source, {"x": x})
    assert [one.kind for one in after.operations] == [
        *("dequantise", "dequantise", "matmul", "quantise", "dequantise", "table")
    ]


@pytest.mark.parametrize("element", [np.int8, np.uint8, np.int16])
def test_the_type_of_integers_without_a_zero_point(element: type) -> None:
    """An attribute says it; left out it is uint8."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=kind)
    source = model([node], {"x": (1, (4, 5))}, [("y", kind)], {"s": np.float32(0.02)})
    x = np.random.default_rng(1).normal(0, 1, (4, 5)).astype(np.float32)
    compared(source, {"x": x})
    assert read(source).type("y").element.dtype == element


def test_scales_of_another_precision_are_the_hosts() -> None:
    """An attribute that changes the arithmetic is not left unread."""
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], precision=10)
    weights = {"s": np.float32(0.02), "z": np.int8(0)}
    source = model([node], {"x": (1, (4, 5))}, [("y", 3)], weights)
    source.opset_import[0].version, source.ir_version = 23, 11
    (one,) = [each for each in read(source).operations if each.kind == "host"]
    assert one["reason"] == "a precision other than float32 is not mapped"


@pytest.mark.parametrize("several", ["a", "y"])
def test_int16_terms_with_scales_along_an_axis_are_the_hosts(several: str) -> None:
    """They are refused in words, whichever of them has several scales."""
    one, many = np.float32(0.01), np.array([0.01, 0.02, 0.03], np.float32)
    scales = {"sa": many if several == "a" else one, "sy": many if several == "y" else one}
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "sa"], ["ar"], axis=1),
        helper.make_node("DequantizeLinear", ["b", "sb"], ["br"]),
        helper.make_node("Add", ["ar", "br"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy"], ["y"], axis=1, output_dtype=5),
    ]
    shape = (4, 3)
    source = model(nodes, {"a": (5, shape), "b": (5, shape)}, [("y", 5)], {**scales, "sb": one})
    random = np.random.default_rng(2)
    inputs = {name: random.integers(-9000, 9000, shape).astype(np.int16) for name in "ab"}
    (expected,) = ReferenceEvaluator(source).run(None, inputs)
    found = run(prepare(read(source)), inputs)["y"]
    assert np.abs(found.astype(np.int64) - expected).max() <= 1


FEW = {"int4": (-8, 8), "uint4": (0, 16), "int2": (-2, 2), "uint2": (0, 4)}


def _few(dtype: str, blocks: int = 0) -> tuple[Any, Array, dict[str, Array]]:
    """Return the model of a product with weights of few bits, its weights and its input."""
    random, (low, high) = np.random.default_rng(6), FEW[dtype]
    whole = random.integers(low, high, (24, 10))
    size = (24 // blocks, 10) if blocks else (10,)
    scale = random.uniform(0.01, 0.02, size).astype(np.float32)
    zero = random.integers(low, high, size)
    kind = getattr(onnx.TensorProto, dtype.upper())
    held = [
        helper.make_tensor(name, kind, value.shape, value.reshape(-1).tolist())
        for name, value in (("w", whole), ("z", zero))
    ]
    unit = {"s": scale, "sx": np.float32(0.05), "zx": np.int8(3)}
    said = {"axis": 0, "block_size": blocks} if blocks else {"axis": 1}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wd"], **said),
        helper.make_node("MatMul", ["xd", "wd"], ["y"]),
    ]
    x = random.integers(-128, 128, (3, 24)).astype(np.int8)
    source = model(nodes, {"x": (TYPES["int8"], (3, 24))}, [("y", 1)], unit)
    source.graph.initializer.extend(held)
    source.ir_version, source.opset_import[0].version = 13, 25
    times = blocks or 1
    units, zeros = (np.repeat(np.atleast_2d(one), times, 0) for one in (scale, zero))
    weights: Array = (whole - zeros) * units
    return source, weights, {"x": x}


@pytest.mark.parametrize("blocks", [0, 8])
@pytest.mark.parametrize("dtype", FEW)
def test_weights_of_few_bits_are_the_same_numbers_in_bytes(dtype: str, blocks: int) -> None:
    """With a scale and a zero point per column, or per block of a column."""
    source, weights, inputs = _few(dtype, blocks)
    graph = read(source)
    wanted = (inputs["x"].astype(np.float64) - 3) * 0.05 @ weights
    np.testing.assert_allclose(evaluate(graph, inputs)["y"], wanted, rtol=1e-4, atol=1e-4)
    if not blocks:
        held = {one.type.element for one in graph.tensors.values() if one.type.shape == (24, 10)}
        assert Element.I8 in held


def test_results_of_few_bits_are_refused() -> None:
    """They would not be clipped to them in a byte."""
    source, _, _ = _few("int4")
    source.graph.initializer.append(helper.make_tensor("few", onnx.TensorProto.INT4, (), [0]))
    source.graph.node.append(helper.make_node("QuantizeLinear", ["y", "sx", "few"], ["q"]))
    source.graph.output[0].name = "q"
    with pytest.raises(GraphError, match=r"'q' .*it makes int4 of 'few', allowed from 8 bits"):
        read(source)


@pytest.mark.parametrize("bits", [2, 4, 7])
@pytest.mark.parametrize("signed", [False, True])
def test_integers_clipped_to_fewer_bits_are_the_chips(bits: int, signed: bool) -> None:
    """QuantizeLinear, Clip, DequantizeLinear: weights with a scale per filter, activations."""
    random, float_ = np.random.default_rng(bits), onnx.TensorProto.FLOAT
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    kind = np.int8 if signed else np.uint8
    weights: dict[str, Any] = {
        "w": random.standard_normal((6, 8)).astype(np.float32),
        "ws": np.float32(0.5) ** random.integers(1, 4, 6).astype(np.float32),
        "wz": np.zeros(6, np.int8),
        "wl": np.array(1 - (1 << bits - 1), np.int8),
        "wh": np.array((1 << bits - 1) - 1, np.int8),
        "s": np.float32(0.25),
        "z": np.array(0, kind),
        "l": np.array(low, kind),
        "h": np.array(high, kind),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "ws", "wz"], ["w1"], axis=0),
        helper.make_node("Clip", ["w1", "wl", "wh"], ["w2"]),
        helper.make_node("DequantizeLinear", ["w2", "ws", "wz"], ["w3"], axis=0),
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x1"]),
        helper.make_node("Clip", ["x1", "l", "h"], ["x2"]),
        helper.make_node("DequantizeLinear", ["x2", "s", "z"], ["x3"]),
        helper.make_node("Gemm", ["x3", "w3"], ["y"], transB=1),
    ]
    source = model(nodes, {"x": (float_, (3, 8))}, [("y", float_)], weights)
    x = random.standard_normal((3, 8)).astype(np.float32) * 8
    graph = compared(source, {"x": x})
    assert "host" not in {one.kind for one in graph.operations}
    assert Element.I8 in {one.type.element for one in graph.tensors.values() if one.constant}
    prepared = prepare(read(source), samples={"x": x[None]})
    (found,) = run(prepared, {"x": x}).values()
    (wanted,) = evaluate(graph, {"x": x}).values()
    np.testing.assert_allclose(found, wanted, atol=2e-4 * np.abs(wanted).max())
    assert all(one.on_chip for one in prepared.operations if one.kind in ("matmul", "clip"))


@pytest.mark.parametrize("several", [False, True])
def test_a_scale_of_0_makes_zeros_of_constants(several: bool) -> None:
    """As a quantiser gives it to a channel in which nothing is; the others are not touched."""
    random, float_ = np.random.default_rng(1), onnx.TensorProto.FLOAT
    scales = np.array([0.5, 0, 0.25] if several else 0, np.float32)
    weights = {
        "w": random.integers(-128, 128, (8, 3)).astype(np.int8),
        "s": scales,
        "z": np.full(scales.shape, 3, np.int8),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["r"], axis=1),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    source = model(nodes, {"x": (float_, (4, 8))}, [("y", float_)], weights)
    graph = compared(source, {"x": random.integers(-9, 9, (4, 8)).astype(np.float32)})
    assert "host" not in {one.kind for one in graph.operations}


def test_a_scale_of_0_of_what_is_not_constant_is_the_hosts() -> None:
    """Nothing is quantised to it."""
    float_ = onnx.TensorProto.FLOAT
    nodes = [helper.make_node("DequantizeLinear", ["x", "s"], ["y"])]
    source = model(nodes, {"x": (TYPES["int8"], (4,))}, [("y", float_)], {"s": np.float32(0)})
    graph = read(source)
    assert [one.kind for one in graph.operations] == ["host"]
    assert evaluate(graph, {"x": np.arange(4, dtype=np.int8)})["y"].tolist() == [0] * 4
