# SPDX-License-Identifier: Apache-2.0
"""Finds the codes and side bytes of int8 weights that a narrow format holds exactly.

Several side bytes may make the same weights of a group; the lowest is taken, and of equal codes the
first. What they expand to is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.elements import Side
from spec.isa.weight_formats import GROUPED, QUAD
from weights.formats.element import elements, expansion
from weights.formats.linear import side_rows
from weights.formats.recipe import Encoding

Codes = npt.NDArray[np.uint8]
SIDES = 256


@dataclass(frozen=True, slots=True, eq=False)
class CodedWeights:
    """Weights as a format has them; the parts of a `NarrowLinear` that say so."""

    format: WeightFormat
    group: int
    codes: Codes
    side: Codes


@cache
def _code_of(fmt: WeightFormat) -> npt.NDArray[np.int16]:
    """Return (256, 256) the first code of each side byte and weight (as its bits), -1 for none."""
    found = np.full((SIDES, SIDES), -1, np.int16)
    usable = elements(fmt).number
    for code in reversed(range(usable.size)):
        if usable[code]:
            found[np.arange(SIDES), expansion(fmt)[:, code].view(np.uint8)] = code
    if fmt in GROUPED:
        found[0] = -1  # a factor of 0 is none
    return found


@cache
def _sides_of(fmt: WeightFormat) -> npt.NDArray[np.uint64]:
    """Return (256, 4): for each weight (as its bits) a bit for each side byte that can make it."""
    able = np.ascontiguousarray((_code_of(fmt) >= 0).T)
    return np.packbits(able, axis=1, bitorder="little").view(np.uint64)


def codes_of(encoding: Encoding, weight: npt.NDArray[np.int8]) -> CodedWeights | None:
    """Return the codes and side bytes of weights (K, N), None if the format does not hold them.

    Args:
        encoding: a narrow one.
        weight: in the order of rows in which a GEMM takes them.
    """
    assert encoding.format is not None
    fmt, group = encoding.format, encoding.group
    bits = np.ascontiguousarray(weight).view(np.uint8)
    side = np.zeros((side_rows(fmt, group, weight.shape[0]), weight.shape[1]), np.uint8)
    here: npt.NDArray[np.intp] = np.zeros(1, np.intp)
    if WEIGHT_FORMATS[fmt].side is Side.POSITIONS:
        kept = _positions(weight)
        if kept is None:
            return None
        side = kept
    elif group:
        for number, start in enumerate(range(0, weight.shape[0], group)):
            able = np.bitwise_and.reduce(_sides_of(fmt)[bits[start : start + group]], axis=0)
            if not able.any(axis=1).all():
                return None
            of_column = np.unpackbits(able.view(np.uint8), axis=1, bitorder="little")
            side[number] = of_column.argmax(axis=1)
        here = np.repeat(side, group, axis=0)[: weight.shape[0]].astype(np.intp)
    codes = _code_of(fmt)[here, bits]
    if codes.min(initial=0) < 0:
        return None
    return CodedWeights(fmt, group, codes.astype(np.uint8), side)


def _positions(weight: npt.NDArray[np.int8]) -> Codes | None:
    """Return p0 + 4 * p1 of each quad of rows, None if more than two of four are not 0."""
    quads = np.zeros((-(-weight.shape[0] // QUAD), QUAD, weight.shape[1]), bool)
    quads.reshape(-1, weight.shape[1])[: weight.shape[0]] = weight != 0
    if quads.sum(axis=1).max(initial=0) > 2:
        return None
    first = np.sort(np.argsort(~quads, axis=1, kind="stable")[:, :2], axis=1)
    return (first[:, 0] + QUAD * first[:, 1]).astype(np.uint8)
