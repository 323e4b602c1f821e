# SPDX-License-Identifier: Apache-2.0
"""Import of weights that others quantised: values, reports, refusals."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from golden.decoder import forward
from npu.compiler import compile_model
from npu.driver.command.group_matmul import ScaleKind as GroupScaleKind
from npu.driver.command.group_matmul import group_matmul
from spec.isa import WEIGHT_FORMATS, WeightFormat
from spec.isa.weight_formats import MX
from tests.python.golden.golden_support import random_model
from weights.formats.element import elements
from weights.formats.foreign import (
    Foreign,
    ForeignError,
    ScaleKind,
    import_dense,
    import_floats,
    import_int4,
    import_mx,
    import_sparse,
    read_floats,
    read_scales,
)
from weights.formats.linear import expand
from weights.formats.recipe import WORDS

RNG = np.random.default_rng(5)
Q = RNG.integers(-8, 8, (70, 6)).astype(np.int8)
REAL = RNG.uniform(0.5, 2.0, (3, 6))
SCALES: dict[str, npt.NDArray[Any]] = {
    "fp16": REAL.astype(np.float16).view(np.uint16),
    "bf16": REAL.astype(ml_dtypes.bfloat16).view(np.uint16),
    "q8_8": np.rint(REAL * 256).astype(np.int16),
    "int8": np.rint(REAL * 50).astype(np.int8),
}


def weight_of(found: Foreign) -> npt.NDArray[np.float64]:
    """Return the real weights that were imported."""
    return expand(found.format, found.group, found.codes, found.side) * found.scale


@pytest.mark.parametrize("kind", SCALES)
def test_int4(kind: ScaleKind) -> None:
    """Codes stay; each weight is within half a step of int8 and of the scale's 8 bits."""
    found = import_int4("h.0.up", Q, SCALES[kind], kind, 32)
    expected = Q * np.repeat(read_scales("", SCALES[kind], kind), 32, axis=0)[:70]
    np.testing.assert_array_equal(found.codes, Q & 15)
    error = np.abs(weight_of(found) - expected) / found.scale
    assert error.max() <= 0.5 + 8 * 0.5 / 16 + 1e-9
    assert found.report.largest_error == pytest.approx(error.max())
    assert found.report.inexact == (error > 1e-9).sum() > 0
    layer = found.linear(np.ones(6), 0.01, 0.05)
    step = layer.mult / np.exp2(layer.shift.astype(float)) * 0.05
    np.testing.assert_allclose(step, found.scale * 0.01, rtol=1e-4)
    np.testing.assert_allclose(layer.bias * step, 1.0, atol=0.51 * float(step.max()))


def test_int4_exact() -> None:
    """Scales that are 8-bit multiples of 16 steps lose nothing, and the report says so."""
    scales = np.full((3, 6), 255, np.int16)
    scales[1] = 240
    scales[2] = 16
    q = np.where(np.arange(70)[:, None] < 32, 0, Q).astype(np.int8)
    found = import_int4("w", q, scales, "q8_8", 32)
    assert (found.report.inexact, found.report.largest_error) == (0, 0.0)
    assert str(found.report).startswith("w: 0 of 420 weights not exact")
    np.testing.assert_array_equal(weight_of(found), q * np.repeat(scales, 32, 0)[:70] / 256)


