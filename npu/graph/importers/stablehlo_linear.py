# SPDX-License-Identifier: Apache-2.0
"""StableHLO products: dot_general as matmul, convolution as conv of NHWC and HWIO."""

from __future__ import annotations

import math
from typing import Any

from npu.graph.form import Element, TensorType
from npu.graph.importers.assemble import Assembler
from npu.graph.importers.stablehlo_elementwise import integers
from npu.graph.importers.stablehlo_step import Handler, Step

_BYTES = frozenset({Element.I8, Element.U8})


def operands(step: Step) -> tuple[str, str] | None:
    """Return both operands as floats: of int8 with int32 result those that they stand for.

    None for integers of other widths, which have no float meaning that is exact.
    """
    if step.type.element == Element.F32:
        a, b = (step.build.cast(name, Element.F32, step.source) for name in step.inputs)
        return a, b
    if step.type.element != Element.I32:
        return None
    found = []
    for name in step.inputs:
        made = step.build.producer(name)
        if made is not None and made.kind == "cast":
            name = made.inputs[0]
        if step.build.type(name).element not in _BYTES:
            return None
        found.append(step.build.dequantise(name, step.source))
    return found[0], found[1]


def finished(step: Step, name: str) -> str:
    """Return the product as the source has it: int32 of scale 1 where it says so."""
    return integers(step, name) if step.type.element == Element.I32 else name


def _wish(step: Step) -> str:
    return f"{step.wish}.real" if step.type.element == Element.I32 else step.wish


def dot_general(step: Step) -> str | None:
    """Map a product: transposes and reshapes to batches of matrices, and back."""
    from jaxlib.mlir.dialects import stablehlo

    both = operands(step)
    if both is None:
        return None
    if step.has("algorithm") and not _plain(stablehlo.DotAlgorithm(step.attribute("algorithm"))):
        step.refuse("algorithm")
    numbers = stablehlo.DotDimensionNumbers(step.attribute("dot_dimension_numbers"))
    return product(
        step,
        both,
        (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)),
        (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)),
    )


def _plain(algorithm: Any) -> bool:  # noqa: ANN401
    """Say whether a product is to be computed in float32 alone, as one without algorithm is."""
    sides = ("lhs_precision_type", "rhs_precision_type", "accumulation_type")
    counts = ("lhs_component_count", "rhs_component_count", "num_primitive_operations")
    floats = all(str(getattr(algorithm, name)) == "f32" for name in sides)
    return floats and all(getattr(algorithm, name) == 1 for name in counts)


def dot(step: Step) -> str | None:
    """Map the old product of vectors and matrices."""
    both = operands(step)
    if both is None:
        return None
    last = len(step.shape(0)) - 1
    return product(step, both, ((), ()), ((last,), (0,)))


def batch_norm(step: Step) -> str | None:
    """Map a batch norm with given mean and variance: factor and addend of each channel."""
    axis, rank = step.number("feature_index"), len(step.type.shape)
    epsilon = float(step.attribute("epsilon").value)
    build, source = step.build, step.source
    shape = tuple(size if one == axis else 1 for one, size in enumerate(step.type.shape))
    x, *rest = step.inputs
    gain, beta, mean, variance = (build.reshape(name, shape, source) for name in rest)
    if not 0 <= axis < rank or step.type.element != Element.F32:
        return None
    functions: dict[str, Any] = {"functions": ("shift", "rsqrt"), "parameters": (epsilon,)}
    root = step.also("table", [variance], "root", None, **functions)
    factor = step.also("mul", [root, gain], "factor")
    less = step.also("mul", [mean, factor], "mean")
    addend = step.also("sub", [beta, less], "addend")
    scaled = step.also("mul", [x, factor], "scaled")
    return step.emit("add", [scaled, addend])


