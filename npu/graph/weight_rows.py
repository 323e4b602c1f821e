# SPDX-License-Identifier: Apache-2.0
"""The rows of constant weights in the order in which GEMMs take them from the stream.

A format with groups of rows holds weights exactly only in the order in which they were rounded: the
passes that round them and the compiler that lays them out ask the same functions.

A convolution without groups is one block. With groups, as many neighbouring groups as it takes to
fill whole words make a block, whose weights are zero between different groups: sixteen groups of a
depthwise convolution, one of a group of sixteen channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array, Operation, TensorType
from spec.isa.operands import WORD, up
from spec.isa.weight_formats import SPARSE
from weights.formats.recipe import INT8, WORDS, Encoding


@dataclass(frozen=True)
class ChannelBlock:
    """Channels that are multiplied together.

    Attributes:
        first_output: the first output channel.
        weight: (KH, KW, inputs, outputs).
    """

    first_output: int
    weight: Array

    @property
    def inputs(self) -> int:
        """Input channels."""
        return int(self.weight.shape[2])

    @property
    def outputs(self) -> int:
        """Output channels."""
        return int(self.weight.shape[3])

    @property
    def wide(self) -> bool:
        """Whether the weights leave int8."""
        return bool(self.weight.size) and (
            int(self.weight.min()) < -128 or int(self.weight.max()) > 127
        )


def blocks_of(weight: Array, groups: int) -> list[ChannelBlock]:
    """Return the blocks of weights (KH, KW, C / groups, O)."""
    height, width, inputs, total = weight.shape
    outputs = total // groups
    if groups == 1:
        return [ChannelBlock(0, weight)]
    joined = groups
    for count in range(1, groups):
        if groups % count == 0 and not (count * inputs % WORD or count * outputs % WORD):
            joined = count
            break
    found = []
    for first in range(0, groups, joined):
        block = np.zeros((height, width, joined * inputs, joined * outputs), weight.dtype)
        for number in range(joined):
            at = (first + number) * outputs
            block[
                :,
                :,
                number * inputs : (number + 1) * inputs,
                number * outputs : (number + 1) * outputs,
            ] = weight[..., at : at + outputs]
        found.append(ChannelBlock(first * outputs, block))
    return found


def filter_rows(weight: Array) -> Array:
    """Return filters (KH, KW, C, O) as (K, O): the channels of each tap fill whole words."""
    height, width, channels, filters = weight.shape
    lanes = np.zeros((height, width, up(channels), filters), weight.dtype)
    lanes[:, :, :channels] = weight
    return lanes.reshape(-1, filters)


def stream_matrices(op: Operation, weight: Array) -> list[Array]:
    """Return the (K, N) matrices of a product's weights, whose columns are all of its columns."""
    if op.kind == "matmul":
        return [weight.T if op["transpose_b"] else weight]
    return [filter_rows(block.weight) for block in blocks_of(weight, op["groups"])]


def packs(op: Operation, shape: tuple[int, ...], encoding: Encoding = INT8) -> bool:
    """Say whether the host may put the pixels of a filter's row side by side, if it has the image.

    That changes which rows stand together: weights in groups need one group for all rows of a
    column, and of 2:4 other rows would be kept.

    Args:
        op: a convolution.
        shape: of its filter (KH, KW, C, O).
        encoding: of its weights.
    """
    _, kernel, channels, _ = shape
    fills = kernel > 1 and up(kernel * channels) < kernel * up(channels)
    return op["groups"] == 1 and fills and encoding.format not in SPARSE


def packs_rows(shape: tuple[int, ...]) -> bool:
    """Say whether the host puts the rows of a filter side by side as well, where it packs.

    Windows are then loaded whole, which takes no longer than to multiply them: sixteen of their
    bytes in a cycle, and at best as many products.

    Args:
        shape: of the filter (KH, KW, C, O).
    """
    rows, kernel, channels, _ = shape
    return up(rows * kernel * channels) < rows * up(kernel * channels)


def encoding_of(kind: TensorType) -> Encoding:
    """Return what constant weights were rounded to."""
    found = kind.quantisation
    return WORDS[found.format] if found is not None and found.format else INT8
