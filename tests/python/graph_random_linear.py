# SPDX-License-Identifier: Apache-2.0
"""Random matrix products, convolutions and attention in the form that the pass `fuse` leaves."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Attribute, Element, Quantisation, TensorType
from npu.graph.operations import infer
from tests.python.golden_support import integers
from tests.python.graph_random_pool import MOST, PLAIN8, SCORES, STEP8, Pool, factors

I8, U8, I16, I32 = Element.I8, Element.U8, Element.I16, Element.I32
IMAGES = (1, 3, 4, 7, 8, 9, 13, 16, 17)
CHANNELS = (1, 3, 8, 15, 16, 17, 32, 33, 48)


def image(pool: Pool, element: Element = I8) -> TensorType:
    """Return the type of an image."""
    while True:
        shape = (pool.choice((1, 1, 1, 2, 3)), pool.choice(IMAGES), pool.choice(IMAGES))
        shape = (*shape, pool.choice(CHANNELS))  # type: ignore[assignment]
        if np.prod(shape) <= MOST:
            return TensorType(shape, element, pool.quantisation(element))


def take_image(pool: Pool) -> str:
    """Return an int8 image."""
    return pool.take(
        lambda one: one.element == I8 and len(one.shape) == 4 and max(one.shape[1:3]) <= 33,
        lambda: image(pool),
    )


def _post(
    pool: Pool,
    kind: str,
    operands: tuple[str, str],
    attributes: dict[str, Attribute],
    deviation: Array,
) -> None:
    """Draw what follows the sums of a known standard deviation per column, (N,) or (1,)."""
    types = [pool.tensors[name].type for name in operands]
    (result,) = infer(kind, attributes, types)
    assert result.shape is not None
    columns = result.shape[-1]
    bias = np.rint(pool.rng.normal(0, 0.5, columns) * deviation).astype(np.int32)
    if pool.chance(0.08) and types[0].element != I16:
        given = {"bias": bias} if pool.chance(0.5) else {}
        plain: dict[str, Attribute] = {"relu": False, "combine": ""}
        plain |= {"product_mult": 0, "product_shift": 0}
        pool.add(kind, operands, I32, Quantisation((0.0025,)), {**attributes, **plain}, given)
        return
    element = pool.choice((I8, I8, I8, I16))
    quantisation = pool.quantisation(element)
    wide = 200.0 if quantisation == SCORES else 9000.0
    target = pool.rng.uniform(0.5, 1.2) * (wide if element == I16 else 50.0)
    scale = target / np.maximum(deviation, 1.0)
    drawn = factors(np.clip(scale * pool.rng.uniform(0.6, 1.4, scale.shape), 2.0**-48, 2.0**14))
    drawn["bias"] = bias
    if element == I8:
        bias += np.rint(quantisation.zero / scale).clip(-(2**29), 2**29).astype(np.int32)
    if element == I8 and pool.chance(0.25):
        drawn["table"] = integers(pool.rng, np.int8, (256,))
    combine = pool.choice(("", "", "add", "mul" if element == I8 else "add"))
    addend: tuple[str, ...] = ()
    if combine:
        addend = (pool.like(TensorType(result.shape, element, quantisation)),)
    mult, shift = (pool.number(1 << 14, (1 << 15) - 1), pool.number(19, 22))
    attributes = {
        **attributes,
        "relu": pool.chance(0.25),
        "combine": combine,
        "product_mult": mult if combine == "mul" else 0,
        "product_shift": shift if combine == "mul" else 0,
    }
    pool.add(kind, (*operands, *addend), element, quantisation, attributes, drawn)


def _size(pool: Pool, most: int) -> int:
    return min(most, int(pool.choice((1, 2, 3, 10, 15, 16, 17, 31, 32, 33, 48, 64, 100))))


def matmul(pool: Pool) -> None:
    """Draw a product with a constant, or of two activations."""

    def operand() -> TensorType:
        element = pool.choice((I8, I8, U8, I16))
        shape = pool.shape(pool.choice((2, 2, 3, 4)))
        return TensorType(shape, element, pool.quantisation(element))

    a = pool.take(lambda one: one.element in (I8, U8, I16) and len(one.shape) >= 2, operand)
    kind = pool.tensors[a].type
    depth, columns = kind.shape[-1], _size(pool, MOST // max(1, kind.size // kind.shape[-1]))
    turned = pool.chance(0.3)
    inner = (columns, depth) if turned else (depth, columns)
    attributes: dict[str, Attribute] = {"transpose_a": False, "transpose_b": turned}
    if pool.chance(0.6):
        weight = integers(pool.rng, np.int8, inner, corners=0.05)
        weight = np.maximum(weight, -127).astype(np.int8)
        b = pool.constant(weight, PLAIN8)
        power = np.square(weight.astype(np.float64)).sum(axis=1 if turned else 0)
        deviation = np.sqrt(power) * pool.spread(a)
        attributes |= {"a_zero": 0, "b_zero": 0}
    else:
        if kind.element == U8:
            return
        batch = tuple(1 if pool.chance(0.3) else size for size in kind.shape[:-2])
        shape = ((), batch, batch)[min(len(batch), 2)] + inner
        zero = pool.number(-128, 127) if pool.chance(0.3) else 0
        b = pool.like(TensorType(shape, I8, Quantisation((STEP8,), zero)))
        quantised = kind.quantisation
        assert quantised is not None
        attributes |= {"a_zero": quantised.zero, "b_zero": zero}
        power = np.sqrt(depth) * pool.spread(b, zero)
        deviation = np.array([power * pool.spread(a, quantised.zero)])
    if pool.chance(0.3):
        deviation = np.array([deviation.mean()])
    _post(pool, "matmul", (a, b), attributes, deviation)


def conv(pool: Pool) -> None:
    """Draw a convolution: dense, grouped or depthwise, with strides, dilations and pads."""
    x = take_image(pool)
    kind = pool.tensors[x].type
    assert kind.quantisation is not None
    _, height, width, channels = kind.shape
    groups = int(pool.choice([n for n in range(1, channels + 1) if channels % n == 0]))
    groups = pool.choice((1, 1, groups, channels))
    filters = groups * (1 if groups == channels and pool.chance(0.7) else _size(pool, 64 // groups))
    filters = max(filters, groups)
    dilations = tuple(pool.choice((1, 1, 1, 2, 3)) for _ in range(2))
    pads = tuple(pool.number(0, 2) if pool.chance(0.6) else 0 for _ in range(4))
    taps = []
    for size, dilation, border in (
        (height, dilations[0], pads[0] + pads[2]),
        (width, dilations[1], pads[1] + pads[3]),
    ):
        most = (size + border - 1) // dilation + 1
        taps.append(min(most, pool.choice((1, 1, 2, 3, 3, 5))))
    weight = integers(pool.rng, np.int8, (*taps, channels // groups, filters), corners=0.05)
    weight = np.maximum(weight, -127).astype(np.int8)
    attributes: dict[str, Attribute] = {
        "strides": (pool.number(1, 3), pool.number(1, 3)),
        "pads": pads,
        "dilations": dilations,
        "groups": groups,
        "pad_value": kind.quantisation.zero,
        "x_zero": 0,
        "w_zero": 0,
    }
    power = np.square(weight.astype(np.float64)).sum(axis=(0, 1, 2))
    deviation = np.sqrt(power) * pool.spread(x)
    _post(pool, "conv", (x, pool.constant(weight, PLAIN8)), attributes, deviation)


def attention(pool: Pool) -> None:
    """Draw attention: grouped heads, causal, with window or mask."""
    batch, groups, times = pool.choice((1, 1, 2)), pool.choice((1, 2, 3)), pool.choice((1, 2, 4))
    rows, keys = (pool.choice((1, 3, 8, 16, 17, 33)) for _ in range(2))
    depth, width = (pool.choice((2, 8, 16, 17, 32)) for _ in range(2))
    causal = pool.chance(0.5)
    heads = groups * times
    q = pool.like(TensorType((batch, heads, rows, depth), I8, PLAIN8))
    k = pool.like(TensorType((batch, groups, keys, depth), I8, PLAIN8))
    v = pool.like(TensorType((batch, groups, keys, width), I8, PLAIN8))
    deviation = np.array([np.sqrt(depth) * pool.spread(q) * pool.spread(k)])
    drawn = factors(pool.rng.uniform(30, 250) / deviation)
    if not causal and pool.chance(0.4):
        shape = tuple(1 if pool.chance(0.4) else n for n in (batch, heads, rows, keys))
        hidden = pool.rng.random(shape) < 0.3
        values = pool.rng.integers(-300, 300, shape)
        drawn["mask"] = np.where(hidden, -32768, values).astype(np.int16)
    attributes: dict[str, Attribute] = {
        "scale": 1.0,
        "causal": causal,
        "offset": pool.choice((0, max(0, keys - rows), pool.number(0, 5))) if causal else 0,
        "window": pool.number(1, keys) if causal and pool.chance(0.4) else 0,
        "softcap": 0.0,
    }
    pool.add("attention", (q, k, v), I8, PLAIN8, attributes, drawn)


DRAWERS = {"matmul": matmul, "conv": conv, "attention": attention}
