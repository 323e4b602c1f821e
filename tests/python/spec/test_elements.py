# SPDX-License-Identifier: Apache-2.0
"""What elements and layouts of weight formats are, typed from OCP MX v1.0 and from the pages."""

from __future__ import annotations

import pytest

from golden import formats
from spec.isa import WEIGHT_FORMATS, WeightFormat, WeightGroup
from spec.isa.weight_formats import GROUP_ROWS, GROUPS, MX_BLOCK, QUAD, StreamLayout

FLOATS: dict[str, tuple[int, int, int, float, float, int]] = {
    "MXFP4": (8, 1, 7, 6.0, 0.5, 5),
    "FP4G": (8, 1, 7, 6.0, 0.5, 5),
    "MXFP6E3": (32, 3, 31, 28.0, 0.0625, 10),
    "MXFP6E2": (32, 1, 31, 7.5, 0.125, 7),
    "MXFP8E4": (128, 7, 126, 448.0, 2.0**-9, 19),
    "MXFP8E5": (128, 15, 123, 57344.0, 2.0**-16, 33),
}
"""Codes of minus zero, bias, code of the largest number, that number, the smallest, and the bits of
the largest in units of the smallest, with its sign; tables 2 to 5 of OCP MX v1.0."""
BITS = {
    ("INT8", 5): 40,
    ("INT4", 5): 20,
    ("INT2", 5): 10,
    ("INT4G", 64): 272,
    ("INT4G", 65): 284,
    ("NF4G", 32): 136,
    ("MXINT8", 33): 280,
    ("MXFP6E3", 32): 200,
    ("INT4S", 8): 24,
    ("INT4S", 9): 36,
    ("INT8S", 4): 20,
}
"""Formats with groups of 32 and rows of K: bits of a column with its side bytes."""


def _value(name: str, code: int) -> float:
    """Return what a code without a sign stands for, by the standard's formula."""
    kind = WEIGHT_FORMATS[WeightFormat[name]].minifloat
    assert kind is not None
    exponent, mantissa = divmod(code, 1 << kind.mantissa)
    fraction = mantissa / 2**kind.mantissa + (exponent > 0)
    return float(fraction * 2.0 ** (max(exponent, 1) - FLOATS[name][1]))


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_those_of_the_standard(name: str) -> None:
    """Sign, bias, largest and smallest number, and how many bits these are apart."""
    kind = WEIGHT_FORMATS[WeightFormat[name]].minifloat
    assert kind is not None
    sign, bias, largest, most, least, bits = FLOATS[name]
    assert (kind.sign, kind.bias, kind.largest, kind.integer_bits) == (sign, bias, largest, bits)
    assert (_value(name, largest), _value(name, 1)) == (most, least)
    assert int(most / least).bit_length() + 1 == bits


def test_floats_are_all_typed() -> None:
    """A new one is typed as well."""
    assert {fmt.name for fmt, info in WEIGHT_FORMATS.items() if info.minifloat} == {*FLOATS}


def test_codes_of_zero_and_plain_formats() -> None:
    """NormalFloat4 has its zero in the middle; a weight of three formats is its code."""
    assert {fmt.name: info.zero for fmt, info in WEIGHT_FORMATS.items() if info.zero} == {"NF4G": 7}
    plain = {fmt.name for fmt, info in WEIGHT_FORMATS.items() if info.is_plain}
    assert plain == {"INT8", "INT4", "INT2"}


def test_groups() -> None:
    """Rows of K that share a side byte, and of which two are kept."""
    assert (MX_BLOCK, GROUPS, QUAD) == (32, (16, 32, 64, 128), 4)


@pytest.mark.parametrize(("name", "k"), BITS)
def test_bits_of_a_column(name: str, k: int) -> None:
    """Elements, and a side byte for each group that is begun."""
    layout = StreamLayout.of(WeightFormat[name], WeightGroup.G32, 16)
    assert layout.bits(k) == BITS[name, k]


@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize("fmt", WeightFormat)
def test_lines_are_those_of_golden(fmt: WeightFormat, edge: int) -> None:
    """Which counts them by itself."""
    for group, rows in GROUP_ROWS.items():
        if rows % edge == 0:
            layout = StreamLayout.of(fmt, group, edge)
            for k in range(1, 6 * 128):
                assert layout.lines(k) == formats.share_beats(fmt, k, edge, rows), (group, k)
