# SPDX-License-Identifier: Apache-2.0
"""Narrow weight formats of the parameter stream, expanded to the int8 weights that the array takes.

An element decodes to a value v and a step t, the side byte of its group and column to a factor f:

    w = rs(v * f, 8 + t), v in -128..127, t in 0..8, f in 0..256   one rounding, never saturates

    code         a signed number times the format's unit, or what its table has: t = 0
    minifloat    sign s, exponent field e, mantissa m of p bits, emax the largest field of a number:
                 v = +-(((e > 0) << p | m) << (6 - p)),  t = min(8, emax - max(e, 1))
    side byte b  none or positions: f = 256. A factor: f = b. An exponent: f = floor(256 / 2^b)

Bits, side bytes and codes of each format are constants of the instruction set; what they mean is
here.

A share has, for each column tile, the tiles of E * E weights along K in order; side beats of 64
bytes stand before the tiles that they serve. A group side beat has 64 / E rows of E side bytes; a
position side beat (two of four kept) holds the positions p0 + 4 * p1 of every quad of K as nibbles:
cell i of a quad is v1 if p1 = i, v0 if p0 = i, else 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from golden.fixed import rs
from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.elements import Minifloat, Side

BEAT = 64
"""Bytes that the stream hands out at once."""
EXPAND_MAX_ERROR = 0.5
"""Largest |w - v * f / 2^(8 + t)|."""
UNIT_SHIFT = 8
"""f = 2^8 is the factor one."""
STEP_MAX = 8
"""With a larger step nothing but zero is left of an element."""
MX_GROUP = 32
"""Rows of K that share a block exponent."""
QUAD, KEPT = 4, 2
"""Rows of K of which a sparse format keeps two."""
AT_ONCE = 1 << 20
"""Weights that are expanded together, for the sake of memory."""

Bytes = npt.NDArray[np.uint8]
Weights = npt.NDArray[np.int8]


def _having(side: Side) -> frozenset[WeightFormat]:
    return frozenset(fmt for fmt, info in WEIGHT_FORMATS.items() if info.side is side)


GROUPED = _having(Side.FACTOR)
"""Formats with an 8-bit factor for each group of K and column."""
MX = _having(Side.EXPONENT)
"""Formats with a block exponent for each 32 rows of K and column."""
SPARSE = _having(Side.POSITIONS)
"""Formats that keep two of four weights along K."""


def element_bits(fmt: WeightFormat) -> int:
    """Return the bits of an element's code."""
    return WEIGHT_FORMATS[fmt].bits


def _signed(code: int, bits: int) -> int:
    """Return a code as a signed number of `bits` bits."""
    return code - (1 << bits) if code >> (bits - 1) else code


def decode(fmt: WeightFormat, code: int) -> tuple[int, int]:
    """Return v and t of an element's code; ValueError if it has more bits than an element."""
    bits = element_bits(fmt)
    if not 0 <= code < 1 << bits:
        raise ValueError(f"decode: given code {code} of {fmt.name}, allowed 0..{(1 << bits) - 1}")
    info = WEIGHT_FORMATS[fmt]
    if info.minifloat:
        return _float(info.minifloat, code)
    return (info.table[code] if info.table else info.unit * _signed(code, bits)), 0


def _float(kind: Minifloat, code: int) -> tuple[int, int]:
    """Return v and t of a minifloat; codes that are no numbers decode as if they were."""
    m = code & ((1 << kind.mantissa) - 1)
    e = code >> kind.mantissa & ((1 << kind.exponent) - 1)
    v = (((e > 0) << kind.mantissa) + m) << (6 - kind.mantissa)
    t = min(STEP_MAX, max(kind.top - max(e, 1), 0))
    return (-v if code >> (kind.exponent + kind.mantissa) & 1 else v), t


def factor(fmt: WeightFormat, b: int) -> int:
    """Return f of a side byte 0..255; 256, whatever b is, for formats without factors."""
    if not 0 <= b <= 255:
        raise ValueError(f"factor: given side byte {b}, allowed 0..255")
    if fmt in GROUPED:
        return b
    return 1 << UNIT_SHIFT >> b if fmt in MX else 1 << UNIT_SHIFT


@cache
def _expansion(fmt: WeightFormat) -> Weights:
    """Return w by code and side byte, (codes, 256) int8."""
    codes = [decode(fmt, code) for code in range(1 << element_bits(fmt))]
    v, t = np.array(codes, np.int64).T
    f = np.array([factor(fmt, b) for b in range(256)], np.int64)
    table: Weights = rs(v[:, None] * f, UNIT_SHIFT + t[:, None]).astype(np.int8)
    return table


