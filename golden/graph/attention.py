# SPDX-License-Identifier: Apache-2.0
"""Attention: scores in units of 2^-6 of a binary logarithm, numerators, context."""

from __future__ import annotations

import numpy as np

from golden.fixed import as_int64, rs, sat
from golden.graph.call import IntegerCall
from golden.graph.linear import product, within
from golden.requantize import requantize16
from golden.softmax import numerators16, reciprocal
from npu.graph.form import Array


def attention(call: IntegerCall) -> Array:
    """Return for each query the values weighted by the softmax of its scores."""
    if call["softcap"] or (call["window"] and not call["causal"]):
        raise ValueError("softcap, or a window that is not causal, allowed neither")
    query, key, value = (call.wide(number) for number in range(3))
    each = query.shape[1] // key.shape[1]
    key, value = np.repeat(key, each, axis=1), np.repeat(value, each, axis=1)
    mult, shift = (int(call.integers(name).reshape(-1)[0]) for name in ("mult", "shift"))
    scores = requantize16(within(product(query, np.swapaxes(key, -1, -2))), mult, shift)
    if "mask" in call.operation.integers:
        scores = sat(as_int64(scores) + call.integers("mask"), 16).astype(np.int16)
    elif len(call.operation.used) > 3:
        scores = sat(as_int64(scores) + call.wide(3), 16).astype(np.int16)
    context = np.zeros(call.result.shape, np.int64)
    for place in np.ndindex(*query.shape[:2]):
        rule = {"causal": call["causal"], "pos": call["offset"], "window": call["window"]}
        weights, sums = numerators16(scores[place], **rule)
        recip = reciprocal(sums)
        total = product(as_int64(weights), value[place])
        context[place] = sat(
            rs(total * as_int64(recip.value)[:, None], as_int64(recip.shift)[:, None]), 8
        )
    return context


MEANINGS = {"attention": attention}
