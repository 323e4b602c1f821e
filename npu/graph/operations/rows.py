# SPDX-License-Identifier: Apache-2.0
"""Operations on rows: softmax, norms, rotary positions, the place of the maximum."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Array, GraphError, Operation
from npu.graph.operations.base import (
    Attributes,
    Call,
    Kind,
    ResultType,
    Trait,
    Types,
    axis_of,
    given,
    known,
    plain,
)
from npu.graph.operations.constraints import (
    Constraint,
    Known,
    constant,
    cosines,
    epsilon_from_zero,
    read_by_no_logarithm,
    row,
)


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) over its sum along an axis, in float64; a row of -inf gives NaN."""
    with np.errstate(all="ignore"):
        shifted = np.exp(x - x.max(axis=axis, keepdims=True))
        result: Array = shifted / shifted.sum(axis=axis, keepdims=True)
    return result


def _softmax_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    axis_of(attributes["axis"], len(x.shape))
    return (ResultType(x.shape, plain(x)),)


def _softmax(call: Call) -> tuple[Array, ...]:
    return (softmax(call.wide(0), call.attributes["axis"]),)


def _norm_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, axes = known(types, 0), attributes["axes"]
    if not 1 <= axes <= len(x.shape):
        raise GraphError(f"axes {axes}, allowed 1..{len(x.shape)}")
    for index, what in ((1, "gain"), (2, "beta")):
        found = given(types, index)
        if found is not None and found.shape != x.shape[len(x.shape) - axes :]:
            raise GraphError(
                f"{what} has shape {list(found.shape)}, "
                f"allowed {list(x.shape[len(x.shape) - axes :])}"
            )
    return (ResultType(x.shape, plain(x)),)


def _norm(call: Call, centred: bool) -> tuple[Array, ...]:
    x, gain, beta = call.wide(0), call.optional(1), call.optional(2)
    trailing = tuple(range(x.ndim - call.attributes["axes"], x.ndim))
    if centred:
        x = x - x.mean(axis=trailing, keepdims=True)
    y = x / np.sqrt(np.square(x).mean(axis=trailing, keepdims=True) + call.attributes["epsilon"])
    y = y if gain is None else y * gain
    return (y if beta is None else y + beta,)


def _rope_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, cos, sin = known(types, 0), known(types, 1), known(types, 2)
    rank, heads = len(x.shape), attributes["heads_axis"]
    if rank < 3 or heads not in (rank - 2, rank - 3):
        raise GraphError(
            f"heads_axis {heads} of {list(x.shape)}, allowed the second or third axis from behind"
        )
    rows = x.shape[2 * rank - 5 - heads]
    if x.shape[-1] % 2 or cos.shape != (rows, x.shape[-1] // 2) or sin.shape != cos.shape:
        raise GraphError(
            f"angles have shapes {list(cos.shape)} and {list(sin.shape)}, "
            f"allowed {[rows, x.shape[-1] // 2]}"
        )
    return (ResultType(x.shape, plain(x)),)


def _rope(call: Call) -> tuple[Array, ...]:
    x, cos, sin = call.wide(0), call.wide(1), call.wide(2)
    if call.attributes["heads_axis"] == x.ndim - 2:
        cos, sin = cos[:, None, :], sin[:, None, :]
    half = x.shape[-1] // 2
    if call.attributes["interleaved"]:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., :half], x[..., half:]
    turned = first * cos - second * sin, first * sin + second * cos
    if call.attributes["interleaved"]:
        return (np.stack(turned, axis=-1).reshape(x.shape),)
    return (np.concatenate(turned, axis=-1),)


def _argmax_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, axis = known(types, 0), attributes["axis"]
    axis_of(axis, len(x.shape))
    middle = (1,) if attributes["keep"] else ()
    return (ResultType((*x.shape[:axis], *middle, *x.shape[axis + 1 :])),)


def _argmax(call: Call) -> tuple[Array, ...]:
    axis, keep = call.attributes["axis"], call.attributes["keep"]
    return (np.asarray(np.argmax(call.value(0), axis=axis, keepdims=keep)),)


def _softmax_length(known: Known, op: Operation) -> int:
    axis: int = op["axis"]
    return known.graph.type(op.inputs[0]).shape[axis]


def _norm_length(known: Known, op: Operation) -> int:
    shape = known.graph.type(op.inputs[0]).shape
    axes: int = op["axes"]
    return math.prod(shape[len(shape) - axes :])


