# SPDX-License-Identifier: Apache-2.0
"""Calibration: the range of each tensor that the chip touches, over samples.

What follows a linear operation is clipped at the 99.99 percentile of its magnitudes if it becomes
int8, everything else keeps its largest magnitude; so does a tensor of so few values that the
percentile would lie between the largest two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph
from npu.graph.inputs import Samples
from npu.graph.passes.facts import LINEAR, Facts
from npu.graph.passes.samples import read_samples

PERCENTILE = 99.99


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

    def add(self, value: Array) -> None:
        finite = value[np.isfinite(value)]
        self.finite &= finite.size == value.size
        if not finite.size:
            return
        self.low = min(self.low, float(finite.min()))
        self.high = max(self.high, float(finite.max()))
        both = np.concatenate([self.largest, np.abs(finite).reshape(-1)])
        if both.size > self.keep:
            both = np.partition(both, both.size - self.keep)[-self.keep :]
        self.largest = both

    def range(self, total: int) -> Range:
        if not self.largest.size:
            return Range(0.0, 0.0, 0.0, self.finite)
        largest = np.sort(self.largest)
        beyond = math.floor(total * (1 - PERCENTILE / 100)) if self.keep > 1 else 0
        magnitude = float(largest[max(0, largest.size - 1 - beyond)])
        return Range(self.low, self.high, magnitude, self.finite)


def chip_tensors(graph: Graph) -> list[str]:
    """Return the real tensors that operations of the chip read or assign, constants left out."""
    facts = Facts(graph)
    found: dict[str, None] = {}
    for one in graph.operations:
        if not one.on_chip:
            continue
        for name in (*facts.activations(one), *one.outputs):
            if graph.type(name).element == Element.F32 and facts.value(name) is None:
                found[name] = None
    return list(found)


def calibrate(graph: Graph, samples: Samples | str) -> Mapping[str, Range]:
    """Return the range of each real tensor of the chip.

    Args:
        graph: after the pass `place`.
        samples: as `read_samples` takes them.

    Returns:
        A range by name.

    Raises:
        GraphError: samples are wrong, or an operation cannot be evaluated.
    """
    inputs = read_samples(graph, samples)
    names = chip_tensors(graph)
    makers = graph.producers()
    seen = {}
    for name in names:
        total = graph.type(name).size * len(inputs)
        maker = makers.get(name)
        clipped = maker is not None and maker.kind in LINEAR
        keep = math.floor(total * (1 - PERCENTILE / 100)) + 1 if clipped else 1
        seen[name] = _Seen(keep)
    for one in inputs:
        values = evaluate(graph, one, keep=names)
        for name in names:
            seen[name].add(values[name])
    return {name: seen[name].range(graph.type(name).size * len(inputs)) for name in names}
