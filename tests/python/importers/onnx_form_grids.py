# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX in their forms: attributes, optional inputs and versions, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx

from tests.python.importers.onnx_form_windows import IMAGE, recurrent, windows
from tests.python.importers.onnx_forms import (
    OperatorForm,
    OperatorGrid,
    form,
    positive,
    real,
    whole,
)

_ONE = [
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "HardSwish", "Identity", "IsInf", "IsNaN", "Log", "Mish", "Neg"),
    *("Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign"),
    *("Sqrt", "Tan", "Tanh", "Det", "Size", "Shape", "NonZero"),
]


def _grids() -> Iterator[OperatorGrid]:
    for operator in _ONE:
        square = real(2, 3, 3) if operator == "Det" else real(3, 5)
        yield OperatorGrid(operator, [square])
    for operator in ("LSTM", "GRU", "RNN"):
        yield from recurrent(operator, {"LSTM": 4, "GRU": 3, "RNN": 1}[operator])
    yield from windows()
    yield from _rows()
    yield from _elements()
    yield from _places()


def _rows() -> Iterator[OperatorGrid]:
    tried: dict[str, Sequence[Any]]
    x = real(2, 3, 4, 5)
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        tried = {"axis": [None, 0, 1, 2, -1]}
        yield OperatorGrid(operator, [x], {}, tried, 1, (11, 13))
    for operator in ("ArgMax", "ArgMin"):
        ties = np.random.default_rng(1).integers(0, 3, (3, 4, 5)).astype(np.float32)
        tried = {
            "axis": [None, 1, -1],
            "keepdims": [None, 0],
            "select_last_index": [None, 1],
        }
        yield OperatorGrid(operator, [ties], {}, tried, 1, (13,))
    kinds = ("Max", "Min", "Mean", "Sum", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    for kind in kinds:
        for axes in (None, whole(1), whole(0, -1)):
            tried = {"keepdims": [None, 0], "noop_with_empty_axes": [None, 1]}
            yield OperatorGrid(f"Reduce{kind}", [positive(2, 3, 4), axes], {}, tried, 1, (18,))
    yield OperatorGrid("LpNormalization", [x], {}, {"axis": [None, 1], "p": [None, 1, 2]}, 1, (1,))
    for axis, shape in ((-1, (5,)), (2, (4, 5))):
        for beta in (None, real(*shape, seed=3)):
            given = [x, real(*shape, seed=2), beta]
            tried = {"axis": [axis], "epsilon": [None, 0.1]}
            yield OperatorGrid("LayerNormalization", given, {}, tried, 3, (17,))
        yield OperatorGrid(
            "RMSNormalization", [x, real(*shape, seed=2)], {}, {"axis": [axis]}, 1, (23,)
        )
    yield OperatorGrid("GroupNormalization", [IMAGE, real(4), real(4, seed=2)], {"num_groups": 2})
    flags: list[Any] = [None, 1]
    for axis in (0, 1):
        tried = {"exclusive": flags, "reverse": flags}
        yield OperatorGrid("CumSum", [real(3, 4), np.array(axis)], {}, tried, 1, (14,))
    for largest, axis, ordered in product([1, 0], [0, -1], [1]):
        base = {"largest": largest, "axis": axis, "sorted": ordered}
        yield OperatorGrid("TopK", [real(4, 6), whole(2)], base, {}, 2)
    for kind in ("float32", "int64"):
        a, b = (real(3, 4, seed=s, scale=9).astype(kind) for s in (1, 2))
        yield OperatorGrid("Einsum", [a, b], {"equation": "ij,ij->i"})
        yield OperatorGrid("Einsum", [a, b], {"equation": "ij,kj->ik"})
    gemm = {"alpha": [None, 0.5], "beta": [None, 2.0]}
    for bias in (None, real(5), real(3, 5), np.array(2, np.float32)):
        for turned in (0, 1):
            a, b = real(*((4, 3) if turned else (3, 4))), real(*((5, 4) if turned else (4, 5)))
            base = {"transA": turned, "transB": turned} if turned else {}
            yield OperatorGrid("Gemm", [a, b, bias], base, gemm)
    yield OperatorGrid("MatMul", [real(2, 3, 4), real(4, 5)])
    yield OperatorGrid(
        "DFT",
        [real(1, 9, 1), None, np.array(1)],
        {},
        {"inverse": flags, "onesided": flags},
        1,
        (20,),
    )
    yield OperatorGrid("DFT", [real(1, 8, 2), None, np.array(1)], {}, {"inverse": flags}, 1, (20,))
    yield OperatorGrid(
        "STFT",
        [real(1, 64, 1), np.array(8), positive(16), np.array(16)],
        {},
        {"onesided": [None, 0]},
    )
    tried = {"detect_negative": [None, 0], "detect_positive": [None, 0]}
    yield OperatorGrid("IsInf", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], {}, tried)
    attention = [real(1, 2, 3, 4), real(1, 2, 5, 4, seed=2), real(1, 2, 5, 4, seed=3)]
    tried = {"is_causal": flags, "scale": [None, 0.3], "softcap": [None, 2.0]}
    yield OperatorGrid("Attention", attention, {}, tried, 1, (23,))
    scores, labels = real(3, 5), whole(1, 0, 4)
    for weight in (None, positive(5)):
        tried = {"reduction": [None, "none", "sum"], "ignore_index": [None, 4]}
        yield OperatorGrid(
            "NegativeLogLikelihoodLoss", [scores, labels, weight], {}, tried, 1, (13,)
        )
        yield OperatorGrid("SoftmaxCrossEntropyLoss", [scores, labels, weight], {}, tried, 1, (13,))


