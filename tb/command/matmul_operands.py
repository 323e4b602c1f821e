# SPDX-License-Identifier: Apache-2.0
"""Random operands of the command port's matrix products that are not plain integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from npu.driver.command.group_matmul import ScaleKind
from npu.driver.command.mx_matmul import Blocks, MxKind

Codes = npt.NDArray[np.int64]

HALVES: dict[str, Any] = {"FP16": np.float16, "BF16": ml_dtypes.bfloat16}
MX_FLOATS: dict[MxKind, Any] = {
    MxKind.MXFP8E4: ml_dtypes.float8_e4m3fn,
    MxKind.MXFP8E5: ml_dtypes.float8_e5m2,
    MxKind.MXFP6E3: ml_dtypes.float6_e3m2fn,
    MxKind.MXFP6E2: ml_dtypes.float6_e2m3fn,
    MxKind.MXFP4: ml_dtypes.float4_e2m1fn,
}
MX_BITS = {
    MxKind.MXINT8: 8,
    MxKind.MXFP8E4: 8,
    MxKind.MXFP8E5: 8,
    MxKind.MXFP6E3: 6,
    MxKind.MXFP6E2: 6,
    MxKind.MXFP4: 4,
}


def half_codes(fmt: str, random: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """Return FP16 or BF16 codes of normal numbers of all sizes below 128, and zeros."""
    real = random.uniform(1, 1.99, shape) * np.exp2(random.integers(-14, 7, shape))
    real *= random.choice([-1, 0, 1], shape, p=[0.45, 0.1, 0.45])
    codes: Codes = real.astype(HALVES[fmt]).view(np.uint16).astype(np.int64)
    return codes


def scales(kind: ScaleKind, random: np.random.Generator, shape: tuple[int, int]) -> Codes:
    """Return scales of groups."""
    if kind in (ScaleKind.FP16, ScaleKind.BF16):
        return half_codes(kind.upper(), random, shape)
    half = 1 << (7 if kind is ScaleKind.INT8 else 15)
    return random.integers(-half, half, shape)


def mx_numbers(kind: MxKind) -> Codes:
    """Return the codes of an MX element that are finite numbers."""
    codes = np.arange(1 << MX_BITS[kind], dtype=np.uint8)
    if kind in MX_FLOATS:
        codes = codes[np.isfinite(codes.view(MX_FLOATS[kind]).astype(np.float64))]
    return codes.astype(np.int64)


def mx_blocks(
    kind: MxKind, random: np.random.Generator, shape: tuple[int, int], *, columns: bool
) -> Blocks:
    """Return blocks along the columns or the rows of a matrix, with scales of every size."""
    rows, depth = shape[::-1] if columns else shape
    codes = random.choice(mx_numbers(kind), (rows, depth))
    exponents = random.integers(0, 255, (rows, -(-depth // 32)))
    return Blocks(codes.T, exponents.T) if columns else Blocks(codes, exponents)
