# SPDX-License-Identifier: Apache-2.0
"""A linear layer whose weights are codes of a narrow format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from spec.isa import WeightFormat
from spec.isa.operands import up
from spec.isa.weight_formats import GROUPED, GROUPS, MX, MX_BLOCK, QUAD, SPARSE
from weights.formats.element import elements, expansion
from weights.limits import (
    INT32_MAX,
    MULT_MAX,
    MULT_MIN,
    SHIFT_MAX,
    ModelError,
    check_array,
    check_range,
)

NO_QUAD = 0 + QUAD * 1
"""The positions of a quad without rows."""


@dataclass(frozen=True, slots=True, eq=False)
class NarrowLinear:
    """A linear layer in a narrow format: as `weights.model.Linear`, with codes for weights.

    Attributes:
        format: of the elements.
        group: rows that share a side byte: 16, 32, 64 or 128, 32 for MX, 0 for formats without.
        codes: (K, N) uint8 element codes; a row that a 2:4 format does not keep has 0.
        side: (ceil(K / group), N) uint8, the side byte of each group and column; of 2:4 formats
            (ceil(K / 4), N), the positions p0 + 4 * p1, p0 < p1, of the two kept rows of a quad;
            else (0, N). K counts the rows between heads where there are any.
        bias, mult, shift: as in `Linear`.
        head_dim: rows of a head where the chip has rows of zeros behind each, up to whole words;
            groups and quads count these; 0 where it has none.
        weight: (K, N) int8, the expanded weights: what the array multiplies with.
    """

    format: WeightFormat
    group: int
    codes: npt.NDArray[np.uint8]
    side: npt.NDArray[np.uint8]
    bias: npt.NDArray[np.int32]
    mult: npt.NDArray[np.uint16]
    shift: npt.NDArray[np.uint8]
    head_dim: int = 0
    weight: npt.NDArray[np.int8] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the parts, and that they fit together, and expand the weights."""
        check_group(self.format, self.group)
        check_array("NarrowLinear.codes", self.codes, np.uint8, (None, None))
        rows, columns = self.codes.shape
        check_array("NarrowLinear.bias", self.bias, np.int32, (columns,))
        check_array("NarrowLinear.mult", self.mult, np.uint16, (columns,))
        check_array("NarrowLinear.shift", self.shift, np.uint8, (columns,))
        check_range("NarrowLinear.mult", self.mult, MULT_MIN, MULT_MAX)
        check_range("NarrowLinear.shift", self.shift, 0, SHIFT_MAX)
        self._check_codes()
        self._check_side(side_rows(self.format, self.group, rows, self.head_dim))
        weight = expand(self.format, self.group, self.codes, self.side, self.head_dim)
        object.__setattr__(self, "weight", weight)
        self.weight.setflags(write=False)
        bound = self.accumulator_bound()
        if bound > INT32_MAX:
            raise ModelError(
                f"NarrowLinear: the accumulator bound |bias| + 128 * sum|weight| is {bound}, "
                f"allowed at most {INT32_MAX} (int32)"
            )

    def _check_codes(self) -> None:
        """Refuse codes of too many bits, and codes that are no numbers."""
        found = elements(self.format)
        check_range("NarrowLinear.codes", self.codes, 0, found.v.size - 1)
        bad = ~found.number[self.codes]
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ModelError(
                f"NarrowLinear.codes: given 0x{self.codes[row, column]:02x} at row {row}, column "
                f"{column}, which is no number in {self.format.asm}; allowed are finite ones"
            )

    def _check_side(self, rows: int) -> None:
        """Refuse a missing side byte, a factor 0, positions that do not ascend, kept rest."""
        where, columns = "NarrowLinear.side", self.codes.shape[1]
        if not rows:
            if self.side.shape != (0, columns) or self.side.dtype != np.uint8:
                raise ModelError(f"{where}: given {self.side.shape}, allowed (0, {columns}) uint8")
            self.side.setflags(write=False)
            return
        check_array(where, self.side, np.uint8, (rows, columns))
        if self.format in GROUPED:
            check_range(where, self.side, 1, 255)
        if self.format in SPARSE:
            check_positions(where, self.side)
            dropped = ~kept(self.side, self.codes.shape[0], self.head_dim) & (self.codes != 0)
            if dropped.any():
                row, column = (int(i) for i in np.argwhere(dropped)[0])
                raise ModelError(
                    f"NarrowLinear.codes: given {self.codes[row, column]} at row {row}, column "
                    f"{column}, whose position is not kept; allowed 0 (two values in four rows)"
                )

    @property
    def inputs(self) -> int:
        """K, the number of input channels."""
        return int(self.codes.shape[0])

    @property
    def outputs(self) -> int:
        """N, the number of output channels."""
        return int(self.codes.shape[1])

    def accumulator_bound(self) -> int:
        """Return the largest magnitude that x @ weight + bias can reach for any int8 input x."""
        sums = np.abs(self.weight.astype(np.int16)).sum(axis=0, dtype=np.int64)
        return int((128 * sums + np.abs(self.bias.astype(np.int64))).max())


