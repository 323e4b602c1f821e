# SPDX-License-Identifier: Apache-2.0
"""Golden's constants stand here a second time, typed from the pages and from the formulas.

Bounds of errors among them: tests compare with these, so that a looser one would loosen the tests.
"""

from __future__ import annotations

from types import ModuleType

import pytest

from golden import fixed, formats, gelu, requantize, tables

TYPED: dict[ModuleType, dict[str, int | float]] = {
    fixed: {
        "INT64_MIN": -9223372036854775808,
        "INT64_MAX": 9223372036854775807,
        "RS_MAX_ERROR": 0.5,
    },
    requantize: {
        "MULT_MIN": 16384,
        "MULT_MAX": 32767,
        "SHIFT_MAX": 63,
        "REQUANTIZE_MAX_ERROR": 0.5,
        "FACTOR_MAX_RELATIVE_ERROR": 0.000030517578125,
    },
    tables: {
        "EXP_FRACTION_BITS": 6,
        "EXP_ENTRIES": 64,
        "RECIPROCAL_ENTRIES": 128,
        "RSQRT_FIRST": 64,
        "RSQRT_ENTRIES": 192,
        "TABLE_MAX_ERROR": 0.5,
    },
    gelu: {"ENTRIES": 256, "GELU_TABLE_MAX_ERROR": 0.5},
    formats: {
        "BEAT": 64,
        "EXPAND_MAX_ERROR": 0.5,
        "UNIT_SHIFT": 8,
        "STEP_MAX": 8,
        "MX_GROUP": 32,
        "QUAD": 4,
        "KEPT": 2,
        "AT_ONCE": 1048576,
    },
}
"""Modules, and every number that has a name there."""


@pytest.mark.parametrize("module", TYPED, ids=lambda module: module.__name__)
def test_constants_are_those_that_were_typed(module: ModuleType) -> None:
    """No name less, no name more."""
    found = {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float)
    }
    assert found == TYPED[module]


def test_a_gelu_table_reaches_both_ends() -> None:
    """Units of the output so small that the curve leaves int8 on both sides."""
    table = gelu.gelu_table(1 / 32, 1 / 2048)
    assert (int(table.min()), int(table.max())) == (-128, 127)


@pytest.mark.parametrize(("shift", "allowed"), [(63, True), (64, False)])
def test_the_smallest_factor(shift: int, allowed: bool) -> None:
    """Shifts up to 63 exist, so a factor may be as small as 2^-49 and no smaller."""
    c = 2.0 ** (14 - shift)
    if allowed:
        assert requantize.factor(c) == (16384, shift)
    else:
        with pytest.raises(ValueError, match=r"with shift 64, allowed shifts 0\.\.63"):
            requantize.factor(c)
