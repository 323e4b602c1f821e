# SPDX-License-Identifier: Apache-2.0
"""Reshapes linear layers for the chip: slices of columns, heads padded to whole SRAM words."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from npu.compiler.errors import CompileError
from spec.isa import WEIGHT_FORMATS
from spec.isa.operands import up
from spec.isa.weight_formats import GROUPED, QUAD, SPARSE
from weights.formats.linear import NO_QUAD, NarrowLinear, placed
from weights.model import AnyLinear, Linear

_UNIT_MULT, _UNIT_SHIFT = 1 << 14, 14

Value = TypeVar("Value", bound=np.generic)


def columns(layer: AnyLinear, first: int, last: int) -> AnyLinear:
    """Return output channels first..last-1 of a layer."""

    def part(values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        return np.ascontiguousarray(values[..., first:last])

    bias, mult, shift = part(layer.bias), part(layer.mult), part(layer.shift)
    if isinstance(layer, NarrowLinear):
        codes, side = part(layer.codes), part(layer.side)
        return replace(layer, codes=codes, side=side, bias=bias, mult=mult, shift=shift)
    return Linear(part(layer.weight), bias, mult, shift)


def pad_outputs(layer: AnyLinear, head_dim: int) -> AnyLinear:
    """Return the layer with each head's output channels padded to a multiple of 16.

    The added channels have zero weights and biases: their outputs are 0.
    """
    places = placed(layer.outputs, head_dim)
    size = layer.outputs // head_dim * up(head_dim)

    def spread(values: npt.NDArray[Value], fill: int) -> npt.NDArray[Value]:
        result = np.full((*values.shape[:-1], size), fill, values.dtype)
        result[..., places] = values
        return result

    bias, mult = spread(layer.bias, 0), spread(layer.mult, _UNIT_MULT)
    shift = spread(layer.shift, _UNIT_SHIFT)
    if isinstance(layer, NarrowLinear):
        codes = spread(layer.codes, WEIGHT_FORMATS[layer.format].zero)
        side = spread(layer.side, _unused_side(layer))
        return replace(layer, codes=codes, side=side, bias=bias, mult=mult, shift=shift)
    return Linear(spread(layer.weight, 0), bias, mult, shift)


def _unused_side(layer: NarrowLinear) -> int:
    """Return a side byte, or positions, for weights that are all 0."""
    if layer.format in SPARSE:
        return NO_QUAD
    return 1 if layer.format in GROUPED else 0


def pad_inputs(name: str, layer: AnyLinear, head_dim: int) -> AnyLinear:
    """Return the layer with zero rows where the padded heads of its input hold nothing.

    Raises CompileError naming the layer if its groups, or its quads, do not follow the heads, as
    those of layers that others quantised.
    """
    if head_dim == up(head_dim):
        return layer
    places = placed(layer.inputs, head_dim)
    rows = layer.inputs // head_dim * up(head_dim)
    if not isinstance(layer, NarrowLinear):
        weight = np.zeros((rows, layer.outputs), np.int8)
        weight[places] = layer.weight
        return Linear(weight, layer.bias, layer.mult, layer.shift)
    codes = np.full((rows, layer.outputs), WEIGHT_FORMATS[layer.format].zero, np.uint8)
    codes[places] = layer.codes
    side = layer.side
    if layer.head_dim == head_dim:  # they count the padded rows
        return replace(layer, codes=codes, head_dim=0)
    if layer.format in SPARSE and head_dim % QUAD == 0:
        side = np.full((rows // QUAD, layer.outputs), _unused_side(layer), np.uint8)
        side[places[::QUAD] // QUAD] = layer.side
    elif side.size:
        raise CompileError(
            f"{name}: given {layer.format.asm} with heads of {head_dim}, which are padded to "
            f"{up(head_dim)} rows; allowed are groups that count these rows, int4, int2, and 2:4 "
            "with heads of whole quads"
        )
    return replace(layer, codes=codes, side=side)
