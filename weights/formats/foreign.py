# SPDX-License-Identifier: Apache-2.0
"""Import of weights that others made: INT4 groups, OCP MX blocks, 2:4 and ternary tensors, floats.

Codes are kept, scales become side bytes and column scales, and a report says how many weights are
not exactly what they were. What no chip can hold is refused with tensor, row, column, value and
what is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np
import numpy.typing as npt

from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.weight_formats import GROUPS, MX, MX_BLOCK, NARROW, QUAD, SPARSE
from weights.fixed_point import multipliers, to_int
from weights.formats.element import elements, expansion
from weights.formats.linear import NarrowLinear, expand, side_rows
from weights.formats.recipe import Encoding
from weights.formats.rounding import column_scale, rounded

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint8]
ScaleKind = Literal["fp16", "bf16", "q8_8", "int8"]
BIAS_LIMIT = 1 << 30
E8M0_BIAS, E8M0_NAN = 127, 255
DENSE = [fmt for fmt in NARROW if WEIGHT_FORMATS[fmt].is_plain or fmt in SPARSE]
"""Formats of integers at one scale per column."""


class ForeignError(ValueError):
    """A tensor that others quantised has a value that cannot be imported."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did.

    Attributes:
        tensor: its name.
        weights: how many there are.
        inexact: of how many the expanded weight is not exactly the given one.
        largest_error: in units of the column's int8 step.
        requantised: whether the codes could not be kept.
    """

    tensor: str
    weights: int
    inexact: int
    largest_error: float
    requantised: bool = False

    def __str__(self) -> str:
        """Return one line."""
        how = "requantised, zero points do not fold; " if self.requantised else ""
        return (
            f"{self.tensor}: {how}{self.inexact} of {self.weights} weights not exact, largest "
            f"error {self.largest_error:.3f} of the column's int8 step"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """Imported weights.

    Attributes:
        format, group, codes, side: as in `NarrowLinear`.
        scale: (N,) float64, the real value of one unit of the expanded weights.
        report: what is not exact.
    """

    format: WeightFormat
    group: int
    codes: Codes
    side: Codes
    scale: Reals
    report: ImportReport

    def linear(self, bias: Reals, in_scale: float, out_scale: float) -> NarrowLinear:
        """Return the layer with a real bias (N,) between an input and an output scale."""
        unit = self.scale * in_scale
        mult, shift = multipliers(self.report.tensor, unit / out_scale)
        integers = to_int(bias / unit, np.int32, -BIAS_LIMIT, BIAS_LIMIT)
        return NarrowLinear(self.format, self.group, self.codes, self.side, integers, mult, shift)


def _refuse(
    tensor: str, bad: npt.NDArray[np.bool_], values: npt.NDArray[Any], allowed: str
) -> None:
    """Raise ForeignError for the first bad entry of a matrix."""
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ForeignError(
            f"{tensor}: given {values[row, column]!s} at row {row}, column {column}, "
            f"allowed {allowed}"
        )


def read_floats(tensor: str, raw: npt.NDArray[np.uint16], kind: Literal["fp16", "bf16"]) -> Reals:
    """Return the values of 16-bit encodings (R, N).

    Raises:
        ForeignError: NaN, infinity or a subnormal number.
    """
    dtype = np.dtype(np.float16) if kind == "fp16" else np.dtype(ml_dtypes.bfloat16)
    values = raw.view(dtype).astype(np.float64)
    smallest = 2.0**-14 if kind == "fp16" else 2.0**-126  # of normal numbers
    allowed = f"zero and finite normal {kind} numbers (no NaN, infinity, subnormal)"
    bad = ~np.isfinite(values) | ((values != 0) & (np.abs(values) < smallest))
    _refuse(tensor, bad, values, allowed)
    return values


def read_scales(tensor: str, raw: npt.NDArray[Any], kind: ScaleKind) -> Reals:
    """Return real scales (G, N): FP16 and BF16 as uint16 encodings, Q8.8 as int16, or int8.

    Raises:
        ForeignError: an unknown kind, another dtype, or a value that is refused.
    """
    dtypes = {"fp16": np.uint16, "bf16": np.uint16, "q8_8": np.int16, "int8": np.int8}
    if kind not in dtypes:
        raise ForeignError(f"{tensor}: given {kind!r}, allowed {', '.join(get_args(ScaleKind))}")
    if raw.dtype != dtypes[kind] or raw.ndim != 2:
        raise ForeignError(
            f"{tensor}: given {raw.ndim} dimensions of {raw.dtype}, allowed a matrix of "
            f"{np.dtype(dtypes[kind])} for {kind} scales"
        )
    if kind == "fp16" or kind == "bf16":
        return read_floats(f"{tensor} scales", raw, kind)
    return raw.astype(np.float64) / (256.0 if kind == "q8_8" else 1.0)


def import_int4(
    tensor: str,
    q: npt.NDArray[np.int8],
    scales: npt.NDArray[Any],
    kind: ScaleKind,
    group: int,
    *,
    zeros: npt.NDArray[np.int8] | None = None,
    edge: int = 16,
) -> Foreign:
    """Import INT4 weights with one scale per group and column, as GPTQ and AWQ leave them.

    Args:
        tensor: for messages.
        q: (K, N) int8 in -8..7, or 0..15 with `zeros`.
        scales: (ceil(K / group), N), see `read_scales`.
        kind: of the scales.
        group: rows of a scale.
        zeros: (ceil(K / group), N) zero points: the weight is (q - zero) * scale.
        edge: of the chip's tiles.

    Raises:
        ForeignError: values, shapes or groups that a chip cannot hold.
    """
    rows, columns = q.shape
    if group not in GROUPS or group % edge:
        allowed = [one for one in GROUPS if one % edge == 0]
        raise ForeignError(
            f"{tensor}: given groups of {group}, allowed {allowed}, multiples of the tile edge "
            f"{edge}; npu.driver.command.group_matmul.group_matmul takes any group"
        )
    real = read_scales(tensor, scales, kind)
    if real.shape != (-(-rows // group), columns):
        raise ForeignError(
            f"{tensor}: given scales of shape {real.shape}, allowed {(-(-rows // group), columns)}"
        )
    by_row = np.repeat(real, group, axis=0)[:rows]
    low, high = (-8, 7) if zeros is None else (0, 15)
    _refuse(tensor, (q < low) | (q > high), q, f"{low}..{high}")
    whole = q.astype(np.int64)
    if zeros is not None:
        whole = whole - np.repeat(zeros.astype(np.int64), group, axis=0)[:rows]
        if whole.min() < -8 or whole.max() > 7:
            encoding = Encoding(WeightFormat.INT4G, group)
            return _rounded(tensor, encoding, whole * by_row, requantised=True)
    _refuse(tensor, (whole == -8) & (by_row < 0), whole, "-7..7 under a negative scale")
    whole = np.where(by_row < 0, -whole, whole)
    largest = np.abs(real).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0) * (16.0 / 255.0)
    side = np.maximum(np.rint(np.abs(real) / scale * 16.0), 1).astype(np.uint8)
    codes = np.where(by_row == 0, 0, whole & 15).astype(np.uint8)
    exact = np.where(by_row == 0, 0, whole) * np.abs(by_row) / scale
    return _foreign(tensor, WeightFormat.INT4G, group, codes, side, scale, exact)


def import_floats(
    tensor: str, encoding: Encoding, raw: npt.NDArray[np.uint16], kind: Literal["fp16", "bf16"]
) -> Foreign:
    """Round FP16 or BF16 weights, given as 16-bit encodings (K, N), to a narrow format.

    Raises:
        ForeignError: NaN, infinity or a subnormal number.
    """
    return _rounded(tensor, encoding, read_floats(tensor, raw, kind))


def _rounded(
    tensor: str, encoding: Encoding, weight: Reals, *, requantised: bool = False
) -> Foreign:
    """Return real weights rounded to nearest."""
    assert encoding.format is not None
    found = column_scale(encoding, weight, np.ones(len(weight)))
    scale = np.where(found > 0, found, 1.0)
    codes, side = rounded(encoding, weight / scale)
    fmt, group, exact = encoding.format, encoding.group, weight / scale
    return _foreign(tensor, fmt, group, codes, side, scale, exact, requantised=requantised)


def _foreign(
    tensor: str,
    fmt: WeightFormat,
    group: int,
    codes: Codes,
    side: Codes,
    scale: Reals,
    exact: Reals,
    *,
    requantised: bool = False,
) -> Foreign:
    """Return imported weights with their report; `exact` (K, N) is what w should be."""
    wrong = np.abs(expand(fmt, group, codes, side) - exact)
    inexact = int((wrong > 1e-9).sum())
    report = ImportReport(tensor, int(codes.size), inexact, float(wrong.max()), requantised)
    return Foreign(fmt, group, codes, side, scale, report)


def import_mx(tensor: str, fmt: WeightFormat, codes: Codes, exponents: Codes) -> Foreign:
    """Import OCP MX blocks: element codes (K, N), E8M0 scales (ceil(K / 32), N).

    Raises:
        ForeignError: a scale of 255, a code that is no number, wrong shapes.
    """
    if fmt not in MX:
        raise ForeignError(
            f"{tensor}: given {fmt.asm}, allowed {', '.join(sorted(one.asm for one in MX))}"
        )
    found = elements(fmt)
    _refuse(tensor, codes >= found.v.size, codes, f"codes of {fmt.asm}, 0..{found.v.size - 1}")
    _refuse(tensor, ~found.number[codes], codes, f"finite numbers of {fmt.asm}")
    wanted = (side_rows(fmt, MX_BLOCK, codes.shape[0]), codes.shape[1])
    if exponents.shape != wanted:
        raise ForeignError(f"{tensor}: given scales of shape {exponents.shape}, allowed {wanted}")
    _refuse(f"{tensor} scales", exponents == E8M0_NAN, exponents, "E8M0 0..254")
    top = exponents.max(axis=0).astype(np.int64)
    side = np.minimum(top - exponents, 255).astype(np.uint8)
    # What 1.0 is in units of w at side byte 0: 64 in the topmost binade, half of it in each below.
    fields, one = WEIGHT_FORMATS[fmt].minifloat, 64.0
    if fields is not None:
        one /= 1 << (fields.top - fields.bias)
    scale = np.ldexp(1.0, top - E8M0_BIAS) / one
    blocks = np.repeat(top - exponents, MX_BLOCK, axis=0)[: codes.shape[0]]
    exact = np.ldexp(found.v[codes] * 2.0 ** -found.t[codes], -blocks)
    return _foreign(tensor, fmt, MX_BLOCK, codes, side, scale, exact)


def import_sparse(
    tensor: str, fmt: WeightFormat, kept: npt.NDArray[np.int8], positions: Codes, scale: Reals
) -> Foreign:
    """Import 2:4 weights: two values of each four rows with their positions.

    Args:
        tensor: for messages.
        fmt: one of two values in four.
        kept: (K / 2, N) int8, the values of quad r in rows 2r and 2r + 1.
        positions: (K / 2, N) uint8, 0..3, ascending in each quad.
        scale: (N,) real value of one unit.

    Raises:
        ForeignError: values of too many bits, duplicate or descending positions.
    """
    limit = 1 << (WEIGHT_FORMATS[fmt].bits - 1)
    _refuse(tensor, (kept < -limit) | (kept >= limit), kept, f"{-limit}..{limit - 1}")
    _refuse(f"{tensor} positions", positions > QUAD - 1, positions, "0..3")
    first, second = positions[0::2], positions[1::2]
    _refuse(
        f"{tensor} positions, by quad", second <= first, second, "one above the first of its quad"
    )
    bits = 2 * limit - 1
    codes = np.zeros((2 * len(kept), kept.shape[1]), np.uint8)
    quads = QUAD * np.arange(len(first))[:, None]
    for part, cell in ((kept[0::2], first), (kept[1::2], second)):
        np.put_along_axis(codes, quads + cell, (part.astype(np.int64) & bits).astype(np.uint8), 0)
    side = (first + QUAD * second).astype(np.uint8)
    return _foreign(tensor, fmt, 0, codes, side, scale, expansion(fmt)[0, codes].astype(float))


def import_dense(
    tensor: str, encoding: Encoding, weight: npt.NDArray[np.int8], scale: Reals
) -> Foreign:
    """Import integers (K, N) at one scale (N,) per column: INT4, INT2, ternary, or 2:4 as it lies.

    Raises:
        ForeignError: a value of too many bits, -2 in a ternary tensor, more than two values other
            than 0 in four rows of a 2:4 tensor, a format with groups.
    """
    if encoding.format not in DENSE:
        names = ", ".join(sorted(fmt.asm for fmt in DENSE))
        raise ForeignError(f"{tensor}: given {encoding}, allowed {names}")
    half = 1 << (WEIGHT_FORMATS[encoding.format].bits - 1)
    low, high = (-1, 1) if encoding.ternary else (-half, half - 1)
    _refuse(tensor, (weight < low) | (weight > high), weight, f"{low}..{high} ({encoding})")
    codes = (weight.astype(np.int64) & ((-low << 1) - 1 if not encoding.ternary else 3)).astype(
        np.uint8
    )
    side = np.zeros((side_rows(encoding.format, 0, len(weight)), weight.shape[1]), np.uint8)
    for quad in range(len(side)):
        used = weight[QUAD * quad : QUAD * (quad + 1)] != 0
        count = used.sum(axis=0)
        if (count > 2).any():
            column = int(np.argmax(count > 2))
            raise ForeignError(
                f"{tensor}: given {int(count[column])} values other than 0 in rows {QUAD * quad} "
                f"to {QUAD * quad + 3}, column {column}, allowed two of four"
            )
        whole = np.zeros((QUAD, used.shape[1]), bool)
        whole[: len(used)] = used
        order = np.sort(np.argsort(~whole, axis=0, kind="stable")[:2], axis=0)
        side[quad] = order[0] + QUAD * order[1]
    return _foreign(tensor, encoding.format, 0, codes, side, scale, weight.astype(np.float64))
