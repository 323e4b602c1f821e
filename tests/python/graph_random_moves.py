# SPDX-License-Identifier: Apache-2.0
"""Random moves, and operations of the host between their borders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from npu.graph.form import Attribute, Element, Quantisation, TensorType
from tests.python.golden_support import integers
from tests.python.graph_random_kinds import any_of, kept
from tests.python.graph_random_pool import MOST, PLAIN8, SIZES, STEP8, Pool

I8, U8, I16, F32 = Element.I8, Element.U8, Element.I16, Element.F32
SIGNED = (I8, I16)


def reshape(pool: Pool) -> None:
    """Draw another shape: axes joined, or one split."""
    x = any_of(pool, (I8, U8, I16))
    shape = list(pool.tensors[x].shape)
    axis = pool.number(0, len(shape) - 1)
    if len(shape) > 1 and pool.chance(0.5):
        axis = pool.number(0, len(shape) - 2)
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif len(shape) < 5:
        size = pool.choice([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
        shape[axis : axis + 1] = [size, shape[axis] // size]
    kept(pool, "reshape", (x,), shape=tuple(shape))


def transpose(pool: Pool) -> None:
    """Draw another order of axes of int8."""
    x = any_of(pool, (I8,), 2)
    order = tuple(int(n) for n in pool.rng.permutation(len(pool.tensors[x].shape)))
    kept(pool, "transpose", (x,), order=order)


def concat(pool: Pool) -> None:
    """Draw two to four tensors behind one another, one of them twice now and then."""
    first = any_of(pool)
    one = pool.tensors[first].type
    axis = pool.number(0, len(one.shape) - 1)
    names = [first]
    for _ in range(pool.number(1, 3)):
        shape = (*one.shape[:axis], pool.choice(SIZES), *one.shape[axis + 1 :])
        if np.prod(shape) <= MOST:
            names.append(pool.like(TensorType(shape, one.element, one.quantisation)))
    if pool.chance(0.15):
        names.append(first)
    if sum(pool.tensors[name].type.size for name in names) <= 2 * MOST:
        kept(pool, "concat", tuple(names), axis=axis)


def cut(pool: Pool) -> None:
    """Draw a slice with positive steps."""
    x = any_of(pool)
    bounds = []
    for size in pool.tensors[x].shape:
        start = pool.number(0, size - 1) if pool.chance(0.5) else 0
        stop = pool.number(start + 1, size) if pool.chance(0.5) else size
        bounds.append((start, stop, pool.choice((1, 1, 1, 2, 3))))
    starts, stops, steps = (tuple(part) for part in zip(*bounds, strict=True))
    kept(pool, "slice", (x,), starts=starts, stops=stops, steps=steps)


def pad(pool: Pool) -> None:
    """Draw a border of any value."""
    x = any_of(pool)
    one = pool.tensors[x].type
    assert one.quantisation is not None
    before, after = (tuple(pool.choice((0, 0, 0, 1, 2, 5)) for _ in one.shape) for _ in range(2))
    edge = np.iinfo(one.element.dtype)
    value = pool.choice((one.quantisation.zero, pool.number(edge.min, edge.max)))
    real = one.quantisation.scale * (value - one.quantisation.zero)
    if np.prod([sum(n) for n in zip(one.shape, before, after, strict=True)]) <= 2 * MOST:
        kept(pool, "pad", (x,), before=before, after=after, value=float(real), value_int=value)


def gather(pool: Pool) -> None:
    """Draw rows of a constant int8 matrix."""
    rows, columns = pool.choice(SIZES) * 3, pool.choice(SIZES)
    matrix = pool.constant(integers(pool.rng, np.int8, (rows, columns)), PLAIN8)
    shape = tuple(pool.choice((1, 2, 7, 16, 17)) for _ in range(pool.number(1, 2)))
    kept(pool, "gather", (matrix, pool.indices(shape, rows)), axis=0)


def expand(pool: Pool) -> None:
    """Draw a broadcast along axes of one, and along new ones."""
    x = any_of(pool)
    shape = tuple(
        pool.choice((1, 2, 3, 5)) if size == 1 else size for size in pool.tensors[x].shape
    )
    if len(shape) < 4 and pool.chance(0.4):
        shape = (pool.choice((1, 2, 3)), *shape)
    if np.prod(shape) <= 2 * MOST:
        kept(pool, "expand", (x,), shape=shape)


def _real(pool: Pool) -> str:
    """Return a real tensor, the integers of one of the chip's as a rule."""
    x = pool.take(
        lambda one: one.element == F32 or one.quantisation is not None,
        lambda: TensorType(pool.shape(pool.number(1, 4)), I8, PLAIN8),
    )
    if pool.tensors[x].type.element == F32:
        return x
    return pool.add("dequantise", (x,), F32, None, chip=False)


def host(pool: Pool, kind: str) -> None:
    """Draw an operation of the host between its borders."""
    x = _real(pool)
    rank = len(pool.tensors[x].shape)
    names: tuple[str, ...] = (x,)
    attributes: dict[str, Attribute] = {}
    if kind == "div":
        names = (x, pool.constant(np.array([1.7], np.float32)))
    elif kind == "reduce":
        attributes = {"axes": (rank - 1,), "keep": True, "function": pool.choice(("max", "sum"))}
    else:
        attributes = {"functions": ("sin",), "parameters": ()}
    y = pool.add(kind, names, F32, None, attributes, chip=False)
    most = float(np.abs(pool.values[y]).max(initial=0.0))
    element = pool.choice(SIGNED)
    top = 127 if element == I8 else 32767
    zero = pool.quantisation(I8).zero // 2 if element == I8 else 0
    scale = float(np.float32(most / top)) if most > 0 else STEP8
    pool.add("quantise", (y,), element, Quantisation((scale,), zero), chip=False)


DRAWERS: dict[str, Callable[[Pool], None]] = {
    "reshape": reshape,
    "transpose": transpose,
    "concat": concat,
    "slice": cut,
    "pad": pad,
    "gather": gather,
    "expand": expand,
    "identity": lambda pool: kept(pool, "identity", (any_of(pool),)),
}
HOST_DRAWERS = {kind: partial(host, kind=kind) for kind in ("div", "reduce", "table")}
