# SPDX-License-Identifier: Apache-2.0
"""An encoder of pictures or of sound: dimensions and tensors.

A picture is cut into patches, two convolutions make rows of sound, and positions are added. The
blocks behind are those of a decoder (`weights.decoder`) in which every row sees all others.
`npu.graph.importers.signal_checkpoint` draws the graph.
"""

from __future__ import annotations

from dataclasses import dataclass

from weights.checkpoint import Checkpoint, CheckpointShape, block_tensors, check_tensors
from weights.reference import GELU, GELU_TANH, SILU

LINEARS = ("q", "k", "v", "o", "up", "down")
"""The products of a block."""
KERNEL = 3
"""Places that a window of sound has; the second convolution takes every other one."""
ACTIVATIONS = (*GELU, *GELU_TANH, *SILU, "relu", "quick_gelu")
"""Functions between the products of a feed-forward that are computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalShape(CheckpointShape):
    """The shape of an encoder of a signal; `vocab` is 0.

    Attributes:
        signal: channels and places of the input: (3, 224, 224) of a picture, (80, 3000) of sound.
        patch: places along each side of what becomes a row of a picture, 0 of sound.
        tokens: learned rows in front of those of the signal; the first stands for the whole.
        pooled: columns of what the pooler makes of the first row, 0 without one.
        labels: classes that the first row is given to, 0 without a head.
    """

    signal: tuple[int, ...]
    patch: int = 0
    tokens: int = 0
    pooled: int = 0
    labels: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SignalCheckpoint(Checkpoint):
    """A float encoder of a signal; tensors as `signal_tensors` names them."""

    shape: SignalShape

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        check_tensors(self.source, self.shape.family, signal_tensors(self.shape), self.tensors)


def signal_tensors(shape: SignalShape) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor of a model.

    "patch.weight" (H, channels, P, P) of pictures, "conv1.weight" (H, channels, 3) and
    "conv2.weight" (H, H, 3) of sound, each with ".bias"; "token.{i}" (1, H), "positions" (C, H),
    the blocks and the last norm as `weights.checkpoint.expected_tensors` has them, "pooler" and
    "head" with ".weight" (in, out) and ".bias".
    """
    hidden, channels, patch = shape.hidden, shape.signal[0], shape.patch
    sizes = {"conv1": (hidden, channels, KERNEL), "conv2": (hidden, hidden, KERNEL)}
    front = {"patch": (hidden, channels, patch, patch)} if patch else sizes
    tensors: dict[str, tuple[int, ...]] = {}
    for name, size in front.items():
        tensors |= {f"{name}.weight": size, f"{name}.bias": (hidden,)}
    tensors |= {f"token.{number}": (1, hidden) for number in range(shape.tokens)}
    tensors["positions"] = (shape.context, hidden)
    tensors |= block_tensors(shape)
    for name, columns in {"pooler": shape.pooled, "head": shape.labels}.items():
        if columns:
            tensors |= {f"{name}.weight": (hidden, columns), f"{name}.bias": (columns,)}
    return tensors