KINDS = (
    Kind(
        name="softmax",
        group="rows",
        inputs=("x",),
        attributes={"axis": "int"},
        rule=_softmax_rule,
        meaning=_softmax,
        summary="Exponentials along an axis over their sum.",
        integer="x in units of 2^-6 binary logarithms, y/256: d = max - x, "
        "e = rs(T[d & 63], d >> 6) or 0 beyond 17, y = min(255, rs(e * R(S), 8 + msb(S))) with "
        "S the sum of e.",
        lowering="SOFTMAX on int16 rows; the GEMM before it requantises into the unit.",
        constraints=(
            read_by_no_logarithm,
            row("elements", _softmax_length),
            Constraint(
                "scores, as calibration sees them or given, lie within +-512 binary logarithms"
            ),
        ),
        sources={
            "onnx": ("Softmax",),
            "stablehlo": (
                "composite tessera.softmax",
                "pattern of exponential, reduce and divide",
            ),
            "tflite": ("SOFTMAX", "LOG_SOFTMAX"),
        },
        traits=frozenset({Trait.BYTES}),
        chip="SOFTMAX has the rows",
    ),
    Kind(
        name="layernorm",
        group="rows",
        inputs=("x", "gain?", "beta?"),
        attributes={"axes": "int", "epsilon": "float"},
        rule=_norm_rule,
        meaning=lambda call: _norm(call, True),
        summary="Rows of the trailing axes, less their mean, over their deviation, times gain, "
        "plus beta.",
        integer="As LAYERNORM of the instruction set, with gain uint16, shift uint8, beta int8 "
        "and epsilon uint64.",
        lowering="LAYERNORM; negative gains and a beta beyond int8 go into the linear operation "
        "behind it, or into a GEMM with diagonal tiles.",
        constraints=(
            constant("gain", 1),
            constant("beta", 2),
            epsilon_from_zero,
            row("elements", _norm_length),
        ),
        sources={
            "onnx": ("LayerNormalization",),
            "stablehlo": (
                "composite tessera.layer_norm",
                "pattern of reduce, subtract, rsqrt and multiply",
            ),
            "tflite": ("pattern of MEAN, SQUARED_DIFFERENCE and RSQRT",),
        },
        traits=frozenset({Trait.NORM}),
        chip="LAYERNORM has the rows",
    ),
    Kind(
        name="rmsnorm",
        group="rows",
        inputs=("x", "gain?"),
        attributes={"axes": "int", "epsilon": "float"},
        rule=_norm_rule,
        meaning=lambda call: _norm(call, False),
        summary="Rows of the trailing axes over the root of their mean square, times gain.",
        integer="As RMSNORM of the instruction set, with gain uint16, shift uint8 and epsilon "
        "uint64.",
        lowering="RMSNORM; negative gains go into the linear operation behind it, or into a GEMM "
        "with diagonal tiles.",
        constraints=(constant("gain", 1), epsilon_from_zero, row("elements", _norm_length)),
        sources={
            "onnx": ("RMSNormalization",),
            "stablehlo": (
                "composite tessera.rms_norm",
                "pattern of reduce, rsqrt and multiply",
            ),
            "tflite": ("pattern of MEAN and RSQRT",),
        },
        traits=frozenset({Trait.NORM}),
        chip="RMSNORM has the rows",
    ),
    Kind(
        name="rope",
        group="rows",
        inputs=("x", "cos", "sin"),
        attributes={"interleaved": "bool", "heads_axis": "int"},
        rule=_rope_rule,
        meaning=_rope,
        summary="Pairs of elements of each head turned by the angle of their row.",
        integer="As ROPE of the instruction set, with a table of int16 (S, D/2, 2) {cos, sin}.",
        lowering="ROPE with the table of cosines and sines in memory.",
        constraints=(
            constant("cos", 1),
            constant("sin", 2),
            cosines,
            Constraint("x and the result are int8 with one scale"),
        ),
        sources={
            "onnx": ("RotaryEmbedding",),
            "stablehlo": (
                "composite tessera.rope",
                "pattern of slice, negate, concatenate and multiply",
            ),
            "tflite": ("pattern of SLICE, NEG, CONCATENATION and MUL",),
        },
        traits=frozenset({Trait.BYTES}),
        chip="ROPE turns the heads",
    ),
    Kind(
        name="argmax",
        group="rows",
        inputs=("x",),
        attributes={"axis": "int", "keep": "bool"},
        rule=_argmax_rule,
        meaning=_argmax,
        summary="The index of the first largest element along an axis.",
        integer="None: the host computes with real numbers.",
        lowering="None: executed by the host.",
        constraints=(Constraint("none holds: the chip has no argmax of a tensor"),),
        sources={
            "onnx": ("ArgMax",),
            "stablehlo": ("reduce of two operands",),
            "tflite": ("ARG_MAX", "ARG_MIN"),
        },
    ),
)
