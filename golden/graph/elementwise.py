# SPDX-License-Identifier: Apache-2.0
"""Operations on single elements."""

from __future__ import annotations

import numpy as np

from golden.fixed import multiply, rs
from golden.graph.call import IntegerCall
from npu.graph.form import Array


def add(call: IntegerCall) -> Array:
    """Return sat(a + b)."""
    return call.saturated(call.wide(0) + call.wide(1))


def sub(call: IntegerCall) -> Array:
    """Return sat(a - b)."""
    return call.saturated(call.wide(0) - call.wide(1))


def mul(call: IntegerCall) -> Array:
    """Return sat(rs(a * b, shift))."""
    return call.saturated(rs(multiply(call.wide(0), call.wide(1)), call["shift"]))


def larger(call: IntegerCall) -> Array:
    """Return max(a, b)."""
    return np.asarray(np.maximum(call.wide(0), call.wide(1)))


def smaller(call: IntegerCall) -> Array:
    """Return min(a, b)."""
    return np.asarray(np.minimum(call.wide(0), call.wide(1)))


def clip(call: IntegerCall) -> Array:
    """Return min(max(x, low), high)."""
    return np.asarray(np.clip(call.wide(0), call["low_int"], call["high_int"]))


def table(call: IntegerCall) -> Array:
    """Return the entry of each byte."""
    return np.asarray(call.integers("table")[call.wide(0) & 255])


def requantise(call: IntegerCall) -> Array:
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
