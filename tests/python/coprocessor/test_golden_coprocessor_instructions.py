# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the coprocessor on values that are known or computed otherwise."""

from __future__ import annotations

import math
import struct

import numpy as np
import numpy.typing as npt
import pytest

from spec.isa.cop_generated import CopOp
from tests.python.coprocessor.coprocessor_oracles import patterns
from tests.python.coprocessor.coprocessor_reference import COUNT_IN_RS2 as COUNTS_IN_RS2
from tests.python.coprocessor.coprocessor_reference import (
    MAPS,
    REDUCTIONS,
    SCALARS,
    Reference,
    execute,
)
from tests.python.coprocessor.coprocessor_support import COUNT_IN_RD, COUNT_IN_RS2, CopMachine
from tests.python.golden.golden_support import Rng, integers, seeded

A, B, D = 0x101, 0x807, 0x2003
"""Arrays at odd addresses."""
ONE = 1 << 16
NAN, INF = 0x7FC0_0000, 0x7F80_0000


def bits(value: float) -> int:
    """Return the float32 pattern of a number."""
    pattern: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return pattern


def signed(value: int) -> int:
    """Return 32 bits as a signed integer."""
    return value - (1 << 32) if value >> 31 else value


def vexp(*inputs: int) -> list[int]:
    """Return VEXP of some integers."""
    machine = CopMachine()
    machine.put(A, inputs, np.int32)
    assert not machine.run("VEXP", A, D, len(inputs)).we
    return machine.get(D, len(inputs), np.int32)


def vrsqrt(x: int) -> int:
    """Return VRSQRT of one integer."""
    machine = CopMachine()
    machine.put(A, [x], np.int32)
    return machine.run("VRSQRT", A).data


def vmul(scale: int, *inputs: int) -> list[int]:
    """Return VMUL of some bytes by a scale in acc, which stays."""
    machine = CopMachine()
    machine.put(A, inputs, np.int8)
    machine.run("MACC", scale, 1)
    before = machine.cop.state.acc
    machine.run("VMUL", A, D, len(inputs))
    assert machine.cop.state.acc == before
    return machine.get(D, len(inputs), np.int8)


def reduced(name: str, *inputs: int) -> int:
    """Return VREDUCE or VMAX of some integers."""
    machine = CopMachine()
    machine.put(A, inputs, np.int32)
    return signed(machine.run(name, A, len(inputs)).data)


