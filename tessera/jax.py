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
