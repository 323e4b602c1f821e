# SPDX-License-Identifier: Apache-2.0
"""GEMMs that show the weights of the stream as they are: A is the identity, C = B in int32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from golden import formats
from spec.isa import GemmB, GemmOut, Opcode, WeightFormat, WeightGroup
from tb.stimulus.gemm_cases import GROUP_ROWS, PAGE
from tb.stimulus.random_case import Case, Generator, instruction
from tb.stimulus.sram_space import Space

ROWS = 128
"""Rows of K that the exhaustive cases have: the identity has as many rows."""
COLUMNS = 128
"""Columns that a case has at most, so that A and C fit into SRAM."""
CORNERS = np.array([0x80, 0x81, 0xFF, 0x00, 0x01, 0x7F, 0x55, 0xAA], np.uint8)
"""Values of eight bits, each with each in the two places of a quad."""

Bytes = npt.NDArray[np.uint8]


def _joined(fields: Bytes, bits: int) -> Bytes:
    """Join the fields of the last axis to bytes, the lowest bits first."""
    cut = fields.reshape(*fields.shape[:-1], -1, 8 // bits)
    shifts = np.arange(0, 8, bits)
    whole: Bytes = (cut.astype(np.int64) << shifts).sum(axis=-1).astype(np.uint8)
    return whole


def beats(fmt: WeightFormat, codes: Bytes, side: Bytes, edge: int, group: int) -> Bytes:
    """Return what the stream carries of weights.

    Args:
        fmt: their format.
        codes: (column tiles, tiles along K, codes of a tile in the order of their bits).
        side: (column tiles, side bytes in order); what lacks in the last beat is zero.
        edge: E.
        group: rows that share a side byte.

    Returns:
        (column tiles, beats, 64).
    """
    columns, count, _ = codes.shape
    bits = formats.element_bits(fmt)
    if bits == 6:
        upper, lower = codes >> np.uint8(4), codes & np.uint8(15)
        body = np.concatenate([_joined(upper, 2), _joined(lower, 4)], axis=-1)
    else:
        body = _joined(codes, bits)
    is_side = formats.side_beats(fmt, count * edge, edge, group)
    share = np.zeros((columns, is_side.size, formats.BEAT), np.uint8)
    share[:, ~is_side] = body.reshape(columns, -1, formats.BEAT)
    room = np.zeros((columns, int(is_side.sum()) * formats.BEAT), np.uint8)
    room[:, : side.shape[1]] = side
    share[:, is_side] = room.reshape(columns, -1, formats.BEAT)
    return share


def _grouped(fmt: WeightFormat, edge: int, group: int, side_bytes: Bytes) -> Bytes:
    """Return the beats of a matrix in which every code meets every one of `side_bytes`."""
    codes = 1 << formats.element_bits(fmt)
    pieces = -(-codes // group)  # of the codes, for one group can hold `group` of them
    per_column = ROWS // group
    columns = -(-side_bytes.size * pieces // per_column)
    tiles = -(-columns // edge)
    cell = np.arange(tiles * edge * per_column).reshape(tiles * edge, per_column)
    by_row = (cell[..., None] % pieces * group + np.arange(group)) % codes
    side = side_bytes[cell // pieces % side_bytes.size]
    matrix = by_row.reshape(tiles, edge, ROWS).transpose(0, 2, 1).astype(np.uint8)
    sides = side.reshape(tiles, edge, per_column).transpose(0, 2, 1)
    return beats(
        fmt, matrix.reshape(tiles, ROWS // edge, -1), sides.reshape(tiles, -1), edge, group
    )


def _plain(fmt: WeightFormat, edge: int) -> Bytes:
    """Return the beats of a matrix whose tiles have every byte."""
    bits = formats.element_bits(fmt)
    each = np.arange(ROWS * edge * bits // 8, dtype=np.int64)
    return (each + each // 256).astype(np.uint8).reshape(1, -1, formats.BEAT)


def _sparse(fmt: WeightFormat, edge: int) -> Bytes:
    """Return the beats of a matrix in which every position byte meets every pair of values."""
    values = np.arange(16, dtype=np.uint8) if formats.element_bits(fmt) == 4 else CORNERS
    pairs = np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)
    per_column = ROWS // formats.QUAD
    tiles = -(-len(pairs) * 16 // (per_column * edge))
    quad = np.arange(tiles * per_column * edge).reshape(tiles, ROWS // edge, -1)
    codes = pairs[quad // 16 % len(pairs)].astype(np.uint8).reshape(*quad.shape[:2], -1)
    positions = (quad % 16).astype(np.uint8)
    return beats(fmt, codes, _joined(positions, 4).reshape(tiles, -1), edge, 0)


def read_back(
    random: np.random.Generator,
    space: Space,
    fmt: WeightFormat,
    group: WeightGroup,
    share: Bytes,
    first: int,
    rows: int,
    edge: int,
) -> Case:
    """Return a GEMM that writes rows `first`, ... of the weights in `share` as int32.

    Args:
        random: source of what else is drawn.
        space: where operands find room.
        fmt: format of the weights.
        group: rows that share a side byte.
        share: (column tiles, beats, 64), for ROWS rows of K.
        first: row of the weights that becomes row 0 of C.
        rows: rows of C.
        edge: E.
    """
    n = len(share) * edge
    case = Case([], stream=share.tobytes())
    a = space.at_pitch(rows, ROWS, ROWS // 16, explicit=False)
    case.fill("A", a, np.eye(rows, ROWS, first, dtype=np.int8))
    c = space.at_pitch(rows, 4 * n, n // 4, explicit=False)
    flags = ["MODE"]
    flags += ["TRANSPOSE_B"] if group & 1 else []
    flags += ["GROUP_HIGH"] if group & 2 else []
    case.words = instruction(
        Opcode.GEMM,
        flags=flags,
        dst=c.word,
        src0=a.word,
        m=rows,
        n=n,
        k=ROWS,
        imm={
            "b_form": GemmB.STREAM_MX if fmt >= PAGE else GemmB.STREAM,
            "fmt": fmt % PAGE,
            "out": GemmOut.INT32,
        },
    )
    case.data["B"] = formats.expand(fmt, case.stream, ROWS, n, edge, GROUP_ROWS[group])
    return case


def every_code(
    fmt: WeightFormat, group: WeightGroup, side_bytes: Bytes, rows: int, edge: int
) -> Iterator[Generator]:
    """Yield GEMMs that show every code of a format, with every side byte or position if it has any.

    Args:
        fmt: the format.
        group: rows that share a side byte, for formats that have a choice.
        side_bytes: those that every code meets.
        rows: that a GEMM may have.
        edge: E.
    """
    if fmt in formats.GROUPED | formats.MX:
        share = _grouped(fmt, edge, GROUP_ROWS[group], side_bytes)
    elif fmt in formats.SPARSE:
        share = _sparse(fmt, edge)
    else:
        share = _plain(fmt, edge)
    for tile in range(0, len(share), COLUMNS // edge):
        part = share[tile : tile + COLUMNS // edge]
        for first in range(0, ROWS, min(rows, ROWS)):
            yield partial(
                read_back,
                fmt=fmt,
                group=group,
                share=part,
                first=first,
                rows=min(rows, ROWS - first),
                edge=edge,
            )
