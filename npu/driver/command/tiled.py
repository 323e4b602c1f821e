# SPDX-License-Identifier: Apache-2.0
"""Matrix products by tiles of the scratchpad; the host adds the parts along K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from npu.driver.command.descriptor import MOST_STREAM
from npu.driver.command.operation import NARROW_SHAPE, PAGE, WIDE_SHAPE, Gemm
from npu.driver.command.product import Integers, Product
from npu.driver.command.runner import Runner, Tile
from npu.driver.errors import RequestError
from spec.regs import CmdOp


class _Part(NamedTuple):
    """The product of a range of rows, columns and depth of one pair of matrices."""

    pair: int
    rows: slice
    columns: slice
    depth: slice


@lru_cache(maxsize=64)
def _best_tile(op: CmdOp, scratch_bytes: int, rows: int, columns: int, depth: int) -> Gemm:
    """Return the packed tile of most products within a size, whose inputs fit one stream."""
    limits = NARROW_SHAPE if scratch_bytes <= PAGE else WIDE_SHAPE
    elements = MOST_STREAM * (1 if op == CmdOp.GEMM_S8 else 2)
    best = Gemm.packed(op, 1, 1, 1)
    for m, n in product(range(1, min(limits[0], rows) + 1), range(1, min(limits[1], columns) + 1)):
        if 4 * m * n >= scratch_bytes or m + n > elements:
            continue
        for k in range(min(limits[2], depth, elements // (m + n)), 0, -1):
            tile = Gemm.packed(op, m, n, k)
            if m * n * k <= best.m * best.n * best.k:
                break
            try:
                tile.check(scratch_bytes)
            except RequestError:
                continue
            best = tile
            break
    return best


def _parts(pairs: Sequence[tuple[Integers, Integers]], op: CmdOp, scratch: int) -> Iterator[_Part]:
    """Yield what the tiles of all pairs compute."""
    for pair, (a, b) in enumerate(pairs):
        (rows, depth), columns = a.shape, b.shape[1]
        best = _best_tile(op, scratch, rows, columns, depth)
        for i, j, k in product(
            range(0, rows, best.m), range(0, columns, best.n), range(0, depth, best.k)
        ):
            yield _Part(pair, slice(i, i + best.m), slice(j, j + best.n), slice(k, k + best.k))


async def tiled(
    runner: Runner,
    pairs: Sequence[tuple[Integers, Integers]],
    op: CmdOp = CmdOp.GEMM_S8,
) -> list[Product]:
    """Multiply pairs of matrices (M, K) and (K, N), whose tiles run one after the other."""
    parts = list(_parts(pairs, op, runner.scratch_bytes))

    def tiles() -> Iterator[Tile]:
        for part in parts:
            left = pairs[part.pair][0][part.rows, part.depth]
            right = pairs[part.pair][1][part.depth, part.columns]
            shape = Gemm.packed(op, left.shape[0], right.shape[1], left.shape[1])
            yield Tile(shape, _tile_bytes(op, left, right))

    sums = [np.zeros((a.shape[0], b.shape[1]), np.uint32) for a, b in pairs]
    counts = [0] * len(pairs)
    for part, data in zip(parts, await runner.tiles(tiles()), strict=True):
        place = sums[part.pair][part.rows, part.columns]
        place += np.frombuffer(data, "<u4").reshape(place.shape)
        counts[part.pair] += 1
    return [
        Product(total.view(np.int32), count, total.size * a.shape[1])
        for total, count, (a, _) in zip(sums, counts, pairs, strict=True)
    ]


def _tile_bytes(op: CmdOp, left: Integers, right: Integers) -> bytes:
    """Return A and B packed behind each other, filled up to a multiple of 4 bytes."""
    flat = np.concatenate([left.ravel(), right.ravel()]).astype(np.uint8)
    if op == CmdOp.GEMM_S4:
        flat = np.pad(flat & np.uint8(15), (0, flat.size % 2))
        flat = flat[0::2] | flat[1::2] << np.uint8(4)
    return flat.tobytes() + bytes(-flat.size % 4)
