# SPDX-License-Identifier: Apache-2.0
"""Rewrite a float model so that it computes the same function and quantises better.

Value channel j of a K/V head meets the same rows of the output projection whatever the attention
does, one row per query head of the group, so v_j / r_j with (those rows of W_o) * r_j is the same
network. In a gated feed-forward the same holds for channel j of `up` and row j of `down`. r_j is
chosen so that both sides get equal ranges (alpha = 0.5; Nagel et al., "Data-Free Quantization
Through Weight Equalization and Bias Correction", 2019) and is rounded to a power of two, which
makes the rewriting exact in floating point, not only on paper.

Without a gate the activation lies between `up` and `down`, and a GELU is not homogeneous.
`balance` does it once more for the gated channels, with ranges that were seen on text: massive
activations are not where the weights alone would have them.

A norm of integers has no negative gain. `positive` turns the channels in front of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from weights.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointShape,
    Group,
    Tensors,
    with_layers,
)

Reals = npt.NDArray[np.float64]


def value_factors(shape: CheckpointShape, tensors: Tensors, layer: int) -> npt.NDArray[np.float32]:
    """Return r (K/V heads * D,) float32: sqrt(range of v_j / range of its rows of W_o).

    The range of v_j is estimated without data by the standard deviation that its weights give it
    when the normalised inputs are uncorrelated: the length of gain * W_v[:, j].
    """
    output = tensors[f"h.{layer}.o.weight"].astype(np.float64)
    rows = np.square(output).sum(axis=1)[_rows_of_values(shape)]
    return balancing(_spread(tensors, layer, "norm1", "v"), np.sqrt(rows.sum(axis=0)))


def inner_factors(tensors: Tensors, layer: int) -> npt.NDArray[np.float32]:
    """Return r (F,) float32 of a gated feed-forward: sqrt(range of act_j / range of row j of down).

    The range of act_j = silu(gate_j) * up_j is estimated as the product of those of its factors.
    """
    given = _spread(tensors, layer, "norm2", "up") * _spread(tensors, layer, "norm2", "gate")
    return balancing(given, act_readers(tensors, layer))


def act_readers(tensors: Tensors, layer: int) -> Reals:
    """Return the range (F,) of every row of down."""
    down = tensors[f"h.{layer}.down.weight"].astype(np.float64)
    lengths: Reals = np.sqrt(np.square(down).sum(axis=1))
    return lengths


def balancing(given: Reals, taken: Reals) -> npt.NDArray[np.float32]:
    """Return powers of two close to sqrt(given / taken), around 1.

    Channels in which either side is zero keep 1.
    """
    usable = (given > 0) & (taken > 0)
    ratio = np.where(usable, given, 1.0) / np.where(usable, taken, 1.0)
    middle = np.exp2(np.log2(ratio).mean())
    factors: npt.NDArray[np.float32] = np.where(
        usable, np.exp2(np.rint(0.5 * np.log2(ratio / middle))), 1.0
    ).astype(np.float32)
    return factors


def _spread(tensors: Tensors, layer: int, norm: str, name: str) -> Reals:
    """Return the standard deviation of a layer's outputs for uncorrelated normalised inputs."""
    weight = tensors[f"h.{layer}.{name}.weight"].astype(np.float64)
    gain = np.ones(len(weight))
    if f"h.{layer}.{norm}.weight" in tensors:
        gain = tensors[f"h.{layer}.{norm}.weight"].astype(np.float64)
    spread: Reals = np.sqrt(np.square(gain[:, None] * weight).sum(axis=0))
    return spread


def _rows_of_values(shape: CheckpointShape) -> npt.NDArray[np.int64]:
    """Return (group, K/V heads * D): the rows of W_o that read each value channel."""
    rows = np.arange(shape.q_columns)
    by_group = rows.reshape(shape.kv_heads, shape.group, shape.head_dim).swapaxes(0, 1)
    return by_group.reshape(shape.group, -1)


def _by_row(shape: CheckpointShape, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return factors (heads * D,) of the rows of W_o, of those of value channels."""
    by_row = np.empty(shape.q_columns, np.float32)
    by_row[_rows_of_values(shape)] = values
    return by_row


def equalize(checkpoint: Checkpoint) -> Checkpoint:
    """Return an equal model whose value channels, and gated channels, have balanced ranges."""
    shape = checkpoint.shape

    def change(layer: int, tensors: Group) -> None:
        values = value_factors(shape, tensors, layer)
        pairs = [("v", values, "o", _by_row(shape, values))]
        if shape.gated:
            inner = inner_factors(tensors, layer)
            pairs.append(("up", inner, "down", inner))
        for source, columns, reader, rows in pairs:
            _rescale(tensors, f"h.{layer}.{source}", columns, f"h.{layer}.{reader}", rows)

    return with_layers(checkpoint, change)


def balance(checkpoint: Checkpoint, channels: Mapping[str, Sequence[float]]) -> Checkpoint:
    """Return an equal model whose channels are divided by those that are given.

    channels["h.{l}.values"] are those of values, channels["h.{l}.inner"] the gated ones.
    """
    shape = checkpoint.shape

    def change(layer: int, tensors: Group) -> None:
        at = f"h.{layer}"
        if f"{at}.values" in channels:
            values = np.array(channels[f"{at}.values"], np.float32)
            _rescale(tensors, f"{at}.v", values, f"{at}.o", _by_row(shape, values))
        if shape.gated:
            inner = np.array(channels[f"{at}.inner"], np.float32)
            _rescale(tensors, f"{at}.up", inner, f"{at}.down", inner)

    return with_layers(checkpoint, change)


def positive(checkpoint: Checkpoint) -> Checkpoint:
    """Return an equal model whose norms of q and k, and behind parts, have no negative gain.

    An RMSNorm of a row with some channels negated is the negated norm in these.

    Raises:
        CheckpointError: a LayerNorm has one; the mean of a row is another with a channel negated.
            It is raised when the layer is made.
    """
    shape = checkpoint.shape
    pairs = [("q_norm", "q"), ("k_norm", "k")] if shape.head_norms else []
    pairs += [("o_norm", "o"), ("down_norm", "down")] if shape.part_norms else []

    def change(layer: int, tensors: Group) -> None:
        for norm, source in pairs:
            name = f"h.{layer}.{norm}.weight"
            gain = tensors[name]
            if not (gain < 0).any():
                continue
            if shape.norm == "layernorm":
                raise CheckpointError(
                    f"{checkpoint.source}: {name}: given {gain.min():.3g}, allowed 0 and more in "
                    "a LayerNorm here"
                )
            at = f"h.{layer}.{source}"
            columns = tensors[f"{at}.weight"].shape[1]
            signs = np.tile(np.where(gain < 0, -1, 1), columns // gain.size)
            _rescale(tensors, at, signs.astype(np.float32))
            tensors[name] = np.abs(gain)

    return with_layers(checkpoint, change) if pairs else checkpoint


def _rescale(
    tensors: Group,
    source: str,
    columns: npt.NDArray[np.float32],
    reader: str = "",
    rows: npt.NDArray[np.float32] | None = None,
) -> None:
    """Divide the outputs of one layer and multiply the inputs of another, if there is one."""
    for name in (f"{source}.weight", f"{source}.bias"):
        if name in tensors:
            tensors[name] = tensors[name] / columns
    if rows is not None:
        tensors[f"{reader}.weight"] = tensors[f"{reader}.weight"] * rows[:, None]
