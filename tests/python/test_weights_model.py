# SPDX-License-Identifier: Apache-2.0
"""The dataclasses of the integer model refuse what does not fit, and say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weights.importer import Gpt2Shape
from weights.model import Linear, ModelError, Norm, QuantizedModel
from weights.synthetic import random_model

SHAPE = Gpt2Shape(
    hidden=16, layers=2, heads=2, ffn=24, vocab=40, context=8, epsilon=1e-5, activation="gelu_new"
)


@pytest.fixture(scope="module")
def model() -> QuantizedModel:
    """Return a small integer model."""
    return random_model(SHAPE, 3)


def linear(inputs: int = 3, outputs: int = 2) -> Linear:
    """Return a legal linear layer."""
    return Linear(
        np.ones((inputs, outputs), np.int8),
        np.zeros(outputs, np.int32),
        np.full(outputs, 1 << 14, np.uint16),
        np.full(outputs, 20, np.uint8),
    )


def test_linear_dimensions() -> None:
    """K and N are the shape of the weight."""
    assert (linear(5, 7).inputs, linear(5, 7).outputs) == (5, 7)


def test_arrays_are_read_only() -> None:
    """A frozen dataclass with writable arrays would not be frozen."""
    with pytest.raises(ValueError, match="read-only"):
        linear().weight[0, 0] = 3


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("weight", np.ones((3, 2), np.int16), r"Linear.weight: given dtype int16, allowed int8"),
        ("weight", np.ones(3, np.int8), r"Linear.weight: given shape \(3,\), allowed \(any, any\)"),
        ("weight", np.full((3, 2), -128, np.int8), r"given -128 at index \(0, 0\), allowed -127"),
        ("bias", np.zeros(3, np.int32), r"Linear.bias: given shape \(3,\), allowed \(2\)"),
        ("mult", np.full(2, 99, np.uint16), r"Linear.mult: given 99 .*allowed 16384\.\.32767"),
        ("mult", np.full(2, 1 << 15, np.uint16), r"Linear.mult: given 32768 at index \(0,\)"),
        ("shift", np.full(2, 64, np.uint8), r"Linear.shift: given 64 .*allowed 0\.\.63"),
        ("bias", np.full(2, (1 << 31) - 1, np.int32), r"accumulator bound .* is 2147484031"),
        ("bias", [0, 0], r"Linear.bias: given list, allowed numpy.ndarray"),
    ],
)
def test_linear_refuses(field: str, value: object, message: str) -> None:
    """Every field says what was given and what is allowed."""
    with pytest.raises(ModelError, match=message):
        replace(linear(), **{field: value})  # type: ignore[arg-type]


def test_accumulator_bound_is_reached() -> None:
    """The bound is the sum of the worst input, -128 against every sign."""
    layer = Linear(
        np.array([[3], [-5]], np.int8),
        np.array([-7], np.int32),
        np.array([1 << 14], np.uint16),
        np.array([20], np.uint8),
    )
    assert layer.accumulator_bound() == 128 * 8 + 7


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("eps_term", -1, r"Norm.eps_term: given -1, allowed 0\.\."),
        ("eps_term", 1 << 64, r"Norm.eps_term: given 18446744073709551616"),
        ("eps_term", 1.5, r"Norm.eps_term: given float 1.5, allowed int"),
        ("gain", np.full(4, 1 << 15, np.uint16), r"Norm.gain: given 32768"),
        ("bias", np.zeros(3, np.int8), r"Norm.bias: given shape \(3,\), allowed \(4\)"),
    ],
)
def test_norm_refuses(field: str, value: object, message: str) -> None:
    """Ranges and lengths of a norm's parameters are checked."""
    norm = Norm(1, np.zeros(4, np.uint16), np.zeros(4, np.uint8), np.zeros(4, np.int8))
    with pytest.raises(ModelError, match=message):
        replace(norm, **{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("family", "llama", r"family: given 'llama', allowed 'gpt2'"),
        ("hidden", 0, r"QuantizedModel.hidden: given 0, allowed 1"),
        ("heads", 3, r"hidden: given 16, allowed heads \* head_dim = 3 \* 8 = 24"),
        ("vocab", 41, r"QuantizedModel.wte: given shape \(40, 16\), allowed \(41, 16\)"),
        ("ffn", 25, r"blocks\[0\].fc: given size \(16, 24\), allowed \(16, 25\)"),
        ("layers", 3, r"given 2 blocks, allowed 3"),
        ("scales", {"residual": float("nan")}, r"scales\['residual'\]: given nan, allowed finite"),
    ],
)
def test_model_refuses(model: QuantizedModel, field: str, value: object, message: str) -> None:
    """The parts of a model must fit together."""
    with pytest.raises(ModelError, match=message):
        replace(model, **{field: value})  # type: ignore[arg-type]


def test_block_refuses_other_sizes(model: QuantizedModel) -> None:
    """A block whose layers have different widths is refused."""
    with pytest.raises(ModelError, match=r"Block.proj: given size \(3, 2\)"):
        replace(model.blocks[0], proj=linear())
    with pytest.raises(ModelError, match=r"score_mult: given 5, allowed 16384\.\.32767"):
        replace(model.blocks[0], score_mult=5)
