# SPDX-License-Identifier: Apache-2.0
"""One element of the result of an operation of a fused graph, in Python integers and fractions.

Written from the page on numbers, with nothing of `golden`: no numpy arithmetic, no shared tables.
Slow; a test asks for some elements of each result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from npu.graph.form import Array, Operation, TensorType

Index = tuple[int, ...]


@dataclass
class SlowCall:
    """An operation, its values, the types of its inputs and of its result."""

    one: Operation
    values: list[Array]
    result: TensorType

    def at(self, number: int, index: Index) -> int:
        """Return an element of an input, broadcast as numpy does."""
        value = self.values[number]
        behind = index[len(index) - value.ndim :] if value.ndim else ()
        return int(value[tuple(0 if n == 1 else i for i, n in zip(behind, value.shape))])  # noqa: B905

    def part(self, name: str, place: int) -> int:
        """Return an entry of an array of the operation, the only one if there is one."""
        flat = self.one.integers[name].ravel()
        return int(flat[place if flat.size > 1 else 0])

    def limited(self, value: int) -> int:
        """Return a value saturated to the type of the result."""
        edge = np.iinfo(self.result.element.dtype)
        return min(max(value, int(edge.min)), int(edge.max))


def rounded(value: int, shift: int) -> int:
    """Return value / 2^shift rounded, halves up."""
    return math.floor(Fraction(value, 1 << shift) + Fraction(1, 2)) if shift else value


def narrow(value: int, bits: int) -> int:
    """Return a value saturated to a signed number of bits."""
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))


def post(case: SlowCall, total: int, index: Index) -> int:
    """Return what stands behind the sum of a linear operation."""
    one, column = case.one, index[-1]
    assert -(1 << 31) <= total < 1 << 31 or case.values[0].dtype == np.int16
    total += case.part("bias", column) if "bias" in one.integers else 0
    if "mult" not in one.integers:
        return total
    value = rounded(total * case.part("mult", column), case.part("shift", column))
    value = case.limited(value)
    if one["relu"] and value < 0:
        value = 0
    if "table" in one.integers:
        value = int(one.integers["table"][value % 256])
    if one["combine"] == "add":
        return case.limited(value + case.at(2, index))
    if one["combine"] == "mul":
        wide = value * case.at(2, index) * one["product_mult"]
        return narrow(rounded(wide, one["product_shift"]), 8)
    return value


def matmul(case: SlowCall, index: Index) -> int:
    """Return an element of a product."""
    *batch, row, column = index
    total = 0
    for k in range(case.values[0].shape[-1]):
        there = (column, k) if case.one["transpose_b"] else (k, column)
        left = case.at(0, (*batch, row, k)) - case.one["a_zero"]
        total += left * (case.at(1, (*batch, *there)) - case.one["b_zero"])
    return post(case, total, index)


def conv(case: SlowCall, index: Index) -> int:
    """Return an element of a convolution."""
    one, (image, row, column, filter_) = case.one, index
    _, height, width, _ = case.values[0].shape
    rows, columns, depth, filters = case.values[1].shape
    group = filter_ // (filters // one["groups"])
    total = 0
    for y, x, channel in itertools.product(range(rows), range(columns), range(depth)):
        down = row * one["strides"][0] + y * one["dilations"][0] - one["pads"][0]
        across = column * one["strides"][1] + x * one["dilations"][1] - one["pads"][1]
        value = one["pad_value"]
        if 0 <= down < height and 0 <= across < width:
            value = case.at(0, (image, down, across, group * depth + channel))
        weight = case.at(1, (y, x, channel, filter_)) - one["w_zero"]
        total += (value - one["x_zero"]) * weight
    return post(case, total, index)


def _row(case: SlowCall, index: Index, axes: int = 1) -> list[int]:
    """Return the row of the first input that an element belongs to."""
    value = case.values[0]
    return [int(one) for one in value[index[: value.ndim - axes]].ravel()]


def exponential(distance: int) -> int:
    """Return the numerator of a score below the largest."""
    whole, part = distance // 64, distance % 64
    return rounded(round(65535 * 2.0 ** (-part / 64)), whole) if whole <= 17 else 0


def reciprocal(total: int) -> tuple[int, int]:
    """Return R and the position of the leading one of a sum."""
    if total == 0:
        return 0, 0
    top = total.bit_length() - 1
    place = ((total << 7) >> top) & 127
    return math.floor(Fraction(65536 * 256, 256 + 2 * place + 1) + Fraction(1, 2)), top


def softmax(case: SlowCall, index: Index) -> int:
    """Return a probability in units of 1/256."""
    row = _row(case, index)
    numerators = [exponential(max(row) - one) for one in row]
    recip, top = reciprocal(sum(numerators))
    return min(255, rounded(numerators[index[-1]] * recip, 8 + top))


def norm(case: SlowCall, index: Index) -> int:
    """Return an element of a normalised row."""
    one = case.one
    axes = one["axes"]
    row = _row(case, index, axes)
    shape = case.values[0].shape
    place = 0
    for size, here in zip(shape[-axes:], index[-axes:], strict=True):
        place = place * size + here
    mean = sum(row) if one.kind == "layernorm" else 0
    count = len(row)
    spread = count * sum(x * x for x in row) - mean * mean + int(one.integers["eps"][0])
    spread = max(1, spread)
    j = (spread.bit_length() - 1) // 2
    entry = (spread << 6) >> (2 * j)
    root = min(65535, round(65536 / math.sqrt((entry + 0.5) / 64)))
    q = narrow(rounded((count * row[place] - mean) * root, 16 + j - 14), 20)
    scaled = rounded(q * case.part("gain", place), case.part("shift", place))
    return case.limited(scaled + case.part("bias", place))


def rope(case: SlowCall, index: Index) -> int:
    """Return an element of a turned pair."""
    one, rank, lane = case.one, len(index), index[-1]
    position = index[-3] if one["heads_axis"] == rank - 2 else index[-2]
    half = case.values[0].shape[-1] // 2
    pair, second = (lane // 2, lane % 2) if one["interleaved"] else (lane % half, lane // half)
    places = (2 * pair, 2 * pair + 1) if one["interleaved"] else (pair, pair + half)
    a, b = (case.at(0, (*index[:-1], place)) for place in places)
    cos, sin = (int(n) for n in one.integers["table"][position, pair])
    return narrow(rounded(a * sin + b * cos if second else a * cos - b * sin, 14), 8)


def attention(case: SlowCall, index: Index) -> int:
    """Return an element of a context."""
    one, (batch, head, query, lane) = case.one, index
    groups, keys, depth = case.values[1].shape[1:]
    group = head // (case.values[0].shape[1] // groups)
    scores: dict[int, int] = {}
    for key in range(keys):
        place = query + one["offset"]
        if one["causal"] and (key > place or (one["window"] and key <= place - one["window"])):
            continue
        total = sum(
            case.at(0, (batch, head, query, n)) * case.at(1, (batch, group, key, n))
            for n in range(depth)
        )
        scores[key] = narrow(rounded(total * case.part("mult", 0), case.part("shift", 0)), 16)
        if "mask" in one.integers:
            mask = np.broadcast_to(one.integers["mask"], (*case.values[0].shape[:3], keys))
            scores[key] = narrow(scores[key] + int(mask[batch, head, query, key]), 16)
    if not scores:
        return 0
    top = max(scores.values())
    weights = {key: exponential(top - score) for key, score in scores.items()}
    recip, most = reciprocal(sum(weights.values()))
    total = sum(weight * case.at(2, (batch, group, key, lane)) for key, weight in weights.items())
    return narrow(rounded(total * recip, 16 + most), 8)


def _window(case: SlowCall, index: Index) -> list[int]:
    """Return what lies inside the image of the window of an element."""
    one, (image, row, column, channel) = case.one, index
    _, height, width, _ = case.values[0].shape
    found = []
    dilations = one.attributes.get("dilations", (1, 1))
    assert isinstance(dilations, tuple)
    for y, x in itertools.product(*(range(n) for n in one["window"])):
        down = row * one["strides"][0] + y * int(dilations[0]) - one["pads"][0]
        across = column * one["strides"][1] + x * int(dilations[1]) - one["pads"][1]
        if 0 <= down < height and 0 <= across < width:
            found.append(case.at(0, (image, down, across, channel)))
    return found


def avgpool(case: SlowCall, index: Index) -> int:
    """Return the mean of a window."""
    place = index[1] * case.result.shape[2] + index[2]
    total = case.one["weight"] * sum(_window(case, index)) + case.part("bias", place)
    return narrow(rounded(total * case.part("mult", place), case.part("shift", place)), 8)


def mean(case: SlowCall, index: Index) -> int:
    """Return the mean over axes."""
    one, shape = case.one, case.values[0].shape
    rest = iter(index)
    ranges = []
    for axis, size in enumerate(shape):
        if axis in one["axes"]:
            ranges.append(range(size))
            if one["keep"]:
                next(rest)
        else:
            here = next(rest)
            ranges.append(range(here, here + 1))
    total = sum(case.at(0, there) * case.one["weight"] for there in itertools.product(*ranges))
    total += case.part("bias", 0)
    return narrow(rounded(total * case.part("mult", 0), case.part("shift", 0)), 8)


def _flat(index: Index, shape: Index) -> int:
    place = 0
    for here, size in zip(index, shape, strict=True):
        place = place * size + here
    return place


def concat(case: SlowCall, index: Index) -> int:
    """Return an element of the tensor that lies there."""
    axis = case.one["axis"]
    here = index[axis]
    for number, value in enumerate(case.values):
        if here < value.shape[axis]:
            return case.at(number, (*index[:axis], here, *index[axis + 1 :]))
        here -= value.shape[axis]
    raise AssertionError(index)


def pad(case: SlowCall, index: Index) -> int:
    """Return an element, or the border."""
    there = tuple(i - n for i, n in zip(index, case.one["before"], strict=True))
    inside = all(0 <= i < n for i, n in zip(there, case.values[0].shape, strict=True))
    return case.at(0, there) if inside else int(case.one["value_int"])


def transpose(case: SlowCall, index: Index) -> int:
    """Return the element whose axes are put in order."""
    there = [0] * len(index)
    for here, axis in zip(index, case.one["order"], strict=True):
        there[axis] = here
    return case.at(0, tuple(there))


def cut(case: SlowCall, index: Index) -> int:
    """Return the element a number of steps behind the start."""
    steps = zip(case.one["starts"], index, case.one["steps"], strict=True)
    return case.at(0, tuple(start + here * step for start, here, step in steps))


def _pointwise(function: Callable[[SlowCall, int, int], int]) -> Callable[[SlowCall, Index], int]:
    def meaning(case: SlowCall, index: Index) -> int:
        second = case.at(1, index) if len(case.values) > 1 else 0
        return function(case, case.at(0, index), second)

    return meaning


SLOW: dict[str, Callable[[SlowCall, Index], Any]] = {
    "matmul": matmul,
    "conv": conv,
    "attention": attention,
    "softmax": softmax,
    "layernorm": norm,
    "rmsnorm": norm,
    "rope": rope,
    "maxpool": lambda case, index: max(_window(case, index)),
    "avgpool": avgpool,
    "mean": mean,
    "add": _pointwise(lambda case, a, b: case.limited(a + b)),
    "sub": _pointwise(lambda case, a, b: case.limited(a - b)),
    "mul": _pointwise(lambda case, a, b: case.limited(rounded(a * b, case.one["shift"]))),
    "max": _pointwise(lambda case, a, b: a if a > b else b),
    "min": _pointwise(lambda case, a, b: a if a < b else b),
    "clip": _pointwise(
        lambda case, a, _: sorted((case.one["low_int"], a, case.one["high_int"]))[1]
    ),
    "table": _pointwise(lambda case, a, _: int(case.one.integers["table"][a % 256])),
    "requantise": _pointwise(
        lambda case, a, _: case.limited(rounded(a * case.one["mult"], case.one["shift"]))
    ),
    "reshape": lambda case, index: int(case.values[0].ravel()[_flat(index, case.result.shape)]),
    "transpose": transpose,
    "concat": concat,
    "slice": cut,
    "pad": pad,
    "expand": lambda case, index: case.at(0, index),
    "identity": lambda case, index: case.at(0, index),
}
"""The element at an index of the result, by kind."""
