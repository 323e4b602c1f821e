# SPDX-License-Identifier: Apache-2.0
"""Scalar operations from lanes and numbers: one function per operation, named as the field says.

Lanes are numbered from the low bits. `acc` is signed, 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from npu.driver.command.operation import Scalar, check_fp8
from npu.driver.errors import WORD, RequestError, lanes, whole
from spec.regs import CmdOp


def signed(word: int) -> int:
    """Return a 32-bit word as a signed number."""
    return word - (1 << 32) if word >> 31 else word


def pack(values: Sequence[int], bits: int) -> int:
    """Return lanes of `bits` bits as a word, the first one in the low bits."""
    mask = (1 << bits) - 1
    return sum((value & mask) << bits * i for i, value in enumerate(values))


def unpack_s8(word: int) -> tuple[int, ...]:
    """Return the four signed byte lanes of a word."""
    return tuple((word >> 8 * i & 0xFF ^ 0x80) - 0x80 for i in range(4))


def _acc(name: str, acc: int) -> int:
    return whole(f"{name}.acc", acc, -(1 << 31), (1 << 31) - 1) & WORD


def _words(op: CmdOp, a: int, b: int) -> Scalar:
    name = op.name.lower()
    return Scalar(op, whole(f"{name}.a", a, 0, WORD), whole(f"{name}.b", b, 0, WORD))


def _dot(op: CmdOp, a: Sequence[int], b: Sequence[int], acc: int, bits: int) -> Scalar:
    name, count, half = op.name.lower(), 32 // bits, 1 << bits - 1
    packed = [
        pack(lanes(f"{name}.{field}", values, count, -half, half - 1), bits)
        for field, values in (("a", a), ("b", b))
    ]
    return Scalar(op, packed[0], packed[1], _acc(name, acc))


def add(a: int, b: int) -> Scalar:
    """A + B modulo 2^32, of words without sign."""
    return _words(CmdOp.ADD, a, b)


def sub(a: int, b: int) -> Scalar:
    """A - B modulo 2^32, of words without sign."""
    return _words(CmdOp.SUB, a, b)


def mul_lo(a: int, b: int) -> Scalar:
    """The 64-bit product of words without sign."""
    return _words(CmdOp.MUL_LO, a, b)


def max_u32(a: int, b: int) -> Scalar:
    """The larger of two words without sign."""
    return _words(CmdOp.MAX_U32, a, b)


def min_u32(a: int, b: int) -> Scalar:
    """The smaller of two words without sign."""
    return _words(CmdOp.MIN_U32, a, b)


def mac_s16(a: int, b: int, acc: int = 0) -> Scalar:
    """A * B + acc modulo 2^32, of signed 16-bit numbers."""
    halves = [
        whole(f"mac_s16.{field}", value, -(1 << 15), (1 << 15) - 1) & 0xFFFF
        for field, value in (("a", a), ("b", b))
    ]
    return Scalar(CmdOp.MAC_S16, halves[0], halves[1], _acc("mac_s16", acc))


def dot4_s8(a: Sequence[int], b: Sequence[int], acc: int = 0) -> Scalar:
    """Sum of four products of signed bytes + acc."""
    return _dot(CmdOp.DOT4_S8, a, b, acc, 8)


def dot8_s4(a: Sequence[int], b: Sequence[int], acc: int = 0) -> Scalar:
    """Sum of eight products of signed nibbles + acc."""
    return _dot(CmdOp.DOT8_S4, a, b, acc, 4)


def dot16_s2(a: Sequence[int], b: Sequence[int], acc: int = 0, *, ternary: bool = False) -> Scalar:
    """Sum of sixteen products of lanes of -2..1, or -1..1 with `ternary`, + acc."""
    if not ternary:
        return _dot(CmdOp.DOT16_S2, a, b, acc, 2)
    codes = (0, 1, 2)
    packed = [
        # Indexed by the lane's value: 0, +1, and -1 as the last one.
        pack([codes[v] for v in lanes(f"dot16_s2.{field}", values, 16, -1, 1)], 2)
        for field, values in (("a", a), ("b", b))
    ]
    return Scalar(CmdOp.DOT16_S2, packed[0], packed[1], _acc("dot16_s2", acc), ternary=True)


def dot4_fp8(a: Sequence[int], b: Sequence[int], acc: int = 0) -> Scalar:
    """Sum of four products of FP8 E4M3 codes + acc; products and acc in Q8.8."""
    packed = []
    for field, values in (("a", a), ("b", b)):
        codes = lanes(f"dot4_fp8.{field}", values, 4, 0, 0xFF)
        for i, code in enumerate(codes):
            check_fp8(f"dot4_fp8.{field}[{i}]", code)
        packed.append(pack(codes, 8))
    return Scalar(CmdOp.DOT4_FP8_E4M3, packed[0], packed[1], _acc("dot4_fp8", acc))


def sdot4(a: Sequence[int], positions: Sequence[int], b: Sequence[int]) -> Scalar:
    """Sum of four products of 2:4 sparse signed nibbles.

    Args:
        a: four values, two for each group of four lanes of b.
        positions: of each value in its group, 0 to 3; the two of a group differ.
        b: eight lanes.

    Raises:
        RequestError: something does not fit.
    """
    values = lanes("sdot4.a", a, 4, -8, 7)
    places = lanes("sdot4.positions", positions, 4, 0, 3)
    dense = lanes("sdot4.b", b, 8, -8, 7)
    for group in (0, 1):
        first, second = places[2 * group : 2 * group + 2]
        if first == second:
            raise RequestError(
                f"sdot4.positions[{2 * group + 1}]", second, "another one than its neighbour's"
            )
    return Scalar(CmdOp.SDOT4_S4_2_4, pack(values, 4), pack(dense, 4), pack(places, 2))


def relu4_s8(a: Sequence[int]) -> Scalar:
    """Four signed bytes, negative ones replaced by 0."""
    return Scalar(CmdOp.RELU4_S8, pack(lanes("relu4_s8.a", a, 4, -128, 127), 8))


def exp2_neg(a: int) -> Scalar:
    """2 to the power of min(a, 0) in Q0.8, of a signed byte."""
    return Scalar(CmdOp.EXP2_NEG_Q0_8, whole("exp2_neg.a", a, -128, 127) & 0xFF)
