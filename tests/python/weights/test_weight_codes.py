# SPDX-License-Identifier: Apache-2.0
"""Weights that were rounded to a format are found to be in it, with codes that expand to them."""

from __future__ import annotations

import numpy as np
import pytest

from weights.formats.codes import codes_of
from weights.formats.linear import expand
from weights.formats.recipe import INT8, WORDS, Encoding
from weights.formats.rounding import Reals, column_scale, rounded

NARROW = sorted(word for word, encoding in WORDS.items() if encoding != INT8)
ROWS = 70
"""No whole number of groups or quads."""


def drawn(rows: int = ROWS) -> Reals:
    """Return weights of columns of different sizes, one of zeros."""
    random = np.random.default_rng(5)
    weight = random.standard_normal((rows, 12)) * random.uniform(0.1, 4, 12)
    weight[:, 3] = 0
    return weight


def expanded(encoding: Encoding, weight: Reals) -> np.ndarray:
    """Return the int8 weights that rounding makes of real ones."""
    scale = column_scale(encoding, weight, np.ones(len(weight)))
    codes, side = rounded(encoding, weight / np.where(scale > 0, scale, 1.0))
    assert encoding.format is not None
    return expand(encoding.format, encoding.group, codes, side)


@pytest.mark.parametrize("word", NARROW)
def test_codes_expand_to_the_weights_that_they_were_found_for(word: str) -> None:
    """Every format, every group, a column of zeros, a last group that is shorter."""
    encoding = WORDS[word]
    weight = expanded(encoding, drawn())
    found = codes_of(encoding, weight)
    assert found is not None
    again = expand(found.format, found.group, found.codes, found.side)
    np.testing.assert_array_equal(again, weight)


@pytest.mark.parametrize("word", ["int4", "int2", "int4g32", "nf4g32", "mxfp4", "int4s", "int8s"])
def test_weights_of_another_format_have_no_codes(word: str) -> None:
    """Many values in one group, and more than two of four rows."""
    weight = np.arange(-64, 64, dtype=np.int8).reshape(64, 2)
    assert codes_of(WORDS[word], weight) is None


@pytest.mark.parametrize("word", ["int4g32", "mxfp4", "int8s"])
def test_rows_in_another_order_have_no_codes(word: str) -> None:
    """A group, or a quad, that begins elsewhere is another one."""
    encoding = WORDS[word]
    weight = expanded(encoding, drawn(64) * np.resize([1.0, 20.0, 0.3, 5.0, 9.0], 64)[:, None])
    assert codes_of(encoding, weight) is not None
    assert codes_of(encoding, np.roll(weight, 17, axis=0)) is None
