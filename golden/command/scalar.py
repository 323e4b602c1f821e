# SPDX-License-Identifier: Apache-2.0
"""The scalar operations of the command port: three words in, RESULT and RESULT_HI out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from spec.regs import CmdOp

WORD_MASK = 0xFFFF_FFFF
NAN_CODES = (0x7F, 0xFF)
"""The bytes that are not a number in FP8 E4M3."""


class ReservedLaneError(Exception):
    """A lane holds a code that the operation reserves."""


def signed(value: int, bits: int) -> int:
    """Return sN(value): the low `bits` bits as a signed number."""
    low = value & ((1 << bits) - 1)
    return low - (low >> (bits - 1) << bits)


def fp8(code: int) -> int:
    """Return d(code): the value of an FP8 E4M3 byte in Q8.8, its magnitude rounded down.

    Raises:
        ReservedLaneError: the byte is not a number.

    """
    if code in NAN_CODES:
        raise ReservedLaneError(f"FP8 code {code:#04x} is not a number")
    exponent, mantissa = code >> 3 & 0xF, code & 7
    magnitude = mantissa // 2 if exponent == 0 else ((8 + mantissa) << exponent) // 4
    return -magnitude if code & 0x80 else magnitude


def ternary(code: int) -> int:
    """Return the value of a ternary lane: 0, +1, -1.

    Raises:
        ReservedLaneError: the lane is 0b11.

    """
    if code == 3:
        raise ReservedLaneError("ternary lane 0b11")
    return (0, 1, -1)[code]


def _lanes(value: int, bits: int) -> Iterator[int]:
    """Return the unsigned lanes of a word, the lowest first."""
    return (value >> at & ((1 << bits) - 1) for at in range(0, 32, bits))


def _dot(a: int, b: int, bits: int, decode: Callable[[int], int]) -> int:
    """Return the sum of the products of the lanes."""
    left = [decode(lane) for lane in _lanes(a, bits)]
    right = [decode(lane) for lane in _lanes(b, bits)]
    return sum(x * y for x, y in zip(left, right, strict=True))


def _dot_fp8(a: int, b: int) -> int:
    """Return the sum of the FP8 products in Q8.8, each rounded down."""
    left = [fp8(lane) for lane in _lanes(a, 8)]
    right = [fp8(lane) for lane in _lanes(b, 8)]
    return sum(x * y // 256 for x, y in zip(left, right, strict=True))


def _dot_sparse(a: int, b: int, positions: int) -> int:
    """Return the sum of four products; two bits of `positions` choose each lane of B."""
    total = 0
    for i in range(4):
        lane = i // 2 * 4 + (positions >> 2 * i & 3)
        total += signed(a >> 4 * i, 4) * signed(b >> 4 * lane, 4)
    return total


def _relu(a: int) -> int:
    """Return the word with its negative bytes set to 0."""
    return sum(lane << 8 * i for i, lane in enumerate(_lanes(a, 8)) if lane < 0x80)


def compute(op: CmdOp, a: int, b: int, acc: int, *, is_ternary: bool = False) -> tuple[int, int]:
    """Return (RESULT, RESULT_HI) of a scalar operation.

    Args:
        op: any operation but the three on the scratchpad.
        a: operand A, 0..2^32-1.
        b: operand B, 0..2^32-1.
        acc: accumulator operand or positions, 0..2^32-1.
        is_ternary: CMD_PARAM.TERNARY.

    Raises:
        ReservedLaneError: a lane of A or B holds a reserved code.
        ValueError: the operation works on the scratchpad.

    """
    match op:
        case CmdOp.ADD:
            return (a + b) & WORD_MASK, 0
        case CmdOp.SUB:
            return (a - b) & WORD_MASK, 0
        case CmdOp.MUL_LO:
            return a * b & WORD_MASK, a * b >> 32
        case CmdOp.MAX_U32:
            return max(a, b), 0
        case CmdOp.MIN_U32:
            return min(a, b), 0
        case CmdOp.RELU4_S8:
            return _relu(a), 0
        case CmdOp.EXP2_NEG_Q0_8:
            return 256 >> min(8, max(0, -signed(a, 8))), 0
        case CmdOp.MAC_S16:
            total = signed(a, 16) * signed(b, 16) + acc
        case CmdOp.DOT4_S8:
            total = _dot(a, b, 8, partial(signed, bits=8)) + acc
        case CmdOp.DOT8_S4:
            total = _dot(a, b, 4, partial(signed, bits=4)) + acc
        case CmdOp.SDOT4_S4_2_4:
            total = _dot_sparse(a, b, acc)
        case CmdOp.DOT16_S2:
            total = _dot(a, b, 2, ternary if is_ternary else partial(signed, bits=2)) + acc
        case CmdOp.DOT4_FP8_E4M3:
            total = _dot_fp8(a, b) + acc
        case _:
            raise ValueError(f"compute.op: given {op!r}, allowed operations without scratchpad")
    low = total & WORD_MASK
    return low, WORD_MASK if low >> 31 else 0
