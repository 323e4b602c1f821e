# SPDX-License-Identifier: Apache-2.0
"""Attention and its parts, whole or with a cache of keys and values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from npu.graph.form import Element, GraphError
from npu.graph.library.masks import MASKED, visible_keys
from npu.graph.library.products import narrow_products
from npu.graph.library.sketch import Sketch


def attention_scores(
    draw: Sketch, *, heads: int = 4, rows: int = 12, keys: int = 20, depth: int = 16
) -> tuple[str, ...]:
    """Queries (1, heads, rows, depth) times keys (1, heads, keys, depth), over root of depth."""
    query, key = (
        draw.given("query", 1, heads, rows, depth),
        draw.given("key", 1, heads, keys, depth),
    )
    return (scores_of(draw, query, key),)


def scores_of(draw: Sketch, query: str, key: str) -> str:
    """Add the scaled products of queries and keys; return the result."""
    products = draw.step("matmul", query, key, transpose_b=True)
    scale = draw.parameter("scale", np.array([draw.shape(query)[-1] ** -0.5]))
    return draw.stage("scores", "mul", products, scale)


def context(
    draw: Sketch, *, heads: int = 4, rows: int = 12, keys: int = 20, depth: int = 16
) -> tuple[str, ...]:
    """Weights (1, heads, rows, keys) times values (1, heads, keys, depth)."""
    weights = draw.given("weights", 1, heads, rows, keys)
    value = draw.given("value", 1, heads, keys, depth)
    return (draw.stage("context", "matmul", weights, value),)


def narrow_scores(
    draw: Sketch, *, heads: int = 2, rows: int = 5, keys: int = 9, depth: int = 16
) -> tuple[str, ...]:
    """Int4 queries (1, heads, rows, depth) times int4 keys (1, heads, keys, depth), int32."""
    query = draw.given("query", 1, heads, rows, depth, element=Element.I8)
    key = draw.given("key", 1, heads, keys, depth, element=Element.I8)
    turned = draw.step("transpose", key, order=(0, 1, 3, 2))
    return (narrow_products(draw, "scores", query, turned),)


def narrow_context(
    draw: Sketch, *, heads: int = 2, rows: int = 5, keys: int = 9, depth: int = 16
) -> tuple[str, ...]:
    """Int4 weights (1, heads, rows, keys) times int4 values (1, heads, keys, depth), int32."""
    weights = draw.given("weights", 1, heads, rows, keys, element=Element.I8)
    value = draw.given("value", 1, heads, keys, depth, element=Element.I8)
    return (narrow_products(draw, "context", weights, value),)


def attention(
    draw: Sketch,
    *,
    heads: int = 4,
    groups: int = 4,
    rows: int = 12,
    keys: int = 12,
    depth: int = 16,
    mask: str = "causal",
) -> tuple[str, ...]:
    """Queries (1, heads, rows, depth) attend to keys and values (1, groups, keys, depth)."""
    query = draw.given("query", 1, heads, rows, depth)
    key, value = (draw.given(name, 1, groups, keys, depth) for name in ("key", "value"))
    seen = visible_keys(draw.random, mask, rows, keys)
    return (attention_of(draw, query, key, value, seen[None]),)


def attention_of(
    draw: Sketch, query: str, key: str, value: str, seen: npt.NDArray[np.bool_]
) -> str:
    """Add attention of heads (B, H, S, D) over (B, G, T, D); return the context.

    Args:
        draw: what it is added to.
        query: queries.
        key: of G heads, each for H / G heads of queries.
        value: of as many.
        seen: what queries see, (1 or H, S, T).
    """
    key, value = (_repeated(draw, name, draw.shape(query)[1]) for name in (key, value))
    scores = scores_of(draw, query, key)
    if not seen.all():
        # A number can be added as a stage of its own, infinity only inside of attention.
        hidden = MASKED if draw.opened else -np.inf
        mask = draw.parameter("mask", np.where(seen, 0.0, hidden)[None])
        scores = draw.step("add", scores, mask)
    weights = draw.stage("weights", "softmax", scores, axis=3)
    return draw.stage("context", "matmul", weights, value)


def _repeated(draw: Sketch, x: str, heads: int) -> str:
    """Return heads (B, G, T, D) as (B, H, T, D)."""
    batch, groups, rows, depth = draw.shape(x)
    if heads == groups:
        return x
    if heads % groups:
        raise GraphError(f"groups {groups}, allowed what {heads} heads are a multiple of")
    each = heads // groups
    split = draw.step("reshape", x, shape=(batch, groups, 1, rows, depth))
    wide = draw.step("expand", split, shape=(batch, groups, each, rows, depth))
    return draw.step("reshape", wide, shape=(batch, heads, rows, depth))


def qkv_projection(
    draw: Sketch, *, rows: int = 16, width: int = 48, packed: int = 1
) -> tuple[str, ...]:
    """Queries, keys and values of x (rows, width), by one matrix or by three."""
    x = draw.given("x", rows, width)
    return qkv_of(draw, x, (width, width, width), packed)


def qkv_of(draw: Sketch, x: str, widths: tuple[int, int, int], packed: int) -> tuple[str, ...]:
    """Add the projections of queries, keys and values; return the results."""
    *outer, width = draw.shape(x)
    names = ("query", "key", "value")
    if not packed:
        return tuple(
            draw.stage(name, "matmul", x, draw.weights(f"w_{name}", width, wide))
            for name, wide in zip(names, widths, strict=True)
        )
    whole = draw.stage("qkv", "matmul", x, draw.weights("w_qkv", width, sum(widths)))
    found = []
    for number, name in enumerate(names):
        first = sum(widths[:number])
        found.append(
            draw.stage(
                name,
                "slice",
                whole,
                starts=(*(0 for _ in outer), first),
                stops=(*outer, first + widths[number]),
                steps=(*(1 for _ in outer), 1),
            )
        )
    return tuple(found)


def cache_update(
    draw: Sketch,
    *,
    heads: int = 3,
    capacity: int = 24,
    depth: int = 16,
    length: int = 9,
    fresh: int = 2,
    spread: int = 1,
) -> tuple[str, ...]:
    """Append keys and values to caches (1, heads, capacity, depth) behind what they hold.

    Head h holds length - h * spread rows, and gets `fresh` ones; what lies behind stays.
    """
    if length + fresh > capacity:
        raise GraphError(f"length {length} and fresh {fresh}, allowed {capacity} together")
    if fresh == capacity:
        raise GraphError(f"fresh {fresh}, allowed fewer than the capacity")
    lengths = lengths_of(heads, length, spread)
    found = []
    for name in ("key", "value"):
        cache = draw.given(f"{name}_cache", 1, heads, capacity, depth)
        new = draw.given(f"new_{name}", 1, heads, fresh, depth)
        found.append(_appended(draw, f"{name}s", cache, new, lengths))
    return tuple(found)


def lengths_of(heads: int, length: int, spread: int) -> list[int]:
    """Return how many rows the cache of each head holds."""
    return [max(0, length - head * spread) for head in range(heads)]


def _appended(draw: Sketch, name: str, cache: str, new: str, lengths: list[int]) -> str:
    heads, capacity = draw.shape(cache)[1:3]
    fresh = draw.shape(new)[2]
    if len(set(lengths)) == 1:
        pieces = _pieces(draw, cache, new, lengths[0], fresh, capacity)
        return draw.stage(name, "concat", *pieces, axis=2)
    each = []
    for head in range(heads):
        mine, fresh_rows = (_part(draw, x, 1, head, head + 1) for x in (cache, new))
        pieces = _pieces(draw, mine, fresh_rows, lengths[head], fresh, capacity)
        each.append(draw.step("concat", *pieces, axis=2))
    return draw.stage(name, "concat", *each, axis=1)


def _pieces(
    draw: Sketch, cache: str, new: str, length: int, fresh: int, capacity: int
) -> list[str]:
    """Return what is kept, what is new, and what lies behind."""
    found = [_part(draw, cache, 2, 0, length)] if length else []
    found.append(new)
    if length + fresh < capacity:
        found.append(_part(draw, cache, 2, length + fresh, capacity))
    return found


def _part(draw: Sketch, x: str, axis: int, first: int, end: int) -> str:
    """Return a range of an axis."""
    shape = draw.shape(x)
    starts = [first if number == axis else 0 for number in range(len(shape))]
    stops = [end if number == axis else size for number, size in enumerate(shape)]
    return draw.step("slice", x, starts=starts, stops=stops, steps=[1] * len(shape))


def decode_attention(
    draw: Sketch,
    *,
    heads: int = 3,
    capacity: int = 24,
    depth: int = 16,
    length: int = 9,
    fresh: int = 2,
    spread: int = 1,
    window: int = 0,
) -> tuple[str, ...]:
    """Append to caches as `cache_update`, and attend to them with queries of the new rows.

    Each query sees its own key and those before it, `window` of them if that is not 0.
    """
    query = draw.given("query", 1, heads, fresh, depth)
    keys, values = cache_update(
        draw, heads=heads, capacity=capacity, depth=depth,
        length=length, fresh=fresh, spread=spread,
    )  # fmt: skip
    lengths = np.array(lengths_of(heads, length, spread))
    place = lengths[:, None] + np.arange(fresh)[None, :]
    first = max(0, int(place.min()) + 1 - window) if window else 0
    end = int(place.max()) + 1
    key, value = (_part(draw, x, 2, first, end) for x in (keys, values))
    number = np.arange(first, end)
    seen = number[None, None, :] <= place[:, :, None]
    if window:
        seen &= number[None, None, :] > place[:, :, None] - window
    return (attention_of(draw, query, key, value, seen), keys, values)
