# SPDX-License-Identifier: Apache-2.0
"""Tiles of the command port against numpy and against a footprint found element by element."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from golden.command import tiles
from golden.command.tiles import ScratchTile, TilesRefusedError
from spec.regs import CmdOp
from tests.python.golden.golden_support import Rng, integers, seeded

GEMMS = [CmdOp.GEMM_S8, CmdOp.GEMM_S4]
SIZES = [64, 128, 256]
LEGAL = ScratchTile(m=2, n=3, k=7, length=0, a=0, b=14, c=36, stride_a=7, stride_b=3, stride_c=12)
"""The largest tile of 64 bytes: A in bytes 0..13, B in 14..34, C in 36..59."""


def _elements(values: npt.NDArray[np.uint8], op: CmdOp) -> npt.NDArray[np.int64]:
    """Return every element of the scratchpad as a signed number, (bytes or nibbles,) int64."""
    if op == CmdOp.GEMM_S8:
        return values.view(np.int8).astype(np.int64)
    halves = np.stack([values & 15, values >> 4], axis=1).reshape(-1).astype(np.int64)
    return np.where(halves >= 8, halves - 16, halves)


def _indices(base: int, stride: int, rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Return the index of every element of a matrix, (rows, columns) int64."""
    return base + stride * np.arange(rows)[:, None] + np.arange(columns)


def _is_legal(op: CmdOp, tile: ScratchTile, size: int) -> bool:
    """Say whether a GEMM is legal, from sets of the elements that it touches."""
    if 0 in (tile.m, tile.n, tile.k) or tile.c % 4 or (tile.m > 1 and tile.stride_c % 4):
        return False
    lanes = 1 if op == CmdOp.GEMM_S8 else 2
    a = _indices(tile.a, tile.stride_a, tile.m, tile.k) // lanes
    b = _indices(tile.b, tile.stride_b, tile.k, tile.n) // lanes
    c = _indices(tile.c, tile.stride_c, tile.m, 4 * tile.n)
    if max(a.max(), b.max(), c.max()) >= size:
        return False
    covered = [set(range(int(it.min()), int(it.max()) + 1)) for it in (a, b, c)]
    return not covered[2] & (covered[0] | covered[1])


def _random_tile(rng: Rng, size: int) -> ScratchTile:
    """Return a tile that is legal about as often as not."""
    wide = size > 64
    m, n, k = (int(rng.integers(0, most)) for most in ((5, 5, 9) if wide else (4, 4, 8)))
    base, stride = 256 if wide else 64, 32 if wide else 16
    a, b, c = (int(rng.integers(base)) >> int(rng.integers(3)) for _ in range(3))
    strides = [int(rng.integers(stride)) for _ in range(3)]
    if rng.random() < 0.8:
        c, strides[2] = c & ~3, strides[2] & ~3
    return ScratchTile(m, n, k, 0, a, b, c, *strides)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", GEMMS)
def test_gemm(op: CmdOp, size: int) -> None:
    """Random shapes and places: refused exactly if illegal, else numpy's product, all bytes."""
    rng = seeded(200 + size + op)
    legal = 0
    for _ in range(3000):
        tile = _random_tile(rng, size)
        if not _is_legal(op, tile, size):
            with pytest.raises(TilesRefusedError):
                tiles.check(op, tile, size)
            continue
        legal += 1
        tiles.check(op, tile, size)
        before = integers(rng, np.uint8, (size,))
        expected = before.copy()
        values = _elements(before, op)
        a = values[_indices(tile.a, tile.stride_a, tile.m, tile.k)]
        b = values[_indices(tile.b, tile.stride_b, tile.k, tile.n)]
        product = (a @ b).astype("<i4")
        for i, row in enumerate(product):
            expected[tile.c + i * tile.stride_c :][: 4 * tile.n] = row.view(np.uint8)
        scratch = bytearray(before.tobytes())
        tiles.run(op, tile, scratch)
        assert scratch == expected.tobytes(), tile
        if tile.stride_c >= 4 * tile.n:
            assert tiles.result(op, tile, scratch) == product.tobytes()
    assert 150 < legal < 2850, f"{legal} legal tiles"


