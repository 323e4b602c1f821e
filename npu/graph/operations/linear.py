# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions."""

from __future__ import annotations

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
    broadcast,
    exactly,
    given,
    known,
    padded_fits,
    plain,
    rank_of,
    windows_along,
)
from npu.graph.operations.constraints import (
    NO_OVERFLOW,
    constant,
    filter_size,
    given_as_bytes,
    matmul_columns,
    matmul_depth,
    scales_beside_sums,
)

_STRIP_BYTES = 1 << 25
_POST = (
    "v = acc + bias[n]; y = sat(rs(v * mult[n], shift[n])); relu; table; then combine with the "
    "last input: add y = sat(y + d), mul y = sat8(rs(y * d * product_mult, product_shift)). "
    "Without mult the result is the int32 accumulator with its bias."
)
_FUSED = {
    "relu": "bool",
    "combine": "str",
    "product_mult": "int",
    "product_shift": "int",
}


def _check_last(attributes: Attributes, types: Types, result: Shape, columns: int) -> None:
    """Check the third input: a bias before the pass `fuse`, what is combined after it."""
    last = given(types, 2)
    if last is None:
        return
    if attributes.get("combine"):
        if last.shape != result:
            raise GraphError(f"{attributes['combine']} of {list(last.shape)} to {list(result)}")
    elif last.shape != (columns,):
        raise GraphError(f"bias has shape {list(last.shape)}, allowed {[columns]}")


def _matmul_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    a, b = known(types, 0), known(types, 1)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise GraphError(f"shapes {list(a.shape)} and {list(b.shape)}, allowed rank 2 and more")
    rows, inner = a.shape[-2:][::-1] if attributes["transpose_a"] else a.shape[-2:]
    depth, columns = b.shape[-2:][::-1] if attributes["transpose_b"] else b.shape[-2:]
    if inner != depth:
        raise GraphError(
            f"inner axes differ: {inner} of {list(a.shape)} and {depth} of {list(b.shape)}"
        )
    shape = (*broadcast(a.shape[:-2], b.shape[:-2]), rows, columns)
    _check_last(attributes, types, shape, columns)
    return (ResultType(shape, plain(a, b)),)


def _matmul(call: Call) -> tuple[Array, ...]:
    a, b, bias = call.wide(0), call.wide(1), call.optional(2)
    if a.dtype.kind in "iu":
        a, b = a.astype(np.int64), b.astype(np.int64)
    if call.attributes["transpose_a"]:
        a = a.swapaxes(-1, -2)
    if call.attributes["transpose_b"]:
        b = b.swapaxes(-1, -2)
    with np.errstate(all="ignore"):
        product = np.matmul(a, b)
        return (product if bias is None else product + bias,)


def _conv_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, w = known(types, 0), known(types, 1)
    batch, height, width, channels = rank_of("the image", x, 4)
    kernel_height, kernel_width, depth, filters = rank_of("the filter", w, 4)
    strides, pads, dilations = (attributes[name] for name in ("strides", "pads", "dilations"))
    exactly("strides", strides, 2)
    exactly("pads", pads, 4)
    exactly("dilations", dilations, 2)
    groups = attributes["groups"]
    if groups < 1 or channels != depth * groups or filters % groups:
        raise GraphError(
            f"{channels} channels, filter {list(w.shape)}, {groups} groups: allowed channels = "
            "groups * channels of the filter, filters a multiple of groups"
        )
    if min(dilations) < 1:
        raise GraphError(f"dilations {list(dilations)}, allowed from 1")
    top, left, bottom, right = pads
    rows = windows_along(height, top, bottom, (kernel_height - 1) * dilations[0] + 1, strides[0])
    columns = windows_along(width, left, right, (kernel_width - 1) * dilations[1] + 1, strides[1])
    padded_fits(x.shape, pads)
    shape = (batch, rows, columns, filters)
    _check_last(attributes, types, shape, filters)
    return (ResultType(shape, plain(x, w)),)


def _conv(call: Call) -> tuple[Array, ...]:
    x, w, bias = call.value(0), call.value(1), call.optional(2)
    product = convolve(
        x,
        w,
        call.attributes["strides"],
        call.attributes["pads"],
        call.attributes["dilations"],
        call.attributes["groups"],
    )
    return (product if bias is None else product + bias,)


