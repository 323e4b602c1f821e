# SPDX-License-Identifier: Apache-2.0
"""Calibration: the range of each tensor that the chip touches, over samples.

The result of a linear operation that becomes int8 is clipped at the 99.99 percentile of its
magnitudes, unless it has so few values that this would lie between the largest two; everything else
keeps its largest magnitude. Entropy clips each tensor of int8 where the clipped and rounded values
tell most about the real ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, GraphError
from npu.graph.inputs import Samples
from npu.graph.passes.facts import LINEAR, Facts
from npu.graph.passes.quantising.samples import read_samples
from npu.graph.states import States

PERCENTILE = 99.99
METHODS = ("percentile", "entropy", "max")
"""How to find what a scale covers."""
BINS, LEVELS = 2048, 128
"""Of the histogram of magnitudes, and of those that int8 tells apart."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a tensor held over all samples.

    Attributes:
        low, high: smallest and largest finite value.
        magnitude: what its scale is to cover.
        finite: whether it held neither infinities nor NaN.
    """

    low: float
    high: float
    magnitude: float
    finite: bool = True


@dataclass
class _Seen:
    """What was seen of a tensor so far: edges, and as many of the largest magnitudes as count."""

    keep: int
    low: float = math.inf
    high: float = -math.inf
    finite: bool = True
    largest: Array = field(default_factory=lambda: np.zeros(0, np.float32))
    counts: Array | None = None

    def add(self, value: Array) -> None:
        finite = value[np.isfinite(value)]
        self.finite &= finite.size == value.size
        if not finite.size:
            return
        if self.counts is not None:
            self._count(np.abs(finite))
        self.low = min(self.low, float(finite.min()))
        self.high = max(self.high, float(finite.max()))
        both = np.concatenate([self.largest, np.abs(finite).reshape(-1)])
        if both.size > self.keep:
            both = np.partition(both, both.size - self.keep)[-self.keep :]
        self.largest = both

    def _count(self, magnitudes: Array) -> None:
        """Add to the histogram, whose bins grow by powers of two with the largest magnitude."""
        assert self.counts is not None
        reach, seen = float(magnitudes.max()), float(self.largest.max(initial=0.0))
        end, old = (math.ldexp(1.0, math.frexp(one)[1]) if one else 0.0 for one in (reach, seen))
        if end > old > 0:
            joined = min(int(end / old), BINS)
            sums = self.counts.reshape(-1, joined).sum(1)
            self.counts = np.concatenate([sums, np.zeros(BINS - sums.size, np.int64)])
        if end:
            self.counts = self.counts + np.histogram(magnitudes, BINS, (0.0, max(end, old)))[0]

    def range(self, total: int) -> Range:
        if not self.largest.size:
            return Range(0.0, 0.0, 0.0, self.finite)
        largest = np.sort(self.largest)
        beyond = math.floor(total * (1 - PERCENTILE / 100)) if self.keep > 1 else 0
        magnitude = float(largest[max(0, largest.size - 1 - beyond)])
        if self.counts is not None and largest[-1] > 0:
            end = math.ldexp(1.0, math.frexp(float(largest[-1]))[1])
            magnitude = min(magnitude, end * telling(self.counts) / BINS)
        return Range(self.low, self.high, magnitude, self.finite)


def telling(counts: Array) -> int:
    """Return the number of bins of a histogram of magnitudes that a scale covers best.

    Of all ends the one where what int8 makes of the values, those beyond clipped, has the least
    Kullback-Leibler divergence from them, as TensorRT chooses it.

    Args:
        counts: (BINS,) of magnitudes from 0 on.
    """
    last = int(np.flatnonzero(counts).max(initial=LEVELS - 1)) + 1
    best, found = math.inf, last
    for end in range(LEVELS, last + 1):
        inside = counts[:end].astype(np.float64)
        clipped = inside.copy()
        clipped[-1] += counts[end:].sum()
        level = np.arange(end) * LEVELS // end
        held = np.bincount(level, inside, LEVELS)
        used = np.bincount(level, inside > 0, LEVELS)
        made = np.where(inside > 0, (held / np.maximum(used, 1))[level], 0.0)
        # What nothing inside stands for tells nothing of the values that are clipped.
        p, q = clipped / clipped.sum(), made / max(made.sum(), 1.0)
        there = p > 0
        loss = float(np.sum(p[there] * np.log(p[there] / np.maximum(q[there], 1e-9))))
        if loss < best:
            best, found = loss, end
    return found


def chip_tensors(graph: Graph) -> list[str]:
    """Return the real tensors that operations of the chip read or assign, constants left out."""
    facts = Facts(graph)
    found: dict[str, None] = {}
    for op in graph.operations:
        if not op.on_chip:
            continue
        for name in (*facts.activations(op), *op.outputs):
            if graph.type(name).element == Element.F32 and facts.value(name) is None:
                found[name] = None
    return list(found)


def calibrate(
    graph: Graph,
    samples: Samples | str,
    method: str = METHODS[0],
    watch: Callable[[Mapping[str, Array]], None] | None = None,
) -> Mapping[str, Range]:
    """Return the range of each real tensor of the chip.

    Args:
        graph: after the pass `place`.
        samples: as `read_samples` takes them.
        method: one of `METHODS`.
        watch: called with the real tensors of the chip of each sample, by name.

    Returns:
        A range by name.

    Raises:
        GraphError: samples or the method are wrong, or an operation cannot be evaluated.
    """
    if method not in METHODS:
        raise GraphError(f"calibration {method!r}, allowed {', '.join(METHODS)}")
    inputs = read_samples(graph, samples)
    names = chip_tensors(graph)
    makers = graph.producers()
    seen = {}
    for name in names:
        total = graph.type(name).size * len(inputs)
        maker = makers.get(name)
        clipped = maker is not None and maker.kind in LINEAR and method == "percentile"
        seen[name] = _Seen(math.floor(total * (1 - PERCENTILE / 100)) + 1 if clipped else 1)
        if method == "entropy":
            seen[name].counts = np.zeros(BINS, np.int64)
    states = States(graph)
    for one in inputs:
        values = evaluate(graph, {**one, **states.values}, keep=names)
        states.advance(values)
        for name in names:
            seen[name].add(values[name])
        if watch is not None:
            watch(values)
    return {name: seen[name].range(graph.type(name).size * len(inputs)) for name in names}
