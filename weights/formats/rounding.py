# SPDX-License-Identifier: Apache-2.0
"""Real weights to codes: column scales, side bytes, nearest codes, 2:4 masks.

A weight matrix (K, N) is rounded row by row in the natural order. Side bytes are chosen when their
group is reached, by a search over clipped scales. Without feedback that is rounding to nearest;
with the inputs' second moments (`Feedback`) the error of each row is made up for by those below it,
which is what GPTQ does (Frantar et al., "GPTQ", 2022; in this form "LDLQ", Chee et al., "QuIP",
2023): with H = U D U^T, U unit upper triangular, row k is rounded at w[k] - sum_j<k U[j, k] e[j],
e[j] being the error of row j, and costs D[k] e[k]^2. Only elementwise float64 operations and sums
over the leading axis, one row after the other, are used: the codes are the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt

from spec.isa import WeightFormat
from spec.isa.weight_formats import GROUPED, MX, QUAD, SPARSE
from weights.formats.element import WHOLE, Elements, elements, expansion, factors
from weights.formats.linear import NO_QUAD, side_rows, spans
from weights.formats.recipe import Encoding
from weights.limits import WEIGHT_MAX

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]

CLIPS = tuple((40 - step) / 40 for step in range(29))
"""Shares of a group's largest magnitude at which the search lets the largest element lie."""
OCTAVE = tuple((16 + step) / 16 for step in range(-3, 16))
"""The same for a column of an MX format: smaller steps than from one block exponent to the next."""
DEEPEST_BLOCK = 8
"""Below this side byte every MX weight is 0."""
DAMPING = 0.01
"""Share of the mean second moment that is added to each."""
PANEL = 32
"""Rows and columns of a matrix that are worked on at once, so that they stay in the cache."""
MASKS = tuple(combinations(range(QUAD), 2))
"""The rows of a quad that a 2:4 format can keep."""


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """The inputs' second moments H (K, K), damped, as the rounding needs them.

    Attributes:
        importance: (K,) the diagonal of H, by which searches for scales weigh errors.
        upper: (K, K) U of H = U D U^T, unit upper triangular.
        cost: (K,) D.
    """

    importance: Reals
    upper: Reals
    cost: Reals


