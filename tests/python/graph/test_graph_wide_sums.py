# SPDX-License-Identifier: Apache-2.0
"""The int16 numbers in which operands of different scales are added."""

from __future__ import annotations

import numpy as np
import pytest

from npu.graph.form import Array, Element, GraphError, Quantisation, TensorType
from npu.graph.passes.facts import quantisation_of
from npu.graph.passes.wide_sums import wide_types

BYTES = np.arange(-128, 128)


def types(random: np.random.Generator, *, even: bool) -> list[TensorType]:
    """Return two operands and a result of scales up to 16, or a thousand, apart."""
    found = []
    for _ in range(3):
        zero = 0 if even else int(np.clip(random.integers(-200, 200), -128, 127))
        most = 2 if random.integers(2) else 5
        scale = float(0.03 * 2 ** random.uniform(-most, most))
        found.append(TensorType((256,), Element.I8, Quantisation((scale,), zero)))
    return found


def wide(kind: TensorType, into: TensorType) -> Array:
    """Return all bytes in the wide type."""
    old, new = quantisation_of(kind), quantisation_of(into)
    exact = np.rint((BYTES - old.zero) * old.scale / new.scale) + new.zero
    return np.asarray(np.clip(exact, -32768, 32767), np.int64)


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_all_sums_of_bytes_are_rounded_as_the_exact_ones(sign: int, even: bool) -> None:
    """Where operands or the sum saturate, the result does; few results are 1 apart."""
    random = np.random.default_rng(5)
    apart = elements = refused = 0
    for _ in range(60):
        a, b, y = types(random, even=even)
        try:
            first, second, total = wide_types((a, b), y, sign)
        except GraphError:
            assert not even
            assert (
                max(quantisation_of(each).scale for each in (a, b)) > 32 * quantisation_of(y).scale
            )
            refused += 1
            continue
        left, right = wide(a, first)[:, None], wide(b, second)[None, :]
        unit, zero = quantisation_of(total).scale, quantisation_of(total).zero
        assert abs(zero) <= 32767 and zero == sum(
            times * quantisation_of(one).zero for times, one in ((1, first), (sign, second))
        )
        found = np.clip(left + sign * right, -32768, 32767)
        end = quantisation_of(y)
        made = np.clip(np.rint((found - zero) * unit / end.scale) + end.zero, -128, 127)
        real_a = (BYTES - quantisation_of(a).zero) * quantisation_of(a).scale
        real_b = (BYTES - quantisation_of(b).zero) * quantisation_of(b).scale
        real = real_a[:, None] + sign * real_b[None, :]
        exact = np.clip(np.rint(real / end.scale) + end.zero, -128, 127)
        assert np.abs(made - exact).max() <= 1
        apart, elements = apart + int(np.count_nonzero(made != exact)), elements + exact.size
    assert apart <= 0.001 * elements, apart / elements
    assert refused < 20


def test_an_int16_operand_keeps_its_scale() -> None:
    """What follows a sum in int16 is added to it without another conversion."""
    wider = TensorType((4,), Element.I16, Quantisation((0.0005,)))
    byte = TensorType((4,), Element.I8, Quantisation((0.03,)))
    for operands in ((wider, byte), (byte, wider)):
        found = wide_types(operands, byte, 1)
        assert [quantisation_of(one) for one in found] == [Quantisation((0.0005,))] * 3
