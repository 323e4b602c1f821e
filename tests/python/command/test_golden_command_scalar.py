# SPDX-License-Identifier: Apache-2.0
"""The scalar operations of the command port against numpy, floating point and plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from golden.command.scalar import ReservedLaneError, compute, fp8
from spec.regs import CmdOp
from tests.python.golden.golden_support import Rng, integers, seeded

COUNT = 3000
MASK = 0xFFFF_FFFF


def _words(rng: Rng) -> list[int]:
    """Return full-range words with many corners."""
    corners = [
        0,
        1,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x7FFF_FFFF,
        0x8000_0000,
        MASK,
        0x8080_8080,
        0x8888_8888,
    ]
    drawn = integers(rng, np.uint32, (COUNT,)).tolist()
    return [corners[i % len(corners)] if i % 5 == 0 else word for i, word in enumerate(drawn)]


def _triples(seed: int) -> list[tuple[int, int, int]]:
    rng = seeded(seed)
    a, b, acc = (_words(rng) for _ in range(3))
    return list(zip(a, rng.permutation(b).tolist(), rng.permutation(acc).tolist(), strict=True))


def _pair(total: int) -> tuple[int, int]:
    """Return (RESULT, RESULT_HI) of a sum, through a 64-bit array."""
    low = np.array([total & MASK], np.uint32).view(np.int32).astype(np.int64)
    both = low.view(np.uint32)
    return int(both[0]), int(both[1])


def _nibbles(word: int) -> npt.NDArray[np.int64]:
    """Return the eight signed nibbles of a word, (8,) int64."""
    stored = np.array([word], "<u4").view(np.uint8)
    split = np.stack([stored & 15, stored >> 4], axis=1).reshape(-1).astype(np.int64)
    return np.where(split > 7, split - 16, split)


def _bytes(word: int, dtype: type[np.int8 | np.int16] = np.int8) -> npt.NDArray[np.int64]:
    return np.array([word], "<u4").view(dtype).astype(np.int64)


def _crumbs(word: int, values: tuple[int, int, int, int]) -> npt.NDArray[np.int64]:
    """Return the sixteen 2-bit lanes of a word through a table, (16,) int64."""
    return np.array([values[int(digit, 4)] for digit in np.base_repr(word, 4).zfill(16)[::-1]])


ORACLES: dict[CmdOp, Callable[[int, int, int], tuple[int, int]]] = {
    CmdOp.ADD: lambda a, b, _: (int(np.array([a], np.uint32)[0] + np.uint64(b)) % 2**32, 0),
    CmdOp.SUB: lambda a, b, _: (int(np.int64(a) - np.int64(b)) % 2**32, 0),
    CmdOp.MUL_LO: lambda a, b, _: (
        int(np.uint64(a) * np.uint64(b)) % 2**32,
        int(np.uint64(a) * np.uint64(b)) // 2**32,
    ),
    CmdOp.MAC_S16: lambda a, b, acc: _pair(
        int(_bytes(a, np.int16)[0] * _bytes(b, np.int16)[0]) + acc
    ),
    CmdOp.DOT4_S8: lambda a, b, acc: _pair(int(_bytes(a) @ _bytes(b)) + acc),
    CmdOp.MAX_U32: lambda a, b, _: (a if a > b else b, 0),
    CmdOp.MIN_U32: lambda a, b, _: (b if a > b else a, 0),
    CmdOp.DOT8_S4: lambda a, b, acc: _pair(int(_nibbles(a) @ _nibbles(b)) + acc),
    CmdOp.RELU4_S8: lambda a, b, acc: (
        int(np.maximum(_bytes(a), 0).astype(np.uint8).view("<u4")[0]),
        0,
    ),
    CmdOp.DOT16_S2: lambda a, b, acc: _pair(
        int(_crumbs(a, (0, 1, -2, -1)) @ _crumbs(b, (0, 1, -2, -1))) + acc
    ),
}


@pytest.mark.parametrize("op", list(ORACLES))
def test_words(op: CmdOp) -> None:
    """Full-range words with corners give what numpy says; sums wrap, RESULT_HI holds the sign."""
    for a, b, acc in _triples(100 + op):
        assert compute(op, a, b, acc) == ORACLES[op](a, b, acc), f"{a:#x} {b:#x} {acc:#x}"


def test_sums_wrap() -> None:
    """Hand-computed ends of the range: nothing saturates."""
    top = 0x7FFF_FFFF
    assert compute(CmdOp.MAC_S16, 1, 1, top) == (0x8000_0000, MASK)
    assert compute(CmdOp.MAC_S16, 0xFFFF, 1, 0x8000_0000) == (top, 0)
    assert compute(CmdOp.DOT4_S8, 0x80808080, 0x80808080, 0) == (65536, 0)
    assert compute(CmdOp.DOT4_S8, 0x80808080, 0x80808080, 0xFFFF_0000) == (0, 0)
    assert compute(CmdOp.MUL_LO, MASK, MASK, 5) == (1, 0xFFFF_FFFE)
    assert compute(CmdOp.SUB, 0, 1, 5) == (MASK, 0)


def test_fp8_values() -> None:
    """All 256 codes: the magnitude of the number in Q8.8 rounded down, or reserved."""
    numbers = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    for code, number in enumerate(numbers):
        if math.isnan(number):
            with pytest.raises(ReservedLaneError):
                fp8(code)
        else:
            assert fp8(code) == math.trunc(number * 256), f"{code:#04x}"
    assert np.isnan(numbers).sum() == 2


def _fp8_values() -> npt.NDArray[np.int64]:
    numbers = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    values: npt.NDArray[np.int64] = np.trunc(np.nan_to_num(numbers) * 256).astype(np.int64)
    return values


def test_fp8_pairs() -> None:
    """All pairs of codes, each in another lane: the product is rounded down once."""
    values = _fp8_values()
    products = np.floor(np.multiply.outer(values, values) / 256).astype(np.int64)
    for a in range(256):
        for b in range(256):
            lane = 8 * ((a + b) % 4)
            if a & 0x7F == 0x7F or b & 0x7F == 0x7F:
                with pytest.raises(ReservedLaneError):
                    compute(CmdOp.DOT4_FP8_E4M3, a << lane, b << lane, 0)
                continue
            actual = compute(CmdOp.DOT4_FP8_E4M3, a << lane, b << lane, 7)
            assert actual == _pair(int(products[a, b]) + 7), f"{a:#04x} {b:#04x}"


def test_fp8_sums() -> None:
    """Four full lanes: every product is rounded on its own, then added to ACC."""
    values = _fp8_values()
    rng = seeded(114)
    for _ in range(COUNT):
        lanes = rng.integers(0, 254, (2, 4))
        lanes += lanes >= 0x7F  # skips one of the two codes that are no number, the other is 0xFF
        a, b = (sum(int(lane) << 8 * i for i, lane in enumerate(row)) for row in lanes)
        acc = int(rng.integers(1 << 32))
        total = sum(math.floor(x / 256) for x in values[lanes[0]] * values[lanes[1]])
        assert compute(CmdOp.DOT4_FP8_E4M3, a, b, acc) == _pair(total + acc)
    assert compute(CmdOp.DOT4_FP8_E4M3, 0x01020304, 0x81828384, 0)[1] == MASK


def test_exp2() -> None:
    """All 256 arguments: 2^x in Q0.8, at least its unit, 256 for x >= 0; only one byte counts."""
    for code in range(256):
        x = int(np.array([code], np.uint8).view(np.int8)[0])
        expected = max(1, math.floor(256 * 2.0 ** min(x, 0)))
        assert compute(CmdOp.EXP2_NEG_Q0_8, 0xA5C3_9600 | code, MASK, MASK) == (expected, 0)


def test_ternary_pairs() -> None:
    """All pairs of codes in every lane; 0b11 is reserved, with TERNARY only."""
    values = (0, 1, -1)
    for lane in range(0, 32, 2):
        for a in range(4):
            for b in range(4):
                words = a << lane, b << lane, 100
                if 3 in (a, b):
                    with pytest.raises(ReservedLaneError):
                        compute(CmdOp.DOT16_S2, *words, is_ternary=True)
                    assert compute(CmdOp.DOT16_S2, *words) == ORACLES[CmdOp.DOT16_S2](*words)
                else:
                    expected = 100 + values[a] * values[b]
                    assert compute(CmdOp.DOT16_S2, *words, is_ternary=True) == (expected, 0)


def test_ternary_words() -> None:
    """Sixteen lanes at once."""
    rng = seeded(113)
    for _ in range(COUNT):
        digits = rng.integers(0, 3, (2, 16))
        a, b = (sum(int(digit) << 2 * i for i, digit in enumerate(row)) for row in digits)
        acc = int(rng.integers(1 << 32))
        signs = np.array([0, 1, -1])[digits]
        expected = _pair(int((signs[0] * signs[1]).sum()) + acc)
        assert compute(CmdOp.DOT16_S2, a, b, acc, is_ternary=True) == expected


def test_sparse_metadata() -> None:
    """All 256 metadata bytes on random nibbles; ACC chooses lanes and is not added."""
    rng = seeded(112)
    for metadata in range(256):
        for _ in range(8):
            a, b, rest = (int(word) for word in rng.integers(0, 1 << 32, 3))
            dense = np.zeros(8, np.int64)
            for i in range(4):
                dense[4 * (i // 2) + (metadata >> 2 * i) % 4] += _nibbles(a)[i]
            acc = rest & ~0xFF | metadata
            assert compute(CmdOp.SDOT4_S4_2_4, a, b, acc) == _pair(int(dense @ _nibbles(b)))


@pytest.mark.parametrize("op", [CmdOp.GEMM_S8, CmdOp.GEMM_S4, CmdOp.VRELU_S8])
def test_tiles_are_not_scalar(op: CmdOp) -> None:
    """An operation on the scratchpad has no RESULT."""
    with pytest.raises(ValueError, match=op.name):
        compute(op, 0, 0, 0)
