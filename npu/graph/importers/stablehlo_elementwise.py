# SPDX-License-Identifier: Apache-2.0
"""StableHLO operations on each element, and constants."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Element, GraphError, TensorType
from npu.graph.importers.assemble import UNIT
from npu.graph.importers.stablehlo_step import Handler, Step, narrow, retyped
from npu.graph.operations import direct

_DIRECT = {f"stablehlo.{name}": kind for name, kind in direct("stablehlo").items()}
_UNARY: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "stablehlo.tanh": (("tanh",), ()),
    "stablehlo.logistic": (("sigmoid",), ()),
    "stablehlo.exponential": (("exp",), ()),
    "stablehlo.exponential_minus_one": (("exp", "shift"), (-1.0,)),
    "stablehlo.log": (("log",), ()),
    "stablehlo.log_plus_one": (("shift", "log"), (1.0,)),
    "stablehlo.sqrt": (("sqrt",), ()),
    "stablehlo.rsqrt": (("rsqrt",), ()),
    "stablehlo.negate": (("neg",), ()),
    "stablehlo.abs": (("abs",), ()),
    "stablehlo.sign": (("sign",), ()),
    "stablehlo.floor": (("floor",), ()),
    "stablehlo.ceil": (("ceil",), ()),
    "stablehlo.round_nearest_even": (("round",), ()),
    "stablehlo.sine": (("sin",), ()),
    "stablehlo.cosine": (("cos",), ()),
    "chlo.erf": (("erf",), ()),
    "chlo.erfc": (("erf", "neg", "shift"), (1.0,)),
    "chlo.square": (("square",), ()),
}
_NOTES = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device")
_COMPARED = {"f": "FLOAT", "i": "SIGNED", "u": "UNSIGNED", "b": "UNSIGNED"}
# Sums of int32 tensors whose float values are known stay known.
_LINEAR = frozenset({"add", "sub", "mul"})


def constant(step: Step) -> str:
    """Map a constant."""
    value = step.attribute("value")
    try:
        array = np.array(value)
        if array.dtype == object or array.shape != step.type.shape:
            raise ValueError("not dense")
        array = array.astype(step.type.element.dtype)
    except (ValueError, TypeError, BufferError) as error:
        raise step.error(f"value cannot be read: {error}, allowed dense numbers") from None
    return step.build.constant(array, step.wish)


def plain(step: Step) -> str | None:
    """Map an operation of tensors alone; broadcasts of operands become implicit."""
    kind = _DIRECT[step.source]
    if kind in ("and", "or", "xor") and step.type.element == Element.F32:
        return None
    real = _real_sum(step, kind)
    if real is not None:
        return real
    return step.emit(kind, narrow(step, step.inputs))


def _real_sum(step: Step, kind: str) -> str | None:
    """Compute with the floats that int32 tensors came from, as far as they are known."""
    if kind not in _LINEAR or step.type.element != Element.I32:
        return None
    reals = [step.build.real(name) for name in step.inputs]
    if not any(reals):
        return None
    inputs = []
    for name, real in zip(step.inputs, reals, strict=True):
        value = step.build.value(name)
        if real is None and value is None:
            return None
        if real is None and value is not None:
            real = step.build.constant(value.astype(np.float32), f"{name}.real")
        inputs.append(real or "")
    found = retyped(step.type, Element.F32)
    made = step.also(kind, narrow(step, inputs), "real", found)
    return integers(step, made)


def integers(step: Step, real: str) -> str:
    """Return int32 of scale 1 from floats that are whole numbers; the floats stay known."""
    found = TensorType(step.type.shape, step.type.element, UNIT)
    return step.build.quantise(real, step.wish, found, step.source)


def unary(step: Step) -> str | None:
    """Map a function of one variable."""
    if step.type.element not in (Element.F32, Element.F16, Element.F64, Element.I32, Element.I64):
        return None
    if step.has("result_accuracy") and "<DEFAULT>" not in str(step.attribute("result_accuracy")):
        step.refuse("result_accuracy")
    functions, parameters = _UNARY[step.source]
    return step.emit("table", functions=functions, parameters=parameters)


def convert(step: Step) -> str:
    """Map a conversion: of quantised integers to floats it is the end of the quantised part."""
    (name,) = step.inputs
    real = step.build.real(name)
    if real is not None and step.type.element == Element.F32:
        return real
    found = step.build.type(name)
    if found.quantisation is not None and step.type.element == Element.F32:
        return step.build.dequantise(name, step.source)
    return step.build.cast(_within(step, name), step.type.element, step.source, step.wish)


def _within(step: Step, name: str) -> str:
    """Return floats as what an integer type can hold, which is what XLA makes of others."""
    source, element = step.build.type(name), step.type.element
    if source.element.dtype.kind != "f" or element.dtype.kind not in "iu":
        return name
    limits = np.iinfo(element.dtype)
    low, high = float(limits.min), float(limits.max)
    made = step.build.producer(name)
    if limits.bits > 32 or (
        made is not None and made.kind == "clip" and low <= made["low"] and made["high"] <= high
    ):
        return name
    if source.element == Element.F16:
        name = step.build.cast(name, Element.F32, step.source, f"{step.wish}.real")
    if source.element != Element.F64 and limits.bits == 32:
        # The greatest number is no float32: it is met on the way.
        wide = step.also("clip", [name], "near", low=low, high=high + 1)
        name = step.build.cast(wide, Element.I64, step.source, f"{step.wish}.wide")
    return step.also("clip", [name], "within", low=low, high=high)


def clamp(step: Step) -> str:
    """Map a clamp: with constant scalars a clip."""
    low, high = step.scalar(0), step.scalar(2)
    if low is not None and high is not None:
        return step.emit("clip", [step.inputs[1]], low=low, high=high)
    narrowed = narrow(step, [step.inputs[1], step.inputs[2]])
    upper = step.also("min", narrowed, "min", step.type)
    return step.emit("max", narrow(step, [upper, step.inputs[0]]))


def compare(step: Step) -> str:
    """Map a comparison."""
    direction = last_word(step.attribute("comparison_direction"))
    if step.has("compare_type"):
        kind = step.build.type(step.inputs[0]).element.dtype.kind
        if last_word(step.attribute("compare_type")) != _COMPARED[kind]:
            step.refuse("compare_type")
    return step.emit("compare", narrow(step, step.inputs), direction=direction)


def last_word(attribute: object) -> str:
    """Return the value of an attribute that is one of a list of words."""
    return str(attribute).removesuffix(">").split()[-1]


def finite(step: Step) -> str | None:
    """Map the question whether a number is finite: its magnitude is below infinity."""
    found = step.build.type(step.inputs[0])
    if found.element != Element.F32:
        return None
    size = step.also(
        "table", step.inputs, "size", found,
        functions=("abs",), parameters=(),
    )  # fmt: skip
    edge = step.build.constant(np.array(np.inf, np.float32), f"{step.wish}.edge")
    return step.emit("compare", [size, edge], direction="LT")


def same(step: Step) -> tuple[str, ...]:
    """Map what changes nothing."""
    return step.inputs


def custom_call(step: Step) -> tuple[str, ...] | None:
    """Map calls that only say something to the compiler; others are not known."""
    target = str(step.attribute("call_target_name").value)
    if len(step.inputs) == len(step.results) and target in _NOTES:
        return step.inputs
    if target == "shape_assertion":
        return ()
    return None


def composite_scale(value: float, what: str) -> float:
    """Return a scale. Raises GraphError unless it is a positive finite number."""
    if not (math.isfinite(value) and value > 0):
        raise GraphError(f"{what} {value}, allowed finite numbers above 0")
    return value


HANDLERS: dict[str, Handler] = {
    "stablehlo.constant": constant,
    **dict.fromkeys(_DIRECT, plain),
    **dict.fromkeys(_UNARY, unary),
    "stablehlo.convert": convert,
    "stablehlo.clamp": clamp,
    "stablehlo.compare": compare,
    "stablehlo.is_finite": finite,
    "stablehlo.optimization_barrier": same,
    "stablehlo.custom_call": custom_call,
}
