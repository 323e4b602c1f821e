# SPDX-License-Identifier: Apache-2.0
"""Channels of a convolution in blocks that begin at whole words.

A convolution without groups is one block. With groups, as many neighbouring groups as it takes to
fill whole words make a block, whose weights are zero between different groups: sixteen groups of a
depthwise convolution, one of a group of sixteen channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spec.isa.operands import WORD

Wide = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChannelBlock:
    """Channels that are multiplied together.

    Attributes:
        first_output: the first output channel.
        weight: (KH, KW, inputs, outputs).
    """

    first_output: int
    weight: Wide

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


def blocks_of(weight: Wide, groups: int) -> list[ChannelBlock]:
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
        block = np.zeros((height, width, joined * inputs, joined * outputs), np.int64)
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
