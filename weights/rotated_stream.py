# SPDX-License-Identifier: Apache-2.0
"""Rewrite a float decoder so that no channel of its residual stream is louder than the others.

The stream of a decoder with massive activations has a few channels that are a thousand times as
loud as the rest (Sun et al., "Massive Activations in Large Language Models", 2024), and they decide
its unit. An orthogonal matrix Q, multiplied into everything that writes the stream and, transposed,
into everything that reads it, gives the same network with a stream x Q, in which a loud channel is
spread over all (as Ashkboos et al., "QuaRot", 2024). A norm commutes with Q once its gain and bias
are part of the layers behind it; of a LayerNorm, which takes off the mean, Q has to keep the row of
ones, and so it does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weights.checkpoint import Checkpoint, CheckpointShape, Float32, Group, rewritten, tensors_of

Reals = npt.NDArray[np.float64]
AT_ONCE = 1 << 12
"""Rows of a table of tokens that are multiplied at once: float64 copies of all take much memory."""


def orthogonal(size: int) -> Reals:
    """Return Q (n, n): Q Q^T = 1, (1, ..., 1) Q = (1, ..., 1), and every element is small.

    An all-pass filter around the channels: a circulant matrix whose spectrum has magnitude 1 and
    phases pi k^2 / n, with which a sum of cosines has its lowest peak (Schroeder, "Synthesis of
    Low-Peak-Factor Signals and Binary Sequences with Low Autocorrelation", 1970).
    """
    number = np.arange(size // 2 + 1)
    phases = np.pi * number**2 / size
    if size % 2 == 0:
        phases[-1] = 0.0  # the highest frequency has no sine
    response = np.fft.irfft(np.exp(1j * phases), size)
    channel = np.arange(size)
    found: Reals = response[(channel - channel[:, None]) % size]
    return found


def rotatable(shape: CheckpointShape) -> bool:
    """Whether the stream is written and read by layers and norms that can take in a rotation."""
    return shape.pre_norms and not shape.part_norms


def rotated(checkpoint: Checkpoint) -> Checkpoint:
    """Return an equal model with a rotated stream; gains are 1, and the head is one of its own."""
    shape = checkpoint.shape
    assert rotatable(shape)
    turn = orthogonal(shape.hidden)
    readers = {"norm1": ("q", "k", "v"), "norm2": ("gate", "up") if shape.gated else ("up",)}

    def make(group: str) -> Group:
        if group in ("norm", "head"):
            return _end(checkpoint, group, turn)
        tensors = tensors_of(checkpoint.tensors, group)
        if not group.startswith("h."):
            return {name: _written(table, turn) for name, table in tensors.items()}
        for norm, names in readers.items():
            _fold(tensors, f"{group}.{norm}", [f"{group}.{name}" for name in names], turn)
        for name in (f"{group}.o", f"{group}.down"):
            tensors[f"{name}.weight"] = _written(tensors[f"{name}.weight"], turn)
            if f"{name}.bias" in tensors:
                tensors[f"{name}.bias"] = _written(tensors[f"{name}.bias"][None], turn)[0]
        return tensors

    biases = shape.biases
    if shape.norm == "layernorm":
        biases = tuple(dict.fromkeys((*biases, "q", "k", "v", "up", *readers["norm2"], "head")))
    return rewritten(checkpoint, make, replace(shape, tied=False, biases=biases))


def _end(checkpoint: Checkpoint, group: str, turn: Reals) -> Group:
    """Return the last norm, or the head behind it, of the rotated model."""
    tensors = tensors_of(checkpoint.tensors, "norm")
    names = []
    if group == "head":
        tensors |= tensors_of(checkpoint.tensors, "head")
        table = (
            tensors_of(checkpoint.tensors, "embed")["embed"].T if checkpoint.shape.tied else None
        )
        tensors["head.weight"] = tensors.pop("head") if table is None else table
        names = ["head"]
    _fold(tensors, "norm", names, turn)
    if group == "norm":
        return tensors
    found = {"head": tensors["head.weight"]}
    return found | {name: tensors[name] for name in ("head.bias",) if name in tensors}


def _written(rows: Float32, turn: Reals) -> Float32:
    """Return rows of the stream, (R, H), rotated."""
    result = np.empty_like(rows)
    for start in range(0, len(rows), AT_ONCE):
        result[start : start + AT_ONCE] = rows[start : start + AT_ONCE] @ turn
    return result


def _fold(tensors: Group, norm: str, names: list[str], turn: Reals) -> None:
    """Make gain and bias of a norm, and the rotation, parts of the layers that read it."""
    gain = tensors[f"{norm}.weight"].astype(np.float64)
    bias = tensors.get(f"{norm}.bias")
    reader = turn.T * gain
    for name in names:
        weight = tensors[f"{name}.weight"]
        result = np.empty(weight.shape, np.float32)
        for start in range(0, weight.shape[1], AT_ONCE):
            result[:, start : start + AT_ONCE] = reader @ weight[:, start : start + AT_ONCE]
        if bias is not None:
            before = tensors.get(f"{name}.bias", np.float32(0.0))
            tensors[f"{name}.bias"] = (before + bias.astype(np.float64) @ weight).astype(np.float32)
        tensors[f"{name}.weight"] = result
    tensors[f"{norm}.weight"] = np.ones_like(tensors[f"{norm}.weight"])
    if bias is not None:
        tensors[f"{norm}.bias"] = np.zeros_like(bias)
