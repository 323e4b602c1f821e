# SPDX-License-Identifier: Apache-2.0
"""Functions for networks in jax that reach the graph as one operation, without guessing.

Each is a composite (`jax.lax.composite`): jax runs its definition, which is written here in plain
jax.numpy; the importer of StableHLO sees its name and attributes. All compute in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

# The types of jax are not known where it is not installed.
Array: TypeAlias = Any
VERSION = 1


def _composite(name: str, function: Callable[..., Array]) -> Callable[..., Array]:
    made: Callable[..., Array] = jax.lax.composite(function, f"tessera.{name}", version=VERSION)
    return made


def layer_norm(
    x: Array,
    gain: Array | None = None,
    beta: Array | None = None,
    *,
    axes: int = 1,
    epsilon: float = 1e-5,
) -> Array:
    """Normalise rows to mean 0 and deviation 1.

    Args:
        x: (..., N) float32.
        gain: factors, of the shape of the trailing axes; none without it.
        beta: addends of that shape; needs a gain.
        axes: how many trailing axes make a row.
        epsilon: added to the variance.

    Returns:
        Of the shape of x.
    """
    if beta is not None and gain is None:
        gain = jnp.ones(x.shape[x.ndim - axes :], x.dtype)

    def norm(x: Array, *rest: Array, axes: int, epsilon: float) -> Array:
        trailing = tuple(range(x.ndim - axes, x.ndim))
        x = x - jnp.mean(x, trailing, keepdims=True)
        y = x * jax.lax.rsqrt(jnp.mean(x * x, trailing, keepdims=True) + epsilon)
        y = y * rest[0] if rest else y
        return y + rest[1] if len(rest) > 1 else y

    given = [one for one in (gain, beta) if one is not None]
    return _composite("layer_norm", norm)(x, *given, axes=axes, epsilon=float(epsilon))


def rms_norm(x: Array, gain: Array | None = None, *, axes: int = 1, epsilon: float = 1e-5) -> Array:
    """Divide rows by the root of their mean square; arguments as `layer_norm`."""

    def norm(x: Array, *rest: Array, axes: int, epsilon: float) -> Array:
        trailing = tuple(range(x.ndim - axes, x.ndim))
        y = x * jax.lax.rsqrt(jnp.mean(x * x, trailing, keepdims=True) + epsilon)
        return y * rest[0] if rest else y

    given = [] if gain is None else [gain]
    return _composite("rms_norm", norm)(x, *given, axes=axes, epsilon=float(epsilon))


def softmax(x: Array, *, axis: int = -1) -> Array:
    """Return exponentials along an axis over their sum."""

    def rows(x: Array, *, axis: int) -> Array:
        return jax.nn.softmax(x, axis)

    return _composite("softmax", rows)(x, axis=int(axis))


def gelu(x: Array, *, approximate: bool = False) -> Array:
    """Return x times the normal distribution of x; `approximate` by tanh."""

    def function(x: Array, *, approximate: bool) -> Array:
        return jax.nn.gelu(x, approximate=approximate)

    return _composite("gelu", function)(x, approximate=bool(approximate))


def silu(x: Array) -> Array:
    """Return x times its sigmoid."""

    def function(x: Array) -> Array:
        return jax.nn.silu(x)

    return _composite("silu", function)(x)


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    *,
    scale: float | None = None,
    causal: bool = False,
    offset: int = 0,
    window: int = 0,
    softcap: float = 0.0,
) -> Array:
    """Return softmax(scale * q k^T + mask) v for each head.

    Args:
        q: (B, H, S, D).
        k: (B, G, T, D); H is a multiple of G.
        v: (B, G, T, Dv).
        mask: added to the scores, or bool: what a query sees; becomes (B, H, S, T).
        scale: of the scores; one over the root of D without it.
        causal: query i sees keys up to i + offset.
        offset: place of query 0 among the keys.
        window: how many keys a query sees, its own the last; 0 for all.
        softcap: c in c * tanh(scores / c); 0 for none.

    Returns:
        (B, H, S, Dv).
    """

    def heads(q: Array, k: Array, v: Array, *rest: Array, **options: Any) -> Array:  # noqa: ANN401
        times = q.shape[1] // k.shape[1]
        k, v = jnp.repeat(k, times, axis=1), jnp.repeat(v, times, axis=1)
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k) * options["scale"]
        if options["softcap"]:
            scores = options["softcap"] * jnp.tanh(scores / options["softcap"])
        # Arrays of numpy would become operands of the composite.
        place = jnp.arange(q.shape[2])[:, None] + options["offset"]
        key = jnp.arange(k.shape[2])[None, :]
        seen = key == key
        if options["causal"]:
            seen = seen & (key <= place)
        if options["window"]:
            seen = seen & (key > place - options["window"])
        if rest and rest[0].dtype == jnp.bool_:
            seen = seen & rest[0]
        elif rest:
            scores = scores + rest[0]
        weights = jnp.where(seen, jax.nn.softmax(jnp.where(seen, scores, -1e30), -1), 0)
        return jnp.einsum("bhst,bhtd->bhsd", weights, v)

    given = [] if mask is None else [mask]
    return _composite("attention", heads)(
        q,
        k,
        v,
        *given,
        scale=float(q.shape[-1] ** -0.5 if scale is None else scale),
        causal=bool(causal),
        offset=int(offset),
        window=int(window),
        softcap=float(softcap),
    )


def rope(x: Array, cos: Array, sin: Array, *, interleaved: bool = False, heads_axis: int) -> Array:
    """Turn pairs of elements by the angle of their row.

    Args:
        x: (..., S, heads, D) or (..., heads, S, D).
        cos: (S, D / 2) of the angles.
        sin: (S, D / 2).
        interleaved: pairs are neighbours; else one in each half.
        heads_axis: which axis of x the heads are.
    """

    def turn(x: Array, cos: Array, sin: Array, *, interleaved: bool, heads_axis: int) -> Array:
        if heads_axis == x.ndim - 2:
            cos, sin = cos[:, None, :], sin[:, None, :]
        half = x.shape[-1] // 2
        first = x[..., 0::2] if interleaved else x[..., :half]
        second = x[..., 1::2] if interleaved else x[..., half:]
        turned = first * cos - second * sin, first * sin + second * cos
        if interleaved:
            return jnp.stack(turned, axis=-1).reshape(x.shape)
        return jnp.concatenate(turned, axis=-1)

    return _composite("rope", turn)(
        x, cos, sin, interleaved=bool(interleaved), heads_axis=int(heads_axis % x.ndim)
    )


def _along(scale: Array, axis: int | None, rank: int) -> Array:
    return scale if axis is None else scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def quantize(
    x: Array,
    scale: float | Sequence[float],
    zero: int = 0,
    *,
    axis: int | None = None,
    dtype: Any = jnp.int8,  # noqa: ANN401
) -> Array:
    """Return integers: x / scale rounded half to even, plus zero, saturated.

    Args:
        x: float32 of any shape.
        scale: one, or one per index of `axis`.
        zero: the integer that stands for 0.
        axis: of the scales.
        dtype: int8, uint8, int16 or int32.
    """
    kind = jnp.dtype(dtype)
    edge = jnp.iinfo(kind)
    # The largest int32 is no float.
    high = edge.max if kind.itemsize < 4 else 2147483520

    def function(x: Array, *scales: Array, zero: int, **options: Any) -> Array:  # noqa: ANN401
        wide = _along(scales[0], options["axis"], x.ndim) if scales else options["scale"]
        return jnp.clip(jnp.round(x / wide) + zero, edge.min, high).astype(kind)

    return _with_scales("quantize", function, x, scale, zero, axis)


def dequantize(
    x: Array, scale: float | Sequence[float], zero: int = 0, *, axis: int | None = None
) -> Array:
    """Return float32 scale * (x - zero); arguments as `quantize`."""

    def function(x: Array, *scales: Array, zero: int, **options: Any) -> Array:  # noqa: ANN401
        wide = _along(scales[0], options["axis"], x.ndim) if scales else options["scale"]
        return (x.astype(jnp.int32) - zero).astype(jnp.float32) * wide

    return _with_scales("dequantize", function, x, scale, zero, axis)


def _with_scales(
    name: str,
    function: Callable[..., Array],
    x: Array,
    scale: float | Sequence[float],
    zero: int,
    axis: int | None,
) -> Array:
    made = _composite(name, function)
    if axis is None:
        return made(x, scale=float(np.float32(np.asarray(scale).reshape(()))), zero=int(zero))
    scales = np.asarray(scale, np.float32).reshape(-1)
    return made(x, scales, axis=int(axis % x.ndim), zero=int(zero))


def port_matmul(
    a: Array,
    b: Array,
    scales: Array | None = None,
    *,
    format: str,  # noqa: A002  as the operation calls it
    group: int = 0,
    exact: bool = False,
) -> Array:
    """Multiply matrices in a format of the command port.

    Args:
        a: (M, K): int8 of the format's range; uint8 codes of fp8 (E4M3); float16 or uint16 codes
            of fp16, uint16 codes of bf16; int8 with group_int4.
        b: (K, N): the same; int4 values with group_int4.
        scales: (ceil(K / group), N) int16 in Q8.8, with group_int4 alone.
        format: int8, int4, int2, ternary, sparse_int4 (2 of 4 neighbours of a along K), fp8, fp16,
            bf16 or group_int4.
        group: rows of b that share a scale.
        exact: of fp16 and bf16, round the sum of the products instead of each product.

    Returns:
        (M, N) int32 modulo 2^32; of fp8, fp16, bf16 and group_int4 with eight fraction bits.
    """

    def product(a: Array, b: Array, *rest: Array, format: str, group: int, exact: bool) -> Array:  # noqa: A002
        if rest:
            places = [slice(first, first + group) for first in range(0, a.shape[1], group)]
            parts = [_dots(a[:, at], b[at]) * rest[0][i][None] for i, at in enumerate(places)]
            return jnp.stack(parts).sum(axis=0, dtype=jnp.int32)
        if format in ("fp8", "fp16", "bf16"):
            left, right = _fixed(a, format)[:, :, None], _fixed(b, format)[None]
            # A product takes more than 32 bits: by whole units and fractions of one factor.
            high, low = left * (right >> 8), left * (right & 255)
            total = (high + (low >> 8)).sum(axis=1, dtype=jnp.int32)
            rest = (low & 255).sum(axis=1, dtype=jnp.int32) >> 8
            return total + rest if exact else total
        return _dots(a, b)

    given = [a, b] if scales is None else [a, b, scales]
    return _composite("port_matmul", product)(
        *given, format=format, group=int(group), exact=bool(exact)
    )


def _dots(a: Array, b: Array) -> Array:
    return jnp.matmul(a.astype(jnp.int32), b.astype(jnp.int32))


def _fixed(codes: Array, name: str) -> Array:
    """Return codes in Q8.8: fp8 rounded towards 0, others half away from zero."""
    if name == "fp8":
        wide = codes.astype(jnp.int32)
        exponent, mantissa = wide >> 3 & 15, wide & 7
        size = jnp.where(exponent == 0, mantissa >> 1, ((8 + mantissa) << exponent) >> 2)
        return jnp.where(wide & 0x80, -size, size)
    if name == "bf16":
        real = jax.lax.bitcast_convert_type(codes.astype(jnp.uint32) << 16, jnp.float32)
    elif codes.dtype == jnp.uint16:
        real = jax.lax.bitcast_convert_type(codes, jnp.float16).astype(jnp.float32)
    else:
        real = codes.astype(jnp.float32)
    return (jnp.sign(real) * jnp.floor(jnp.abs(real) * 256 + 0.5)).astype(jnp.int32)
