# SPDX-License-Identifier: Apache-2.0
"""Operations on each element: arithmetic of two tensors, functions of one variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from npu.graph.form import Array, GraphError
from npu.graph.operations.base import (
    Attributes,
    Call,
    Direct,
    Kind,
    Meaning,
    ResultType,
    Trait,
    Types,
    broadcast,
    known,
    plain,
)
from npu.graph.operations.constraints import (
    Constraint,
    jumps_of_given_integers,
    no_logarithm_of_softmax,
)
from npu.graph.operations.functions import apply, steps


def binary_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    """Return the broadcast shape and the common element type of two inputs."""
    a, b = known(types, 0), known(types, 1)
    return (ResultType(broadcast(a.shape, b.shape), plain(a, b)),)


def binary(function: Callable[..., Any]) -> Meaning:
    """Make the float meaning of a numpy function of two arrays."""

    def meaning(call: Call) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (np.asarray(function(call.wide(0), call.wide(1))),)

    return meaning


def unary_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    """Return the type of the input."""
    x = known(types, 0)
    return (ResultType(x.shape, plain(x)),)


def _clip(call: Call) -> tuple[Array, ...]:
    x = call.wide(0)
    low, high = call.attributes["low"], call.attributes["high"]
    if x.dtype.kind in "iu":
        edge = np.iinfo(x.dtype)
        return (np.clip(x, int(max(low, edge.min)), int(min(high, edge.max))),)
    return (np.minimum(np.maximum(x, low), high),)


def _table_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    list(steps(attributes["functions"], attributes["parameters"]))
    if not attributes["functions"]:
        raise GraphError("no function, allowed one or more")
    return unary_rule(attributes, types)


def _table(call: Call) -> tuple[Array, ...]:
    functions, parameters = call.attributes["functions"], call.attributes["parameters"]
    return (apply(functions, parameters, call.value(0).astype(np.float64)),)


_SAME = (
    Constraint(
        "both operands and the result have one shape, or one operand is broadcast over rows"
    ),
    Constraint(
        "both operands and the result have one element type, int8 or int16, and zero points of 0"
    ),
)
_TIED = (
    Constraint("both operands and the result have one scale, or go through int16"),
    *_SAME,
)


def _arithmetic(
    name: str,
    function: Callable[..., Any],
    summary: str,
    integer: str,
    lowering: str,
    chip: str,
    direct: Direct,
    traits: set[Trait],
    sources: Mapping[str, tuple[str, ...]] | None = None,
) -> Kind:
    return Kind(
        name=name,
        group="elementwise",
        inputs=("a", "b"),
        attributes={},
        rule=binary_rule,
        meaning=binary(function),
        summary=summary,
        integer=integer,
        lowering=lowering,
        chip=chip,
        constraints=_SAME if name == "mul" else _TIED,
        direct=direct,
        sources=sources or {},
        fused={"shift": "int"} if name == "mul" else {},
        traits=frozenset({Trait.POINTWISE, Trait.PAIR} | traits),
    )


KINDS = (
    _arithmetic(
        "add",
        np.add,
        "The sum of two tensors.",
        "y = sat(a + b).",
        "ADD of the GEMM that makes one side, else VEC ADD.",
        "VEC or the GEMM before it adds",
        ("Add", "add", "ADD"),
        {Trait.COMMUTES, Trait.SUM},
        {
            "onnx": ("Sum", "BatchNormalization"),
            "stablehlo": ("batch_norm_inference",),
            "tflite": ("ADD_N",),
        },
    ),
    _arithmetic(
        "sub",
        np.subtract,
        "The difference of two tensors.",
        "y = sat(a - b).",
        "VEC SUB.",
        "VEC subtracts",
        ("Sub", "subtract", "SUB"),
        {Trait.SUM},
        {"tflite": ("SQUARED_DIFFERENCE",)},
    ),
    _arithmetic(
        "mul",
        np.multiply,
        "The product of two tensors.",
        "y = sat(rs(a * b, shift)).",
        "MUL of the GEMM that makes one side, else VEC MUL.",
        "VEC or the GEMM before it multiplies",
        ("Mul", "multiply", "MUL"),
        {Trait.COMMUTES},
        {
            "onnx": ("SwiGLU", "BatchNormalization"),
            "stablehlo": ("batch_norm_inference",),
            "tflite": ("PRELU",),
        },
    ),
    _arithmetic(
        "max",
        np.maximum,
        "The larger of two tensors.",
        "y = max(a, b).",
        "VEC MAX.",
        "VEC compares",
        ("", "maximum", "MAXIMUM"),
        {Trait.COMMUTES, Trait.SHARES, Trait.WITHIN},
        {"onnx": ("Max",)},
    ),
    _arithmetic(
        "min",
        np.minimum,
        "The smaller of two tensors.",
        "y = min(a, b).",
        "VEC MIN.",
        "VEC compares",
        ("", "minimum", "MINIMUM"),
        {Trait.COMMUTES, Trait.SHARES, Trait.WITHIN},
        {"onnx": ("Min",)},
    ),
    Kind(
        name="clip",
        group="elementwise",
        inputs=("x",),
        attributes={"low": "float", "high": "float"},
        rule=unary_rule,
        meaning=_clip,
        summary="Each element, or the nearer of two bounds; a bound may be infinite.",
        integer="y = min(max(x, low_int), high_int).",
        lowering="Table of the GEMM before it, VEC TABLE, or VEC MAX and VEC MIN for int16.",
        constraints=(Constraint("the element type is int8 or int16, the same before and after"),),
        sources={
            "onnx": ("Clip",),
            "stablehlo": ("clamp",),
            "tflite": ("RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"),
        },
        fused={"low_int": "int", "high_int": "int"},
        traits=frozenset({Trait.POINTWISE}),
        chip="VEC or the GEMM before it clips",
    ),
    Kind(
        name="table",
        group="elementwise",
        inputs=("x",),
        attributes={"functions": "strings", "parameters": "floats"},
        rule=_table_rule,
        meaning=_table,
        summary="Functions of one variable, applied one after the other.",
        integer="y = table[x & 255].",
        lowering="Table of the GEMM before it, else VEC TABLE; a whole chain is one table.",
        constraints=(
            Constraint("the input is int8 or uint8 and the result int8"),
            jumps_of_given_integers,
            no_logarithm_of_softmax,
        ),
        sources={
            "onnx": (
                *("Relu", "Sigmoid", "Tanh", "Erf", "Gelu", "Swish", "Elu", "Celu", "Selu"),
                *("LeakyRelu", "HardSigmoid", "HardSwish", "ThresholdedRelu", "Softplus"),
                *("Softsign", "Mish", "Exp", "Log", "Sqrt", "Reciprocal", "Neg", "Abs", "Floor"),
                *("Ceil", "Round", "Sign", "Sin", "Cos", "PRelu", "Div", "Pow", "SwiGLU"),
            ),
            "stablehlo": (
                *("tanh", "logistic", "exponential", "log", "sqrt", "rsqrt", "negate", "abs"),
                *("floor", "ceil", "round_nearest_even", "sign", "sine", "cosine", "chlo.erf"),
                *("chlo.erfc", "chlo.square", "exponential_minus_one", "log_plus_one"),
                *("composite tessera.gelu", "composite tessera.silu"),
            ),
            "tflite": (
                *("RELU", "LOGISTIC", "TANH", "ELU", "LEAKY_RELU", "HARD_SWISH"),
                *("GELU", "EXP", "LOG", "SQRT", "RSQRT", "NEG", "ABS", "SQUARE", "FLOOR", "CEIL"),
                *("ROUND", "SIGN", "SIN", "COS", "PRELU", "SQUARED_DIFFERENCE", "LOG_SOFTMAX"),
            ),
        },
        traits=frozenset({Trait.POINTWISE, Trait.BYTES}),
        chip="a table of 256 entries in VEC or in the GEMM before it",
    ),
)
