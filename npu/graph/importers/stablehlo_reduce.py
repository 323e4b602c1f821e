# SPDX-License-Identifier: Apache-2.0
"""StableHLO reductions over axes and over windows."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Element, TensorType
from npu.graph.importers.stablehlo_elementwise import last_word
from npu.graph.importers.stablehlo_linear import flat
from npu.graph.importers.stablehlo_step import Handler, Step, narrow

_BODIES = {
    "stablehlo.add": ("sum", "add", 0.0),
    "stablehlo.multiply": ("prod", "mul", 1.0),
    "stablehlo.maximum": ("max", "max", -math.inf),
    "stablehlo.minimum": ("min", "min", math.inf),
    "stablehlo.and": ("min", "min", math.inf),
    "stablehlo.or": ("max", "max", -math.inf),
}
_BITWISE = ("stablehlo.and", "stablehlo.or")


def _body(step: Step) -> str | None:
    """Return the one operation of both arguments that a reduction applies, if it is one."""
    block = step.operation.regions[0].blocks[0]
    found = [op.operation for op in block.operations]
    if len(found) != 2 or found[0].name not in _BODIES:
        return None
    if set(found[0].operands) != set(block.arguments):
        return None
    return str(found[0].name)


def _neutral(step: Step, index: int, value: float) -> bool:
    """Say whether the first value of a reduction changes nothing."""
    given = step.scalar(index)
    if given is None:
        return False
    element = step.build.type(step.inputs[index]).element
    if element == Element.BOOL:
        return given == (value > 0)
    if math.isinf(value) and np.dtype(element).kind in "iu":
        edge = np.iinfo(element.dtype)
        value = edge.max if value > 0 else edge.min
    return given == value or (math.isinf(value) and abs(given) > 3e38 and given * value > 0)


def reduce(step: Step) -> str | tuple[str, ...] | None:
    """Map a reduction over axes."""
    axes = tuple(sorted(step.ints("dimensions")))
    if len(step.inputs) == 4:
        return _largest(step, axes)
    body = _body(step) if len(step.inputs) == 2 else None
    if body is None:
        return None
    if body in _BITWISE and step.type.element != Element.BOOL:
        return None
    function, kind, neutral = _BODIES[body]
    x = [step.inputs[0]]
    if _neutral(step, 1, neutral):
        return step.emit("reduce", x, axes=axes, keep=False, function=function)
    if kind in ("min", "max") and step.type.element == Element.BOOL:
        return None
    made = step.also(
        "reduce", x, "rest", step.type,
        axes=axes, keep=False, function=function,
    )  # fmt: skip
    return step.emit(kind, narrow(step, [made, step.inputs[1]]))


def _largest(step: Step, axes: tuple[int, ...]) -> tuple[str, ...] | None:
    """Map the reduction of values and indices that finds the first largest value."""
    names = [op.operation.name for op in step.operation.regions[0].blocks[0].operations]
    directions = [
        last_word(op.operation.attributes["comparison_direction"])
        for op in step.operation.regions[0].blocks[0].operations
        if op.operation.name == "stablehlo.compare"
    ]
    places = step.build.value(step.inputs[1])
    # As jax writes argmax: larger or not a number, equal and an earlier index.
    known = (
        sorted(names)
        == sorted(
            ["stablehlo.compare"] * 4
            + ["stablehlo.or"] * 2
            + ["stablehlo.select"] * 2
            + ["stablehlo.and", "stablehlo.return"]
        )
        and directions == ["GT", "NE", "EQ", "LT"]
        and len(axes) == 1
        and places is not None
    )
    if not known or places is None:
        return None
    line = np.arange(places.shape[axes[0]]).reshape(
        [-1 if axis == axes[0] else 1 for axis in range(places.ndim)]
    )
    if not np.array_equal(places, np.broadcast_to(line, places.shape)):
        return None
    x = [step.inputs[0]]
    value = step.also(
        "reduce", x, "value", step.results[0],
        axes=axes, keep=False, function="max",
    )  # fmt: skip
    place = step.also(
        "argmax",
        x,
        "",
        step.results[1],
        axis=axes[0],
        keep=False,
    )
    return value, place


def reduce_window(step: Step) -> str | None:
    """Map a largest value or a sum over windows of images, NHWC or NCHW, or of lines."""
    body = _body(step) if len(step.inputs) == 2 else None
    if body not in ("stablehlo.add", "stablehlo.maximum") or step.type.element != Element.F32:
        return None
    rank = len(step.type.shape)
    ones = (1,) * rank
    window, strides = step.ints("window_dimensions"), step.ints("window_strides", ones)
    dilations = step.ints("window_dilations", ones)
    step.only("base_dilations", 1, rank)
    pads = np.array(step.ints("padding", (0,) * 2 * rank)).reshape(rank, 2)
    moved = [
        axis for axis in range(rank) if window[axis] != 1 or strides[axis] != 1 or pads[axis].any()
    ]
    spatial = _spatial(rank, moved)
    known = (
        spatial is not None
        and pads.min(initial=0) >= 0
        and _neutral(step, 1, _BODIES[body][2])
        and (body == "stablehlo.maximum" or all(one == 1 for one in dilations))
    )
    if not known or spatial is None:
        return None
    build = step.build
    order = [axis for axis in range(rank) if axis not in spatial]
    order = [order[0], *spatial, *order[1:]]
    x = build.transpose(step.inputs[0], order, step.source)
    lying = [step.type.shape[axis] for axis in order]
    takes = [tuple(one[axis] for axis in spatial) for one in (window, strides, dilations)]
    edges = [tuple(int(one) for one in pads[axis]) for axis in spatial]
    if len(spatial) == 1:
        x = flat(build, x, 1, step.source)
        takes, edges = [(1, *one) for one in takes], [(0, 0), *edges]
    image = TensorType((lying[0], 1, *lying[1:]) if rank == 3 else tuple(lying), Element.F32)
    made = _pool(step, x, image, takes, (edges[0][0], edges[1][0], edges[0][1], edges[1][1]))
    made = build.reshape(made, lying, step.source)
    back = [order.index(axis) for axis in range(rank)]
    return build.transpose(made, back, step.source, step.wish)


def _spatial(rank: int, moved: list[int]) -> tuple[int, ...] | None:
    """Return the axes of a picture that a window moves over: inner ones first, then last ones."""
    choices: dict[int, tuple[tuple[int, ...], ...]] = {4: ((1, 2), (2, 3)), 3: ((1,), (2,))}
    for choice in choices.get(rank, ()):
        if set(moved) <= set(choice):
            return choice
    return None


def _pool(
    step: Step,
    x: str,
    found: TensorType,
    takes: list[tuple[int, ...]],
    pads: tuple[int, int, int, int],
) -> str:
    window, strides, dilations = takes
    if _body(step) == "stablehlo.maximum":
        return step.also(
            "maxpool", [x], "", found,
            window=window, strides=strides, pads=pads, dilations=dilations,
        )  # fmt: skip
    mean = step.also(
        "avgpool", [x], "mean", found,
        window=window, strides=strides, pads=pads, count_pads=True,
    )  # fmt: skip
    count = step.build.constant(np.array(math.prod(window), np.float32), f"{step.wish}.count")
    return step.also("mul", [mean, count], "", found)


HANDLERS: dict[str, Handler] = {
    "stablehlo.reduce": reduce,
    "stablehlo.reduce_window": reduce_window,
}
