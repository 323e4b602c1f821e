# SPDX-License-Identifier: Apache-2.0
"""Pools over windows of NHWC images and means over axes."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from npu.graph.form import Array, GraphError
from npu.graph.operations.base import (
    Attributes,
    Call,
    Kind,
    ResultType,
    Shape,
    Trait,
    Types,
    axis_of,
    exactly,
    known,
    padded_fits,
    plain,
    rank_of,
    windows_along,
)
from npu.graph.operations.constraints import Constraint, windows_in_image

_TAPS = 1 << 20
"""Elements of a window are walked through one by one."""


def _pool_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    batch, height, width, channels = rank_of("the image", x, 4)
    window, strides, pads = (attributes[name] for name in ("window", "strides", "pads"))
    dilations = attributes.get("dilations", (1, 1))
    for what, found, length in (
        ("window", window, 2),
        ("strides", strides, 2),
        ("pads", pads, 4),
        ("dilations", dilations, 2),
    ):
        exactly(what, found, length)
    if min(dilations) < 1:
        raise GraphError(f"dilations {list(dilations)}, allowed from 1")
    top, left, bottom, right = pads
    rows = windows_along(height, top, bottom, (window[0] - 1) * dilations[0] + 1, strides[0])
    columns = windows_along(width, left, right, (window[1] - 1) * dilations[1] + 1, strides[1])
    padded_fits(x.shape, pads)
    if math.prod(window) > _TAPS:
        raise GraphError(f"window {list(window)}, allowed up to {_TAPS:,} elements")
    return (ResultType((batch, rows, columns, channels), plain(x)),)


def _windows(x: Array, attributes: Attributes, fill: float) -> Array:
    """Return (B, OH, OW, C, KH, KW), a view of the padded image."""
    top, left, bottom, right = attributes["pads"]
    rows, columns = attributes["window"]
    down, across = attributes.get("dilations", (1, 1))
    step_down, step_across = attributes["strides"]
    image = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    reach = ((rows - 1) * down + 1, (columns - 1) * across + 1)
    return sliding_window_view(image, reach, axis=(1, 2))[
        :, ::step_down, ::step_across, :, ::down, ::across
    ]


def _fold(windows: Array, ufunc: np.ufunc) -> Array:
    """Combine the taps of all windows, one plane after the other."""
    total: Array = windows[..., 0, 0].copy()
    for row in range(windows.shape[-2]):
        for column in range(windows.shape[-1]):
            if row or column:
                ufunc(total, windows[..., row, column], out=total)
    return total


def _maxpool(call: Call) -> tuple[Array, ...]:
    x = call.value(0)
    lowest = -math.inf if x.dtype.kind == "f" else int(np.iinfo(x.dtype).min)
    return (_fold(_windows(x, call.attributes, lowest), np.maximum),)


def _avgpool(call: Call) -> tuple[Array, ...]:
    x, attributes = call.value(0).astype(np.float64), call.attributes
    total = _fold(_windows(x, attributes, 0.0), np.add)
    if attributes["count_pads"]:
        return (total / math.prod(attributes["window"]),)
    ones = np.ones((1, *x.shape[1:3], 1))
    with np.errstate(all="ignore"):
        return (total / _fold(_windows(ones, attributes, 0.0), np.add),)


def reduced(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    """Return the shape after a reduction. Raises GraphError for axes twice or out of range."""
    for axis in axes:
        axis_of(axis, len(shape))
    if len(set(axes)) != len(axes):
        raise GraphError(f"axes {list(axes)}, allowed each once")
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _mean_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    return (ResultType(reduced(x.shape, attributes["axes"], attributes["keep"]), plain(x)),)


def _mean(call: Call) -> tuple[Array, ...]:
    x, attributes = call.value(0).astype(np.float64), call.attributes
    with np.errstate(all="ignore"):
        return (np.asarray(x.mean(axis=attributes["axes"], keepdims=attributes["keep"])),)


_IMAGES = Constraint("the image is int8, the result has the same scale and zero point")

KINDS = (
    Kind(
        name="maxpool",
        group="windows",
        inputs=("x",),
        attributes={"window": "ints", "strides": "ints", "pads": "ints", "dilations": "ints"},
        rule=_pool_rule,
        meaning=_maxpool,
        summary="The largest element of each window; pads never win.",
        integer="The largest integer of each window, pads count as -128.",
        lowering="VEC MAX over whole rows, then over neighbours.",
        constraints=(_IMAGES, windows_in_image),
        sources={
            "onnx": ("MaxPool", "GlobalMaxPool"),
            "stablehlo": ("reduce_window of maximum",),
            "tflite": ("MAX_POOL_2D",),
        },
        traits=frozenset({Trait.BYTES, Trait.SHARES}),
        chip="VEC compares rows and neighbours",
    ),
    Kind(
        name="avgpool",
        group="windows",
        inputs=("x",),
        attributes={"window": "ints", "strides": "ints", "pads": "ints", "count_pads": "bool"},
        rule=_pool_rule,
        meaning=_avgpool,
        summary="The mean of each window, over all of its elements or those inside the image.",
        integer="acc = weight * sum over the window inside the image; "
        "y = sat8(rs((acc + bias) * mult, shift)), bias, mult and shift per place of the window.",
        lowering="GEMM with a row of equal weights over the rows of each window, the factor "
        "contains the divisor.",
        constraints=(
            Constraint("the image and the result are int8, each with one scale"),
            windows_in_image,
        ),
        sources={
            "onnx": ("AveragePool",),
            "stablehlo": ("reduce_window of add and divide",),
            "tflite": ("AVERAGE_POOL_2D", "L2_POOL_2D"),
        },
        fused={"weight": "int"},
        traits=frozenset({Trait.BYTES}),
        chip="GEMM with equal weights adds the windows",
    ),
    Kind(
        name="mean",
        group="windows",
        inputs=("x",),
        attributes={"axes": "ints", "keep": "bool"},
        rule=_mean_rule,
        meaning=_mean,
        summary="The mean over axes.",
        integer="acc = weight * sum over the axes; y = sat8(rs((acc + bias) * mult, shift)).",
        lowering="GEMM with a row of equal weights as A, the factor contains the divisor; over "
        "others than the axes before the last, a transposition and a column of such weights as B.",
        constraints=(
            Constraint("an axis is left"),
            Constraint("the input and the result are int8, each with one scale"),
        ),
        sources={
            "onnx": ("GlobalAveragePool", "ReduceMean"),
            "stablehlo": ("reduce of add and divide",),
            "tflite": ("MEAN",),
        },
        fused={"weight": "int"},
        traits=frozenset({Trait.BYTES}),
        chip="GEMM with equal weights adds",
    ),
)
