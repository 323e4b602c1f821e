# SPDX-License-Identifier: Apache-2.0
"""Operations on single elements."""

from __future__ import annotations

import numpy as np

from golden.fixed import multiply, rs
from golden.graph.call import Call
from npu.graph.form import Array


def add(call: Call) -> Array:
    """Return sat(a + b)."""
    return call.saturated(call.wide(0) + call.wide(1))


def sub(call: Call) -> Array:
    """Return sat(a - b)."""
    return call.saturated(call.wide(0) - call.wide(1))


def mul(call: Call) -> Array:
    """Return sat(rs(a * b, shift))."""
    return call.saturated(rs(multiply(call.wide(0), call.wide(1)), call["shift"]))


def larger(call: Call) -> Array:
    """Return max(a, b)."""
    return np.asarray(np.maximum(call.wide(0), call.wide(1)))


def smaller(call: Call) -> Array:
    """Return min(a, b)."""
    return np.asarray(np.minimum(call.wide(0), call.wide(1)))


def clip(call: Call) -> Array:
    """Return min(max(x, low), high)."""
    return np.asarray(np.clip(call.wide(0), call["low_int"], call["high_int"]))


def table(call: Call) -> Array:
    """Return the entry of each byte."""
    return np.asarray(call.integers("table")[call.wide(0) & 255])


def requantise(call: Call) -> Array:
    """Return sat(rs(x * mult, shift))."""
    return call.saturated(rs(multiply(call.wide(0), call["mult"]), call["shift"]))


MEANINGS = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "max": larger,
    "min": smaller,
    "clip": clip,
    "table": table,
    "requantise": requantise,
}
