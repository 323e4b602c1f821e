# SPDX-License-Identifier: Apache-2.0
"""Every instruction of the coprocessor on values that are known or computed otherwise."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from tests.python.coprocessor_support import COUNT_IN_RD, COUNT_IN_RS2, Machine
from tests.python.golden_support import integers, seeded

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
    machine = Machine()
    machine.put(A, inputs, np.int32)
    assert not machine.run("VEXP", A, D, len(inputs)).we
    return machine.get(D, len(inputs), np.int32)


def vrsqrt(x: int) -> int:
    """Return VRSQRT of one integer."""
    machine = Machine()
    machine.put(A, [x], np.int32)
    return machine.run("VRSQRT", A).data


def vmul(scale: int, *inputs: int) -> list[int]:
    """Return VMUL of some bytes by a scale in acc, which stays."""
    machine = Machine()
    machine.put(A, inputs, np.int8)
    machine.run("MACC", scale, 1)
    before = machine.cop.state.acc
    machine.run("VMUL", A, D, len(inputs))
    assert machine.cop.state.acc == before
    return machine.get(D, len(inputs), np.int8)


def reduced(name: str, *inputs: int) -> int:
    """Return VREDUCE or VMAX of some integers."""
    machine = Machine()
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
        machine = Machine()
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
            machine = Machine()
            machine.put(0, integers(rng, np.uint8, (0x3000,)), np.uint8)
            for name in (*COUNT_IN_RD, *COUNT_IN_RS2) * 2:
                machine.vector(name, A, D, 40)
                machine.run("FMACC", bits(0.75), bits(3.0))
            snapshots.append(machine.snapshot())
        assert snapshots[0] == snapshots[1]


def assert_nothing(name: str) -> None:
    """Check that a count of zero changes nothing, wherever the operands would lie."""
    machine = Machine()
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
    result = Machine().run(name, 0xFFFF_FFFF, 0)
    assert result.we and result.data == neutral and result.rd == 5