def _elements() -> Iterator[OperatorGrid]:
    x = real(3, 5)
    pairs = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "Pow", "PRelu")
    for operator in pairs:
        given = [positive(3, 5), real(1, 5, seed=2)]
        yield OperatorGrid(operator, given)
    for operator in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        yield OperatorGrid(operator, [np.round(x), np.round(real(3, 5, seed=2))])
    for operator in ("And", "Or", "Xor"):
        yield OperatorGrid(operator, [x > 0, real(3, 5, seed=2) > 0])
    yield OperatorGrid("Not", [x > 0])
    a, b = (np.random.default_rng(s).integers(1, 50, (3, 5)) for s in (1, 2))
    for operator in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield OperatorGrid(operator, [a, b])
    yield OperatorGrid("BitwiseNot", [a])
    for direction in ("LEFT", "RIGHT"):
        given = [a.astype(np.uint32), (b % 5).astype(np.uint32)]
        yield OperatorGrid("BitShift", given, {"direction": direction})
    yield OperatorGrid("Mod", [a - 25, b], {}, {"fmod": [None, 1]})
    yield OperatorGrid("Mod", [x, positive(3, 5)], {"fmod": 1})
    yield OperatorGrid("Where", [x > 0, x, real(3, 5, seed=2)])
    yield OperatorGrid("Clip", [x, np.array(-0.5, np.float32), np.array(0.5, np.float32)])
    names: dict[str, dict[str, Sequence[Any]]] = {
        "Elu": {"alpha": [None, 0.3]},
        "Celu": {"alpha": [None, 0.3]},
        "Selu": {"alpha": [None, 0.3], "gamma": [None, 2.0]},
        "LeakyRelu": {"alpha": [None, 0.3]},
        "HardSigmoid": {"alpha": [None, 0.3], "beta": [None, 0.1]},
        "ThresholdedRelu": {"alpha": [None, 0.3]},
        "Gelu": {"approximate": [None, "tanh"]},
        "Shrink": {"lambd": [None, 0.3], "bias": [None, 0.1]},
    }
    for operator, tried in names.items():
        yield OperatorGrid(operator, [x], {}, tried)
    for to in (onnx.TensorProto.INT32, onnx.TensorProto.FLOAT16, onnx.TensorProto.BOOL):
        yield OperatorGrid("Cast", [real(3, 5, scale=9)], {"to": to})
    scale, zero = np.array([0.1, 0.2, 0.3, 0.1, 0.5], np.float32), np.arange(5, dtype=np.uint8)
    yield OperatorGrid("QuantizeLinear", [x, scale, zero], {}, {"axis": [1]}, 1, (13, 21))
    q = np.arange(15, dtype=np.uint8).reshape(3, 5)
    yield OperatorGrid("DequantizeLinear", [q, scale, zero], {}, {"axis": [1]}, 1, (13, 21))
    yield OperatorGrid("DynamicQuantizeLinear", [x], {}, {}, 3)
    yield OperatorGrid(
        "MatMulInteger", [q, q.T.copy(), np.array(3, np.uint8), np.array(2, np.uint8)]
    )
    s = np.array(0.1, np.float32)
    z = np.array(3, np.uint8)
    yield OperatorGrid("QLinearMatMul", [q, s, z, q.T.copy(), s, z, np.array(2, np.float32), z])
    image = np.arange(4 * 36, dtype=np.uint8).reshape(1, 4, 6, 6)
    w = np.random.default_rng(1).integers(-60, 60, (4, 1, 3, 3)).astype(np.int8)
    zw = np.array(0, np.int8)
    for group in (2, 4):
        w = np.random.default_rng(1).integers(0, 60, (4, 4 // group, 3, 3)).astype(np.uint8)
        base = {"group": group}
        tried = {"pads": [None, [1] * 4], "strides": [None, [2, 2]]}
        yield OperatorGrid("ConvInteger", [image, w, z, z], base, tried)
        more = [image, s, z, w, s, z, np.array(9, np.float32), z, np.arange(4, dtype=np.int32)]
        yield OperatorGrid("QLinearConv", more, base, tried)
    del zw


def _places() -> Iterator[OperatorGrid]:
    x = real(3, 4, 5)
    for axis in (0, 1, -1):
        yield OperatorGrid("Concat", [x, real(3, 4, 5, seed=2)], {"axis": axis})
        yield OperatorGrid("Gather", [x, np.array([[0, -1], [1, 2]])], {"axis": axis})
        picks = np.random.default_rng(1).integers(-2, 3, (2, 3, 4))
        yield OperatorGrid("GatherElements", [x, picks], {"axis": axis})
        tried = {"reduction": [None, "add", "mul", "max", "min"]}
        places = np.stack([np.random.default_rng(s).permutation(3) for s in range(4)], 1)
        each = np.broadcast_to(places[:, :, None], (3, 4, 5)).copy() if axis == 0 else None
        if each is not None:
            given = [x, each, real(3, 4, 5, seed=3)]
            yield OperatorGrid("ScatterElements", given, {"axis": 0}, tried, 1, (18,))
        yield OperatorGrid("Compress", [x, np.array([True, False, True])], {"axis": axis})
        yield OperatorGrid("Unsqueeze", [x, whole(axis)])
        yield OperatorGrid("Flatten", [x], {"axis": axis})
    for batch in (0, 1):
        picks = np.array([[0, 1], [2, 0], [1, 1]])
        yield OperatorGrid("GatherND", [x, picks], {}, {"batch_dims": [batch]})
    tried = {"reduction": [None, "add", "mul", "max", "min"]}
    given = [x, np.array([[2], [0]]), real(2, 4, 5, seed=3)]
    yield OperatorGrid("ScatterND", given, {}, tried, 1, (18,))
    for mode in ("constant", "reflect", "edge", "wrap"):
        for value, axes in ((None, None), (np.array(2.5, np.float32), None), (None, whole(0, 2))):
            pads = whole(1, 2, 0, 1) if axes is not None else whole(1, 0, 2, 0, 2, 1)
            yield OperatorGrid("Pad", [x, pads, value, axes], {"mode": mode}, {}, 1, (19,))
    yield OperatorGrid("Slice", [x, whole(-1, 0), whole(-9, 4), whole(0, 2), whole(-1, 2)])
    yield OperatorGrid("Split", [x, whole(1, 4)], {"axis": 2}, {}, 2)
    yield OperatorGrid("Split", [x], {"axis": 2, "num_outputs": 2}, {}, 2)
    yield OperatorGrid("Squeeze", [real(1, 3, 1, 4), whole(0)])
    yield OperatorGrid("Squeeze", [real(1, 3, 1, 4)])
    yield OperatorGrid("Reshape", [x, whole(0, -1)])
    yield OperatorGrid("Transpose", [x], {}, {"perm": [None, [1, 2, 0]]})
    yield OperatorGrid("Expand", [real(3, 1), whole(2, 1, 4)])
    yield OperatorGrid("Tile", [x, whole(1, 2, 3)])
    yield OperatorGrid("Trilu", [x, np.array(1)], {}, {"upper": [None, 0]})
    yield OperatorGrid("EyeLike", [real(3, 4)], {}, {"k": [None, 1], "dtype": [None, 7]})
    ordered = np.array([3.0, 1.0, 2.0, 1.0, 3.0], np.float32)
    yield OperatorGrid("Unique", [ordered], {}, {"sorted": [None, 0]}, 4)
    yield OperatorGrid("ReverseSequence", [x, whole(1, 2, 3, 2)], {}, {"batch_axis": [None, 1]})
    yield OperatorGrid(
        "OneHot",
        [np.array([0, 2, -1]), np.array(4), np.array([0, 1], np.float32)],
        {},
        {"axis": [None, 0]},
    )
    yield OperatorGrid("Range", [np.array(1), np.array(9), np.array(3)])
    yield OperatorGrid("ConstantOfShape", [whole(2, 3)])
    boxes = np.abs(np.random.default_rng(1).normal(0, 1, (1, 6, 4))).astype(np.float32)
    scores = np.random.default_rng(2).uniform(0, 1, (1, 2, 6)).astype(np.float32)
    limits = [whole(2), np.array([0.5], np.float32), np.array([0.1], np.float32)]
    for given in (limits[:1], limits[:2], limits):
        yield OperatorGrid(
            "NonMaxSuppression", [boxes, scores, *given], {}, {"center_point_box": [None, 1]}
        )


def forms() -> Iterator[OperatorForm]:
    """Yield all forms."""
    for grid in _grids():
        for version in grid.versions:
            for chosen in product(*grid.tried.values()):
                said = dict(zip(grid.tried, chosen, strict=True))
                attributes = {**grid.base, **{k: v for k, v in said.items() if v is not None}}
                yield form(grid.operator, grid.inputs, attributes, version, grid.results)