def test_int4_signs_and_zero_points() -> None:
    """A negative scale turns codes around, zero points fold, or the tensor is rounded anew."""
    q = np.where(Q == -8, 0, Q).astype(np.int8)
    minus = SCALES["q8_8"] * np.array([1, -1, 1, -1, 1, 1], np.int16)
    plain, turned = (import_int4("w", q, one, "q8_8", 32) for one in (SCALES["q8_8"], minus))
    np.testing.assert_array_equal(turned.side, plain.side)
    np.testing.assert_array_equal(weight_of(turned)[:, 0], weight_of(plain)[:, 0])
    np.testing.assert_array_equal(turned.codes[:, 1], -q[:, 1] & 15)
    zeros = np.full((3, 6), 8, np.int8)
    folded = import_int4("w", (Q + 8).astype(np.int8), SCALES["q8_8"], "q8_8", 32, zeros=zeros)
    np.testing.assert_array_equal(folded.codes, Q & 15)
    assert not folded.report.requantised
    zeros[1, 2] = 5
    anew = import_int4("w", (Q + 8).astype(np.int8), SCALES["q8_8"], "q8_8", 32, zeros=zeros)
    assert anew.report.requantised
    assert "requantised" in str(anew.report)
    whole = Q + 8.0 - np.repeat(zeros, 32, axis=0)[:70]
    expected = whole * np.repeat(SCALES["q8_8"] / 256, 32, axis=0)[:70]
    assert np.abs(weight_of(anew) - expected).max() < np.abs(expected).max() / 8


@pytest.mark.parametrize("fmt", sorted(MX))
def test_mx(fmt: WeightFormat) -> None:
    """Blocks at the largest exponent are exact; the real value is that of the standard."""
    numbers = np.flatnonzero(elements(fmt).number)
    codes = RNG.choice(numbers, (70, 6)).astype(np.uint8)
    exponents = np.array([[127, 120, 130, 127, 127, 127]] * 3, np.uint8)
    exponents[1, :2] -= 1
    exponents[2, 5] = 0
    found = import_mx("w", fmt, codes, exponents)
    kinds = {
        WeightFormat.MXFP4: ml_dtypes.float4_e2m1fn,
        WeightFormat.MXFP6E2: ml_dtypes.float6_e2m3fn,
        WeightFormat.MXFP6E3: ml_dtypes.float6_e3m2fn,
        WeightFormat.MXFP8E4: ml_dtypes.float8_e4m3fn,
        WeightFormat.MXFP8E5: ml_dtypes.float8_e5m2,
    }
    one = codes.view(kinds[fmt]).astype(float) if fmt in kinds else codes.view(np.int8) / 64.0
    expected = one * np.exp2(np.repeat(exponents.astype(float) - 127, 32, axis=0)[:70])
    error = np.abs(weight_of(found) - expected) / found.scale
    assert error.max() <= 0.5
    assert found.report.inexact == (error > 1e-9).sum()
    if WEIGHT_FORMATS[fmt].bits < 8 and fmt != WeightFormat.MXFP6E3:
        assert not error[:64].any()
    assert found.side[2, 5] == 127


