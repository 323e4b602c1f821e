# SPDX-License-Identifier: Apache-2.0
"""Engine instructions on the instruction-level model against formulas, without golden's functions.

Other tests place what golden's own functions compute; these close the circle from the opcode to
numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.layernorm import Q_MAX_ABSOLUTE_ERROR, RSQRT_MAX_RELATIVE_ERROR
from golden.softmax import (
    NUMERATOR_U8_MAX_ERROR,
    NUMERATOR_U16_MAX_ERROR,
    PROBABILITY_MAX_ERROR,
)
from spec.isa import GemmA, Instruction, Opcode, SmxOut
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import gemm, ran
from tests.python.golden.golden_support import integers, random_norm, seeded

A, B, C, S = 0x1000, 0x8000, 0x10000, 0x18000
"""Byte addresses of operands, result and sums."""
Int64 = npt.NDArray[np.int64]


@pytest.mark.parametrize(
    ("out", "dtype", "one", "bound"),
    [
        (SmxOut.PROB8, np.uint8, 256.0, PROBABILITY_MAX_ERROR),
        (SmxOut.NUMER8, np.uint8, 65535 / 256, NUMERATOR_U8_MAX_ERROR),
        (SmxOut.NUMER16, np.uint16, 65535.0, NUMERATOR_U16_MAX_ERROR),
    ],
)
def test_softmax(out: int, dtype: type[np.integer[Any]], one: float, bound: float) -> None:
    """Powers of 2 of the causal rows in float64: over their sum, or as numerators with sums."""
    rng = seeded(361)
    scores = np.clip(np.rint(rng.normal(0, 100, (12, 40))), -32768, 32767).astype(np.int16)
    sums = S >> 4 if out else 0
    word = Instruction(Opcode.SOFTMAX, gp.CAUSAL, C >> 4, A >> 4, sums, 12, 40, 12, out)
    bench = ran(word, {A: scores}, pos=20)
    seen = np.arange(40)[None, :] <= 20 + np.arange(12)[:, None]
    shown = np.where(seen, scores.astype(np.float64) / 64, -np.inf)
    exact = np.exp2(shown - shown.max(axis=1, keepdims=True))
    if not out:
        exact /= exact.sum(axis=1, keepdims=True)
    found = bench.get(C, (12, 40), dtype, 48 * np.dtype(dtype).itemsize)
    assert np.abs(found - one * exact).max() <= bound
    if out:
        totals = bench.get(S, (12, 4), np.uint32)[:, 0]
        assert totals.tolist() == found.sum(axis=1, dtype=np.int64).tolist()


@pytest.mark.parametrize("opcode", [Opcode.LAYERNORM, Opcode.RMSNORM])
def test_norm(opcode: Opcode) -> None:
    """Rows in float64: gain and bias of each column on the deviation, or on the value itself."""
    rng = seeded(362)
    norm, x = random_norm(rng, 37), integers(rng, np.int16, (5, 37))
    word = Instruction(opcode, 0, C >> 4, A >> 4, B >> 4, 5, 37, 0, 0)
    share = np.frombuffer(gp.norm_share(norm), np.uint8)
    found = ran(word, {A: x, B: share}).get(C, (5, 37), np.int8)
    real = x.astype(np.float64)
    deviation = real - (real.mean(axis=1, keepdims=True) if opcode == Opcode.LAYERNORM else 0)
    variance = (deviation**2).mean(axis=1, keepdims=True) + norm.eps_term / 37**2
    q, gain = 2**14 * deviation / np.sqrt(variance), norm.gain / 2.0 ** norm.shift.astype(int)
    error = np.abs(found - np.clip(q * gain + norm.bias, -128, 127))
    bound = 0.5 + gain * (Q_MAX_ABSOLUTE_ERROR + RSQRT_MAX_RELATIVE_ERROR * np.abs(q))
    assert np.all(error <= bound + 1e-6)


def test_rope() -> None:
    """Each pair of lanes as a complex number times that of its angle, rounded once."""
    rng = seeded(363)
    x, angles = integers(rng, np.int8, (3, 2, 32)), integers(rng, np.int16, (3, 16, 2))
    word = Instruction(Opcode.ROPE, 0, C >> 4, A >> 4, B >> 4, 3, 32, 2, 0)
    bench = ran(word, {A: x.reshape(3, -1), B: angles.reshape(3, -1)})
    turn = angles[:, None, :, 0].astype(np.complex128) + 1j * angles[:, None, :, 1]
    exact = (x[:, :, :16] + 1j * x[:, :, 16:]) * turn
    both = np.concatenate([exact.real, exact.imag], axis=2)
    expected = np.clip(np.floor(both / (1 << 14) + 0.5), -128, 127)
    assert np.array_equal(bench.get(C, (3, 64), np.int8), expected.reshape(3, 64))


@pytest.mark.parametrize("a_type", list(GemmA))
def test_gemm(a_type: GemmA) -> None:
    """The int32 planes of a product in int64: one, or those of high and low bytes."""
    rng = seeded(364)
    dtype: type[np.integer[Any]] = (np.int8, np.uint8, np.int16, np.uint16)[a_type]
    a, b = integers(rng, dtype, (5, 33)), integers(rng, np.int8, (33, 18))
    word = gemm(C >> 4, A >> 4, B >> 4, 5, 18, 33, a_type | gp.OUT_INT32)
    planes = np.dtype(dtype).itemsize
    found = ran(word, {A: a, B: b}).get(C, (5 * planes, 18), np.int32).reshape(planes, 5, 18)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    assert np.array_equal(found[0] if planes == 1 else 256 * found[0].astype(int) + found[1], exact)
