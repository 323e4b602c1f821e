# SPDX-License-Identifier: Apache-2.0
"""The coprocessor's instructions a second time, as plainly as can be: element by element.

Integers, numpy's float32 and float64, fractions and decimals; nothing of golden. Memory is asked
byte by byte, so that faults and overlaps come out as the specification words them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from spec.isa.cop_generated import CopOp
from tests.python.coprocessor.coprocessor_oracles import exp_decimal, gelu_decimal, nearest, number

NAN, INF, NEGATIVE_ZERO = 0x7FC0_0000, 0x7F80_0000, 0x8000_0000
BEAT, ADDRESSES = 16, 1 << 32
Range = tuple[int, int]


def signed(bits: int, width: int = 32) -> int:
    """Return bits as a signed integer."""
    return bits - (1 << width) if bits >> (width - 1) else bits


def single(bits: int) -> np.float32:
    """Return 32 bits as numpy's float32."""
    return np.float32(np.uint32(bits).view(np.float32))


def pattern(value: np.float32) -> int:
    """Return the bits of a float32; of a NaN the canonical ones."""
    return NAN if np.isnan(value) else int(np.float32(value).view(np.uint32))


def double(bits: int) -> np.float64:
    """Return 64 bits as numpy's float64."""
    return np.float64(np.uint64(bits).view(np.float64))


def double_pattern(value: np.float64) -> int:
    """Return the bits of a double; of a NaN the canonical ones."""
    return 0x7FF8_0000_0000_0000 if np.isnan(value) else int(np.float64(value).view(np.uint64))


def exp_q16_16(bits: int) -> int:
    """Return exp in Q16.16."""
    x = min(max(signed(bits), -800_000), 700_000)
    true = exp_decimal(Fraction(x, 1 << 16)) * (1 << 16)
    return min(round(true), 0x7FFF_FFFF)


def exp_float32(bits: int) -> int:
    """Return exp of a float32."""
    x = single(bits)
    if np.isnan(x):
        return NAN
    if not -110 < x < 90:
        return 0 if x < 0 else INF
    return nearest(exp_decimal(number(bits)))


def gelu_float32(bits: int) -> int:
    """Return GELU of a float32."""
    x = single(bits)
    if np.isnan(x):
        return NAN
    if x == 0 or x > 20:
        return bits
    if x < -20:
        return NEGATIVE_ZERO
    return nearest(gelu_decimal(number(bits))) | bits & NEGATIVE_ZERO


def rsqrt_float32(bits: int) -> int:
    """Return 1/sqrt of a float32: the largest one whose square is small enough, then rounded."""
    x = single(bits)
    if np.isnan(x) or x < 0:
        return NAN
    if x == 0:
        return INF
    if np.isinf(x):
        return 0
    low, high = 0, INF - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if number(middle) ** 2 * number(bits) <= 1 else (low, middle - 1)
    half = (number(low) + number(low + 1)) / 2
    return low + (half**2 * number(bits) < 1)


def rsqrt_q16_16(bits: int) -> int:
    """Return 1/sqrt in Q16.16, as rint(2^24 / sqrt(x)) in float64, put right by integers."""
    x = signed(bits)
    if x <= 0:
        return 0x7FFF_FFFF
    guess = round(2.0**24 / math.sqrt(x))
    fits = [r for r in (guess - 1, guess, guess + 1) if (2 * r - 1) ** 2 * x < 1 << 50]
    return max(fits)


def gelu_int8(bits: int) -> int:
    """Return GELU of the low byte in Q3.5."""
    x = Fraction(signed(bits & 0xFF, 8), 32)
    return round(gelu_decimal(x) * 32) & 0xFFFF_FFFF if x else 0


def relu_float32(bits: int) -> int:
    """Return max(x, +0) of a float32."""
    x = single(bits)
    return NAN if np.isnan(x) else bits if x > 0 else 0


