# SPDX-License-Identifier: Apache-2.0
"""Integers that a file gives mean what plain integer arithmetic says, in every code.

A thousand of them: tests/suites/test_given_integers.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npu.compiler.network.linear import summands
from tests.needs import needs

needs("graphs")

from tests.python.importers.given_integers import FORMS, differ

EACH, MOST = 6, 0.02
"""Cases of a form, and the share of elements that may be one step off: ties that a source rounds to
even, and values so near to one that 16 bits of a factor decide."""


@pytest.mark.parametrize("form", FORMS)
def test_given_integers(form: str, tmp_path: Path) -> None:
    """Sums are equal; what is scaled is at most one step off, and seldom."""
    assert differ(form, range(EACH), tmp_path) <= MOST


@pytest.mark.parametrize("width", [1, 2, 3])
def test_any_weight_is_a_sum_of_bytes(width: int) -> None:
    """Whatever zero point is taken off: of all weights in a row, and of each alone."""
    every = np.arange(-128 * width, 127 * width + 1)
    for weight in (every[None], *every.reshape(-1, 1, 1)):
        parts = summands(weight)
        assert all(one.dtype == np.int8 for one in parts)
        assert len(parts) <= width
        np.testing.assert_array_equal(sum(one.astype(np.int64) for one in parts), weight)
    assert [len(summands(np.array([[one]]))) for one in (127, 128, 254, 255, -256, -257)] == [
        *(1, 2, 2, 3, 2, 3),
    ]
