# SPDX-License-Identifier: Apache-2.0
"""Reshapes linear layers for the chip: slices of columns, heads padded to whole SRAM words."""

import numpy as np

from npu.isa.operands import up
from weights.model import AnyLinear, Linear

_UNIT_MULT, _UNIT_SHIFT = 1 << 14, 14


def columns(layer: AnyLinear, first: int, last: int) -> Linear:
    """Return output channels first..last-1 of a layer."""
    part = slice(first, last)
    return Linear(
        np.ascontiguousarray(layer.weight[:, part]),
        np.ascontiguousarray(layer.bias[part]),
        np.ascontiguousarray(layer.mult[part]),
        np.ascontiguousarray(layer.shift[part]),
    )


def _places(channels: int, head_dim: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the padded place of each channel: head_dim rounded up to 16 per head."""
    channel = np.arange(channels)
    return channel // head_dim * up(head_dim) + channel % head_dim


def pad_outputs(layer: AnyLinear, head_dim: int) -> Linear:
    """Return the layer with each head's output channels padded to a multiple of 16.

    The added channels have zero weights and biases: their outputs are 0.
    """
    places = _places(layer.outputs, head_dim)
    size = layer.outputs // head_dim * up(head_dim)
    weight = np.zeros((layer.inputs, size), np.int8)
    bias = np.zeros(size, np.int32)
    mult = np.full(size, _UNIT_MULT, np.uint16)
    shift = np.full(size, _UNIT_SHIFT, np.uint8)
    weight[:, places] = layer.weight
    bias[places], mult[places], shift[places] = layer.bias, layer.mult, layer.shift
    return Linear(weight, bias, mult, shift)


def pad_inputs(layer: AnyLinear, head_dim: int) -> Linear:
    """Return the layer with zero rows where the padded heads of its input hold nothing."""
    weight = np.zeros((layer.inputs // head_dim * up(head_dim), layer.outputs), np.int8)
    weight[_places(layer.inputs, head_dim)] = layer.weight
    return Linear(weight, layer.bias, layer.mult, layer.shift)
