# SPDX-License-Identifier: Apache-2.0
"""LayerNorm and RMSNorm: the inverse square root over every value, rows against float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from golden.layernorm import (
    Q_MAX_ABSOLUTE_ERROR,
    RSQRT_MAX_RELATIVE_ERROR,
    inverse_sqrt,
    norm8,
    norm16,
    normalized,
    output_bound,
)
from tests.python.golden.golden_support import Rng, integers, seeded


def exact_q(x: npt.NDArray[np.int16], eps_term: int, rms: bool) -> npt.NDArray[np.float64]:
    """Return 2^14 * d / sqrt(V) in float64, V and d as exact integers."""
    rows = []
    for row in x.tolist():
        n, s1, s2 = len(row), sum(row), sum(v * v for v in row)
        variance = max(1, n * s2 - (0 if rms else s1 * s1) + eps_term)
        rows.append([2**14 * (n * v - (0 if rms else s1)) / math.sqrt(variance) for v in row])
    return np.array(rows)


def random_rows(rng: Rng, rows: int, columns: int) -> npt.NDArray[np.int16]:
    """Return int16 rows of very different spreads and means, some full range, some constant."""
    spread = np.exp2(rng.uniform(-1, 15, (rows, 1)))
    mean = rng.uniform(-1, 1, (rows, 1)) * np.exp2(rng.uniform(0, 15, (rows, 1)))
    x = np.clip(np.rint(rng.normal(mean, spread, (rows, columns))), -32768, 32767)
    x[0] = rng.integers(-32768, 32768, columns)
    x[1] = 1234
    x[2] = integers(rng, np.int16, (columns,), corners=1.0)
    return x.astype(np.int16)


def test_inverse_sqrt_over_every_value() -> None:
    """Every V below 2^20 against math.sqrt."""
    worst = 0.0
    for v in range(1, 1 << 20):
        factor, j = inverse_sqrt(v)
        worst = max(worst, abs(factor / 2.0 ** (16 + j) * math.sqrt(v) - 1))
    assert 0.999 * RSQRT_MAX_RELATIVE_ERROR < worst <= RSQRT_MAX_RELATIVE_ERROR


def test_inverse_sqrt_of_large_values() -> None:
    """Around every power of two up to 2^65."""
    for bit in range(20, 66):
        for v in ((1 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit - 3) + 1):
            factor, j = inverse_sqrt(v)
            error = abs(factor / 2.0 ** (16 + j) * math.sqrt(v) - 1)
            assert error <= RSQRT_MAX_RELATIVE_ERROR


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 3, 16, 17, 64, 768, 8192])
def test_rows_against_float64(columns: int, rms: bool) -> None:
    """Random and corner rows against float64, within the stated bounds."""
    rng = seeded(200 + columns)
    x = random_rows(rng, 24, columns)
    gain = rng.integers(0, 1 << 15, columns).astype(np.uint16)
    gain[0] = (1 << 15) - 1
    bias = integers(rng, np.int8, (columns,))
    for eps_term, shift8 in ((0, 22), (12345, 24), (1 << 50, 19)):
        q_exact = exact_q(x, eps_term, rms)
        q = normalized(x, eps_term, rms=rms)
        clipped = np.clip(q_exact, -(2**19), 2**19 - 1)
        bound = Q_MAX_ABSOLUTE_ERROR + RSQRT_MAX_RELATIVE_ERROR * np.abs(q_exact)
        assert np.all(np.abs(q - clipped) <= bound)
        for bits, shift in ((8, shift8), (16, shift8 - 8)):
            shifts = np.full(columns, shift, np.uint8)
            norm = norm8 if bits == 8 else norm16
            y = norm(x, eps_term, gain, shifts, bias, rms=rms)
            low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
            exact = np.clip(q_exact * (gain / 2.0**shift) + bias, low, high)
            q_gap = np.maximum(np.abs(q_exact) - (2**19 - 1), 0) * (gain / 2.0**shift)
            assert np.all(np.abs(y - exact) <= output_bound(q_exact, gain, shifts) + q_gap)


def test_a_row_by_hand() -> None:
    """X = 1, 2, 3, 6: N = 4, S1 = 12, S2 = 50, V = 56, d = -8, -4, 0, 12."""
    e = 5
    j = e >> 1
    r = round(65536 / math.sqrt(((56 << 6 >> 2 * j) + 0.5) / 64))
    q = [(d * r + (1 << 3)) >> 4 for d in (-8, -4, 0, 12)]
    x = np.array([[1, 2, 3, 6]], np.int16)
    assert normalized(x, 0).tolist() == [q]
    assert q == pytest.approx([2**14 * d / math.sqrt(56) for d in (-8, -4, 0, 12)], rel=0.004)
    gain = np.array([16384, 20000, 1, 30000], np.uint16)
    shift = np.array([23, 23, 0, 24], np.uint8)
    bias = np.array([3, -4, 5, 127], np.int8)
    rounded = [
        (v * int(g) + ((1 << int(s)) >> 1)) >> int(s)
        for v, g, s in zip(q, gain, shift, strict=True)
    ]
    expected = [min(127, max(-128, v + int(b))) for v, b in zip(rounded, bias, strict=True)]
    assert norm8(x, 0, gain, shift, bias).tolist() == [expected]
    assert expected[3] == 127


def test_bias_is_added_before_the_only_saturation() -> None:
    """A product past the range comes back with a bias of the other sign."""
    x = np.array([[-100, 100]], np.int16)
    q = int(normalized(x, 0)[0, 1])
    gain, shift = np.array([16384, 16384], np.uint16), np.array([21, 21], np.uint8)
    product = (q * 16384 + (1 << 20)) >> 21
    assert product > 127
    y = norm8(x, 0, gain, shift, np.array([100, -100], np.int8))
    assert y[0, 1] == product - 100


def test_constant_rows_give_the_bias() -> None:
    """Without variance only the bias is left."""
    x = np.full((2, 48), -32768, np.int16)
    bias = np.arange(48, dtype=np.int8)
    gain, shift = np.full(48, 32767, np.uint16), np.full(48, 10, np.uint8)
    assert np.array_equal(norm8(x, 0, gain, shift, bias), np.stack([bias, bias]))


def test_rms_differs_from_layer_norm() -> None:
    """The two formulas are not confused."""
    rng = seeded(41)
    x = (rng.normal(2000, 1000, (8, 64))).astype(np.int16)
    assert not np.array_equal(normalized(x, 0), normalized(x, 0, rms=True))


@pytest.mark.parametrize(
    ("shape", "eps_term"), [((2, 8193), 0), ((2, 0), 0), ((4,), 0), ((2, 4), -1), ((2, 4), 1 << 64)]
)
def test_arguments_are_checked(shape: tuple[int, ...], eps_term: int) -> None:
    """Wrong arguments are refused by name."""
    with pytest.raises(ValueError, match="allowed"):
        normalized(np.zeros(shape, np.int16), eps_term)
