# SPDX-License-Identifier: Apache-2.0
"""Guesses: what followed the last tokens where they came before."""

from __future__ import annotations

import pytest

from npu.driver.speculate import guess


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ([1, 2, 3, 9, 8, 1, 2, 3], 2, [9, 8]),  # three tokens
        ([5, 2, 3, 7, 1, 2, 3, 9, 5, 2, 3], 1, [7]),  # three, though two came later
        ([2, 3, 7, 0, 2, 3, 8, 0, 4, 2, 3], 3, [8, 0, 4]),  # two; the last place counts
        ([7, 4, 9, 7], 2, [4, 9]),  # one
        ([1, 2, 1, 2], 5, [1, 2, 1, 2, 1]),  # goes on in itself
        ([6, 6], 4, [6, 6, 6, 6]),
        ([1, 2, 3], 4, []),
        ([1], 4, []),
        ([1, 2, 1, 2], 0, []),
    ],
)
def test_guess(text: list[int], most: int, expected: list[int]) -> None:
    """By hand."""
    assert guess(text, most) == expected
