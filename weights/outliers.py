# SPDX-License-Identifier: Apache-2.0
"""Give a small model the outlier channels that large ones of its kind have.

In trained GPT-2s a few channels of the residual stream carry values tens of times larger than the
rest, nearly the same for every token, and the norms' gains there are small. They decide how fine
the integer stream and the norms' int8 outputs are, so an integer pipeline must be measured with
them; a model of hidden size 64 has none by itself.

Here one channel gets +c and another -c, which leaves the mean of a row as it is. A row's deviation
becomes large and nearly constant; every norm's gain makes up for the mean of that, its bias for
what moves the mean of its output. What a norm then no longer does, to follow each row's own
deviation, is lost: the result is a somewhat worse model, to be compared with itself in integers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weights.checkpoint import Checkpoint
from weights.reference import Floats, forward

FACTOR = 20.0
"""c in units of the median over the channels of the largest magnitude on the given text."""
Reals = npt.NDArray[np.float64]


def with_outliers(checkpoint: Checkpoint, tokens: npt.NDArray[np.int64]) -> Checkpoint:
    """Return the model with two outlier channels, measured on rows of tokens (R, T).

    Raises:
        ValueError: the model has no LayerNorm with a bias, or no learned positions to carry c.
    """
    shape = checkpoint.shape
    if shape.norm != "layernorm" or shape.rope:
        raise ValueError(
            f"with_outliers: {checkpoint.source}: given {shape.norm} and "
            f"{'rotary' if shape.rope else 'learned'} positions, "
            "allowed layernorm and learned positions"
        )
    streams: list[Reals] = []

    def observe(name: str, values: Floats) -> None:
        if name.endswith("residual"):
            streams.append(values.reshape(-1, shape.hidden).astype(np.float64))

    forward(checkpoint, tokens, observe)
    norms = [f"h.{layer}.{part}" for layer in range(shape.layers) for part in ("norm1", "norm2")]
    norms.append("norm")
    high, low = least_read(checkpoint, norms, streams)
    largest = np.max([np.abs(stream).max(axis=0) for stream in streams], axis=0)
    offset = FACTOR * float(np.median(largest))
    tensors = dict(checkpoint.tensors)
    tensors["positions"] = tensors["positions"].copy()
    tensors["positions"][:, high] += offset
    tensors["positions"][:, low] -= offset
    for name, stream in zip(norms, streams, strict=True):
        moved = stream.copy()
        moved[:, high] += offset
        moved[:, low] -= offset
        gain, bias = (part.astype(np.float64) for part in checkpoint.norm(name))
        wanted = _normalised(stream) * gain + bias
        gain = gain * float(np.mean(moved.std(axis=1) / stream.std(axis=1)))
        gain[[high, low]] /= FACTOR
        tensors[f"{name}.weight"] = gain.astype(np.float32)
        missing = wanted - _normalised(moved) * gain
        tensors[f"{name}.bias"] = missing.mean(axis=0).astype(np.float32)
    tensors["head"] = np.ascontiguousarray(checkpoint.head)
    return Checkpoint(replace(shape, tied=False), tensors, f"{checkpoint.source} with outliers")


def least_read(checkpoint: Checkpoint, norms: list[str], streams: list[Reals]) -> tuple[int, int]:
    """Return the two channels whose normalised values times gain vary least over all norms."""
    spread = [
        np.abs(checkpoint.norm(name)[0]) * _normalised(stream).std(axis=0)
        for name, stream in zip(norms, streams, strict=True)
    ]
    order = np.argsort(np.mean(spread, axis=0), kind="stable")
    return int(order[0]), int(order[1])


def _normalised(stream: Reals) -> Reals:
    """Return rows (n, H) with mean 0 and deviation 1."""
    centred = stream - stream.mean(axis=1, keepdims=True)
    result: Reals = centred / stream.std(axis=1, keepdims=True)
    return result
