# SPDX-License-Identifier: Apache-2.0
"""Random operations of one element, of rows and of windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from npu.graph.form import Array, Attribute, Element, Quantisation, TensorType
from tests.python.golden_support import integers
from tests.python.graph_random_linear import take_image
from tests.python.graph_random_pool import (
    PLAIN8,
    PLAIN16,
    SCORES,
    Pool,
    factors,
)

I8, U8, I16, I32, F32 = Element.I8, Element.U8, Element.I16, Element.I32, Element.F32
SIGNED = (I8, I16)


def any_of(pool: Pool, elements: tuple[Element, ...] = SIGNED, rank: int = 1) -> str:
    """Return a tensor of one of some element types and at least a rank."""

    def make() -> TensorType:
        element = pool.choice(elements)
        shape = pool.shape(pool.number(rank, max(4, rank)))
        return TensorType(shape, element, pool.quantisation(element))

    return pool.take(lambda one: one.element in elements and len(one.shape) >= rank, make)


def _even(pool: Pool, elements: tuple[Element, ...] = SIGNED) -> str:
    """Return a tensor with zero point 0."""

    def make() -> TensorType:
        element = pool.choice(elements)
        return TensorType(pool.shape(pool.number(1, 4)), element, PLAIN8 if element == I8 else None)

    def made() -> TensorType:
        kind = make()
        return TensorType(kind.shape, kind.element, kind.quantisation or PLAIN16)

    return pool.take(
        lambda one: (
            one.element in elements and one.quantisation is not None and not one.quantisation.zero
        ),
        made,
    )


def kept(pool: Pool, kind: str, names: tuple[str, ...], **attributes: Attribute) -> None:
    """Add an operation whose result has the element type and the scale of its first input."""
    one = pool.tensors[names[0]].type
    pool.add(kind, names, one.element, one.quantisation, attributes)


def binary(pool: Pool, kind: str) -> None:
    """Draw an operation of two tensors of one type, one of them broadcast now and then."""
    a = _even(pool)
    one = pool.tensors[a].type
    shape = one.shape
    if pool.chance(0.2) and len(shape) > 1:
        shape = (*(1 for _ in shape[:-1]), shape[-1])
    b = pool.like(TensorType(shape, one.element, one.quantisation))
    bits = int(np.log2(pool.spread(a) * pool.spread(b)))
    shift = max(0, bits - (6 if one.element == I8 else 13))
    kept(pool, kind, (a, b), **({"shift": shift} if kind == "mul" else {}))


def clip(pool: Pool) -> None:
    """Draw a clip that leaves most of the range."""
    x = any_of(pool)
    one = pool.tensors[x].type
    low, high = sorted(pool.number(-120, 120) for _ in range(2))
    times = 1 if one.element == I8 else 200
    low, high = low * times, (high + 30 if one.element == I16 else min(127, high + 30)) * times
    kept(pool, "clip", (x,), low=-1.0, high=1.0, low_int=low, high_int=high)


def table(pool: Pool) -> None:
    """Draw a table of bytes: a smooth one or a random one."""
    x = any_of(pool, (I8, I8, U8))
    entries = integers(pool.rng, np.int8, (256,))
    if pool.chance(0.5):
        entries = np.rint(120 * np.tanh(np.arange(256, dtype=np.uint8).view(np.int8) / 40))
    attributes: dict[str, Attribute] = {"functions": ("tanh",), "parameters": ()}
    pool.add(
        "table", (x,), I8, pool.quantisation(I8), attributes, {"table": entries.astype(np.int8)}
    )


def requantise(pool: Pool) -> None:
    """Draw a change of scale or width, of the sign too."""
    x = _even(pool)
    element = pool.choice(SIGNED)
    quantisation = PLAIN8 if element == I8 else pool.choice((PLAIN16, SCORES))
    target = 50.0 if element == I8 else (9000.0 if quantisation == PLAIN16 else 200.0)
    found = factors(np.array([target / pool.spread(x)]))
    mult = int(found["mult"][0]) * pool.choice((1, 1, 1, -1))
    attributes: dict[str, Attribute] = {"mult": mult, "shift": int(found["shift"][0])}
    pool.add("requantise", (x,), element, quantisation, attributes)


def softmax(pool: Pool) -> None:
    """Draw probabilities of scores."""
    x = pool.take(
        lambda one: one.element == I16 and one.quantisation == SCORES and bool(one.shape),
        lambda: TensorType(pool.shape(pool.number(1, 4)), I16, SCORES),
    )
    last = len(pool.tensors[x].shape) - 1
    pool.add("softmax", (x,), U8, Quantisation((1 / 256,)), {"axis": last})


def norm(pool: Pool, kind: str) -> None:
    """Draw a norm of int16 rows, also of several axes."""
    x = _even(pool, (I16,))
    shape = pool.tensors[x].shape
    axes = pool.number(1, min(2, len(shape))) if pool.chance(0.3) else 1
    columns = int(np.prod(shape[len(shape) - axes :]))
    if columns > 8192:
        return
    element = pool.choice(SIGNED)
    spread = pool.rng.uniform(0.5, 1.3, columns) * (40.0 if element == I8 else 8000.0)
    drawn = factors(spread / 2**14)
    if pool.chance(0.5):
        drawn["mult"] = drawn["mult"] * np.uint16(2) + np.uint16(1)
        drawn["shift"] = drawn["shift"] + np.uint8(1)
    bias = integers(pool.rng, np.int8, (columns,)) if pool.chance(0.4) else np.zeros(columns)
    epsilon = int(pool.choice((0, 1, pool.number(0, 1 << 40), columns**2 * 100)))
    arrays: dict[str, Array] = {
        "eps": np.array([epsilon], np.uint64),
        "gain": drawn["mult"],
        "shift": drawn["shift"],
        "bias": bias.astype(np.int8),
    }
    quantisation = PLAIN8 if element == I8 else PLAIN16
    attributes: dict[str, Attribute] = {"axes": axes, "epsilon": 1e-5}
    pool.add(kind, (x,), element, quantisation, attributes, arrays)


def rope(pool: Pool) -> None:
    """Draw rotary positions, a part of the pairs not turned now and then."""

    def fits(one: TensorType) -> bool:
        zero = one.quantisation.zero if one.quantisation else 1
        return one.element == I8 and len(one.shape) >= 3 and one.shape[-1] % 2 == 0 and not zero

    x = pool.take(fits, lambda: TensorType(pool.shape(pool.choice((3, 4)), even=True), I8, PLAIN8))
    shape = pool.tensors[x].shape
    axis = len(shape) - pool.choice((2, 3))
    rows = shape[2 * len(shape) - 5 - axis]
    half = shape[-1] // 2
    angles = np.outer(np.arange(rows), 10000.0 ** -(np.arange(half) / half))
    angles[:, : pool.number(0, half // 2)] = 0
    cos, sin = (function(angles).astype(np.float32) for function in (np.cos, np.sin))
    turns = np.rint(np.stack([cos, sin], axis=-1) * 2**14).astype(np.int16)
    names = (x, pool.constant(cos), pool.constant(sin))
    attributes: dict[str, Attribute] = {"interleaved": pool.chance(0.5), "heads_axis": axis}
    pool.add("rope", names, I8, PLAIN8, attributes, {"table": turns})


def argmax(pool: Pool) -> None:
    """Draw the place of the largest element of a row; it is an output of the graph."""
    x = any_of(pool)
    axis = len(pool.tensors[x].shape) - 1
    attributes: dict[str, Attribute] = {"axis": axis, "keep": pool.chance(0.5)}
    pool.final.add(pool.add("argmax", (x,), I32, None, attributes))


def _window(pool: Pool, x: str) -> dict[str, tuple[int, ...]]:
    _, height, width, _ = pool.tensors[x].shape
    rows, columns = (min(size, pool.choice((1, 2, 2, 3, 3, 5, 13))) for size in (height, width))
    pads = tuple(pool.number(0, (n - 1) // 2 + n // 3) for n in (rows, columns, rows, columns))
    pads = tuple(min(one, size - 1) for one, size in zip(pads, (rows, columns) * 2, strict=True))
    strides = (pool.number(1, 3), pool.number(1, 3))
    return {"window": (rows, columns), "strides": strides, "pads": pads}


def maxpool(pool: Pool) -> None:
    """Draw the largest of each window."""
    x = take_image(pool)
    window = _window(pool, x)
    kept(pool, "maxpool", (x,), **window, dilations=(1, 1))


def _inside(shape: tuple[int, ...], window: dict[str, tuple[int, ...]]) -> Array:
    """Return how many places of each window lie inside the image, (OH, OW)."""
    top, left, bottom, right = window["pads"]
    down, across = window["strides"]
    image = np.pad(np.ones(shape[1:3]), ((top, bottom), (left, right)))
    view = sliding_window_view(image, window["window"])[::down, ::across]
    return np.asarray(view.sum(axis=(2, 3)))


def avgpool(pool: Pool) -> None:
    """Draw the mean of each window, factors by place."""
    x = take_image(pool)
    window = _window(pool, x)
    one = pool.tensors[x].type
    assert one.quantisation is not None
    count = np.maximum(1, _inside(one.shape, window))
    arrays = factors(50 / (pool.spread(x, one.quantisation.zero) * np.sqrt(count)))
    arrays["bias"] = (-one.quantisation.zero * count).astype(np.int32)
    attributes: dict[str, Attribute] = {**window, "count_pads": pool.chance(0.5)}
    pool.add("avgpool", (x,), I8, pool.quantisation(I8), attributes, arrays)


def mean(pool: Pool) -> None:
    """Draw the mean over neighbouring axes that are not the last."""
    x = any_of(pool, (I8,), 2)
    one = pool.tensors[x].type
    assert one.quantisation is not None
    first = pool.number(0, len(one.shape) - 2)
    axes = tuple(range(first, pool.number(first, len(one.shape) - 2) + 1))
    count = int(np.prod([one.shape[axis] for axis in axes]))
    arrays = factors(np.array([50 / (pool.spread(x, one.quantisation.zero) * np.sqrt(count))]))
    arrays["bias"] = np.array([-one.quantisation.zero * count + pool.number(-9, 9)], np.int32)
    attributes: dict[str, Attribute] = {"axes": axes, "keep": pool.chance(0.5)}
    pool.add("mean", (x,), I8, pool.quantisation(I8), attributes, arrays)


DRAWERS: dict[str, Callable[[Pool], None]] = {
    **{kind: partial(binary, kind=kind) for kind in ("add", "sub", "mul", "max", "min")},
    **{kind: partial(norm, kind=kind) for kind in ("layernorm", "rmsnorm")},
    "clip": clip,
    "table": table,
    "requantise": requantise,
    "softmax": softmax,
    "rope": rope,
    "argmax": argmax,
    "maxpool": maxpool,
    "avgpool": avgpool,
    "mean": mean,
}
