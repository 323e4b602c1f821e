# SPDX-License-Identifier: Apache-2.0
"""Operators of transformers by name, each a graph of real numbers that compiles like any other."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from npu.graph.form import Array, Element, Graph, GraphError
from npu.graph.library import attention, blocks, feed_forward, products, rows
from npu.graph.library.masks import MASKS
from npu.graph.library.sketch import Sketch

Size: TypeAlias = int | str
MOST = 4096
"""Of a size, so that a slip of the pen does not take all memory."""
INT4 = (-8, 8)
"""First code and the one behind the last."""
FROM_ZERO = ("position", "length", "spread", "window", "quick", "linear", "packed")
"""Sizes that may be 0."""


@dataclass(frozen=True)
class Operator:
    """An operator of the library.

    Attributes:
        build: draws it; its keyword arguments are the sizes.
        bound: how far integers may be from real numbers in any stage, as a share of the largest
            element that calibration has seen there, for a standard normal sample among those seen;
            one in 10,000 elements, which calibration gives up, does not count.
        npu: kinds of operations that run on the chip though the host had it cheaper.
    """

    build: Callable[..., tuple[str, ...]]
    bound: float
    npu: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """By which it is asked for."""
        return self.build.__name__

    @property
    def summary(self) -> str:
        """What it computes, in a line."""
        return inspect.cleandoc(self.build.__doc__ or "").splitlines()[0]

    @property
    def sizes(self) -> dict[str, Size]:
        """Its sizes with their defaults."""
        given = inspect.signature(self.build).parameters.values()
        return {one.name: one.default for one in given if one.kind is one.KEYWORD_ONLY}


OPERATORS = {
    one.name: one
    for one in (
        Operator(attention.attention_scores, 0.025),
        Operator(rows.masked_softmax, 0.012),
        Operator(attention.context, 0.025),
        Operator(attention.attention, 0.045),
        Operator(attention.qkv_projection, 0.025),
        Operator(attention.cache_update, 0.01, ("concat", "slice")),
        Operator(attention.decode_attention, 0.045, ("concat", "slice")),
        Operator(feed_forward.mlp, 0.06),
        Operator(feed_forward.swiglu, 0.08),
        Operator(feed_forward.silu, 0.015),
        Operator(feed_forward.gelu, 0.015),
        Operator(feed_forward.bias_add, 0.01),
        Operator(feed_forward.residual_add, 0.015),
        Operator(rows.rope, 0.02),
        Operator(rows.rmsnorm, 0.012),
        Operator(blocks.encoder_block, 0.06),
        Operator(blocks.decoder_block, 0.08),
        Operator(products.batched_matmul, 0.025),
        Operator(products.conv, 0.025),
        Operator(products.grouped_conv, 0.025),
        Operator(products.depthwise_conv, 0.025),
        Operator(products.narrow_matmul, 0.0),
        Operator(attention.narrow_scores, 0.0),
        Operator(attention.narrow_context, 0.0),
    )
}
"""The library."""


def operator(name: str) -> Operator:
    """Return an operator of the library. Raises GraphError for a name that there is not."""
    if name not in OPERATORS:
        near = difflib.get_close_matches(name, OPERATORS, 3, 0.4) or list(OPERATORS)
        raise GraphError(f"operator {name!r}: there is none, allowed {', '.join(near)}")
    return OPERATORS[name]


def operator_graph(
    name: str, sizes: Mapping[str, Size] | None = None, *, stages: bool = False, seed: int = 1
) -> Graph:
    """Return an operator as a graph of float32.

    Args:
        name: of `OPERATORS`.
        sizes: those that are not the defaults.
        stages: makes every stage an output, so that none is fused into the next.
        seed: of its parameters.

    Raises:
        GraphError: a name or a size is wrong.
    """
    one = operator(name)
    given = {**one.sizes, **(sizes or {})}
    for size, value in given.items():
        _check(one, size, value)
    draw = Sketch(name, seed, opened=stages)
    try:
        outputs = one.build(draw, **given)
    except GraphError as error:
        text = ", ".join(f"{size}={value}" for size, value in given.items())
        raise GraphError(f"operator {name} with {text}: {error}") from None
    return draw.drawn(*outputs)


def operator_inputs(graph: Graph, count: int, seed: int = 1) -> dict[str, Array]:
    """Return inputs for an operator: standard normal numbers, or all codes of int4.

    Args:
        graph: of an operator.
        count: of samples, the first axis of each array.
        seed: of what is drawn.
    """
    random = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        kind = graph.type(name)
        shape = (count, *kind.shape)
        real = kind.element == Element.F32
        data = random.standard_normal(shape) if real else random.integers(*INT4, shape)
        found[name] = np.asarray(data).astype(kind.element.dtype)
    return found


def _check(one: Operator, size: str, value: Size) -> None:
    where = f"operator {one.name}, {size}"
    if size not in one.sizes:
        raise GraphError(f"{where}: there is no such size, allowed {', '.join(one.sizes)}")
    if isinstance(one.sizes[size], str):
        if value not in MASKS:
            raise GraphError(f"{where}: given {value!r}, allowed {', '.join(MASKS)}")
        return
    least = 0 if size in FROM_ZERO else 1
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise GraphError(f"{where}: given {value!r}, allowed {least} to {MOST}")
