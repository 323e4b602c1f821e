# SPDX-License-Identifier: Apache-2.0
"""Moves: the same integers at other places."""

from __future__ import annotations

import numpy as np

from golden.graph.call import IntegerCall
from npu.graph.form import Array


def reshape(call: IntegerCall) -> Array:
    """Return the elements in another shape."""
    return call.array(0).reshape(call.result.shape)


def transpose(call: IntegerCall) -> Array:
    """Return the axes in another order."""
    return call.array(0).transpose(call["order"])


def concat(call: IntegerCall) -> Array:
    """Return the inputs behind one another."""
    return np.concatenate([call.array(i) for i in range(len(call.values))], axis=call["axis"])


def part(call: IntegerCall) -> Array:
    """Return every step-th index of each axis; a negative stop of a negative step is the end."""
    steps = zip(call["starts"], call["stops"], call["steps"], strict=True)
    cuts = tuple(slice(a, b if b >= 0 else None, step) for a, b, step in steps)
    return call.array(0)[cuts]


def pad(call: IntegerCall) -> Array:
    """Return the elements with a border."""
    widths = list(zip(call["before"], call["after"], strict=True))
    return np.pad(call.array(0), widths, constant_values=call["value_int"])


def identity(call: IntegerCall) -> Array:
    """Return the elements."""
    return call.array(0)


def expand(call: IntegerCall) -> Array:
    """Return the elements repeated along axes of one."""
    return np.broadcast_to(call.array(0), call.result.shape)


MEANINGS = {
    "reshape": reshape,
    "transpose": transpose,
    "concat": concat,
    "slice": part,
    "pad": pad,
    "identity": identity,
    "expand": expand,
}
