# SPDX-License-Identifier: Apache-2.0
"""What each instruction does with its operands; where they come from is `golden.coprocessor.model`.

Values of registers are 32-bit patterns. Elements of memory arrive as (n,) arrays of patterns, uint8
or uint32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from golden.coprocessor import arrays, floats, functions
from golden.coprocessor.functions import signed32
from golden.coprocessor.state import MASK32, VREGS, CopState
from spec.isa.cop_generated import CopOp

Elements = npt.NDArray[np.unsignedinteger[Any]]
Scalar = Callable[[CopState, int, int], int | None]
"""(state, rs1, rs2) to the result, None if there is none."""


class Reduction(NamedTuple):
    """An instruction that reads arrays and writes none.

    Attributes:
        size: bytes of an element.
        apply: (state, a, b) to the result, None if there is none; b is empty with one source.
        sources: 1 (at rs1), or 2 (at rs1 and rs2).

    """

    size: int
    apply: Callable[[CopState, Elements, Elements], int | None]
    sources: int = 1


class Map(NamedTuple):
    """An instruction that writes an array at rs2, element by element.

    Attributes:
        size: bytes of an element.
        apply: (state, a, b) to the elements written; b is empty with one source.
        sources: 0, 1 (at rs1), or 2 (at rs1 and rs2).

    """

    size: int
    apply: Callable[[CopState, Elements, Elements], Elements]
    sources: int = 1


def qmul(a: int, b: int) -> int:
    """Return floor(a * b / 2^8) of signed integers, modulo 2^32."""
    return (signed32(a) * signed32(b) >> 8) & MASK32


def clamp(a: int) -> int:
    """Return a signed integer limited to -128..127."""
    return min(max(signed32(a), -128), 127) & MASK32


def relu(a: int) -> int:
    """Return max(a, 0) of a signed integer."""
    return max(signed32(a), 0)


def _macc(state: CopState, a: int, b: int) -> None:
    state.add(signed32(a) * signed32(b))


def _rstacc(state: CopState, _a: int, _b: int) -> int:
    result, state.acc = state.acc & MASK32, 0
    return result


def _fmacc(state: CopState, a: int, b: int) -> None:
    state.facc = floats.multiply_add_double(state.facc, a, b)


def _frstacc(state: CopState, _a: int, _b: int) -> int:
    result, state.facc = state.scalar, 0
    return result


def _vmac(state: CopState, a: Elements, b: Elements) -> None:
    # Below 2^14 each: 2^49 products fit.
    state.add(int((a.view(np.int8).astype(np.int64) * b.view(np.int8)).sum()))


def _fvmac(state: CopState, a: Elements, b: Elements) -> None:
    state.facc = arrays.multiply_add_double(state.facc, _words(a), _words(b))


def _vreduce(_state: CopState, a: Elements, _b: Elements) -> int:
    return int(a.sum(dtype=np.uint64)) & MASK32


def _vmax(_state: CopState, a: Elements, _b: Elements) -> int:
    return int(a.view(np.int32).max(initial=-(1 << 31))) & MASK32


def _fvreduce(_state: CopState, a: Elements, _b: Elements) -> int:
    return floats.float32_of_double(arrays.sum_double(0, arrays.values(_words(a))))


def _vmul(state: CopState, a: Elements, _b: Elements) -> Elements:
    scaled = a.view(np.int8).astype(np.int64) * state.factor >> 16
    return scaled.clip(-128, 127).astype(np.int8).view(np.uint8)


def _words(a: Elements) -> arrays.Words:
    """Return elements of four bytes as what they are."""
    return a.view(np.uint32)


def _one(function: Callable[[int], int]) -> Scalar:
    """Return the instruction that is a function of rs1."""
    return lambda _state, a, _b: function(a)


def _only(function: Callable[[int], int]) -> Callable[[CopState, Elements, Elements], int]:
    """Return the reduction that is a function of its only element."""
    return lambda _state, a, _b: function(int(a[0]))


def _each(
    function: Callable[[arrays.Words], arrays.Words],
) -> Callable[[CopState, Elements, Elements], Elements]:
    """Return the map that is a function of each element."""
    return lambda _state, a, _b: function(_words(a))


def _pairs(
    function: Callable[[arrays.Words, arrays.Words], arrays.Words],
) -> Callable[[CopState, Elements, Elements], Elements]:
    """Return the map of pairs of elements."""
    return lambda _state, a, b: function(_words(a), _words(b))


def _with_scalar(
    function: Callable[[arrays.Words, arrays.Words], arrays.Words],
) -> Callable[[CopState, Elements, Elements], Elements]:
    """Return the map of each element and the float accumulator as float32."""
    return lambda state, a, _b: function(_words(a), np.full(a.size, state.scalar, np.uint32))


SCALARS: dict[CopOp, Scalar] = {
    CopOp.MACC: _macc,
    CopOp.RELU: _one(relu),
    CopOp.QMUL: lambda _state, a, b: qmul(a, b),
    CopOp.CLAMP: _one(clamp),
    CopOp.GELU: _one(functions.gelu_int8),
    CopOp.RSTACC: _rstacc,
    CopOp.FMACC: _fmacc,
    CopOp.FRSQRT: _one(functions.rsqrt_float32),
    CopOp.FRELU: _one(floats.relu_float32),
    CopOp.FGELU: _one(functions.gelu_float32),
    CopOp.FRSTACC: _frstacc,
}
"""Instructions without memory."""
SINGLES: dict[CopOp, Reduction] = {
    CopOp.VRSQRT: Reduction(4, _only(functions.rsqrt_q16_16)),
    CopOp.FVRSQRT: Reduction(4, _only(functions.rsqrt_float32)),
}
"""Instructions on the one element at rs1. LDVEC and STVEC are the other two of the kind."""
REDUCTIONS: dict[CopOp, Reduction] = {
    CopOp.VMAC: Reduction(1, _vmac, 2),
    CopOp.VREDUCE: Reduction(4, _vreduce),
    CopOp.VMAX: Reduction(4, _vmax),
    CopOp.FVMAC: Reduction(4, _fvmac, 2),
    CopOp.FVREDUCE: Reduction(4, _fvreduce),
    CopOp.FVMAX: Reduction(4, lambda _state, a, _b: arrays.maximum_float32(_words(a))),
}
MAPS: dict[CopOp, Map] = {
    CopOp.VEXP: Map(4, _each(arrays.exp_q16_16)),
    CopOp.VMUL: Map(1, _vmul),
    CopOp.FVEXP: Map(4, _each(arrays.exp_float32)),
    CopOp.FVMUL: Map(4, _with_scalar(arrays.multiply_float32)),
    CopOp.FVSUB_SCALAR: Map(4, _with_scalar(arrays.subtract_float32)),
    CopOp.FVDIV: Map(4, _with_scalar(arrays.divide_float32)),
    CopOp.FVADD: Map(4, _pairs(arrays.add_float32), 2),
    CopOp.FVSUB: Map(4, _pairs(arrays.subtract_float32), 2),
    CopOp.FVRELU: Map(4, _each(arrays.relu_float32)),
    CopOp.FVGELU: Map(4, _each(arrays.gelu_float32)),
}
COUNT_IN_RS2 = frozenset({CopOp.VREDUCE, CopOp.VMAX, CopOp.FVREDUCE, CopOp.FVMAX})
COUNT_IN_RD = frozenset({*REDUCTIONS, *MAPS}) - COUNT_IN_RS2
"""Counted instructions, by the register with the count."""


def load_vector(register: int, state: CopState, a: Elements, _b: Elements) -> None:
    """Keep four bytes in a vector register; its number counts modulo 4."""
    state.vreg[register % VREGS] = int(a[0])


def stored_vector(register: int, state: CopState, _a: Elements, _b: Elements) -> Elements:
    """Return the four bytes of a vector register as one element."""
    return np.array([state.vreg[register % VREGS]], np.uint32)