def check_group(fmt: WeightFormat, group: int) -> None:
    """Raise ModelError unless a format can have groups of so many rows."""
    allowed = GROUPS if fmt in GROUPED else (MX_BLOCK,) if fmt in MX else (0,)
    if group not in allowed:
        raise ModelError(
            f"NarrowLinear.group: given {group} for {fmt.asm}, allowed "
            f"{', '.join(str(one) for one in allowed)}"
        )


def placed(rows: int, head_dim: int) -> npt.NDArray[np.intp]:
    """Return the place of each row: where heads of so many are padded to whole words."""
    row = np.arange(rows)
    return row // head_dim * up(head_dim) + row % head_dim if head_dim else row


def spans(rows: int, span: int, head_dim: int) -> Iterator[tuple[int, slice]]:
    """Yield which group each is that has rows, and these; `span` counts padded heads."""
    group = placed(rows, head_dim) // span
    found, first = np.unique(group, return_index=True)
    for number, start, end in zip(found, first, [*first[1:], rows], strict=True):
        yield int(number), slice(int(start), int(end))


def side_rows(fmt: WeightFormat, group: int, rows: int, head_dim: int = 0) -> int:
    """Return the rows of side bytes (or positions) that K rows of codes have."""
    span = QUAD if fmt in SPARSE else group
    padded = rows // head_dim * up(head_dim) if head_dim else rows
    return -(-padded // span) if span else 0


def check_positions(where: str, side: npt.NDArray[np.uint8]) -> None:
    """Raise ModelError unless every position byte is p0 + 4 * p1 with p0 < p1 < 4."""
    bad = (side & 3) >= (side >> 2)
    bad |= side > 15
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = int(side[row, column])
        raise ModelError(
            f"{where}: given positions {value & 3} and {value >> 2} at quad {row}, column "
            f"{column}, allowed two different ones of 0..3, ascending"
        )


def kept(side: npt.NDArray[np.uint8], rows: int, head_dim: int = 0) -> npt.NDArray[np.bool_]:
    """Return (K, N): whether the position bytes, of all quads, keep a row."""
    place = placed(rows, head_dim)
    cell, by_row = place[:, None] % QUAD, side[place // QUAD]
    found: npt.NDArray[np.bool_] = (cell == (by_row & 3)) | (cell == (by_row >> 2))
    return found


def expand(
    fmt: WeightFormat,
    group: int,
    codes: npt.NDArray[np.uint8],
    side: npt.NDArray[np.uint8],
    head_dim: int = 0,
) -> npt.NDArray[np.int8]:
    """Return the weights (K, N) int8 of codes and side bytes."""
    # A row that a 2:4 format drops has code 0, whose weight is 0.
    by_row = side[placed(len(codes), head_dim) // group] if group else 0
    weight: npt.NDArray[np.int8] = expansion(fmt)[by_row, codes]
    return weight


def joined(layers: Sequence[NarrowLinear]) -> NarrowLinear:
    """Return one layer with the output channels of all, which are of one format and group."""
    first = layers[0]
    return NarrowLinear(
        format=first.format,
        group=first.group,
        codes=np.concatenate([layer.codes for layer in layers], axis=1),
        side=np.concatenate([layer.side for layer in layers], axis=1),
        bias=np.concatenate([layer.bias for layer in layers]),
        mult=np.concatenate([layer.mult for layer in layers]),
        shift=np.concatenate([layer.shift for layer in layers]),
    )
