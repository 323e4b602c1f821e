# SPDX-License-Identifier: Apache-2.0
"""Operators that onnxruntime adds to ONNX are what it makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from tests.needs import needs

needs("graphs")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import npu.graph.importers.onnx_file  # noqa: F401  (the mappings register themselves)
from npu.graph.importers.onnx_dialects import DIALECTS
from tests.python.importers.onnx_forms import real

MICROSOFT = "com.microsoft"
S, T, U = (np.array(one, np.float32) for one in (0.02, 0.03, 0.04))
Z, Y = np.array(120, np.uint8), np.array(130, np.uint8)
I8 = np.array(3, np.int8)


def ints(*shape: int, seed: int = 1, dtype: Any = np.uint8) -> Array:  # noqa: ANN401
    """Return integers of 7 bits: some machines saturate sums of pairs of products."""
    first = 64 if dtype == np.uint8 else -64
    return np.random.default_rng([seed, *shape]).integers(first, first + 128, shape).astype(dtype)


Case: TypeAlias = tuple[str, list[Any], dict[str, Any], int]
"""Operator, inputs (None for one that is not given), attributes, and how many of them vary."""


def cases() -> Iterator[Case]:
    """Yield forms of every operator."""
    x, y = ints(2, 3, 8), ints(2, 3, 8, seed=2)
    for kind in ("Add", "Mul"):
        yield f"QLinear{kind}", [x, S, Z, y, T, Y, U, Z], {}, 1
    yield "QLinearAdd", [x, S, Z, ints(8, seed=3), T, Y, U, Z], {}, 1
    yield "QLinearMul", [x.astype(np.int8), S, I8, y.astype(np.int8), T, I8, U, I8], {}, 1
    yield "QLinearSigmoid", [x, S, Z, np.float32(1 / 256), np.array(0, np.uint8)], {}, 1
    for attributes in ({}, {"alpha": 0.3}):
        yield "QLinearLeakyRelu", [x, S, Z, T, Y], attributes, 1
    for axis, opset in ((-1, 13), (1, 13), (1, 11), (2, 11)):
        given = [x, S, Z, np.float32(1 / 256), np.array(0, np.uint8)]
        yield "QLinearSoftmax", given, {"axis": axis, "opset": opset}, 1
    for axis in (0, 1, -1):
        yield "QLinearConcat", [U, Z, x, S, Z, y, T, Y], {"axis": axis}, 0
    image = ints(1, 4, 6, 6)
    pools: list[dict[str, Any]] = [{}, {"strides": [2, 2]}, {"pads": [1, 1, 1, 1]}]
    pools += [{"pads": [1, 1, 1, 1], "count_include_pad": 1}, {"ceil_mode": 1, "strides": [2, 2]}]
    for attributes in pools:
        said = {"kernel_shape": [3, 3], **attributes}
        yield "QLinearAveragePool", [image, S, Z, T, Y], said, 1
    last = {"channels_last": 1}
    yield "QLinearAveragePool", [image, S, Z, T, Y], {"kernel_shape": [2, 2], **last}, 1
    yield "QLinearGlobalAveragePool", [image, S, Z, T, Y], {}, 1
    yield "QLinearGlobalAveragePool", [image, S, Z, T, Y], last, 1
    where = [real(2, 3, 8) > 0, x, S, Z, y, T, Y, U, Z]
    yield "QLinearWhere", where, {}, 2
    a, w = ints(5, 12), ints(12, 7, dtype=np.int8)
    bias = np.arange(7, dtype=np.int32) * 100
    per = np.linspace(0.01, 0.02, 7, dtype=np.float32)
    zeros_of = np.zeros(7, np.int8)
    yield "QGemm", [a, S, Z, w, T, I8, bias, U, Z], {}, 1
    yield "QGemm", [a, S, Z, w, T, I8, bias], {}, 1
    yield "QGemm", [a, S, Z, w, per, zeros_of, None, U, Z], {}, 1
    turned = {"transB": 1, "alpha": 0.5}
    yield "QGemm", [a, S, Z, w.T.copy(), per, zeros_of, bias, U, Z], turned, 1
    yield "MatMulIntegerToFloat", [a, w, S, T, Z, I8], {}, 1
    yield "MatMulIntegerToFloat", [a, w, S, per, Z, zeros_of, real(7)], {}, 1
    yield "DynamicQuantizeMatMul", [real(5, 12), w, T, I8], {}, 1
    yield "DynamicQuantizeMatMul", [real(5, 12), w, per, zeros_of, real(7)], {}, 1
    yield "QuantizeLinear", [real(3, 4), S, Z], {}, 1
    yield "DequantizeLinear", [ints(3, 4), per[:4], np.zeros(4, np.uint8)], {"axis": 1}, 1
    yield from floats()


def floats() -> Iterator[Case]:
    """Yield forms of operators on floats."""
    said: dict[str, Any]
    picture, filters = real(1, 4, 6, 6), real(8, 4, 3, 3, seed=2)
    for kind, parameters in (("Relu", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.5])):
        said = {"activation": kind, "pads": [1, 1, 1, 1]}
        said |= {"activation_params": parameters} if parameters else {}
        yield "FusedConv", [picture, filters, real(8)], said, 1
    yield (
        "FusedConv",
        [picture, filters, real(8), real(1, 8, 4, 4, seed=4)],
        {"activation": "Relu"},
        1,
    )
    said = {"activation": "LeakyRelu", "activation_alpha": 0.2, "transB": 1, "alpha": 0.5}
    yield "FusedGemm", [real(5, 12), real(7, 12), real(7)], said, 1
    for attributes in ({"transA": 1}, {"transB": 1, "alpha": 0.5}, {"transA": 1, "transB": 1}):
        sides = [real(2, 5, 12), real(2, 12, 7, seed=2)]
        for index, name in enumerate(("transA", "transB")):
            if name in attributes:
                sides[index] = np.ascontiguousarray(sides[index].swapaxes(1, 2))
        yield "FusedMatMul", sides, attributes, 1
    yield "FusedMatMul", [real(5, 2, 12), real(2, 12, 7, seed=2)], {"transBatchA": 1}, 1
    rows, row = real(2, 3, 16), real(16, seed=2)
    yield "Gelu", [rows], {}, 1
    yield "BiasGelu", [rows, row], {}, 1
    yield "FastGelu", [rows], {}, 1
    yield "FastGelu", [rows, row], {}, 1
    for attributes in ({}, {"alpha": 1.0}):
        yield "QuickGelu", [rows], attributes, 1
    skip, beta, bias = real(2, 3, 16, seed=3), real(16, seed=4), real(16, seed=5)
    for more in ([], [beta], [beta, bias]):
        yield "SkipLayerNormalization", [rows, skip, row, *more], {"epsilon": 0.01}, 2
    for more in ([], [bias]):
        yield "SkipSimplifiedLayerNormalization", [rows, skip, row, *more], {"epsilon": 0.01}, 2
    for bits, zeros, added in ((4, 0, 0), (4, 1, 1), (8, 1, 0), (8, 0, 1), (2, 1, 0)):
        inner, columns, block = 48, 6, 16
        blocks = inner // block
        random = np.random.default_rng(bits)
        data = random.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8)
        scales = random.uniform(0.01, 0.05, columns * blocks).astype(np.float32)
        packed = columns * -(-blocks * bits // 8)
        points = random.integers(0, 256, packed).astype(np.uint8) if zeros else None
        weights = [data, scales.reshape(columns, blocks), points, None, real(6) if added else None]
        if points is not None:
            weights[2] = points.reshape(columns, -1)
        said = {"K": inner, "N": columns, "bits": bits, "block_size": block}
        yield "MatMulNBits", [real(4, inner), *weights], said, 1


CASES = list(cases())


def model(operator: str, given: list[Any], attributes: dict[str, Any], vary: int) -> Any:  # noqa: ANN401
    """Return a model of one node; inputs that do not vary are constant."""
    names = [f"x{index}" if value is not None else "" for index, value in enumerate(given)]
    while not names[-1]:
        names.pop()
    integers = operator.startswith("QLinear") or operator == "QuantizeLinear"
    integers |= operator == "QGemm" and len(names) > 7
    kind = onnx.TensorProto.FLOAT
    first = given[2 if operator == "QLinearConcat" else 1 if operator == "QLinearWhere" else 0]
    if integers:
        unsigned = operator == "QuantizeLinear" or first.dtype == np.uint8
        kind = onnx.TensorProto.UINT8 if unsigned else onnx.TensorProto.INT8
    varying = names[2:6:3] if operator == "QLinearConcat" else names[: max(vary, 1)]
    if operator.startswith(("QLinearAdd", "QLinearMul")):
        varying = ["x0", "x3"]
    if operator == "QLinearWhere":
        varying = ["x0", "x1", "x4"]
    node = helper.make_node(operator, names, ["y"], "it", domain=MICROSOFT, **attributes)
    values = {name: np.asarray(v) for name, v in zip(names, given, strict=False) if name}
    graph = helper.make_graph(
        [node],
        "net",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape
            )
            for name in varying
        ],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(one, name) for name, one in values.items() if name not in varying],
    )
    graph.output[0].type.tensor_type.elem_type = kind
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8), {
        name: values[name] for name in varying
    }


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{one[0]}-{i}" for i, one in enumerate(CASES)]
)
def test_an_operator_of_onnxruntime(number: int) -> None:
    """Integers at most one apart, floats within a thousandth of the largest."""
    operator, given, attributes, vary = CASES[number]
    source, inputs = model(operator, given, attributes, vary)
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, inputs)
    source.graph.output[0].type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
    graph = read(source)
    assert "host" not in {one.kind for one in graph.operations}
    found = evaluate(graph, inputs)["y"]
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
    # It quantises A on its own, to eight bits of what comes.
    lost = 0.01 if operator == "DynamicQuantizeMatMul" else 1e-3
    assert apart <= (1 if wanted.dtype.kind in "iu" else lost * np.abs(wanted).max())
    assert len(np.unique(wanted)) > 3


def test_every_operator_is_tried() -> None:
    """But those that are of the standard too, and tried there, and one with a test of its own."""
    ours = {name for domain, name in DIALECTS if domain == MICROSOFT}
    elsewhere = {"QLinearConv", "QLinearReduceMean", "SimplifiedLayerNormalization"}
    elsewhere |= {"DynamicQuantizeLSTM"}
    assert ours - {one[0] for one in CASES} == elsewhere


@pytest.mark.parametrize("attributes", [{"axes": [1, 2]}, {"axes": [-1], "keepdims": 0}, {}])
def test_a_mean_of_integers(attributes: dict[str, Any]) -> None:
    """Onnxruntime has it for other devices only."""
    x = ints(2, 3, 8)
    source, inputs = model("QLinearReduceMean", [x, S, Z, T, Y], attributes, 1)
    source.graph.output[0].type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
    found = evaluate(read(source), inputs)["y"]
    axes = tuple(attributes.get("axes", (0, 1, 2)))
    real_mean = (x.astype(np.float64) - 120).mean(axes, keepdims="keepdims" not in attributes)
    np.testing.assert_array_equal(found, np.round(real_mean * float(S) / float(T)) + 130)


def test_a_sum_of_skips_is_a_result() -> None:
    """The fourth; the second and third, of training, are refused."""
    x, skip, gain = real(2, 3, 16), real(2, 3, 16, seed=3), real(16, seed=2)
    source, inputs = model("SkipLayerNormalization", [x, skip, gain], {}, 2)
    source.graph.node[0].output.extend(["", "", "sum"])
    source.graph.output.add().CopyFrom(helper.make_tensor_value_info("sum", 1, (2, 3, 16)))
    source.graph.output[0].type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
    graph = read(source)
    np.testing.assert_allclose(evaluate(graph, inputs)["sum"], x + skip, rtol=1e-6)
    source.graph.node[0].output[1] = "mean"
    source.graph.output[1].name = "mean"
    with pytest.raises(GraphError, match="result 'mean' is not known"):
        read(source)


@pytest.mark.parametrize("per_channel", [False, True])
def test_an_lstm_with_weights_of_bytes(per_channel: bool) -> None:
    """All results, both directions; inputs are not quantised, by which onnxruntime loses 2 %."""
    random, cells = np.random.default_rng(3), 5
    x, bias = real(6, 2, 4), real(2, 8 * cells, seed=2)
    size = (2, 4 * cells) if per_channel else (2,)
    sides = [random.integers(0, 256, (2, rows, 4 * cells)).astype(np.uint8) for rows in (4, cells)]
    scales = [random.uniform(0.003, 0.006, size).astype(np.float32) for _ in sides]
    zeros = [np.full(size, 120 + index, np.uint8) for index in range(2)]
    units = [scales[0], zeros[0], scales[1], zeros[1]]
    given = [x, *sides, bias, None, None, None, None, *units]
    said = {"hidden_size": cells, "direction": "bidirectional"}
    source, inputs = model("DynamicQuantizeLSTM", given, said, 1)
    del source.graph.output[:]
    source.graph.node[0].output[:] = ["y", "h", "c"]
    for name, rank in (("y", 4), ("h", 3), ("c", 3)):
        source.graph.output.append(helper.make_tensor_value_info(name, 1, [None] * rank))
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = evaluate(read(source), inputs)
    for name, wanted in zip("yhc", session.run(None, inputs), strict=True):
        assert found[name].shape == wanted.shape
        assert np.abs(found[name] - wanted).max() <= 0.02 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "message"),
    [
        ("FusedConv", [real(1, 1, 4, 4), real(1, 1, 3, 3)], {"activation": "Erf"},
         "activation Erf, allowed Relu, "),
        ("MatMulNBits", [real(2, 8), np.zeros((2, 1, 3), np.uint8), np.ones((2, 1), np.float32)],
         {"K": 8, "N": 2, "bits": 3, "block_size": 8}, "3 bits, allowed 2, 4, 8"),
        ("QLinearConcat", [S, Z, ints(2, 3), S], {"axis": 0}, "4 inputs, allowed 2 and 3 for each"),
        ("Gelu", [real(2, 3)], {"mode": 1}, "attribute mode = 1 is not known"),
        ("DynamicQuantizeLSTM", [real(1, 2, 3)], {}, "the weight is missing"),
    ],
)  # fmt: skip
def test_what_is_refused(
    operator: str, inputs: list[Any], attributes: dict[str, Any], message: str
) -> None:
    """With what was given and what is allowed."""
    source, _ = model(operator, inputs, attributes, 1)
    source.graph.output[0].type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
    with pytest.raises(GraphError, match=message):
        read(source)
