# SPDX-License-Identifier: Apache-2.0
"""Operations on rows: softmax, norms, rotary positions."""

from __future__ import annotations

import math

import numpy as np

from golden.graph.call import IntegerCall
from golden.layernorm import norm8, norm16
from golden.rope import rotate
from golden.softmax import probabilities
from npu.graph.form import Array, Element


def softmax(call: IntegerCall) -> Array:
    """Return probabilities in units of 1/256."""
    x = call.array(0)
    _last(call, x)
    return probabilities(x.reshape(-1, x.shape[-1])).reshape(x.shape)


def _last(call: IntegerCall, x: Array) -> None:
    if call["axis"] != x.ndim - 1:
        raise ValueError(f"axis {call['axis']} of {list(x.shape)}, allowed the last")


def _norm(call: IntegerCall, *, rms: bool) -> Array:
    x = call.array(0)
    columns = math.prod(x.shape[x.ndim - call["axes"] :])
    norm = norm16 if call.result.element == Element.I16 else norm8
    found = norm(
        x.reshape(-1, columns),
        int(call.operation.integers["eps"].reshape(-1)[0]),
        np.broadcast_to(call.integers("gain"), columns),
        np.broadcast_to(call.integers("shift"), columns),
        np.broadcast_to(call.integers("bias"), columns),
        rms=rms,
    )
    return found.reshape(x.shape)


def layernorm(call: IntegerCall) -> Array:
    """Return the rows normalised, with gains and biases per channel."""
    return _norm(call, rms=False)


def rmsnorm(call: IntegerCall) -> Array:
    """Return the rows divided by their root mean square, with gains per channel."""
    return _norm(call, rms=True)


def rope(call: IntegerCall) -> Array:
    """Return heads turned by the angles of their positions."""
    x = call.array(0)
    table = call.integers("table")
    axis = call["heads_axis"] % x.ndim
    # Bring the heads in front of the positions: (..., heads, S, D).
    inner = axis == x.ndim - 2
    turned = np.swapaxes(x, -2, -3) if inner else x
    found = rotate(turned, table[..., 0], table[..., 1], pairs=call["interleaved"])
    return np.swapaxes(found, -2, -3) if inner else found


MEANINGS = {
    "softmax": softmax,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "rope": rope,
}