def convolve(
    x: Array,
    w: Array,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
) -> Array:
    """Convolve images with filters, as im2col and matrix products in float64.

    Args:
        x: (B, H, W, C).
        w: (KH, KW, C / groups, O).
        strides: vertical, horizontal.
        pads: top, left, bottom, right, with 0.
        dilations: vertical, horizontal.
        groups: of channels.

    Returns:
        (B, OH, OW, O) float64.
    """
    top, left, bottom, right = pads
    image = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    reach = tuple((w.shape[axis] - 1) * dilations[axis] + 1 for axis in (0, 1))
    windows = sliding_window_view(image, reach, axis=(1, 2))[
        :, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]
    ].transpose(0, 1, 2, 4, 5, 3)
    if groups == 1:
        return _products(windows, w)
    if w.shape[2] == 1 and w.shape[3] == groups:
        return _depthwise(windows, w)
    depth, filters = w.shape[2], w.shape[3] // groups
    return np.concatenate(
        [
            _products(
                windows[..., one * depth : (one + 1) * depth],
                w[..., one * filters : (one + 1) * filters],
            )
            for one in range(groups)
        ],
        axis=-1,
    )


def _products(windows: Array, w: Array) -> Array:
    """Multiply windows (B, OH, OW, KH, KW, C) with filters, in strips of output rows."""
    batch, rows, columns = windows.shape[:3]
    matrix = w.reshape(-1, w.shape[-1]).astype(np.float64)
    result = np.empty((batch, rows, columns, w.shape[-1]))
    step = max(1, _STRIP_BYTES // (8 * columns * matrix.shape[0]))
    for image in range(batch):
        for row in range(0, rows, step):
            strip = windows[image, row : row + step]
            flat = strip.astype(np.float64, order="C").reshape(-1, matrix.shape[0])
            result[image, row : row + step] = (flat @ matrix).reshape(-1, columns, matrix.shape[1])
    return result


def _depthwise(windows: Array, w: Array) -> Array:
    """Add up one product per tap: each channel has one filter of its own."""
    total = np.zeros((*windows.shape[:3], windows.shape[-1]))
    for row in range(w.shape[0]):
        for column in range(w.shape[1]):
            total += windows[:, :, :, row, column] * w[row, column, 0].astype(np.float64)
    return total


KINDS = (
    Kind(
        name="matmul",
        group="linear",
        inputs=("a", "b", "bias?"),
        attributes={"transpose_a": "bool", "transpose_b": "bool"},
        rule=_matmul_rule,
        meaning=_matmul,
        summary="The matrix product of the last two axes, batch axes broadcast, plus a bias "
        "per column.",
        integer="acc = sum (a - a_zero) * (b - b_zero). " + _POST,
        lowering="GEMM: a constant b comes from the stream with a factor per column, another one "
        "from SRAM, transposed by T, with one factor; bias, table and addend in the same "
        "instruction.",
        constraints=(
            matmul_depth,
            matmul_columns,
            constant("bias", 2),
            given_as_bytes("both sides", 0, 1),
            scales_beside_sums,
            NO_OVERFLOW,
        ),
        sources={
            "onnx": (
                "MatMul",
                "Gemm",
                "QLinearMatMul",
                "MatMulInteger",
            ),
            "stablehlo": ("dot_general", "dot"),
            "tflite": ("FULLY_CONNECTED", "BATCH_MATMUL", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"),
        },
        fused={**_FUSED, "a_zero": "int", "b_zero": "int"},
        traits=frozenset({Trait.PRODUCT}),
        chip="GEMM multiplies matrices",
    ),
    Kind(
        name="conv",
        group="linear",
        inputs=("x", "w", "bias?"),
        attributes={"strides": "ints", "pads": "ints", "dilations": "ints", "groups": "int"},
        rule=_conv_rule,
        meaning=_conv,
        summary="The two-dimensional convolution of NHWC images with HWIO filters, padded with "
        "zeros, plus a bias per filter.",
        integer="acc = sum over taps of (x - x_zero) * (w - w_zero), the border holds pad_value. "
        + _POST,
        lowering="GEMM multiplies windows with the filters from the stream: of 2 to 4 rows as "
        "lines of the image where that is faster, else in rows that COPY2D makes, or the host "
        "where it hands over an image of few channels; one by one a plain GEMM, depthwise a GEMM "
        "of neighbouring pixels up to 4 by 4 taps, else diagonal tiles; groups one GEMM each or "
        "diagonal blocks.",
        constraints=(
            constant("filter", 1),
            constant("bias", 2),
            filter_size,
            given_as_bytes("the filter", 1),
            scales_beside_sums,
            NO_OVERFLOW,
        ),
        sources={
            "onnx": ("Conv", "QLinearConv", "ConvInteger"),
            "stablehlo": ("convolution",),
            "tflite": ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"),
        },
        fused={**_FUSED, "pad_value": "int", "x_zero": "int", "w_zero": "int"},
        traits=frozenset({Trait.PRODUCT, Trait.BYTES}),
        chip="GEMM multiplies the windows with the filters",
    ),
)
