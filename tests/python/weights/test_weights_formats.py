# SPDX-License-Identifier: Apache-2.0
"""Narrow formats: elements against ml_dtypes and exact fractions, layers, recipes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from spec.isa import WeightFormat
from spec.isa.weight_formats import GROUPED, MX, SPARSE
from tests.python.graph.element_oracles import nearest, numbers, unit
from weights.formats import NarrowLinear
from weights.formats.element import elements, expansion, factors
from weights.formats.linear import joined, side_rows
from weights.formats.recipe import KINDS, WORDS, Encoding, RecipeError, parse_recipe
from weights.limits import ModelError


@pytest.mark.parametrize("fmt", WeightFormat)
def test_elements(fmt: WeightFormat) -> None:
    """Every finite code with every side byte: w is the number times the factor, rounded half up."""
    found = numbers(fmt)
    np.testing.assert_array_equal(np.flatnonzero(elements(fmt).number), list(found))
    for side in range(256):
        factor = Fraction(side, 256) if fmt in GROUPED else Fraction(1)
        if fmt in MX:
            factor = Fraction(1, 1 << side) if side <= 8 else Fraction(0)
        exact = [nearest(value / unit(fmt) * factor) for value in found.values()]
        np.testing.assert_array_equal(expansion(fmt)[side, list(found)], exact)


def test_ranges() -> None:
    """The invariants of the expansion."""
    for fmt, low, high in (
        (WeightFormat.INT4G, -127, 112),
        (WeightFormat.NF4G, -127, 127),
        (WeightFormat.FP4G, -96, 96),
        (WeightFormat.MXINT8, -128, 127),
    ):
        assert (expansion(fmt).min(), expansion(fmt).max()) == (low, high)


def layer(
    fmt: WeightFormat, group: int, rows: int = 37, columns: int = 5, seed: int = 1
) -> NarrowLinear:
    """Return a layer of random codes."""
    rng = np.random.default_rng(seed)
    count = side_rows(fmt, group, rows)
    codes = rng.choice(np.flatnonzero(elements(fmt).number), (rows, columns)).astype(np.uint8)
    side = rng.integers(1, 9, (count, columns)).astype(np.uint8)
    if fmt in SPARSE:
        pairs = rng.choice([4, 8, 9, 12, 13, 14], (count, columns))
        side = pairs.astype(np.uint8)
        cell = np.arange(rows)[:, None] % 4
        by_row = np.repeat(side, 4, axis=0)[:rows]
        codes[(cell != by_row % 4) & (cell != by_row // 4)] = 0
    return NarrowLinear(
        fmt,
        group,
        codes,
        side,
        np.arange(columns, dtype=np.int32),
        np.full(columns, 1 << 14, np.uint16),
        np.full(columns, 20, np.uint8),
    )


@pytest.mark.parametrize("word", sorted(WORDS))
def test_layers(word: str) -> None:
    """A layer's weight is the expansion of its codes, element by element, last short group too."""
    encoding = WORDS[word]
    if encoding.format is None:
        return
    one = layer(encoding.format, encoding.group)
    assert (one.inputs, one.outputs) == (37, 5)
    found = elements(encoding.format)
    for k in range(37):
        for n in range(5):
            v, t = int(found.v[one.codes[k, n]]), int(found.t[one.codes[k, n]])
            side = one.side[k // encoding.group, n] if encoding.group else 0
            f = int(factors(encoding.format)[side])
            assert one.weight[k, n] == (v * f + (1 << (7 + t))) >> (8 + t)
    assert one.weight.any()
    both = joined([one, layer(encoding.format, encoding.group, seed=2)])
    assert both.outputs == 10
    np.testing.assert_array_equal(both.weight[:, :5], one.weight)
    with pytest.raises(ValueError, match="read-only"):
        one.weight[0, 0] = 1


def _changed(values: np.ndarray, index: tuple[int, int], value: int) -> np.ndarray:
    found = values.copy()
    found[index] = value
    return found


@pytest.mark.parametrize(
    ("fmt", "group", "field", "index", "value", "message"),
    [
        (
            WeightFormat.INT4G,
            32,
            "codes",
            (3, 2),
            16,
            r"codes: given 16 at index \(3, 2\), allowed 0..15",
        ),
        (
            WeightFormat.INT4G,
            32,
            "side",
            (1, 4),
            0,
            r"side: given 0 at index \(1, 4\), allowed 1..255",
        ),
        (
            WeightFormat.MXFP8E4,
            32,
            "codes",
            (5, 1),
            0x7F,
            "0x7f at row 5, column 1, which is no number",
        ),
        (
            WeightFormat.MXFP8E5,
            32,
            "codes",
            (5, 1),
            0xFC,
            "0xfc at row 5, column 1, which is no number",
        ),
        (
            WeightFormat.INT4S,
            0,
            "side",
            (2, 3),
            5,
            "positions 1 and 1 at quad 2, column 3, allowed two",
        ),
        (
            WeightFormat.INT8S,
            0,
            "side",
            (2, 3),
            6,
            "positions 2 and 1 at quad 2, column 3, allowed two",
        ),
    ],
)
def test_layer_refuses(
    fmt: WeightFormat, group: int, field: str, index: tuple[int, int], value: int, message: str
) -> None:
    """What a layer cannot hold is named with its place."""
    one = layer(fmt, group)
    with pytest.raises(ModelError, match=message):
        replace(one, **{field: _changed(getattr(one, field), index, value)})  # type: ignore[arg-type]


def test_layer_refuses_the_rest() -> None:
    """Groups that a format has not, side bytes of the wrong number, a third value in a quad."""
    with pytest.raises(ModelError, match="given 24 for int4g, allowed 16, 32, 64, 128"):
        replace(layer(WeightFormat.INT4G, 32), group=24)
    with pytest.raises(ModelError, match="given 16 for mxfp4, allowed 32"):
        replace(layer(WeightFormat.MXFP4, 32), group=16)
    with pytest.raises(ModelError, match=r"side: given shape \(2, 5\), allowed \(3, 5\)"):
        replace(layer(WeightFormat.INT4G, 32), group=16)
    with pytest.raises(ModelError, match=r"side: given \(1, 5\), allowed \(0, 5\)"):
        replace(layer(WeightFormat.INT4, 0), side=np.ones((1, 5), np.uint8))
    one = layer(WeightFormat.INT4S, 0)
    row = next(cell for cell in range(4) if cell not in (one.side[0, 0] % 4, one.side[0, 0] // 4))
    with pytest.raises(ModelError, match=f"given 3 at row {row}, column 0, whose position is not"):
        replace(one, codes=_changed(one.codes, (row, 0), 3))


def test_recipes() -> None:
    """Words alone, kind by kind, both; the gate goes with up; written and read again."""
    plain = parse_recipe("int4g")
    assert {str(plain[kind]) for kind in KINDS if kind != "head"} == {"int4g32"}
    assert str(plain["head"]) == "int8"
    mixed = parse_recipe("qkv=mxfp6e2, up=mxfp6e2,o=int4g32,down=nf4g16,head=mxfp6e2")
    assert [str(mixed[kind]) for kind in KINDS] == [
        "mxfp6e2", "int4g32", "mxfp6e2", "mxfp6e2", "nf4g16", "mxfp6e2",
    ]  # fmt: skip
    both = parse_recipe("int4g64,qkv=int8,gate=ternary")
    assert [str(both[kind]) for kind in KINDS] == [
        "int8", "int4g64", "int4g64", "ternary", "int4g64", "int8",
    ]  # fmt: skip
    assert both["gate"] == Encoding(WeightFormat.INT2, ternary=True)
    assert str(parse_recipe("down=fp4g128")["o"]) == "int8"
    for one in (plain, mixed, both, parse_recipe("int8"), parse_recipe("int4,head=int4")):
        assert [parse_recipe(str(one))[kind] for kind in KINDS] == [one[kind] for kind in KINDS]
    assert not parse_recipe("int8").narrow
    assert parse_recipe("head=int4").narrow


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int5", "given the format 'int5', allowed fp4g, .*mxfp6e2"),
        ("int4g24", "given the format 'int4g24', allowed"),
        ("qkv=int4g", None),
        (
            "kv=int4",
            "given the tensor kind 'kv' in 'kv=int4', allowed qkv, o, up, gate, down, head",
        ),
        ("qkv=int4,qkv=int8", "given 'qkv' twice"),
        ("qkv=int4,int8", "given 'int8' in 'qkv=int4,int8', allowed one word for the blocks"),
        ("", "given the format ''"),
    ],
)
def test_recipe_refuses(text: str, message: str | None) -> None:
    """An unknown word or kind is named with what is allowed."""
    if message is None:
        parse_recipe(text)
        return
    with pytest.raises(RecipeError, match=message):
        parse_recipe(text)