def test_the_last_row_wins() -> None:
    """Rows of C that overlap are written in order; a writeback reads them one after the other."""
    tile = ScratchTile(m=2, n=2, k=1, length=0, a=0, b=2, c=8, stride_a=1, stride_b=2, stride_c=4)
    scratch = bytearray([2, 3, 5, 7]) + bytearray(60)
    tiles.run(CmdOp.GEMM_S8, tile, scratch)
    written = [10, 15, 21]
    assert np.frombuffer(bytes(scratch[8:20]), "<i4").tolist() == written
    assert np.frombuffer(tiles.result(CmdOp.GEMM_S8, tile, scratch), "<i4").tolist() == [
        10, 15, 15, 21,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"m": 0}, False),
        ({"n": 0}, False),
        ({"k": 0}, False),
        ({"c": 40}, True),
        ({"c": 44}, False),
        ({"c": 38}, False),
        ({"c": 32}, False),
        ({"stride_c": 14}, False),
        ({"m": 1, "stride_c": 14}, True),
        ({"stride_c": 16}, True),
        ({"stride_c": 20}, False),
        ({"a": 22}, True),
        ({"a": 23}, False),
        ({"b": 15}, True),
        ({"b": 16}, False),
        ({"stride_a": 15}, True),
        ({"a": 21, "stride_a": 8}, True),
        ({"a": 22, "stride_a": 8}, False),
    ],
)
def test_gemm_edges(change: dict[str, int], fine: bool) -> None:
    """One byte more or less decides, at the end of the scratchpad and where C meets A or B."""
    tile = replace(LEGAL, **change)
    assert _is_legal(CmdOp.GEMM_S8, tile, 64) == fine
    if fine:
        tiles.check(CmdOp.GEMM_S8, tile, 64)
    else:
        with pytest.raises(TilesRefusedError):
            tiles.check(CmdOp.GEMM_S8, tile, 64)


def test_half_a_byte_is_a_byte() -> None:
    """With nibbles an odd last element takes its whole byte from C."""
    tile = ScratchTile(m=1, n=1, k=3, length=0, a=0, b=64, c=0, stride_a=0, stride_b=1, stride_c=0)
    with pytest.raises(TilesRefusedError):
        tiles.check(CmdOp.GEMM_S4, tile, 64)
    tiles.check(CmdOp.GEMM_S4, replace(tile, c=4), 64)
    with pytest.raises(TilesRefusedError):
        tiles.check(CmdOp.GEMM_S4, replace(tile, c=32), 64)
    tiles.check(CmdOp.GEMM_S4, replace(tile, c=36), 64)


def _forward(before: bytes, source: int, target: int, length: int) -> bytes:
    """Return the scratchpad after a VRELU, from the distance at which bytes repeat themselves.

    A destination inside the source sees the bytes before it again and again.
    """
    positive = np.frombuffer(before, np.int8)[source : source + length].clip(0).astype(np.uint8)
    distance = target - source
    if 0 < distance < length:
        positive = np.resize(positive[:distance], length)
    return before[:target] + positive.tobytes() + before[target + length :]


@pytest.mark.parametrize("size", SIZES)
def test_vrelu(size: int) -> None:
    """Random places and lengths, overlapping forwards and backwards."""
    rng = seeded(230 + size)
    kinds = set()
    for _ in range(2000):
        source, target = (int(it) for it in rng.integers(0, min(size, 256), 2))
        length = int(rng.integers(0, size // 2))
        tile = replace(LEGAL, length=length, a=source, b=target)
        if length == 0 or max(source, target) + length > size:
            with pytest.raises(TilesRefusedError):
                tiles.check(CmdOp.VRELU_S8, tile, size)
            kinds.add("refused")
            continue
        tiles.check(CmdOp.VRELU_S8, tile, size)
        before = integers(rng, np.uint8, (size,)).tobytes()
        scratch = bytearray(before)
        tiles.run(CmdOp.VRELU_S8, tile, scratch)
        assert scratch == _forward(before, source, target, length), tile
        assert tiles.result(CmdOp.VRELU_S8, tile, scratch) == scratch[target : target + length]
        kinds.add("forward" if source < target < source + length else "other")
    assert kinds == {"refused", "forward", "other"}


def test_fields() -> None:
    """A small chip has the narrow fields, a larger one the wide ones."""
    everything = (0xFF_FF_FF,) * 3
    assert ScratchTile.decode(*everything, 64) == ScratchTile(3, 3, 7, 0x7F, 63, 63, 63, 15, 15, 15)
    assert ScratchTile.decode(*everything, 128) == ScratchTile(255, 255, 255, 0x1FF, *(255,) * 6)
    assert ScratchTile.decode(0x050264, 0x123456, 0x0A0B0C, 64) == ScratchTile(
        m=0, n=2, k=5, length=0x64, a=0x16, b=0x34, c=0x12, stride_a=12, stride_b=11, stride_c=10
    )
    assert ScratchTile.decode(0x0A01_80, 0, 0, 256).length == 0x180


@pytest.mark.parametrize(("op", "moved"), [(CmdOp.GEMM_S8, 108), (CmdOp.GEMM_S4, 66)])
def test_counted_work(op: CmdOp, moved: int) -> None:
    """A 2 x 3 x 7 tile: 42 products, and its bytes of the scratchpad."""
    assert tiles.macs(op, LEGAL) == 42
    assert tiles.moved_bytes(op, LEGAL) == moved
    assert tiles.macs(CmdOp.VRELU_S8, replace(LEGAL, length=9)) == 0
    assert tiles.moved_bytes(CmdOp.VRELU_S8, replace(LEGAL, length=9)) == 18
