# SPDX-License-Identifier: Apache-2.0
"""Functions of one variable: what a table holds, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu.graph.form import Array, GraphError

_erf = np.frompyfunc(math.erf, 1, 1)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one variable.

    Attributes:
        parameters: their names; their number counts.
        value: float64 array and parameters to float64 array.
    """

    parameters: tuple[str, ...]
    value: Callable[..., Any]


def erf(x: Array) -> Array:
    """Return the error function of float64 numbers."""
    result: Array = np.asarray(_erf(x)).astype(np.float64)
    return result


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    result: Array = 1.0 / (1.0 + np.exp(-x))
    return result


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)) without overflow."""
    result: Array = np.logaddexp(0.0, x)
    return result


def _gelu_tanh(x: Array) -> Any:  # noqa: ANN401
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _elu(x: Array, alpha: float) -> Any:  # noqa: ANN401
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _selu(x: Array, alpha: float, gamma: float) -> Any:  # noqa: ANN401
    return gamma * _elu(x, alpha)


def _celu(x: Array, alpha: float) -> Any:  # noqa: ANN401
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Any:  # noqa: ANN401
    return np.clip(alpha * x + beta, 0.0, 1.0)


FUNCTIONS: dict[str, Function] = {
    "relu": Function((), lambda x: np.maximum(x, 0.0)),
    "sigmoid": Function((), sigmoid),
    "tanh": Function((), np.tanh),
    "erf": Function((), erf),
    "gelu": Function((), lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))),
    "gelu_tanh": Function((), _gelu_tanh),
    "silu": Function((), lambda x: x * sigmoid(x)),
    "swish": Function(("alpha",), lambda x, alpha: x * sigmoid(alpha * x)),
    "elu": Function(("alpha",), _elu),
    "celu": Function(("alpha",), _celu),
    "selu": Function(("alpha", "gamma"), _selu),
    "leaky_relu": Function(("alpha",), lambda x, alpha: np.where(x < 0, alpha * x, x)),
    "hard_sigmoid": Function(("alpha", "beta"), _hard_sigmoid),
    "hard_swish": Function((), lambda x: x * _hard_sigmoid(x, 1.0 / 6.0, 0.5)),
    "thresholded_relu": Function(("alpha",), lambda x, alpha: np.where(x > alpha, x, 0.0)),
    "softplus": Function((), softplus),
    "softsign": Function((), lambda x: x / (1.0 + np.abs(x))),
    "mish": Function((), lambda x: x * np.tanh(softplus(x))),
    "exp": Function((), np.exp),
    "log": Function((), np.log),
    "sqrt": Function((), np.sqrt),
    "rsqrt": Function((), lambda x: 1.0 / np.sqrt(x)),
    "reciprocal": Function((), lambda x: 1.0 / x),
    "neg": Function((), np.negative),
    "abs": Function((), np.abs),
    "square": Function((), np.square),
    "floor": Function((), np.floor),
    "ceil": Function((), np.ceil),
    "round": Function((), np.rint),
    "sign": Function((), np.sign),
    "sin": Function((), np.sin),
    "cos": Function((), np.cos),
    "scale": Function(("factor",), lambda x, factor: x * factor),
    "shift": Function(("addend",), lambda x, addend: x + addend),
    "clip": Function(("low", "high"), lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "power": Function(("exponent",), np.power),
}


def steps(
    functions: Sequence[str], parameters: Sequence[float]
) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield each function with its parameters.

    Raises:
        GraphError: a function is unknown, or the number of parameters is wrong.
    """
    position = 0
    for name in functions:
        if name not in FUNCTIONS:
            raise GraphError(f"function {name!r}, allowed {', '.join(FUNCTIONS)}")
        after = position + len(FUNCTIONS[name].parameters)
        if after > len(parameters):
            break
        yield name, tuple(parameters[position:after])
        position = after
    expected = sum(len(FUNCTIONS[name].parameters) for name in functions)
    if expected != len(parameters):
        raise GraphError(f"{len(parameters)} parameters, {' '.join(functions)} takes {expected}")


def apply(functions: Sequence[str], parameters: Sequence[float], x: Array) -> Array:
    """Apply functions one after the other, first to last.

    Args:
        functions: names.
        parameters: those of all functions in order.
        x: float64 of any shape.

    Returns:
        float64 of the same shape.
    """
    with np.errstate(all="ignore"):
        for name, values in steps(functions, parameters):
            x = np.asarray(FUNCTIONS[name].value(x, *values))
    return x