class TestNamedCases:
    """The cases that the original's tests name."""

    def test_vexp_zero(self) -> None:
        """exp(0) is 1.0."""
        assert vexp(0) == [ONE]

    def test_vexp_negative(self) -> None:
        """exp(-1)."""
        assert vexp(-ONE) == [24109]

    def test_vexp_large_negative(self) -> None:
        """exp(-8) is small and positive."""
        assert vexp(-8 * ONE) == [22]

    def test_vexp_multiple_elements(self) -> None:
        """Four at once."""
        inputs = [0, -ONE, -2 * ONE, ONE]
        assert vexp(*inputs) == [round(math.exp(x / ONE) * ONE) for x in inputs]

    def test_vexp_zero_count(self) -> None:
        """Nothing happens."""
        assert_nothing("VEXP")

    def test_vrsqrt_one(self) -> None:
        """1/sqrt(1) = 1."""
        assert vrsqrt(ONE) == ONE

    def test_vrsqrt_four(self) -> None:
        """1/sqrt(4) = 1/2."""
        assert vrsqrt(4 * ONE) == ONE // 2

    def test_vrsqrt_quarter(self) -> None:
        """1/sqrt(1/4) = 2."""
        assert vrsqrt(ONE // 4) == 2 * ONE

    def test_vrsqrt_large(self) -> None:
        """1/sqrt(100) = 1/10, to the nearest."""
        assert vrsqrt(100 * ONE) == 6554

    def test_vmul_identity(self) -> None:
        """Scale 1 passes all bytes on."""
        assert vmul(ONE, -128, -1, 0, 1, 127) == [-128, -1, 0, 1, 127]

    def test_vmul_half(self) -> None:
        """Scale 1/2 halves, towards minus infinity."""
        assert vmul(ONE // 2, 10, -10, 7, -7) == [5, -5, 3, -4]

    def test_vmul_negative_scale(self) -> None:
        """The scale has a sign."""
        assert vmul(-ONE, 10, -10, 127, -127) == [-10, 10, -127, 127]

    def test_vmul_clamps_to_int8(self) -> None:
        """Beyond a byte the result is its end."""
        assert vmul(2 * ONE, 100, -100, 63, -64) == [127, -128, 126, -128]
        assert vmul(-ONE, -128) == [127]

    def test_vmul_zero_count(self) -> None:
        """Nothing happens."""
        assert_nothing("VMUL")

    def test_vreduce_basic(self) -> None:
        """1 + 2 + 3 + 4."""
        assert reduced("VREDUCE", 1, 2, 3, 4) == 10

    def test_vreduce_negative(self) -> None:
        """Signs count."""
        assert reduced("VREDUCE", 10, -3, -20, 5) == -8

    def test_vreduce_single(self) -> None:
        """One element is its sum."""
        assert reduced("VREDUCE", 42) == 42

    def test_vreduce_zero_count(self) -> None:
        """The empty sum is 0."""
        assert reduced("VREDUCE") == 0

    def test_vmax_basic(self) -> None:
        """The largest of four."""
        assert reduced("VMAX", 1, 5, 3, 2) == 5

    def test_vmax_all_negative(self) -> None:
        """Zero is not among them."""
        assert reduced("VMAX", -3, -1, -5) == -1

    def test_vmax_single(self) -> None:
        """One element is the largest."""
        assert reduced("VMAX", 7) == 7

    def test_vmax_zero_count(self) -> None:
        """The smallest integer."""
        assert reduced("VMAX") == -(1 << 31)

    def test_softmax_q(self) -> None:
        """VMAX, VEXP, VREDUCE and VMUL give bytes whose sum is 255 but for rounding down."""
        machine = CopMachine()
        scores = np.array([30000, -70000, 65536, 1000, 66000, -200000])
        machine.put(A, scores, np.int32)
        largest = signed(machine.run("VMAX", A, scores.size).data)
        machine.put(A, scores - largest, np.int32)
        machine.run("VEXP", A, A, scores.size)
        powers = machine.get(A, scores.size, np.int32)
        total = machine.run("VREDUCE", A, scores.size).data
        assert total == sum(powers)
        machine.put(B, [power >> 10 for power in powers], np.int8)
        machine.run("MACC", (255 << 26) // total, 1)
        machine.run("VMUL", B, D, scores.size)
        quarters = machine.get(D, scores.size, np.int8)
        expected = np.exp((scores - largest) / ONE)
        expected = expected / expected.sum() * 255
        assert np.abs(np.array(quarters) - expected).max() < 4
        assert 240 <= sum(quarters) <= 255

    def test_transformer_forward_deterministic(self) -> None:
        """The same words on the same memory give the same state and memory."""
        snapshots = []
        for _ in range(2):
            rng = seeded(1)
            machine = CopMachine()
            machine.put(0, integers(rng, np.uint8, (0x3000,)), np.uint8)
            for name in (*COUNT_IN_RD, *COUNT_IN_RS2) * 2:
                machine.vector(name, A, D, 40)
                machine.run("FMACC", bits(0.75), bits(3.0))
            snapshots.append(machine.snapshot())
        assert snapshots[0] == snapshots[1]


def assert_nothing(name: str) -> None:
    """Check that a count of zero changes nothing, wherever the operands would lie."""
    machine = CopMachine()
    machine.memory.regions = []
    machine.run("MACC", 5, 7)
    before = machine.snapshot()
    result = machine.vector(name, 0xFFFF_FFFF, 0xFFFF_FFFE, 0)
    assert machine.snapshot() == before
    assert result.fault is None and machine.cop.fault is None


@pytest.mark.parametrize("name", [*COUNT_IN_RD, *COUNT_IN_RS2])
def test_a_count_of_zero_touches_nothing(name: str) -> None:
    """No memory, no fault, whatever LIMIT is."""
    assert_nothing(name)


@pytest.mark.parametrize(
    ("name", "neutral"),
    [("VREDUCE", 0), ("VMAX", 1 << 31), ("FVREDUCE", 0), ("FVMAX", 0xFF80_0000)],
)
def test_neutral_results(name: str, neutral: int) -> None:
    """Of nothing: the empty sum, the smallest number."""
    result = CopMachine().run(name, 0xFFFF_FFFF, 0)
    assert result.we and result.data == neutral and result.rd == 5


SPECIAL = (
    *(0, 0x8000_0000, 1, 0x8000_0001, 0x8000_0003, 0x007F_FFFF, 0x0080_0000, 0x3F80_0000),
    *(0xBF80_0000, 0x7F7F_FFFF, 0xFF7F_FFFF, INF, 0xFF80_0000, 0x7F80_0001, 0xFFFF_FFFF),
)
FLOATS = [op for op in CopOp if op.name.startswith("F")]


def operands(rng: Rng, op: CopOp, count: int) -> npt.NDArray[np.uint32]:
    """Return words that an instruction makes something of."""
    if op not in FLOATS:
        words = integers(rng, np.uint32, (count,))
        if op == CopOp.VEXP:
            near = rng.integers(-800_000, 700_000, count).astype(np.int32).view(np.uint32)
            words = np.where(rng.random(count) < 0.8, near, words)
        return words.astype(np.uint32)
    wide = patterns(rng, count, 2.0**-149, 3.4e38)
    middle = patterns(rng, count, 2.0**-20, 20.0)
    mixed = np.where(rng.random(count) < 0.6, middle, wide)
    chosen = rng.random(count) < 0.1
    return np.where(chosen, rng.choice(SPECIAL, count), mixed).astype(np.uint32)


def both(rng: Rng, op: CopOp) -> tuple[CopMachine, Reference]:
    """Return golden and reference in the same random state, memory filled for the instruction."""
    machine = CopMachine()
    machine.cop.limit = 0
    machine.put(0, operands(rng, op, 0x200), np.uint32)
    machine.cop.state.acc = int(rng.integers(0, 1 << 64, dtype=np.uint64)) >> int(
        rng.integers(0, 60)
    )
    machine.run("FMACC", *(int(word) for word in operands(rng, CopOp.FMACC, 2)))
    state = machine.cop.state
    return machine, Reference(bytearray(machine.memory.data), state.acc, state.facc)


def same(machine: CopMachine, ref: Reference) -> bool:
    """Whether golden and reference have the same state and memory."""
    state = machine.cop.state
    return (state.acc, state.facc) == (ref.acc, ref.facc) and (
        machine.memory.data.tobytes() == bytes(ref.memory)
    )


@pytest.mark.parametrize("op", SCALARS, ids=lambda op: op.name)
def test_scalars(op: CopOp) -> None:
    """Random and special operands, on random accumulators."""
    rng = seeded(int(op))
    machine, ref = both(rng, op)
    for _ in range(150):
        rs1, rs2 = (int(word) for word in operands(rng, op, 2))
        result = machine.run(op.name, rs1, rs2, rd=9)
        expected = execute(ref, op, rs1, rs2, 0).data
        assert (result.we, result.data) == (expected is not None, expected or 0), hex(rs1)
        assert result.rd == 9 and result.fault is None
        assert same(machine, ref)


@pytest.mark.parametrize("op", [*MAPS, *REDUCTIONS], ids=lambda op: op.name)
def test_vectors(op: CopOp) -> None:
    """Any alignment, counts of 0 to 40, arrays that overlap in every way."""
    rng = seeded(int(op))
    for _ in range(12):
        machine, ref = both(rng, op)
        for _ in range(2):
            count = int(rng.integers(0, 41))
            rs1 = int(rng.integers(0x100, 0x300))
            rs2 = rs1 + int(rng.integers(-24, 25))
            if op in COUNTS_IN_RS2:
                rs2 = count
            result = machine.run(op.name, rs1, rs2, count)
            expected = execute(ref, op, rs1, rs2, count).data
            assert (result.we, result.data) == (expected is not None, expected or 0)
            assert result.fault is None and result.uncertain is None
            assert same(machine, ref), (op.name, count, rs2 - rs1)


@pytest.mark.parametrize("name", [name for name in COUNT_IN_RD if name in ("VMUL", "FVRELU")])
@pytest.mark.parametrize("distance", range(-9, 10))
def test_every_small_overlap(name: str, distance: int) -> None:
    """The destination begins up to nine bytes before or behind the source."""
    rng = seeded(distance + 100)
    op = CopOp[name]
    machine, ref = both(rng, op)
    machine.run("MACC", 40_000, 1)
    ref.acc = machine.cop.state.acc
    machine.run(name, 0x205, 0x205 + distance, 37)
    execute(ref, op, 0x205, 0x205 + distance, 37)
    assert same(machine, ref)


def test_pairs_in_place() -> None:
    """FVADD and FVSUB write over their second source, wherever the first one lies."""
    for op in (CopOp.FVADD, CopOp.FVSUB):
        rng = seeded(int(op))
        for distance in (-8, -5, -4, -1, 0, 1, 3, 4, 7, 8, 100):
            machine, ref = both(rng, op)
            machine.run(op.name, 0x205, 0x205 + distance, 21)
            execute(ref, op, 0x205, 0x205 + distance, 21)
            assert same(machine, ref), (op.name, distance)


@pytest.mark.parametrize("offset", [0, 1, -1, 2047, -2048, 5])
def test_vector_registers(offset: int) -> None:
    """LDVEC and STVEC move four bytes at any address; their numbers count modulo 4."""
    machine = CopMachine()
    rng = seeded(offset + 3000)
    machine.put(0, rng.integers(0, 256, 0x2000), np.uint8)
    load = np.arange(0x801, 0x805) + offset
    back = min(-offset, 2047)
    expected = machine.memory.data[load].copy()
    for register, number in ((2, 30), (3, 7), (0, 0)):
        assert not machine.run(CopOp.LDVEC.name, 0x801, rd=number, offset=offset).we
        (value,) = struct.unpack("<I", expected.tobytes())
        assert machine.cop.state.vreg[register] == value
        before = machine.memory.data.copy()
        result = machine.run(CopOp.STVEC.name, 0x1003, vreg=number, offset=back)
        before[np.arange(0x1003, 0x1007) + back] = expected
        assert np.array_equal(machine.memory.data, before) and not result.we
    wrapped = CopMachine()
    wrapped.put(4, [1, 2, 3, 4], np.uint8)
    wrapped.run("LDVEC", 0xFFFF_FFFF, rd=1, offset=5)
    wrapped.run("STVEC", 0xFFFF_FFFF, vreg=1, offset=9)
    assert wrapped.cop.state.vreg == [0, 0x0403_0201, 0, 0]
    assert wrapped.get(8, 4, np.uint8) == [1, 2, 3, 4]


def test_acc_wraps_at_64_bits() -> None:
    """2^62 four times; then the other way."""
    machine = CopMachine()
    for turn in range(1, 5):
        machine.run("MACC", -(1 << 31), -(1 << 31))
        assert machine.cop.state.acc == (turn << 62) % (1 << 64)
    machine.run("MACC", -1, 1)
    assert machine.cop.state.acc == (1 << 64) - 1
    assert machine.run("RSTACC").data == 0xFFFF_FFFF and machine.cop.state.acc == 0


@pytest.mark.parametrize(
    ("name", "rs1", "rs2", "result"),
    [
        ("QMUL", -1, 1, 0xFFFF_FFFF),
        ("QMUL", -(1 << 31), -(1 << 31), 0),
        ("QMUL", 1 << 20, 1 << 20, 0),
        ("QMUL", 300, 256, 300),
        ("CLAMP", 128, 0, 127),
        ("CLAMP", -129, 0, 0xFFFF_FF80),
        ("RELU", -(1 << 31), 0, 0),
        ("GELU", 0x1234_5680, 0, 0),
        ("GELU", 127, 0, 127),
        ("FRELU", 0x8000_0000, 0, 0),
        ("FRELU", 0xFFC0_0000, 0, NAN),
        ("FRSQRT", 0x8000_0000, 0, INF),
        ("FGELU", 0xFF80_0000, 0, 0x8000_0000),
    ],
)
def test_named_scalars(name: str, rs1: int, rs2: int, result: int) -> None:
    """Floors, wraps, ends and special values."""
    assert CopMachine().run(name, rs1, rs2).data == result


def test_float_sum_is_read_in_two_roundings() -> None:
    """1 + 2^-24 + 2^-54: the double drops the last term, the tie of float32 goes to even."""
    machine = CopMachine()
    for term in (1.0, 2.0**-24, 2.0**-54):
        machine.run("FMACC", bits(term), bits(1.0))
    assert machine.run("FRSTACC").data == bits(1.0)
    assert machine.cop.state.facc == 0


def test_float_maximum_named_values() -> None:
    """+0 is above -0, any NaN wins."""
    for words, largest in (
        ([0x8000_0000, 0], 0),
        ([0x8000_0000, 0xBF80_0000], 0x8000_0000),
        ([0xFF80_0000], 0xFF80_0000),
        ([INF, 0xFFC0_1234, 0], NAN),
    ):
        machine = CopMachine()
        machine.put(A, words, np.uint32)
        assert machine.run("FVMAX", A, len(words)).data == largest


def test_sums_of_negative_zeros() -> None:
    """FVREDUCE begins at +0, so its sum of -0 is +0."""
    machine = CopMachine()
    machine.put(A, [0x8000_0000] * 3, np.uint32)
    assert machine.run("FVREDUCE", A, 3).data == 0
