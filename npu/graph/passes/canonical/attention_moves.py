# SPDX-License-Identifier: Apache-2.0
"""Where the elements of queries, keys and values lie, and moves that put them elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import MOVES, GraphView, meaning

_MOST_AXES = 6


def places(view: GraphView, end: str, start: str) -> Array | None:
    """Return which element of one tensor each element of another comes from.

    Between them are moves and operations that change each element by itself; None if one of these
    has two inputs that both lead back.
    """
    chain: list[tuple[Operation, int]] = []
    name = end
    while name != start:
        made = view.maker(name)
        if made is None or not made.used:
            return None
        ways = [index for index, one in enumerate(made.inputs) if view.graph.constant(one) is None]
        if len({made.inputs[index] for index in ways}) != 1:
            return None
        chain.append((made, ways[0]))
        name = made.inputs[ways[0]]
    shape = view.shape(start)
    value: Array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    for made, index in reversed(chain):
        result = view.graph.type(made.outputs[0])
        if made.kind in MOVES:
            inputs = [value if place == index else None for place in range(len(made.inputs))]
            if len(made.used) > 1:
                return None
            value = meaning(made.kind, made.attributes, inputs, [None] * len(inputs), result)
        else:
            value = np.broadcast_to(value, result.shape)
    return value.astype(np.int64)


def as_moves(edit: Replacement, source: str, wanted: Array) -> str | None:
    """Emit a transpose and a reshape that put each element of a tensor where it is wanted.

    Args:
        edit: that emits.
        source: a tensor.
        wanted: for each element of the result the place in the source.

    Returns:
        The name of the result, None if these two do not suffice.
    """
    shape = edit.type(source).shape
    if wanted.size != math.prod(shape) or len(shape) > _MOST_AXES:
        return None
    whole = np.arange(wanted.size).reshape(shape)
    flat = wanted.reshape(-1)
    for order in itertools.permutations(range(len(shape))):
        turned = whole.transpose(order)
        # Most orders differ within the first few elements already.
        if turned.size and not np.array_equal(turned.flat[:64], flat[:64]):
            continue
        if np.array_equal(turned.reshape(-1), flat):
            return edit.reshape(edit.transpose(source, order), wanted.shape)
    return None


@dataclass(frozen=True)
class HeadAxes:
    """How the axes of products are made of images, heads, queries and keys.

    Attributes:
        batch: the axes in front of rows and columns.
        times: how many heads of queries share one of keys.
        inner: whether these heads are the faster part of the rows of scores; else the slower.
        inner_back: the same of the rows that the values are multiplied with.
        queries_each: rows of one head.
    """

    batch: tuple[int, ...]
    times: int
    inner: bool
    inner_back: bool
    queries_each: int

    @property
    def pair(self) -> tuple[int, int]:
        """Images and heads of keys."""
        if not self.batch:
            return 1, 1
        if len(self.batch) == 1:
            return 1, self.batch[0]
        return math.prod(self.batch[:-1]), self.batch[-1]

    def queries(self, edit: Replacement, name: str) -> str:
        """Return queries (..., rows, D) as (B, H, S, D)."""
        depth = edit.type(name).shape[-1]
        images, groups = self.pair
        if self.times == 1:
            return edit.reshape(name, (images, groups, self.queries_each, depth))
        if not self.inner:
            parts = (images, groups * self.times, self.queries_each, depth)
            return edit.reshape(name, parts)
        split = edit.reshape(name, (images, groups, self.queries_each, self.times, depth))
        turned = edit.transpose(split, (0, 1, 3, 2, 4))
        return edit.reshape(turned, (images, groups * self.times, self.queries_each, depth))

    def back(self, edit: Replacement, name: str) -> str:
        """Return (B, H, S, D) as (..., rows, D)."""
        depth = edit.type(name).shape[-1]
        images, groups = self.pair
        rows = self.times * self.queries_each
        if self.times > 1 and self.inner_back:
            split = edit.reshape(name, (images, groups, self.times, self.queries_each, depth))
            name = edit.transpose(split, (0, 1, 3, 2, 4))
        return edit.reshape(name, (*self.batch, rows, depth))

    def mask(self, bias: Array) -> Array:
        """Return a bias of the products as (B, H, S, T)."""
        images, groups = self.pair
        keys = bias.shape[-1]
        if self.inner:
            split = bias.reshape(images, groups, self.queries_each, self.times, keys)
            split = split.transpose(0, 1, 3, 2, 4)
        else:
            split = bias.reshape(images, groups, self.times, self.queries_each, keys)
        return split.reshape(images, groups * self.times, self.queries_each, keys)

    def keys(self, edit: Replacement, name: str) -> str:
        """Return keys or values (..., T, D) as (B, G, T, D)."""
        images, groups = self.pair
        rows, depth = edit.type(name).shape[-2:]
        if math.prod(edit.type(name).shape[:-2]) != images * groups:
            # The product repeats them.
            name = edit.step("expand", [name], shape=(*self.batch, rows, depth))
        return edit.reshape(name, (images, groups, rows, depth))


def origin(view: GraphView, name: str) -> tuple[str, Array]:
    """Return the tensor that is repeated to make another, and where its elements come from."""
    chain: list[Operation] = []
    while (one := view.maker(name, "reshape", "transpose", "expand", "identity")) is not None:
        chain.insert(0, one)
        name = one.inputs[0]
    # What is moved in front of the first repetition stays.
    while chain and chain[0].kind != "expand":
        name = chain.pop(0).outputs[0]
    shape = view.shape(name)
    value: Array = np.arange(math.prod(shape)).reshape(shape)
    for one in chain:
        found = view.graph.type(one.outputs[0])
        value = meaning(one.kind, one.attributes, [value], [None], found)
    return name, value


def heads_of(
    view: GraphView,
    steps: Iterable[Operation],
    rows_read: Array,
    scores: tuple[int, ...],
    bias: Array,
) -> Iterator[HeadAxes]:
    """Yield guesses how rows of products are made of heads and queries, the likeliest first.

    Args:
        view: of the graph.
        steps: what stands between the two products.
        rows_read: for each row that the values are multiplied with, which row of scores it is.
        scores: shape of the first product.
        bias: what is added to it.
    """
    batch, rows = scores[:-2], scores[-2]
    seen = [view.shape(one.outputs[0]) for one in steps if one.kind in MOVES]
    sizes: dict[tuple[int, bool], None] = {}
    for shape in seen:
        for first, second in itertools.pairwise(shape[:-1]):
            if first * second == rows and min(first, second) > 1:
                sizes[(second, True)] = None
                sizes[(first, False)] = None
    straight = np.arange(rows)
    for times, inner in sizes:
        each = rows // times
        parts = (each, times) if inner else (times, each)
        crossed = straight.reshape(parts).T.reshape(-1)
        same = np.array_equal(rows_read, straight)
        if not same and not np.array_equal(rows_read, crossed):
            continue
        one = HeadAxes(batch, times, inner, inner == same, each)
        # All heads of a group see the same, or this is no such grouping.
        split = one.mask(bias).reshape(-1, times, each, bias.shape[-1])
        if bool((split == split[:, :1]).all()):
            yield one
    if np.array_equal(rows_read, straight):
        yield HeadAxes(batch, 1, False, False, rows)