def product(
    step: Step,
    both: tuple[str, str],
    batch: tuple[tuple[int, ...], tuple[int, ...]],
    inner: tuple[tuple[int, ...], tuple[int, ...]],
) -> str:
    """Multiply two tensors over axes.

    Args:
        step: whose result it is.
        both: operands.
        batch: axes of each that run together.
        inner: axes of each that are summed over.

    Returns:
        The name of a tensor with axes batch, rest of a, rest of b.
    """
    build, (a, b) = step.build, both
    free = [
        tuple(
            axis
            for axis in range(len(build.shape(name)))
            if axis not in batch[side] and axis not in inner[side]
        )
        for side, name in enumerate(both)
    ]
    sizes = [[build.shape(a)[axis] for axis in batch[0]]]
    sizes += [[build.shape(name)[axis] for axis in free[side]] for side, name in enumerate(both)]
    depth = math.prod(build.shape(a)[axis] for axis in inner[0])
    rows, columns = math.prod(sizes[1]), math.prod(sizes[2])
    a = build.transpose(a, (*batch[0], *free[0], *inner[0]), step.source)
    # Without batches any number of row axes may stand in front of a matrix.
    keep = not batch[0] and len(free[0]) > 0
    a_shape = (*sizes[1], depth) if keep else (*sizes[0], rows, depth)
    a = build.reshape(a, a_shape, step.source)
    turned = (*batch[1], *inner[1], *free[1]) != tuple(range(len(build.shape(b))))
    b, turned = _right(step, b, (batch[1], inner[1], free[1]), (*sizes[0],), depth, columns, turned)
    found = TensorType((*a_shape[:-1], columns), Element.F32)
    result = (*sizes[0], *sizes[1], *sizes[2])
    wish = _wish(step)
    made = build.add(
        "matmul", [a, b], wish=wish if result == found.shape else f"{wish}.matrix",
        result=found, source=step.source,        transpose_a=False, transpose_b=turned,
    )  # fmt: skip
    return finished(step, build.reshape(made, result, step.source, wish))


def _right(
    step: Step,
    name: str,
    axes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    batches: tuple[int, ...],
    depth: int,
    columns: int,
    turned: bool,
) -> tuple[str, bool]:
    """Return the second operand as (..., K, N), or as (..., N, K) where that moves nothing."""
    build, (batch, inner, free) = step.build, axes
    lies = (*batch, *free, *inner) == tuple(range(len(build.shape(name))))
    if turned and (lies or build.value(name) is None):
        name = build.transpose(name, (*batch, *free, *inner), step.source)
        return build.reshape(name, (*batches, columns, depth), step.source), True
    name = build.transpose(name, (*batch, *inner, *free), step.source)
    return build.reshape(name, (*batches, depth, columns), step.source), False


def convolution(step: Step) -> str | None:
    """Map a convolution of one or two spatial axes; others are not known."""
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.ConvDimensionNumbers(step.attribute("dimension_numbers"))
    spatial = len(numbers.input_spatial_dimensions)
    ones = (1,) * spatial
    pads = step.ints("padding", (0, 0) * spatial)
    step.only("lhs_dilation", 1, spatial)
    step.only("batch_group_count", 1)
    step.only("window_reversal", 0, spatial)
    if min(pads, default=0) < 0:
        step.refuse("padding")
    both = operands(step) if spatial in (1, 2) else None
    if both is None:
        return None
    build = step.build
    x = build.transpose(
        both[0],
        (
            numbers.input_batch_dimension,
            *numbers.input_spatial_dimensions,
            numbers.input_feature_dimension,
        ),
        step.source,
    )
    w = build.transpose(
        both[1],
        (
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
        step.source,
    )
    order = (
        numbers.output_batch_dimension,
        *numbers.output_spatial_dimensions,
        numbers.output_feature_dimension,
    )
    lying = tuple(step.type.shape[axis] for axis in order)
    strides, dilations = step.ints("window_strides", ones), step.ints("rhs_dilation", ones)
    if spatial == 1:
        x, w = flat(build, x, 1, step.source), flat(build, w, 0, step.source)
        strides, dilations, pads = (1, *strides), (1, *dilations), (0, 0, *pads)
    image = (lying[0], 1, *lying[1:]) if spatial == 1 else lying
    back = tuple(order.index(axis) for axis in range(len(order)))
    wish = _wish(step)
    straight = spatial == 2 and back == (0, 1, 2, 3)
    made = build.add(
        "conv", [x, w], wish=wish if straight else f"{wish}.image",
        result=TensorType(image, Element.F32), source=step.source, strides=strides,
        pads=(pads[0], pads[2], pads[1], pads[3]),
        dilations=dilations, groups=step.number("feature_group_count", 1),
    )  # fmt: skip
    made = build.reshape(made, lying, step.source, wish if back == (0, 1, 2) else "")
    return finished(step, build.transpose(made, back, step.source, wish))


def flat(build: Assembler, name: str, axis: int, source: str) -> str:
    """Return a tensor with an axis of 1 put in: one dimension as a picture of height 1."""
    shape = build.shape(name)
    return build.reshape(name, (*shape[:axis], 1, *shape[axis:]), source)


HANDLERS: dict[str, Handler] = {
    "stablehlo.dot_general": dot_general,
    "stablehlo.dot": dot,
    "stablehlo.batch_norm_inference": batch_norm,
    "stablehlo.convolution": convolution,
}