@dataclass
class Reference:
    """State, and memory with its faults.

    Attributes:
        memory: bytes from address 0.
        acc: the integer accumulator, 64 bits.
        facc: bits of the float accumulator.
        vreg: the vector registers.
        readable: ranges (first, last) of bytes that may be read.
        writable: those that may be written.
        read_errors: bytes whose words answer reads with an error.
        write_errors: the same for writes.
        silent_reads: bytes whose words do not answer reads.
        silent_writes: the same for writes.
        limit: LIMIT in bytes.
        open_bytes: bytes that the last instruction may have written as well, by address.

    """

    memory: bytearray
    acc: int = 0
    facc: int = 0
    vreg: list[int] = field(default_factory=lambda: [0] * 4)
    readable: list[Range] = field(default_factory=lambda: [(0, ADDRESSES - 1)])
    writable: list[Range] = field(default_factory=lambda: [(0, ADDRESSES - 1)])
    read_errors: list[Range] = field(default_factory=list)
    write_errors: list[Range] = field(default_factory=list)
    silent_reads: list[Range] = field(default_factory=list)
    silent_writes: list[Range] = field(default_factory=list)
    limit: int = 1 << 20
    open_bytes: dict[int, int] = field(default_factory=dict)

    def refusal(self, address: int, size: int, *, write: bool) -> str:
        """Return what happens to an access: "", "DENIED", "BUS" or "TIMEOUT"."""
        touched = range(address, address + size)
        permitted = self.writable if write else self.readable
        if any(at >= ADDRESSES or not _in(permitted, at, at) for at in touched):
            return "DENIED"
        for word in sorted({at // BEAT * BEAT for at in touched}):
            if _in(self.silent_writes if write else self.silent_reads, word, word + BEAT - 1):
                return "TIMEOUT"
            errors = self.write_errors if write else self.read_errors
            if word >= len(self.memory) or _in(errors, word, word + BEAT - 1):
                return "BUS"
        return ""

    def load(self, address: int, size: int) -> int:
        """Return bytes as an unsigned integer."""
        return int.from_bytes(self.memory[address : address + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Put an unsigned integer, where there is memory."""
        if address >= len(self.memory):
            return
        self.memory[address : address + size] = value.to_bytes(size, "little")


def _in(ranges: list[Range], first: int, last: int) -> bool:
    """Whether one of the ranges has a byte from `first` to `last`."""
    return any(start <= last and first <= end for start, end in ranges)


def _macc(ref: Reference, a: int, b: int) -> int | None:
    ref.acc = (ref.acc + signed(a) * signed(b)) % (1 << 64)
    return None


def _rstacc(ref: Reference, _a: int, _b: int) -> int:
    low, ref.acc = ref.acc % (1 << 32), 0
    return low


def _fmacc(ref: Reference, a: int, b: int) -> int | None:
    product = np.float64(single(a)) * np.float64(single(b))
    ref.facc = double_pattern(double(ref.facc) + product)
    return None


def _frstacc(ref: Reference, _a: int, _b: int) -> int:
    result = pattern(np.float32(double(ref.facc)))
    ref.facc = 0
    return result


def _scale(ref: Reference, a: int) -> int:
    scaled = signed(a, 8) * signed(ref.acc % (1 << 32)) // 65536
    return min(max(scaled, -128), 127) % 256


def _scalar(ref: Reference) -> np.float32:
    return np.float32(double(ref.facc))


SCALARS: dict[CopOp, Callable[[Reference, int, int], int | None]] = {
    CopOp.MACC: _macc,
    CopOp.RELU: lambda _ref, a, _b: max(signed(a), 0),
    CopOp.QMUL: lambda _ref, a, b: (signed(a) * signed(b) // 256) % (1 << 32),
    CopOp.CLAMP: lambda _ref, a, _b: int(np.clip(signed(a), -128, 127)) % (1 << 32),
    CopOp.GELU: lambda _ref, a, _b: gelu_int8(a),
    CopOp.RSTACC: _rstacc,
    CopOp.FMACC: _fmacc,
    CopOp.FRSQRT: lambda _ref, a, _b: rsqrt_float32(a),
    CopOp.FRELU: lambda _ref, a, _b: relu_float32(a),
    CopOp.FGELU: lambda _ref, a, _b: gelu_float32(a),
    CopOp.FRSTACC: _frstacc,
}
"""(reference, rs1, rs2) to the result."""
MAPS: dict[CopOp, tuple[int, int, Callable[..., int]]] = {
    CopOp.VEXP: (4, 1, lambda _ref, a: exp_q16_16(a)),
    CopOp.VMUL: (1, 1, _scale),
    CopOp.FVEXP: (4, 1, lambda _ref, a: exp_float32(a)),
    CopOp.FVMUL: (4, 1, lambda ref, a: pattern(single(a) * _scalar(ref))),
    CopOp.FVSUB_SCALAR: (4, 1, lambda ref, a: pattern(single(a) - _scalar(ref))),
    CopOp.FVDIV: (4, 1, lambda ref, a: pattern(single(a) / _scalar(ref))),
    CopOp.FVADD: (4, 2, lambda _ref, a, b: pattern(single(a) + single(b))),
    CopOp.FVSUB: (4, 2, lambda _ref, a, b: pattern(single(a) - single(b))),
    CopOp.FVRELU: (4, 1, lambda _ref, a: relu_float32(a)),
    CopOp.FVGELU: (4, 1, lambda _ref, a: gelu_float32(a)),
}
"""Bytes of an element, sources (rs1, then rs2), and the element written at rs2."""


def _vmac(ref: Reference, pairs: list[list[int]]) -> int | None:
    ref.acc = (ref.acc + sum(signed(a, 8) * signed(b, 8) for a, b in pairs)) % (1 << 64)
    return None


def _fvmac(ref: Reference, pairs: list[list[int]]) -> int | None:
    for a, b in pairs:
        _fmacc(ref, a, b)
    return None


def _fvreduce(_ref: Reference, singles: list[list[int]]) -> int:
    total = np.float64(0)
    for (a,) in singles:
        total = total + np.float64(single(a))
    return pattern(np.float32(total))


def _fvmax(_ref: Reference, singles: list[list[int]]) -> int:
    numbers = [single(a) for (a,) in singles]
    if any(np.isnan(x) for x in numbers):
        return NAN
    largest = max(numbers, default=np.float32(-np.inf))
    if largest == 0:
        return 0 if [0] in singles else NEGATIVE_ZERO
    return pattern(largest)


REDUCTIONS: dict[CopOp, tuple[int, int, Callable[..., int | None]]] = {
    CopOp.VMAC: (1, 2, _vmac),
    CopOp.VREDUCE: (4, 1, lambda _ref, all_of: sum(a for (a,) in all_of) % (1 << 32)),
    CopOp.VMAX: (
        4,
        1,
        lambda _ref, all_of: max((signed(a) for (a,) in all_of), default=-(1 << 31)) % (1 << 32),
    ),
    CopOp.FVMAC: (4, 2, _fvmac),
    CopOp.FVREDUCE: (4, 1, _fvreduce),
    CopOp.FVMAX: (4, 1, _fvmax),
    CopOp.VRSQRT: (4, 1, lambda _ref, all_of: rsqrt_q16_16(all_of[0][0])),
    CopOp.FVRSQRT: (4, 1, lambda _ref, all_of: rsqrt_float32(all_of[0][0])),
}
"""Bytes of an element, sources (rs1, then rs2), and the result of all elements."""
COUNT_IN_RS2 = (CopOp.VREDUCE, CopOp.VMAX, CopOp.FVREDUCE, CopOp.FVMAX)
UNCOUNTED = (CopOp.VRSQRT, CopOp.FVRSQRT)


@dataclass(frozen=True)
class CopOutcome:
    """What an instruction did: its result, or its fault.

    Attributes:
        data: the result, None if there is none; of a fault None.
        code: "" or the name of the fault's code.
        index: of the element that failed.
        address: of that element.

    """

    data: int | None
    code: str = ""
    index: int = 0
    address: int = 0


def execute(ref: Reference, op: CopOp, rs1: int, rs2: int, rs3: int) -> CopOutcome:
    """Execute an instruction other than LDVEC and STVEC."""
    ref.open_bytes = {}
    with np.errstate(all="ignore"):
        if op in SCALARS:
            return CopOutcome(SCALARS[op](ref, rs1, rs2))
        return _vector(ref, op, rs1, rs2, rs3)


def _vector(ref: Reference, op: CopOp, rs1: int, rs2: int, rs3: int) -> CopOutcome:
    size, sources = (MAPS[op] if op in MAPS else REDUCTIONS[op])[:2]
    count = 1 if op in UNCOUNTED else rs2 if op in COUNT_IN_RS2 else rs3
    if op not in UNCOUNTED and count * size > ref.limit:
        return CopOutcome(None, "LENGTH")
    taken: list[list[int]] = []
    shadow = Reference(bytearray(ref.memory), ref.acc, ref.facc)
    fault: CopOutcome | None = None
    for i in range(count):
        accesses = [(base, False) for base in (rs1, rs2)[:sources]]
        accesses += [(rs2, True)] if op in MAPS else []
        for base, write in accesses:
            code = ref.refusal(base + i * size, size, write=write)
            if code and fault is None:
                fault = CopOutcome(None, code, i, (base + i * size) % ADDRESSES)
            if code and not (write and code in ("BUS", "TIMEOUT")):
                return fault or CopOutcome(None)
        if op in REDUCTIONS:
            taken.append([ref.load(base + i * size, size) for base, _ in accesses])
            continue
        # Behind a failed write only the shadow goes on: what may have been written as well.
        given = [shadow.load(base + i * size, size) for base, write in accesses if not write]
        result = MAPS[op][2](shadow, *given)
        shadow.store(rs2 + i * size, size, result)
        if fault is None:
            ref.store(rs2 + i * size, size, result)
        else:
            place = rs2 + i * size
            there = struct.pack("<I", result)[: min(size, max(0, len(ref.memory) - place))]
            ref.open_bytes |= dict(enumerate(there, place))
    if fault is not None:
        return fault
    return CopOutcome(REDUCTIONS[op][2](ref, taken) if op in REDUCTIONS else None)
