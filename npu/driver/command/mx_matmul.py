# SPDX-License-Identifier: Apache-2.0
"""Matrix products of OCP MX blocks (Microscaling Formats v1.0), without any rounding.

An element is an integer of its format's smallest step, which is cut into signed digits of 8 bits.
Tiles of GEMM_S8 multiply all digits of one operand by all of the other, block by block; what the
digits weigh and the exponents of the blocks are shifts of whole numbers on the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from npu.driver.command.port import CommandPort
from npu.driver.command.product import (
    Arena,
    Integers,
    Submit,
    check_range,
    check_shape,
    first_wrong,
    open_runner,
)
from npu.driver.command.tiled import tiled
from npu.driver.errors import RequestError
from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.elements import Minifloat

BLOCK = 32
"""Elements along K that share a scale."""
E8M0_BIAS, E8M0_LARGEST = 127, 254
DIGIT_BITS = 8


class MxKind(StrEnum):
    """What the elements are, as in the parameter stream."""

    MXINT8 = "mxint8"
    MXFP8E4 = "mxfp8e4"
    MXFP8E5 = "mxfp8e5"
    MXFP6E3 = "mxfp6e3"
    MXFP6E2 = "mxfp6e2"
    MXFP4 = "mxfp4"


class Blocks(NamedTuple):
    """A matrix in MX blocks along K.

    Attributes:
        codes: of the elements, (M, K) of the left operand, (K, N) of the right one.
        scales: E8M0, (M, ceil(K / 32)) or (ceil(K / 32), N).
    """

    codes: Integers
    scales: Integers


class Scaled(NamedTuple):
    """The number integer * 2^exponent; the integer is odd, or both are 0."""

    integer: int
    exponent: int

    @property
    def fraction(self) -> Fraction:
        """The number."""
        return self.integer * Fraction(2) ** self.exponent


@dataclass(frozen=True, slots=True)
class MxProduct:
    """A product of MX blocks and what it took.

    Attributes:
        values: M rows of N exact numbers.
        operations: operations on the chip, what PERF_OPS has grown by.
        macs: products of digits, what PERF_MACS has grown by.
    """

    values: tuple[tuple[Scaled, ...], ...]
    operations: int
    macs: int


INT8_STEP = -6


async def mx_matmul(
    port: CommandPort,
    a: Blocks,
    b: Blocks,
    kind: MxKind | str,
    submit: Submit = "register",
    *,
    arena: Arena = None,
) -> MxProduct:
    """Return a (M, K) times b (K, N), every bit of it.

    Args:
        port: the command port.
        a: blocks along the rows.
        b: blocks along the columns.
        kind: what the elements of both are.
        submit: as of `matmul`.
        arena: as of `matmul`.

    Raises:
        RequestError: shape, type, code, scale or arena does not fit; nothing was touched.
        CommandFailed: the hardware reports an error.
    """
    if kind not in list(MxKind):
        raise RequestError("mx_matmul.kind", repr(kind), ", ".join(MxKind))
    kind = MxKind(kind)
    left, right = _integers("a", a, kind), _integers("b", b, kind)
    (rows, depth), columns = left.shape, right.shape[1]
    if right.shape[0] != depth:
        raise RequestError("b.codes", f"{right.shape[0]} rows", f"{depth}, the columns of a.codes")
    blocks = -(-depth // BLOCK)
    check_shape("a.scales", a.scales, (rows, blocks), f"one for each row and block of {BLOCK}")
    check_shape(
        "b.scales", b.scales, (blocks, columns), f"one for each block of {BLOCK} and column"
    )
    runner = await open_runner(port, "mx_matmul", submit, arena)
    digits, step = _digits_and_step(kind)
    tall = np.concatenate(_cut(left, digits), axis=0)
    wide = np.concatenate(_cut(right, digits), axis=1)
    places = [slice(first, first + BLOCK) for first in range(0, depth, BLOCK)]
    parts = await tiled(runner, [(tall[:, place], wide[place]) for place in places])
    total = np.zeros((rows, columns), np.object_)
    for block, part in enumerate(parts):
        dots = part.values.astype(np.object_).reshape(digits, rows, digits, columns)
        shift = a.scales[:, block, None].astype(np.object_) + b.scales[block].astype(np.object_)
        for i, j in np.ndindex(digits, digits):
            total += dots[i, :, j] << (shift + DIGIT_BITS * (i + j))
    unit = 2 * (step - E8M0_BIAS)
    return MxProduct(
        tuple(tuple(_normal(number, unit) for number in row) for row in total.tolist()),
        sum(part.operations for part in parts),
        sum(part.macs for part in parts),
    )


def _digits_and_step(kind: MxKind) -> tuple[int, int]:
    """Return the digits of an element, and the logarithm of its smallest step."""
    if kind is MxKind.MXINT8:
        return 1, INT8_STEP
    fields = _fields(kind)
    step = 1 - fields.bias - fields.mantissa
    return -(-fields.integer_bits // DIGIT_BITS), step


def _fields(kind: MxKind) -> Minifloat:
    """Return the fields of an element that is a float."""
    fields = WEIGHT_FORMATS[WeightFormat.named(kind)].minifloat
    assert fields is not None
    return fields


def _integers(name: str, matrix: Blocks, kind: MxKind) -> npt.NDArray[np.int64]:
    """Return the elements in units of their smallest step, or raise RequestError."""
    if not isinstance(matrix, Blocks):
        raise RequestError(name, type(matrix).__name__, "Blocks")
    check_range(f"{name}.scales", matrix.scales, 0, E8M0_LARGEST, "E8M0")
    if kind is MxKind.MXINT8:
        check_range(f"{name}.codes", matrix.codes, 0, 0xFF, kind)
        return matrix.codes.astype(np.uint8).view(np.int8).astype(np.int64)
    fields = _fields(kind)
    mantissa, largest, sign = fields.mantissa, fields.largest, fields.sign
    check_range(f"{name}.codes", matrix.codes, 0, 2 * sign - 1, kind)
    codes = matrix.codes.astype(np.int64)
    if place := first_wrong(codes & (sign - 1) > largest):
        i, j = place
        allowed = f"0x00-{largest:#04x}, {sign:#04x}-{sign | largest:#04x} for {kind}"
        given = f"{int(codes[i, j]):#04x} (not finite)"
        raise RequestError(f"{name}.codes[{i}, {j}]", given, allowed)
    e, m = codes >> mantissa & ((1 << fields.exponent) - 1), codes & ((1 << mantissa) - 1)
    size = ((e > 0).astype(np.int64) << mantissa | m) << (np.maximum(e, 1) - 1)
    integers: npt.NDArray[np.int64] = np.where(codes & sign, -size, size)
    return integers


def _cut(values: Integers, count: int) -> list[Integers]:
    """Return `count` matrices of digits -128..127, the lowest first."""
    half, digits = 1 << (DIGIT_BITS - 1), []
    for _ in range(count):
        low = (values + half) % (1 << DIGIT_BITS) - half
        digits.append(low)
        values = (values - low) >> DIGIT_BITS
    assert not values.any(), "too few digits"
    return digits


def _normal(number: int, exponent: int) -> Scaled:
    """Return number * 2^exponent with an odd integer."""
    if not number:
        return Scaled(0, 0)
    zeros = (number & -number).bit_length() - 1
    return Scaled(number >> zeros, exponent + zeros)