def feedback(moments: npt.NDArray[np.int64]) -> Feedback:
    """Return the decomposition of sums of products of the inputs, (K, K) integers, symmetric."""
    size = moments.shape[0]
    rest = moments.astype(np.float64)
    mean = float(sum(int(moments[k, k]) for k in range(size))) / size
    del moments  # as large as what is made of it
    rest[np.arange(size), np.arange(size)] += max(DAMPING * mean, 1.0)
    importance = rest.diagonal().copy()
    cost = np.empty(size)
    for end in range(size, 0, -PANEL):
        start = max(0, end - PANEL)
        steps = []
        for k in reversed(range(start, end)):
            cost[k] = rest[k, k]
            right = rest[:k, k].copy()
            rest[:k, k] = left = right / cost[k]  # U, where nothing is read again
            rest[:k, start:k] -= left[:, None] * right[start:]
            steps.append((left, right))
        for top in range(0, start, PANEL):  # only what is right of the diagonal is read again
            bottom = min(top + PANEL, start)
            for left, right in steps:
                rest[top:bottom, top:start] -= left[top:bottom, None] * right[top:start]
    for k in range(size):
        rest[k, :k], rest[k, k] = 0.0, 1.0
    return Feedback(importance, rest, cost)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The real values v * 2^-t that a code can have, ascending.

    Attributes:
        codes: (C,) uint8, the code of every value; of equal ones the first.
        values: (C,) float64.
        middles: (C - 1,) where rounding goes to the next value.
        peak: the largest magnitude that both signs have.
    """

    codes: Codes
    values: Reals
    middles: Reals
    peak: float

    def nearest(self, x: Reals) -> npt.NDArray[np.intp]:
        """Return the index of the nearest value, the lower one of two equally near."""
        return np.searchsorted(self.middles, x)


@cache
def _grid(encoding: Encoding) -> _Grid:
    """Return the grid of an encoding."""
    assert encoding.format is not None
    found: Elements = elements(encoding.format)
    usable = found.number & ((np.abs(found.v) < 2) if encoding.ternary else True)
    codes = np.flatnonzero(usable)
    values, first = np.unique(found.v[codes] * 2.0 ** -found.t[codes], return_index=True)
    middles = (values[1:] + values[:-1]) / 2
    peak = float(min(values[-1], -values[0]))
    return _Grid(codes[first].astype(np.uint8), values, middles, peak)


def _summed(values: Reals) -> Reals:
    """Return the sum over the leading axis, row after row."""
    total = np.zeros(values.shape[1:])
    for row in values:
        total = total + row
    return total


def _peaks(grid: _Grid) -> list[float]:
    """Return where a search lets the largest magnitude of a group lie, in units of the grid.

    Clipped by some share, or exactly on an element of the upper half: weights that already are on
    a grid are found again.
    """
    magnitudes = np.unique(np.abs(grid.values))
    usable = magnitudes[magnitudes >= grid.peak / QUAD]
    peaks = [grid.peak / clip for clip in CLIPS] + [float(one) for one in usable]
    return list(dict.fromkeys(peaks))


def int8_scale(weight: Reals) -> Reals:
    """Return (N,) the real value of one unit of int8 weights; 0 for a column of zeros."""
    scale: Reals = np.abs(weight).max(axis=0) / WEIGHT_MAX
    return scale


def column_scale(encoding: Encoding, weight: Reals, importance: Reals, head_dim: int = 0) -> Reals:
    """Return (N,) the real value of one unit of the expanded weights; 0 for a column of zeros.

    Args:
        encoding: a narrow one.
        weight: (K, N).
        importance: (K,) what a squared error of each row counts.
        head_dim: as of `NarrowLinear`.
    """
    assert encoding.format is not None
    grid = _grid(encoding)
    largest = np.abs(weight).max(axis=0)
    if encoding.format in MX:
        return _mx_scale(encoding, weight, importance, largest, head_dim)
    if encoding.format in SPARSE:
        weight = np.where(_largest_two(weight, importance, head_dim), weight, 0.0)
    groups = [slice(None)]
    if encoding.group:
        groups = [rows for _, rows in spans(weight.shape[0], encoding.group, head_dim)]
    units = [_best_unit(grid, weight[rows], importance[rows]) for rows in groups]
    top = np.max(units, axis=0)
    scale: Reals = top * (WHOLE / 255) if encoding.format in GROUPED else top
    return scale


def _best_unit(grid: _Grid, weight: Reals, importance: Reals) -> Reals:
    """Return (N,) the real value of the grid's unit with the least weighted squared error."""
    largest = np.abs(weight).max(axis=0)
    best: Reals = np.zeros_like(largest)
    least = np.full_like(largest, np.inf)
    for peak in _peaks(grid):
        unit = largest / peak
        x = weight / np.where(unit > 0, unit, 1.0)
        wrong = (grid.values[grid.nearest(x)] - x) * unit
        error = _summed(wrong * wrong * importance[:, None])
        best, least = np.where(error < least, unit, best), np.minimum(error, least)
    return best


def _mx_scale(
    encoding: Encoding, weight: Reals, importance: Reals, largest: Reals, head_dim: int
) -> Reals:
    """Return (N,) the column scale of an MX format with the least weighted squared error."""
    best, least = np.zeros_like(largest), np.full_like(largest, np.inf)
    for part in OCTAVE:
        scale = largest / _grid(encoding).peak * part
        x = weight / np.where(scale > 0, scale, 1.0)
        error = np.zeros_like(largest)
        for _, rows in spans(weight.shape[0], encoding.group, head_dim):
            _, found = _best_side(encoding, x[rows], importance[rows])
            error = error + found
        error = error * scale * scale
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return best


def _best_side(encoding: Encoding, x: Reals, importance: Reals) -> tuple[Codes, Reals]:
    """Return side bytes (N,) of a group x (G, N), in units of w, and their weighted squared error.

    The error is that of the expanded weights, rounding to int8 included.
    """
    assert encoding.format is not None
    grid, table = _grid(encoding), expansion(encoding.format).astype(np.float64)
    factor = factors(encoding.format)
    largest = np.abs(x).max(axis=0)
    best = np.full(largest.shape, 1 if encoding.format in GROUPED else 0, np.uint8)
    least = np.full(largest.shape, np.inf)
    if encoding.format in MX:
        _, exponent = np.frexp(grid.peak / np.where(largest > 0, largest, grid.peak))
        candidates = [np.clip(exponent + step, 0, DEEPEST_BLOCK) for step in (-1, 0)]
    else:
        candidates = [np.clip(np.rint(largest / p * WHOLE), 1, 255) for p in _peaks(grid)]
    for candidate in candidates:
        side = candidate.astype(np.uint8)
        codes = grid.codes[grid.nearest(x * (WHOLE / factor[side]))]
        wrong = table[side, codes] - x
        error = _summed(wrong * wrong * importance[:, None])
        best, least = np.where(error < least, side, best), np.minimum(error, least)
    return best, least