def test_sparse() -> None:
    """Values and positions, and the same tensor as it lies."""
    dense = np.zeros((8, 2), np.int8)
    dense[[1, 3, 4, 6], 0] = [5, -8, 7, 1]
    dense[[0, 7], 1] = [-1, 2]
    found = import_dense("w", WORDS["int4s"], dense, np.ones(2))
    np.testing.assert_array_equal(weight_of(found), dense)
    assert found.side.tolist() == [[1 + 4 * 3, 0 + 4 * 1], [0 + 4 * 2, 0 + 4 * 3]]
    values = np.array([[5, -1], [-8, 0], [7, 0], [1, 2]], np.int8)
    positions = np.array([[1, 0], [3, 1], [0, 0], [2, 3]], np.uint8)
    again = import_sparse("w", WeightFormat.INT4S, values, positions, np.ones(2))
    np.testing.assert_array_equal(again.codes, found.codes)
    np.testing.assert_array_equal(again.side, found.side)
    ternary = np.array([[1], [-1], [0]], np.int8)
    assert weight_of(import_dense("w", WORDS["ternary"], ternary, np.ones(1))).tolist() == [
        [1.0], [-1.0], [0.0],
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
@pytest.mark.parametrize("word", ["mxfp6e2", "int4g16", "int8s"])
def test_floats(word: str, kind: Literal["fp16", "bf16"]) -> None:
    """Weights of 16 bits are rounded to a format; the report tells how far they move."""
    dtype = np.float16 if kind == "fp16" else ml_dtypes.bfloat16
    given = RNG.standard_normal((70, 6)).astype(dtype)
    found = import_floats("w", WORDS[word], given.view(np.uint16), kind)
    error = np.abs(weight_of(found) - given.astype(float)) / found.scale
    assert found.report.largest_error == pytest.approx(error.max())
    assert not found.report.requantised
    if word == "mxfp6e2":
        assert error.max() < 5


def test_imported_layer_in_a_model() -> None:
    """The codes of an imported layer are those that golden and compiler get."""
    model = random_model(9)
    layer = model.blocks[0].down
    q = RNG.integers(-8, 8, layer.weight.shape).astype(np.int8)
    scales = RNG.uniform(0.5, 1.0, (-(-len(q) // 32), layer.outputs)).astype(np.float16)
    found = import_int4("h.0.down", q, scales.view(np.uint16), "fp16", 32)
    real = found.linear(np.zeros(layer.outputs), 0.01, 0.05)
    changed = replace(model, blocks=(replace(model.blocks[0], down=real), *model.blocks[1:]))
    np.testing.assert_array_equal(changed.blocks[0].down.weight, real.weight)
    assert forward(changed, [1, 2, 3]).shape == (3, model.shape.vocab)
    down = next(one for one in compile_model(changed).shares if one.name == "h.0.down")
    assert (down.format, down.group) == ("int4g", "32")


def test_int4_of_other_groups() -> None:
    """The message names a call that is there and takes every kind of scales."""
    with pytest.raises(ForeignError) as error:
        import_int4("w", Q, HALF, "fp16", 24)
    name = str(error.value).rpartition("; ")[2].removesuffix(" takes any group")
    assert pydoc.locate(name) is group_matmul
    assert set(SCALES) == set(GroupScaleKind)


def put(values: npt.NDArray[Any], index: tuple[int, int], value: object) -> npt.NDArray[Any]:
    """Return a copy with one other entry."""
    found = values.copy()
    found[index] = value
    return found


HALF = SCALES["fp16"]
NEGATIVE = put(SCALES["q8_8"], (1, 3), -300)
E8M0 = np.full((3, 6), 127, np.uint8)
SOME = np.zeros((70, 6), np.uint8)
PAIRS = np.tile(np.array([[1], [3]], np.uint8), (2, 6))
KEPT = np.ones((4, 6), np.int8)
DENSE = np.zeros((8, 6), np.int8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: import_int4("a", Q, put(HALF, (2, 4), 0x7E00), "fp16", 32),
         r"a scales: given nan at row 2, column 4, allowed zero and finite normal fp16"),
        (lambda: import_int4("a", Q, put(HALF, (2, 4), 0xFC00), "fp16", 32), "given -inf at row 2"),
        (lambda: import_int4("a", Q, put(HALF, (0, 1), 0x0001), "fp16", 32),
         "given 5.96.*e-08 at row 0, column 1, allowed .*subnormal"),
        (lambda: read_floats("b", np.array([[0, 0x0040]], np.uint16), "bf16"),
         "b: given 5.8.*e-39 at row 0, column 1"),
        (lambda: import_floats("w", WORDS["int4"], put(HALF, (1, 2), 0x83FF), "fp16"),
         "w: given -6.09.*e-05 at row 1, column 2, allowed zero and finite normal fp16"),
        (lambda: import_floats("w", WORDS["nf4g"], put(HALF, (1, 2), 0x7F80), "bf16"),
         "w: given inf at row 1, column 2, allowed zero and finite normal bf16"),
        (lambda: import_floats("w", WORDS["nf4g"], put(HALF, (0, 2), 0xFFC0), "bf16"),
         "w: given nan at row 0, column 2"),
        (lambda: import_int4("a", Q, HALF, "fp32", 32),  # type: ignore[arg-type]
         "given 'fp32', allowed fp16, bf16, q8_8, int8"),
        (lambda: import_int4("a", Q, HALF.astype(np.int16), "fp16", 32),
         "given 2 dimensions of int16, allowed a matrix of uint16"),
        (lambda: import_int4("a", Q, HALF[:2], "fp16", 32),
         r"scales of shape \(2, 6\), allowed \(3, 6\)"),
        (lambda: import_int4("a", Q, HALF, "fp16", 24), "groups of 24, allowed .*group_matmul"),
        (lambda: import_int4("a", Q, HALF, "fp16", 16, edge=32),
         r"groups of 16, allowed \[32, 64, 128\], multiples of the tile edge 32"),
        (lambda: import_int4("a", put(Q, (5, 2), 8), HALF, "fp16", 32),
         "a: given 8 at row 5, column 2, allowed -8..7"),
        (lambda: import_int4("a", put(np.abs(Q // 2), (40, 3), -8), NEGATIVE, "q8_8", 32),
         "a: given -8 at row 40, column 3, allowed -7..7 under a negative scale"),
        (lambda: import_mx("m", WeightFormat.MXFP4, SOME, put(E8M0, (1, 5), 255)),
         "m scales: given 255 at row 1, column 5, allowed E8M0 0..254"),
        (lambda: import_mx("m", WeightFormat.MXFP8E4, put(SOME, (3, 1), 0xFF), E8M0),
         "m: given 255 at row 3, column 1, allowed finite numbers of mxfp8e4"),
        (lambda: import_mx("m", WeightFormat.MXFP8E5, put(SOME, (3, 1), 0x7C), E8M0),
         "m: given 124 at row 3, column 1, allowed finite numbers of mxfp8e5"),
        (lambda: import_mx("m", WeightFormat.MXFP6E2, put(SOME, (3, 1), 64), E8M0),
         "given 64 at row 3, column 1, allowed codes of mxfp6e2, 0..63"),
        (lambda: import_mx("m", WeightFormat.INT4, SOME, E8M0), "given int4, allowed mxfp4, "),
        (lambda: import_mx("m", WeightFormat.MXFP4, SOME, E8M0[:1]),
         r"shape \(1, 6\), allowed \(3, 6\)"),
        (lambda: import_sparse("s", WeightFormat.INT4S, KEPT, put(PAIRS, (3, 2), 1), np.ones(6)),
         "s positions, by quad: given 1 at row 1, column 2, allowed one above the first"),
        (lambda: import_sparse("s", WeightFormat.INT4S, KEPT, put(PAIRS, (2, 2), 3), np.ones(6)),
         "s positions, by quad: given 3 at row 1, column 2"),
        (lambda: import_sparse("s", WeightFormat.INT4S, KEPT, put(PAIRS, (3, 2), 4), np.ones(6)),
         "s positions: given 4 at row 3, column 2, allowed 0..3"),
        (lambda: import_sparse("s", WeightFormat.INT4S, put(KEPT, (1, 1), 9), PAIRS, np.ones(6)),
         "s: given 9 at row 1, column 1, allowed -8..7"),
        (lambda: import_dense("d", WORDS["int8s"], np.ones((8, 6), np.int8), np.ones(6)),
         "d: given 4 values other than 0 in rows 0 to 3, column 0, allowed two of four"),
        (lambda: import_dense("d", WORDS["ternary"], put(DENSE, (7, 5), -2), np.ones(6)),
         r"d: given -2 at row 7, column 5, allowed -1..1 \(ternary\)"),
        (lambda: import_dense("d", WORDS["int4g32"], DENSE, np.ones(6)), "given int4g32, allowed"),
    ],
)  # fmt: skip
def test_refuses(call: Callable[[], object], message: str) -> None:
    """What cannot be imported is named with its place and what is allowed."""
    with pytest.raises(ForeignError, match=message):
        call()
