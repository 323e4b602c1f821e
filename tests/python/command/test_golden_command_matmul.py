# SPDX-License-Identifier: Apache-2.0
"""The reference of matrix products on the command port: every code against ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from golden.command import matmul as golden
from npu.driver.command.mx_matmul import MxKind
from tb.command.matmul_operands import HALVES, MX_BITS, MX_FLOATS, mx_numbers


def q8_8(code: int, fmt: str) -> int | str:
    """Return a code in Q8.8, or what golden says of it."""
    try:
        return golden.half_q8_8(code, fmt)
    except ValueError as error:
        return str(error).rpartition(" allowed ")[2]


@pytest.mark.parametrize("fmt", HALVES)
def test_every_half(fmt: str) -> None:
    """Numbers and refusals of all 65,536 codes; Q8.8 to nearest, ties away from zero."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        real = codes.view(HALVES[fmt]).astype(np.float64)
    smallest = 2.0**-14 if fmt == "FP16" else 2.0**-126  # of normal numbers
    size = np.abs(real)
    normal = np.isfinite(real) & ((size == 0) | (size >= smallest))
    size[~normal] = 0
    nearest = np.copysign(np.floor(size * 256) + (size * 256 % 1 >= 0.5), real)
    fits = normal & (nearest >= -(1 << 15)) & (nearest < 1 << 15)
    found = [q8_8(code, fmt) for code in codes.tolist()]
    expected = [
        int(nearest[i]) if fits[i] else "int16" if normal[i] else "zero and finite normal numbers"
        for i in range(len(codes))
    ]
    assert found == expected
    assert (fits & (size * 256 % 1 == 0.5)).sum() > 100, "ties"
    assert (normal & ~fits).sum() > 1000


@pytest.mark.parametrize("kind", MxKind)
def test_every_mx_element(kind: MxKind) -> None:
    """The values of all finite elements, and of a whole block with every E8M0 scale."""
    codes = mx_numbers(kind)
    assert len(codes) == {MxKind.MXFP8E4: 254, MxKind.MXFP8E5: 248}.get(kind, 1 << MX_BITS[kind])
    if kind in MX_FLOATS:
        real = codes.astype(np.uint8).view(MX_FLOATS[kind]).astype(np.float64)
    else:
        real = codes.astype(np.int8) / 64.0
    assert [golden.mx_value(kind, code) for code in codes.tolist()] == real.tolist()
    scales = np.arange(255, dtype=np.uint8)
    powers = scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    found = golden.mx_values(kind, np.tile(codes[-5:], (255, 1)), scales[:, None])
    assert found.tolist() == (real[-5:] * powers[:, None]).tolist()


def test_products_by_hand() -> None:
    """Rounding of each product, and once; groups with a short last one; blocks of 32."""
    third, minus = 0x3555, 0xB555  # 0.333 in FP16, 85 in Q8.8
    a, b = np.array([[third, third]]), np.array([[third, minus], [third, minus]])
    assert golden.half_matmul(a, b, "FP16").tolist() == [[56, -58]]
    assert golden.half_matmul(a, b, "FP16", exact=True).tolist() == [[56, -57]]
    whole = np.array([[3, -5, 7]], np.int8)
    q = np.array([[1], [2], [-8]], np.int8)
    scales = np.array([[-256], [3]])
    assert golden.group_matmul(whole, q, scales, 2, "q8_8").tolist() == [[7 * 256 - 56 * 3]]
    assert golden.group_matmul(whole, q, scales // 128, 2, "int8").tolist() == [[7 * 512]]
    ones = np.full((1, 33), 64)
    left, right = np.array([[127, 130]]), np.array([[127], [126]])
    product = golden.mx_matmul(ones, left, ones.T, right, "mxint8")
    assert product.tolist() == [[32 + 8 * Fraction(1, 2)]]
    with pytest.raises(ValueError, match="allowed q8_8, int8, fp16, bf16"):
        golden.scale_q8_8(1, "fp8")