def _largest_two(weight: Reals, importance: Reals, head_dim: int) -> npt.NDArray[np.bool_]:
    """Return (K, N): the two of each quad whose loss would cost most; of equals the first."""
    cost = weight * weight * importance[:, None]
    keep = np.zeros(weight.shape, bool)
    for _, rows in spans(weight.shape[0], QUAD, head_dim):
        order = np.argsort(-cost[rows], axis=0, kind="stable")[:2]
        np.put_along_axis(keep[rows], order, True, axis=0)
    return keep


def rounded_int8(x: Reals, learned: Feedback) -> npt.NDArray[np.int8]:
    """Return int8 weights (K, N) of x in units of w, each row's error made up for below."""
    target, found = x.copy(), np.empty(x.shape, np.int8)
    for k in range(x.shape[0]):
        found[k] = np.clip(np.rint(target[k]), -WEIGHT_MAX, WEIGHT_MAX)
        _spread(target, learned, k, found[k] - x[k])
    return found


def rounded(
    encoding: Encoding, x: Reals, learned: Feedback | None = None, head_dim: int = 0
) -> tuple[Codes, Codes]:
    """Return codes (K, N) and side bytes (as `NarrowLinear` has them) of weights.

    Args:
        encoding: a narrow one.
        x: (K, N) in units of w: the real weights over the column scales.
        learned: with it the error of each row is made up for by those below, without it every
            weight goes to its nearest value.
        head_dim: as of `NarrowLinear`.
    """
    assert encoding.format is not None
    rows, columns = x.shape
    importance = np.ones(rows) if learned is None else learned.importance
    grid, table = _grid(encoding), expansion(encoding.format).astype(np.float64)
    factor = factors(encoding.format)
    side = np.zeros((side_rows(encoding.format, encoding.group, rows, head_dim), columns), np.uint8)
    if encoding.format in SPARSE:
        return _rounded_quads(encoding.format, grid, x, side, learned, head_dim)
    codes, target = np.empty(x.shape, np.uint8), x.copy()
    here = np.zeros(columns, np.uint8)
    groups = spans(rows, encoding.group, head_dim) if encoding.group else ()
    first = {group.start: (number, group) for number, group in groups}
    for k in range(rows):
        if k in first:
            number, group = first[k]
            here, _ = _best_side(encoding, target[group], importance[group])
            side[number] = here
        codes[k] = grid.codes[grid.nearest(target[k] * (WHOLE / factor[here]))]
        if learned is not None:
            _spread(target, learned, k, table[here, codes[k]] - x[k])
    return codes, side


def _spread(target: Reals, learned: Feedback, k: int, error: Reals) -> None:
    """Let the rows below k make up for the error of row k."""
    for top in range(k + 1, len(target), PANEL):
        target[top : top + PANEL] -= learned.upper[k, top : top + PANEL, None] * error


def _rounded_quads(
    fmt: WeightFormat, grid: _Grid, x: Reals, side: Codes, learned: Feedback | None, head_dim: int
) -> tuple[Codes, Codes]:
    """Return codes and positions of a 2:4 format: for each quad the mask that costs least."""
    rows, columns = x.shape
    known = learned or Feedback(np.ones(rows), np.eye(rows), np.ones(rows))
    codes, target = np.zeros(x.shape, np.uint8), x.copy()
    zero = grid.codes[np.searchsorted(grid.values, 0.0)]
    side[:] = NO_QUAD
    for quad, group in spans(rows, QUAD, head_dim):
        start, size = group.start, group.stop - group.start
        least = np.full(columns, np.inf)
        for first, second in MASKS:
            part, cost = target[start : start + size].copy(), np.zeros(columns)
            tried = np.full((size, columns), zero, np.uint8)
            for cell in range(size):
                k = start + cell
                index = grid.nearest(part[cell])
                value = grid.values[index] if cell in (first, second) else np.zeros(columns)
                if cell in (first, second):
                    tried[cell] = grid.codes[index]
                missed = value - part[cell]
                cost = cost + known.cost[k] * missed * missed
                part[cell + 1 :] -= known.upper[k, k + 1 : start + size, None] * (value - x[k])
            better = cost < least
            codes[start : start + size, better] = tried[:, better]
            side[quad, better] = first + 4 * second
            least = np.minimum(cost, least)
        for k in range(start, start + size):
            value = expansion(fmt)[0, codes[k]]
            _spread(target, known, k, value - x[k])
    return codes, side