@dataclass(frozen=True, slots=True)
class _TileLayout:
    """Beats along K of a column tile.

    Attributes:
        tile: beats of a tile.
        side: side beats that stand together.
        serves: tiles that those serve.

    """

    tile: int
    side: int
    serves: int

    @staticmethod
    def of(fmt: WeightFormat, edge: int, group: int) -> _TileLayout:
        """Return the layout; ValueError for an edge or a group that no chip takes."""
        if edge not in (16, 32):
            raise ValueError(f"tile edge: given {edge}, allowed 16 and 32")
        beats = edge * edge // BEAT
        tile = beats * element_bits(fmt) // 8
        if fmt in SPARSE:
            positions = edge * edge // 8
            return _TileLayout(
                tile * KEPT // QUAD, max(1, positions // BEAT), max(1, BEAT // positions)
            )
        if fmt not in GROUPED | MX:
            return _TileLayout(tile, 0, 1)
        rows = _group_rows(fmt, group)
        if rows % edge:
            raise ValueError(f"group: given {rows} rows, allowed multiples of the edge {edge}")
        return _TileLayout(tile, 1, BEAT // edge * rows // edge)


def _group_rows(fmt: WeightFormat, group: int) -> int:
    """Return how many rows of K share a side byte; ValueError for a group that does not exist."""
    if fmt in MX:
        return MX_GROUP
    if group not in (16, 32, 64, 128):
        raise ValueError(f"group: given {group} rows, allowed 16, 32, 64 and 128")
    return group


def share_beats(fmt: WeightFormat, k: int, edge: int, group: int) -> int:
    """Return the beats of 64 bytes that weights and side bytes of one column tile take.

    Args:
        fmt: format of the weights.
        k: rows of the matrix.
        edge: E, 16 or 32.
        group: rows that share a side byte, 16, 32, 64 or 128; read with GROUPED formats only.

    Raises:
        ValueError: for an edge or a group that no chip takes.

    """
    layout = _TileLayout.of(fmt, edge, group)
    tiles = -(-k // edge)
    return tiles * layout.tile + -(-tiles // layout.serves) * layout.side


def side_beats(fmt: WeightFormat, k: int, edge: int, group: int) -> npt.NDArray[np.bool_]:
    """Return which of the `share_beats` beats of a column tile are side beats, (beats,) bool."""
    layout = _TileLayout.of(fmt, edge, group)
    period = layout.side + layout.serves * layout.tile
    return np.arange(share_beats(fmt, k, edge, group)) % period < layout.side


def _fields(data: Bytes, bits: int) -> Bytes:
    """Cut bytes (c, ...) into fields, lowest bits first: (c, bytes of each * 8 / bits) uint8."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts: Bytes = data[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return parts.reshape(len(data), -1)


def _scaled(fmt: WeightFormat, tiles: Bytes, side: Bytes, edge: int, group: int) -> Weights:
    """Expand a format that has a code for each cell.

    Args:
        fmt: the format.
        tiles: (column tiles, tiles along K, bytes of a tile) uint8.
        side: (column tiles, side bytes) uint8, none if the format has none.
        edge: E.
        group: as in `share_beats`.

    Returns:
        (column tiles, rows, E) int8.

    """
    upper = tiles.shape[2] // 3 if element_bits(fmt) == 6 else 0
    codes = _fields(tiles[..., upper:], 4 if upper else element_bits(fmt))
    if upper:
        codes = codes | (_fields(tiles[..., :upper], 2) << 4).astype(np.uint8)
    codes = codes.reshape(tiles.shape[0], -1, edge)
    if not side.size:
        plain: Weights = _expansion(fmt)[:, 0][codes]
        return plain
    groups = side.reshape(side.shape[0], -1, edge)
    rows = np.repeat(groups, _group_rows(fmt, group), axis=1)[:, : codes.shape[1]]
    weights: Weights = _expansion(fmt)[codes, rows]
    return weights


def _spread(fmt: WeightFormat, tiles: Bytes, side: Bytes, edge: int) -> Weights:
    """Expand a format that keeps two of four; arguments and result as `_scaled`."""
    columns = tiles.shape[0]
    kept = _fields(tiles, element_bits(fmt)).reshape(columns, -1, 1, edge, KEPT)
    values = _expansion(fmt)[:, 0][kept]
    positions = _fields(side, 4).reshape(columns, -1, 1, edge)[:, : values.shape[1]]
    cells = np.arange(QUAD, dtype=np.uint8)[:, None]
    lower = np.where(positions & 3 == cells, values[..., 0], np.int8(0))
    quads = np.where(positions >> 2 == cells, values[..., 1], lower)
    return quads.reshape(columns, -1, edge)


def expand(fmt: WeightFormat, data: bytes, k: int, n: int, edge: int, group: int) -> Weights:
    """Return the weights that the array multiplies with.

    Args:
        fmt: format of the weights.
        data: for each column tile its side beats and tiles, `share_beats` beats each, without
            channel records.
        k: rows of the matrix.
        n: its columns.
        edge: E, 16 or 32.
        group: as in `share_beats`.

    Returns:
        (k, n) int8. Maximum error against the exact product: EXPAND_MAX_ERROR.

    Raises:
        ValueError: for an edge or a group that no chip takes, or another length of data.

    """
    columns, count = -(-n // edge), -(-k // edge)
    beats = share_beats(fmt, k, edge, group)
    if len(data) != columns * beats * BEAT:
        raise ValueError(f"expand: given {len(data)} bytes, allowed {columns * beats * BEAT}")
    is_side = side_beats(fmt, k, edge, group)
    pieces = np.frombuffer(data, np.uint8).reshape(columns, beats, BEAT)
    matrix = np.empty((count * edge, columns, edge), np.int8)
    at_once = max(1, AT_ONCE // (count * edge * edge))
    for first in range(0, columns, at_once):
        part = pieces[first : first + at_once]
        tiles = part[:, ~is_side].reshape(part.shape[0], count, -1)
        side = part[:, is_side].reshape(part.shape[0], -1)
        if fmt in SPARSE:
            weights = _spread(fmt, tiles, side, edge)
        else:
            weights = _scaled(fmt, tiles, side, edge, group)
        matrix[:, first : first + at_once] = weights.transpose(1, 0, 2)
    return matrix.reshape(count * edge, columns * edge)[:k, :n]
