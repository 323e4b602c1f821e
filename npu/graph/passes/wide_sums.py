# SPDX-License-Identifier: Apache-2.0
"""The int16 numbers in which operands of different scales are added.

Operands saturate in them only where the result does whatever the other one is, such as one that was
0 in all samples and so has any scale, and the sum only where the result does as well. Between 16
and 8 bits one element in a thousand, at most, is rounded otherwise than the exact sum of random
operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npu.graph.form import Element, GraphError, Quantisation, TensorType
from npu.graph.passes.facts import quantisation_of
from npu.graph.passes.integer_writer import symmetric
from npu.graph.passes.products import STEP

_MOST = 32767
_NEAR = 64
"""How far a zero point may be from where the range would be in the middle."""


def plain(kind: TensorType) -> bool:
    """Say whether integers are signed and 0 stands for 0."""
    return quantisation_of(kind).zero == 0 and kind.element in (Element.I8, Element.I16)


def largest(kind: TensorType) -> int:
    """Return the largest integer that a type holds once its zero point is taken off."""
    edge = np.iinfo(kind.element.dtype)
    zero = quantisation_of(kind).zero
    return max(int(edge.max) - zero, zero - int(edge.min) - (zero == 0))


def wide_types(operands: Sequence[TensorType], result: TensorType, sign: int) -> list[TensorType]:
    """Return the types of both operands and of their sum, all of one scale.

    Args:
        operands: two, of any scales and zero points.
        result: what the sum becomes.
        sign: 1 for a sum, -1 for a difference.

    Raises:
        GraphError: the steps of an operand are too large beside those of the result.
    """
    found = _kept(operands, result)
    if found is not None:
        return [symmetric((), Element.I16, found)] * 3
    types = (*operands, result)
    if all(plain(each) for each in types):
        centres, halves = [0.0] * 3, [quantisation_of(each).scale * _half(each) for each in types]
        ends = _met([(-half, half) for half in halves], quantisation_of(result).scale, sign)
        halves = [high for _, high in ends]
    else:
        ends = _met([_ends(each) for each in types], quantisation_of(result).scale, sign)
        centres = [(low + high) / 2 for low, high in ends]
        halves = [(high - low) / 2 for low, high in ends]
    # Half a step beyond its ends the result saturates.
    halves[2] += quantisation_of(result).scale / 2
    # Ranges are centred; by how much the result is off its operands is spread over the three.
    off = centres[2] - centres[0] - sign * centres[1]
    reach = max(*halves, (sum(halves) + abs(off)) / 3)
    first = math.copysign(min(abs(off), reach - halves[0]), off)
    second = math.copysign(min(abs(off - first), reach - halves[1]), off)
    unit = _unit(reach, quantisation_of(operands[0]).scale)
    zeros = [
        _zero(-(centre + moved) / unit, quantisation_of(each).scale / unit)
        for each, centre, moved in zip(operands, centres[:2], (first, sign * second), strict=True)
    ]
    for each, zero in zip(operands, zeros, strict=False):
        step, least = quantisation_of(each).scale, quantisation_of(result).scale
        sums = zero * unit * STEP / step
        if abs(sums - round(sums)) * step / STEP > least / 4:
            raise GraphError(f"steps of {step:.6g} and a zero point beside steps of {least:.6g}")
    zeros.append(zeros[0] + sign * zeros[1])
    return [TensorType((), Element.I16, Quantisation((unit,), zero)) for zero in zeros]


def _met(ends: list[tuple[float, float]], step: float, sign: int) -> list[tuple[float, float]]:
    """Return ranges of operands and result, the operands' without what saturates the result.

    Only ranges that are more than twice as large as they have to be are cut.
    """
    (a_low, a_high), (b_low, b_high), (low, high) = ends
    low, high = low - step, high + step
    if sign > 0:
        needed = [(low - b_high, high - b_low), (low - a_high, high - a_low)]
    else:
        needed = [(low + b_low, high + b_high), (a_low - high, a_high - low)]
    cut = [(max(was[0], to[0]), min(was[1], to[1])) for was, to in zip(ends, needed, strict=False)]
    return [
        to if was[1] - was[0] > 2 * (to[1] - to[0]) > 0 else was
        for was, to in zip(ends, [*cut, ends[2]], strict=True)
    ]


def _kept(operands: Sequence[TensorType], result: TensorType) -> float | None:
    """Return the scale of an operand that is int16 already, if the other one fits beside it."""
    scale = quantisation_of(result).scale
    for one, other in (operands, operands[::-1]):
        found = quantisation_of(one)
        covered = largest(other) * quantisation_of(other).scale <= _MOST * found.scale
        finer = found.scale * 32 <= scale <= found.scale * 128
        if one.element == Element.I16 and found.zero == 0 and covered and finer:
            return found.scale
    return None


def _half(kind: TensorType) -> int:
    return -int(np.iinfo(kind.element.dtype).min)


def _ends(kind: TensorType) -> tuple[float, float]:
    """Return the lowest and the highest real number of a type."""
    edge, found = np.iinfo(kind.element.dtype), quantisation_of(kind)
    return (edge.min - found.zero) * found.scale, (edge.max - found.zero) * found.scale


def _unit(reach: float, step: float) -> float:
    """Return the finest scale that reaches so far and, if it can, is a whole part of a step."""
    finest = reach / (_MOST - 2 * _NEAR)
    return step / (step // finest) if step > finest else finest


def _zero(wish: float, gain: float) -> int:
    """Return a zero point near a wish that is a whole number of the sums that make the operand."""
    if not wish:
        return 0
    part = STEP / gain
    near = range(round(wish) - _NEAR, round(wish) + _NEAR + 1)
    return min(
        near,
        key=lambda zero: (round(abs(zero * part - round(zero * part)), 3), abs(zero - wish)),
    )
