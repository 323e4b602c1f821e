# SPDX-License-Identifier: Apache-2.0
"""Weights as they lie in a GEMM's share: k-tiles behind their side lines, n-tile after n-tile.

Layouts: docs/reference/isa.md, "Weight formats".
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from spec.isa.generated import LINE, WEIGHT_FORMATS, WeightFormat, WeightGroup
from spec.isa.operands import up
from spec.isa.weight_formats import GROUPED, QUAD, SPARSE, StreamLayout
from weights.formats.codes import CodedWeights
from weights.formats.linear import NarrowLinear
from weights.model import AnyLinear

Bytes = npt.NDArray[np.uint8]
Coded = NarrowLinear | CodedWeights
PLAIN = sorted((info.bits, fmt) for fmt, info in WEIGHT_FORMATS.items() if info.is_plain)
"""Bits and formats of elements that are int8 weights as they are, from the fewest bits on."""


def format_of(layer: AnyLinear | CodedWeights) -> tuple[WeightFormat, WeightGroup]:
    """Return what a GEMM with these weights names: format and group code."""
    if not isinstance(layer, Coded):
        return WeightFormat.INT8, WeightGroup.G32
    named = layer.format in GROUPED
    return layer.format, WeightGroup.named(str(layer.group)) if named else WeightGroup.G32


def fewest_bits(weight: npt.NDArray[np.int8]) -> WeightFormat:
    """Return the narrowest format that holds int8 weights as they are."""
    least, most = int(weight.min(initial=0)), int(weight.max(initial=0))
    return next(fmt for bits, fmt in PLAIN if -1 << (bits - 1) <= least and most < 1 << (bits - 1))


def plain_bytes(weight: npt.NDArray[np.int8], edge: int, fmt: WeightFormat) -> Bytes:
    """Return (K, N) weights that a format holds as they are, as `weight_bytes`.

    In INT8 byte edge*k + n of tile (j, i) is weight[edge*i + k, edge*j + n], zero past K and N.
    """
    layout = StreamLayout.of(fmt, WeightGroup.G32, edge)
    codes = weight.view(np.uint8) & np.uint8((1 << layout.element_bits) - 1)
    cut = _dense_tiles(layout, _cut(codes, edge, 0))
    return cut.reshape(cut.shape[0], -1)


def weight_bytes(layer: AnyLinear | CodedWeights, edge: int) -> Bytes:
    """Return the weights of a layer as (n-tiles, bytes), what follows the channels of each."""
    fmt, group = format_of(layer)
    if not isinstance(layer, Coded):
        return plain_bytes(layer.weight, edge, fmt)
    layout = StreamLayout.of(fmt, group, edge)
    codes = _cut(layer.codes, edge, WEIGHT_FORMATS[layer.format].zero)
    parts = list(_pieces(layer, layout, codes))
    return np.concatenate(parts, axis=1)


def _cut(codes: Bytes, edge: int, fill: int) -> Bytes:
    """Return (K, N) bytes as (n-tiles, k-tiles, edge, edge)."""
    padded = _padded(codes, up(codes.shape[0], edge), up(codes.shape[1], edge), fill)
    return np.ascontiguousarray(
        padded.reshape(-1, edge, padded.shape[1] // edge, edge).transpose(2, 0, 1, 3)
    )


def _padded(values: Bytes, rows: int, columns: int, fill: int = 0) -> Bytes:
    result = np.full((rows, columns), fill, np.uint8)
    result[: values.shape[0], : values.shape[1]] = values
    return result


def _joined(values: Bytes, bits: int) -> Bytes:
    """Return the last axis with `bits` wide values put together to bytes, the first lowest."""
    parts = values.reshape(*values.shape[:-1], -1, 8 // bits)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    joined: Bytes = np.bitwise_or.reduce(parts << shifts, axis=-1)
    return joined


def _pieces(layer: Coded, layout: StreamLayout, codes: Bytes) -> Iterator[Bytes]:
    """Yield side lines and tiles in their order, each (n-tiles, bytes)."""
    count = codes.shape[1]
    span = layout.tiles_per_side or count
    if layout.format in SPARSE:
        places = _places(layer, codes)
        weights, sides = _sparse_tiles(layout, codes, places), _position_lines(places, span)
    else:
        weights, sides = _dense_tiles(layout, codes), _group_lines(layer, layout, codes, span)
    for first in range(0, count, span):
        if layout.tiles_per_side:
            yield sides[:, first // span]
        part = weights[:, first : first + span]
        yield part.reshape(part.shape[0], -1)


def _dense_tiles(layout: StreamLayout, codes: Bytes) -> Bytes:
    """Return (n-tiles, k-tiles, bytes) of a format that keeps every element."""
    flat = codes.reshape(*codes.shape[:2], -1)
    if layout.element_bits == 8:
        return flat
    if layout.element_bits == 6:
        return np.concatenate(
            [_joined(flat >> np.uint8(4), 2), _joined(flat & np.uint8(0xF), 4)], axis=-1
        )
    return _joined(flat, layout.element_bits)


def _group_lines(layer: Coded, layout: StreamLayout, codes: Bytes, span: int) -> Bytes:
    """Return (n-tiles, side lines, 64) of the side bytes of groups."""
    columns, tiles, edge = codes.shape[0], codes.shape[1], layout.edge
    lines = -(-tiles // span)
    rows = _padded(layer.side, lines * (LINE // edge), columns * edge)
    return np.ascontiguousarray(rows.reshape(-1, columns, edge).transpose(1, 0, 2)).reshape(
        columns, lines, LINE
    )


def _places(layer: Coded, codes: Bytes) -> Bytes:
    """Return p0 + 4 * p1 of every quad as (n-tiles, k-tiles, quads, edge)."""
    columns, tiles, edge = codes.shape[:3]
    rows = _padded(layer.side, tiles * edge // QUAD, columns * edge)
    return np.ascontiguousarray(
        rows.reshape(tiles, edge // QUAD, columns, edge).transpose(2, 0, 1, 3)
    )


def _sparse_tiles(layout: StreamLayout, codes: Bytes, places: Bytes) -> Bytes:
    """Return (n-tiles, k-tiles, bytes) of the two kept values of every quad."""
    quads = codes.reshape(*places.shape[:3], QUAD, layout.edge)
    at = np.stack([places & np.uint8(3), places >> np.uint8(2)], axis=3).astype(np.intp)
    kept = np.take_along_axis(quads, at, axis=3).swapaxes(3, 4)
    flat = np.ascontiguousarray(kept).reshape(*codes.shape[:2], -1)
    return flat if layout.element_bits == 8 else _joined(flat, layout.element_bits)


def _position_lines(places: Bytes, span: int) -> Bytes:
    """Return (n-tiles, side lines, bytes), the positions of `span` tiles in each."""
    flat = _joined(places.reshape(*places.shape[:2], -1), 4)
    missing = -flat.shape[1] % span
    padded = np.pad(flat, ((0, 0), (0, missing), (0, 0)))
    return padded.reshape(padded.shape[0], -1, span * flat.shape[2])
