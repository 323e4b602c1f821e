# SPDX-License-Identifier: Apache-2.0
"""A TFLite model of one operator for each operator that is mapped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer


@dataclass(frozen=True)
class TfliteCase:
    """A model of one operator.

    Attributes:
        operator: its name.
        shapes: of the inputs that are given when it runs.
        outputs: shapes of the outputs.
        constants: inputs behind the others.
        options: of the operator.
        dtype: of inputs and outputs.
        result: types of the outputs if they are others, the last of all that follow.
        positive: whether inputs are above 0.
        constants_first: whether all constants stand in front.
        places: of the constants among the inputs.
    """

    operator: str
    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    constants: tuple[Array, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    result: str = ""
    positive: bool = False
    constants_first: bool = False
    places: tuple[int, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """Types of the outputs."""
        given = (self.result or self.dtype).split()
        return [given[min(index, len(given) - 1)] for index in range(len(self.outputs))]


def floats(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def ints(*values: int) -> Array:
    """Return a list of int32."""
    return np.array(values, np.int32)


X = (1, 8, 7, 4)
_WINDOW = {"padding": 0, "across": 2, "down": 1, "width": 3, "height": 2, "fused": 0}
_CONV = {"padding": 0, "across": 1, "down": 2, "fused": 1}
_PLAIN = {"dilation_across": 1, "dilation_down": 1}


def _same(operator: str, **more: Any) -> TfliteCase:  # noqa: ANN401
    return TfliteCase(operator, ((2, 3, 5),), ((2, 3, 5),), **more)


def _two(operator: str, **more: Any) -> TfliteCase:  # noqa: ANN401
    return TfliteCase(operator, ((2, 3, 5), (3, 1)), ((2, 3, 5),), **more)


def _image(operator: str) -> TfliteCase:
    options = {"radius": 1, "bias": 1.5, "alpha": 0.3, "beta": 0.7}
    return TfliteCase(operator, (X,), (X,), options=options)


CASES: dict[str, TfliteCase] = {
    "conv same": TfliteCase(
        "CONV_2D", (X,), ((1, 4, 7, 6),), (floats(1, 6, 3, 3, 4), floats(2, 6)), {**_CONV, **_PLAIN}
    ),
    "conv valid, dilated": TfliteCase(
        "CONV_2D",
        (X,),
        ((1, 4, 5, 6),),
        (floats(1, 6, 3, 3, 4), floats(2, 6)),
        {"padding": 1, "across": 1, "down": 1, "fused": 3}
        | {"dilation_across": 1, "dilation_down": 2},
    ),
    "conv of groups": TfliteCase(
        "CONV_2D", (X,), ((1, 4, 7, 6),), (floats(1, 6, 3, 3, 2), floats(2, 6)), {**_CONV, **_PLAIN}
    ),
    "depthwise": TfliteCase(
        "DEPTHWISE_CONV_2D",
        (X,),
        ((1, 4, 4, 8),),
        (floats(1, 1, 3, 2, 8), floats(2, 8)),
        {"padding": 0, "across": 2, "down": 2, "multiplier": 2, "fused": 2, **_PLAIN},
    ),
    "fully connected": TfliteCase(
        "FULLY_CONNECTED", ((2, 3, 4),), ((6, 5),), (floats(1, 5, 4), floats(2, 5)), {"fused": 3}
    ),
    "fully connected, axes kept": TfliteCase(
        "FULLY_CONNECTED", ((2, 3, 4),), ((2, 3, 5),), (floats(1, 5, 4),), {"fused": 0, "keep": 1}
    ),
    "add": _two("ADD", options={"fused": 1}),
    "sub": _two("SUB", options={"fused": 0}),
    "mul": _two("MUL", options={"fused": 3}),
    "div": _two("DIV", options={"fused": 0}, positive=True),
    "maximum": _two("MAXIMUM"),
    "minimum": _two("MINIMUM"),
    "power": _two("POW", positive=True),
    "squared difference": _two("SQUARED_DIFFERENCE"),
    "less": _two("LESS", result="bool"),
    "greater or equal": _two("GREATER_EQUAL", result="bool"),
    "average pool": TfliteCase("AVERAGE_POOL_2D", (X,), ((1, 8, 4, 4),), options=_WINDOW),
    "max pool": TfliteCase("MAX_POOL_2D", (X,), ((1, 8, 4, 4),), options={**_WINDOW, "fused": 1}),
    "mean": TfliteCase("MEAN", (X,), ((1, 4),), (ints(1, 2),), {"keep": 0}),
    "mean, kept": TfliteCase("MEAN", (X,), ((1, 1, 1, 4),), (ints(-2, 1),), {"keep": 1}),
    "sum": TfliteCase("SUM", (X,), ((1, 8, 7),), (ints(-1),), {"keep": 0}),
    "reduce max": TfliteCase("REDUCE_MAX", (X,), ((1, 8, 1, 4),), (ints(2),), {"keep": 1}),
    "softmax": _same("SOFTMAX", options={"beta": 1.0}),
    "softmax, beta": _same("SOFTMAX", options={"beta": 0.5}),
    "log softmax": _same("LOG_SOFTMAX"),
    "relu": _same("RELU"),
    "relu6": _same("RELU6"),
    "relu n1": _same("RELU_N1_TO_1"),
    "logistic": _same("LOGISTIC"),
    "tanh": _same("TANH"),
    "hard swish": _same("HARD_SWISH"),
    "leaky": _same("LEAKY_RELU", options={"alpha": 0.1}),
    "prelu": _same("PRELU", constants=(floats(3, 1, 1, 5),)),
    "elu": _same("ELU"),
    "gelu": _same("GELU", options={"approximate": 0}),
    "gelu tanh": _same("GELU", options={"approximate": 1}),
    "exp": _same("EXP"),
    "log": _same("LOG", positive=True),
    "sqrt": _same("SQRT", positive=True),
    "rsqrt": _same("RSQRT", positive=True),
    "neg": _same("NEG"),
    "abs": _same("ABS"),
    "square": _same("SQUARE"),
    "floor": _same("FLOOR"),
    "ceil": _same("CEIL"),
    "round": _same("ROUND"),
    "sin": _same("SIN"),
    "cos": _same("COS"),
    "reshape": TfliteCase("RESHAPE", (X,), ((8, 28),), (ints(8, -1),)),
    "squeeze": TfliteCase("SQUEEZE", (X,), ((8, 7, 4),)),
    "expand dims": TfliteCase("EXPAND_DIMS", (X,), ((1, 8, 7, 1, 4),), (ints(-2),)),
    "transpose": TfliteCase("TRANSPOSE", (X,), ((4, 1, 7, 8),), (ints(3, 0, 2, 1),)),
    "concatenation": TfliteCase(
        "CONCATENATION", (X, (1, 8, 2, 4)), ((1, 8, 9, 4),), options={"axis": -2, "fused": 0}
    ),
    "slice": TfliteCase("SLICE", (X,), ((1, 3, 5, 4),), (ints(0, 2, 2, 0), ints(1, 3, -1, 4))),
    "strided slice": TfliteCase(
        "STRIDED_SLICE",
        (X,),
        ((8, 2, 4),),
        (ints(0, -1, 1, 0), ints(1, 0, -1, 0), ints(1, -1, 3, 1)),
        {"begin": 2, "end": 0b1010, "ellipsis": 0, "new": 0, "shrink": 1},
    ),
    "split": TfliteCase(
        "SPLIT", (X,), ((1, 4, 7, 4),) * 2, (ints(1),), {"count": 2}, constants_first=True
    ),
    "split by sizes": TfliteCase(
        "SPLIT_V", (X,), ((1, 8, 2, 4), (1, 8, 5, 4)), (ints(2, -1), ints(2)), {"count": 2}
    ),
    "pad": TfliteCase(
        "PAD", (X,), ((1, 10, 10, 4),), (ints(0, 0, 1, 1, 3, 0, 0, 0).reshape(4, 2),)
    ),
    "pad with a value": TfliteCase(
        "PADV2",
        (X,),
        ((1, 9, 7, 4),),
        (ints(0, 0, 1, 0, 0, 0, 0, 0).reshape(4, 2), np.array([2.5], np.float32)),
    ),
    "batch matmul": TfliteCase(
        "BATCH_MATMUL", ((2, 3, 4), (2, 5, 4)), ((2, 3, 5),), options={"a": 0, "b": 1}
    ),
    "batch matmul, turned": TfliteCase(
        "BATCH_MATMUL", ((2, 4, 3), (2, 4, 5)), ((2, 3, 5),), options={"a": 1, "b": 0}
    ),
    "gather": TfliteCase(
        "GATHER", (X,), ((1, 2, 3, 7, 4),), (ints(1, 7, 0, 2, 2, 3).reshape(2, 3),), {"axis": 1}
    ),
    "embedding": TfliteCase(
        "EMBEDDING_LOOKUP", ((9, 4),), ((3, 4),), (ints(1, 8, 0),), constants_first=True
    ),
    "arg max": TfliteCase("ARG_MAX", (X,), ((1, 8, 7),), (ints(3),), {"type": 2}, result="int32"),
    "broadcast": TfliteCase("BROADCAST_TO", ((3, 1),), ((2, 3, 5),), (ints(2, 3, 5),)),
    "tile": TfliteCase("TILE", ((2, 3),), ((4, 9),), (ints(2, 3),)),
    "reverse": TfliteCase("REVERSE_V2", ((2, 3, 5),), ((2, 3, 5),), (ints(1),)),
    "pack": TfliteCase("PACK", ((2, 3), (2, 3)), ((2, 2, 3),), options={"count": 2, "axis": 1}),
    "unpack": TfliteCase("UNPACK", ((2, 3),), ((3,), (3,)), options={"count": 2, "axis": 0}),
    "cast": TfliteCase("CAST", ((2, 3),), ((2, 3),), options={"from": 0, "to": 2}, result="int32"),
    "space to depth": TfliteCase(
        "SPACE_TO_DEPTH", ((1, 4, 6, 2),), ((1, 2, 3, 8),), options={"block": 2}
    ),
    "depth to space": TfliteCase(
        "DEPTH_TO_SPACE", ((1, 2, 3, 8),), ((1, 4, 6, 2),), options={"block": 2}
    ),
    "mirror pad": TfliteCase(
        "MIRROR_PAD",
        (X,),
        ((1, 12, 10, 4),),
        (ints(0, 0, 1, 3, 2, 1, 0, 0).reshape(4, 2),),
        {"mode": 0},
    ),
    "mirror pad, edges twice": TfliteCase(
        "MIRROR_PAD",
        (X,),
        ((1, 12, 10, 5),),
        (ints(0, 0, 1, 3, 2, 1, 0, 1).reshape(4, 2),),
        {"mode": 1},
    ),
    **{
        f"resize {way}{', corners' * corners}{', centres' * centres} to {size}": TfliteCase(
            f"RESIZE_{way.upper()}{'_NEIGHBOR' * (way == 'nearest')}",
            (X,),
            ((1, *size, 4),),
            (ints(*size),),
            {"corners": corners, "centres": centres},
        )
        for way in ("nearest", "bilinear")
        for corners, centres in ((0, 0), (1, 0), (0, 1))
        for size in ((16, 14), (5, 11), (1, 3))
    },
    "space to batch": TfliteCase(
        "SPACE_TO_BATCH_ND",
        ((2, 6, 5, 3),),
        ((12, 4, 3, 3),),
        (ints(2, 3), ints(1, 1, 2, 2).reshape(2, 2)),
    ),
    "batch to space": TfliteCase(
        "BATCH_TO_SPACE_ND",
        ((12, 4, 3, 3),),
        ((2, 6, 6, 3),),
        (ints(2, 3), ints(1, 1, 2, 1).reshape(2, 2)),
    ),
    "transposed conv": TfliteCase(
        "TRANSPOSE_CONV",
        ((1, 5, 4, 3),),
        ((1, 10, 8, 6),),
        (ints(1, 10, 8, 6), floats(1, 6, 3, 4, 3)),
        {"padding": 0, "across": 2, "down": 2, "fused": 0},
        constants_first=True,
    ),
    "transposed conv, valid": TfliteCase(
        "TRANSPOSE_CONV",
        ((2, 5, 4, 3),),
        ((2, 15, 5, 6),),
        (ints(2, 15, 5, 6), floats(1, 6, 3, 2, 3)),
        {"padding": 1, "across": 1, "down": 3, "fused": 0},
        constants_first=True,
    ),
    "l2": _same("L2_NORMALIZATION", options={"fused": 0}),
    "fill": TfliteCase("FILL", ((),), ((2, 3),), (ints(2, 3),), constants_first=True),
    "add n": TfliteCase("ADD_N", ((2, 3), (2, 3), (2, 3)), ((2, 3),)),
    "floor div": _two("FLOOR_DIV"),
    "floor div, integers": _two("FLOOR_DIV", dtype="int32"),
    "floor mod": _two("FLOOR_MOD"),
    "floor mod, integers": _two("FLOOR_MOD", dtype="int64"),
    "arg min": TfliteCase("ARG_MIN", (X,), ((1, 8, 4),), (ints(-2),), {"type": 2}, result="int32"),
    "arg min, integers": TfliteCase(
        "ARG_MIN", (X,), ((1, 8, 7),), (ints(3),), {"type": 2}, "int32", "int32"
    ),
    "l2 pool": TfliteCase("L2_POOL_2D", (X,), ((1, 8, 4, 4),), options=_WINDOW),
    "gather nd": TfliteCase(
        "GATHER_ND", ((3, 4, 5),), ((2, 1, 5),), (ints(1, 3, 2, 0).reshape(2, 1, 2),)
    ),
    "gather nd, elements": TfliteCase("GATHER_ND", ((3, 4),), ((1,),), (ints(1, 3).reshape(1, 2),)),
    "gather, batches": TfliteCase(
        "GATHER",
        ((2, 3, 4, 5),),
        ((2, 3, 2, 5),),
        (ints(1, 3, 0, 0).reshape(2, 2),),
        {"axis": 2, "batches": 1},
    ),
    "scatter nd": TfliteCase(
        "SCATTER_ND",
        ((3, 5),),
        ((4, 5),),
        (ints(1, 3, 1).reshape(3, 1), ints(4, 5)),
        places=(0, 2),
    ),
    "segment sum": TfliteCase("SEGMENT_SUM", ((4, 3),), ((3, 3),), (ints(0, 0, 1, 2),)),
    **{
        f"unsorted segment {name.lower()}": TfliteCase(
            f"UNSORTED_SEGMENT_{name}", ((4, 3),), ((3, 3),), (ints(2, 0, 2, 0), ints(3))
        )
        for name in ("SUM", "PROD", "MAX", "MIN")
    },
    "top k": TfliteCase(
        "TOPK_V2", ((2, 7),), ((2, 3), (2, 3)), (ints(3).reshape(()),), result="float32 int32"
    ),
    "cumulated": _same("CUMSUM", constants=(ints(1).reshape(()),)),
    "cumulated, from behind": _same(
        "CUMSUM", constants=(ints(-1).reshape(()),), options={"exclusive": 1, "reverse": 1}
    ),
    "cumulated, integers": _same("CUMSUM", constants=(ints(0).reshape(()),), dtype="int32"),
    "reverse sequence": TfliteCase(
        "REVERSE_SEQUENCE", ((2, 5, 3),), ((2, 5, 3),), (ints(3, 5),), {"time": 1, "batch": 0}
    ),
    "response": _image("LOCAL_RESPONSE_NORMALIZATION"),
    "one hot": TfliteCase(
        "ONE_HOT",
        ((2, 3),),
        ((2, 4, 3),),
        (ints(4).reshape(()), np.array(2.5, np.float32), np.array(-1, np.float32)),
        {"axis": 1},
        "int32",
        "float32",
    ),
    "bucketize": _same("BUCKETIZE", result="int32", options={"boundaries": (-1.0, 0.5, 2.0)}),
    "update": TfliteCase(
        "DYNAMIC_UPDATE_SLICE", ((4, 5, 3), (2, 5, 2)), ((4, 5, 3),), (ints(1, 0, 2),)
    ),
    "diagonal": TfliteCase("MATRIX_DIAG", ((2, 3),), ((2, 3, 3),)),
    "set diagonal": TfliteCase("MATRIX_SET_DIAG", ((2, 3, 3), (2, 3)), ((2, 3, 3),)),
    "strided slice, whole axes and new ones": TfliteCase(
        "STRIDED_SLICE",
        ((2, 3, 4, 5),),
        ((1, 3, 4, 1, 3),),
        (ints(0, 1, 9, 9, 1), ints(0, 2, 9, 9, 4), ints(1, 1, 1, 1, 1)),
        {"begin": 0, "end": 0, "ellipsis": 4, "new": 9, "shrink": 2},
    ),
    "strided slice, sizes": TfliteCase(
        "STRIDED_SLICE",
        ((6, 5),),
        ((3, 2),),
        (ints(1, 2), ints(3, 2), ints(1, 1)),
        {"begin": 0, "end": 0, "ellipsis": 0, "new": 0, "shrink": 0, "offset": 1},
    ),
}


def model(case: TfliteCase) -> bytes:
    """Return the file of a case."""
    writer = Writer()
    inputs = [
        writer.tensor(f"x{index}", shape, case.dtype) for index, shape in enumerate(case.shapes)
    ]
    held = [writer.constant(f"c{index}", value) for index, value in enumerate(case.constants)]
    outputs = [
        writer.tensor(f"y{index}", shape, kind)
        for index, (shape, kind) in enumerate(zip(case.outputs, case.kinds, strict=True))
    ]
    given = [*held, *inputs] if case.constants_first else [*inputs, *held]
    if case.places:
        given = [*inputs]
        for place, one in zip(case.places, held, strict=True):
            given.insert(place, one)
    writer.operator(case.operator, given, outputs, **case.options)
    return writer.write(inputs, outputs)


def samples(case: TfliteCase, seed: int) -> list[Array]:
    """Return inputs for a case."""
    found = [3 * floats(seed + index, *shape) for index, shape in enumerate(case.shapes)]
    if np.dtype(case.dtype).kind == "i":
        # Nothing that divides is 0.
        return [np.where(one < 0, one - 1, one + 1).astype(case.dtype) for one in found]
    return [np.abs(one) + np.float32(0.1) for one in found] if case.positive else found


# Scale and zero point of inputs, weights and outputs of the int8 models.
UNITS = {"x": (0.03, 3), "y": (0.07, -5)}


def quantised_model(
    operator: str, dtype: str = "int8", *, few: bool = False
) -> tuple[bytes, tuple[int, ...]]:
    """Return the file of a quantised product and the shape of its input.

    Args:
        operator: CONV_2D, DEPTHWISE_CONV_2D or FULLY_CONNECTED.
        dtype: of activations: int8, or int16 with zero points of 0 and an int64 bias.
        few: whether weights are int4, two in a byte.
    """
    random, writer = np.random.default_rng(5), Writer()
    shapes = {
        "CONV_2D": ((1, 8, 8, 4), (6, 3, 3, 4), 0, (1, 4, 4, 6)),
        "DEPTHWISE_CONV_2D": ((1, 8, 8, 6), (1, 3, 3, 6), 3, (1, 4, 4, 6)),
        "FULLY_CONNECTED": ((4, 32), (6, 32), 0, (4, 6)),
    }
    shape, filters, axis, result = shapes[operator]
    wide = dtype == "int16"
    (x_scale, x_zero), (y_scale, y_zero) = UNITS["x"], UNITS["y"]
    if wide:
        x_scale, x_zero, y_scale, y_zero = x_scale / 256, 0, y_scale / 256, 0
    x = writer.tensor("x", shape, dtype, scale=x_scale, zero=x_zero)
    scales = (0.01 + 0.002 * np.arange(6)).astype(np.float32)
    most = 8 if few else 128
    whole = random.integers(1 - most, most, filters, dtype=np.int8)
    form, data = "int8", whole.tobytes()
    if few:
        low, high = whole.reshape(-1, 2).T
        form, data = "int4", ((low & 15) | (high << 4)).astype(np.int8).tobytes()
    w = writer.tensor("w", filters, form, data=data, scale=scales.tolist(), axis=axis)
    bias = random.integers(-2000, 2000, 6).astype(np.int64 if wide else np.int32)
    b = writer.constant("b", bias, scale=(np.float32(x_scale) * scales).tolist())
    y = writer.tensor("y", result, dtype, scale=y_scale, zero=y_zero)
    steps = {"padding": 0, "across": 2, "down": 2, "fused": 1, **_PLAIN}
    more = {"multiplier": 1} if operator == "DEPTHWISE_CONV_2D" else {}
    writer.operator(
        operator, (x, w, b), (y,), **({"fused": 1} if len(shape) == 2 else steps | more)
    )
    return writer.write((x,), (y,)), shape
