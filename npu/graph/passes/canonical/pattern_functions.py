# SPDX-License-Identifier: Apache-2.0
"""Functions of one variable, told by their values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Names, Operation
from npu.graph.operations.functions import FUNCTIONS
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ELEMENTWISE, GraphView, Region, uniform

# Those that are worth a name of their own; with parameters last, as they fit more.
_PLAIN = (
    *("relu", "sigmoid", "tanh", "silu", "gelu", "gelu_tanh", "hard_swish", "softplus"),
    *("softsign", "mish", "erf", "abs"),
)
_ONE = ("leaky_relu", "elu", "celu", "swish", "thresholded_relu")
_TWO = ("clip", "selu", "hard_sigmoid")
_MOST = 10
# Constants of float32 differ by less; an epsilon that is added differs by more.
_RELATIVE, _ABSOLUTE = 1e-6, 2e-8
_FEW, _ALL = slice(5, None, 97), slice(None)
POINTS: Array = np.concatenate(
    [
        np.linspace(-12.0, 12.0, 481),
        np.geomspace(1e-4, 80.0, 40),
        -np.geomspace(1e-4, 80.0, 40),
        [0.0],
    ]
)
"""Where functions are compared; none of the usual thresholds but 0 lies on a step of one."""


def functions(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace the largest region of elementwise operations that is a known function."""
    if root.kind not in ELEMENTWISE or view.graph.type(root.outputs[0]).element != Element.F32:
        return None
    regions = [one for one in view.regions(root, ELEMENTWISE) if _fits(view, one)]
    for region in reversed(regions):
        found = _known(view, region)
        if found is None:
            continue
        edit = Replacement(view, region, names)
        name, parameters = found
        if name == "clip":
            low, high = parameters
            edit.last("clip", [region.entry], low=low, high=high)
        else:
            edit.last("table", [region.entry], functions=(name,), parameters=parameters)
        return edit
    return None


def _fits(view: GraphView, region: Region) -> bool:
    """Say whether a region is a function of each element: all other inputs are one number."""
    entry, result = (view.graph.type(name) for name in (region.entry, region.root.outputs[0]))
    if len(region.operations) < 2 or entry != result or entry.quantisation is not None:
        return False
    constants = [name for op in region.operations for name in op.used]
    return all(
        uniform(value) is not None or value.size == 1
        for value in (view.graph.constant(name) for name in constants)
        if value is not None
    )


def _known(view: GraphView, region: Region) -> tuple[str, tuple[float, ...]] | None:
    """Return the name and parameters of the function that a region computes."""
    wanted = _values(view, region)
    if wanted is None or not np.isfinite(wanted).all():
        return None
    if _affine(wanted):
        return None
    for name, parameters in _guesses(view.numbers(region)):
        # Most guesses are wrong at the first few points already.
        if _near(name, parameters, wanted, _FEW) and _near(name, parameters, wanted, _ALL):
            return name, parameters
    return None


def _affine(values: Array) -> bool:
    """Say whether values at the points are a factor and an addend: what no named function is."""
    slope = (values[480] - values[0]) / (POINTS[480] - POINTS[0])
    line = values[0] + slope * (POINTS - POINTS[0])
    return bool(np.all(np.abs(values - line) <= 1e-9 * (1 + np.abs(line))))


def _near(name: str, parameters: tuple[float, ...], wanted: Array, places: slice) -> bool:
    with np.errstate(all="ignore"):
        found = np.asarray(FUNCTIONS[name].value(POINTS[places], *parameters))
    want = wanted[places]
    return bool(np.all(np.abs(found - want) <= _ABSOLUTE + _RELATIVE * np.abs(want)))


def _values(view: GraphView, region: Region) -> Array | None:
    """Compute a region at the points, its constants as single numbers."""
    single: dict[str, Array] = {region.entry: POINTS}
    for op in region.operations:
        for name in op.used:
            value = view.graph.constant(name)
            if value is not None:
                first = value.reshape(-1)[0]
                single[name] = np.asarray(
                    first.astype(np.float64) if value.dtype.kind == "f" else first
                )
    moved = [
        replace(op, attributes={**op.attributes, "element": "float64"})
        if op.kind == "cast" and op["element"].startswith("float")
        else op
        for op in region.operations
    ]
    result = view.computed(moved, single)[region.root.outputs[0]]
    return result if result.shape == POINTS.shape and result.dtype.kind == "f" else None


def _guesses(numbers: list[float]) -> Iterator[tuple[str, tuple[float, ...]]]:
    for name in _PLAIN:
        yield name, ()
    related: dict[float, None] = {}
    for number in numbers[:_MOST]:
        related[number] = related[-number] = None
        if number:
            related[1.0 / number] = None
    for name, number in itertools.product(_ONE, related):
        if number > 0:
            yield name, (float(number),)
    # A bound beyond the points would not be seen.
    inside = [one for one in related if abs(one) < POINTS.max()]
    edges = (*inside, -math.inf, math.inf)
    for low, high in itertools.product(edges, edges):
        if low < high and (low, high) != (-math.inf, math.inf):
            yield "clip", (float(low), float(high))
    ratios = {a / b: None for a, b in itertools.product(related, related) if b}
    for name in _TWO[1:]:
        for pair in itertools.product(related, {**related, **ratios}):
            if min(pair) > 0:
                yield name, (float(pair[0]), float(pair[1]))
