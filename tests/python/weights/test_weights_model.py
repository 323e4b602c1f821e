# SPDX-License-Identifier: Apache-2.0
"""The dataclasses of the integer model refuse what does not fit, and say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weights.limits import ModelError
from weights.model import Linear, Norm, QuantizedModel, Rescale
from weights.shape import Shape
from weights.synthetic import random_model, shape_of

SHAPE = shape_of(
    "gpt2", hidden=16, layers=2, heads=2, ffn=24, vocab=40, context=8, activation="gelu_new"
)


GATED = shape_of(
    "llama", hidden=16, layers=2, heads=4, kv_heads=2, head_dim=6, ffn=24, vocab=40, context=8
)


@pytest.fixture(scope="module")
def model() -> QuantizedModel:
    """Return a small integer model."""
    return random_model(SHAPE, 3)


@pytest.fixture(scope="module")
def gated() -> QuantizedModel:
    """Return one with grouped queries, rotary positions and a gated feed-forward."""
    return random_model(GATED, 3)


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
        (
            "norm",
            "batchnorm",
            r"QuantizedModel.norm: given 'batchnorm', allowed \('layernorm', 'rm",
        ),
        ("window", -1, r"QuantizedModel.window: given -1, allowed 0\.\."),
        ("hidden", 0, r"QuantizedModel.hidden: given 0, allowed 1"),
        ("heads", 3, r"heads: given 3, allowed multiples of kv_heads = 2"),
        ("vocab", 41, r"QuantizedModel.wte: given shape \(40, 16\), allowed \(41, 16\)"),
        ("ffn", 25, r"blocks\[0\].up: given size \(16, 24\), allowed \(16, 25\)"),
        ("head_dim", 7, r"blocks\[0\].qkv: given size \(16, 48\), allowed \(16, 42\)"),
        ("wpe", np.zeros((7, 16), np.int16), r"wpe: given shape \(7, 16\), allowed \(8, 16\)"),
        ("layers", 3, r"given 2 blocks, allowed 3"),
        ("scales", {"residual": float("nan")}, r"scales\['residual'\]: given nan, allowed finite"),
    ],
)
def test_model_refuses(model: QuantizedModel, field: str, value: object, message: str) -> None:
    """The parts of a model must fit together."""
    with pytest.raises(ModelError, match=message):
        if field in Shape.__slots__:
            replace(model, shape=replace(model.shape, **{field: value}))  # type: ignore[arg-type]
        else:
            replace(model, **{field: value})  # type: ignore[arg-type]


def test_block_refuses_other_sizes(model: QuantizedModel) -> None:
    """A block whose layers have different widths is refused."""
    with pytest.raises(ModelError, match=r"Block.proj outputs: given size \(2,\), allowed \(16,\)"):
        replace(model.blocks[0], proj=linear())
    with pytest.raises(ModelError, match=r"score_mult: given 5, allowed 16384\.\.32767"):
        replace(model.blocks[0], score_mult=5)
    with pytest.raises(ModelError, match=r"product_mult without a gate: given 20000, allowed 0"):
        replace(model.blocks[0], product_mult=20000)


def test_gated_model_refuses(gated: QuantizedModel) -> None:
    """The gate, its product, the rotary table and the groups must fit as well."""
    block = gated.blocks[0]
    with pytest.raises(ModelError, match=r"Block.gate: given size \(3, 2\), allowed \(16, 24\)"):
        replace(block, gate=linear())
    with pytest.raises(ModelError, match=r"product_mult: given 0, allowed 16384\.\.32767"):
        replace(block, product_mult=0)
    with pytest.raises(ModelError, match=r"product_shift: given 64, allowed 0\.\.63"):
        replace(block, product_shift=64)
    with pytest.raises(
        ModelError, match=r"rope: given shape \(1, 8, 3, 1\), allowed \(1, 8, 3, 2\)"
    ):
        replace(gated, rope=np.zeros((1, 8, 3, 1), np.int16))
    with pytest.raises(
        ModelError, match=r"rope: given 16385 at index \(0, 0, 0, 0\), allowed -16384"
    ):
        replace(gated, rope=np.full((1, 8, 3, 2), 16385, np.int16))
    with pytest.raises(
        ModelError, match=r"blocks\[0\].qkv: given size \(16, 48\), allowed \(16, 36"
    ):
        replace(gated, shape=replace(gated.shape, kv_heads=1))
    with pytest.raises(ModelError, match=r"blocks\[0\].gate: given one, allowed none"):
        replace(gated, shape=replace(gated.shape, gated=False))
    with pytest.raises(ModelError, match=r"QuantizedModel.rope: given none, allowed one"):
        replace(gated, rope=None)
    with pytest.raises(ModelError, match=r"QuantizedModel.wpe: given one, allowed none"):
        replace(gated, wpe=np.zeros((8, 16), np.int16))
    assert gated.shape.group == 2


def test_rescale_refuses() -> None:
    """A factor is normalised, and within 31 bits of a shift."""
    for field, value, message in (
        ("mult", 99, r"Rescale.mult: given 99, allowed 16384\.\.32767"),
        ("shift", 32, r"Rescale.shift: given 32, allowed 0\.\.31"),
        ("size", 0, r"Rescale.size: given 0, allowed 1\.\."),
    ):
        with pytest.raises(ModelError, match=message):
            replace(Rescale(1 << 14, 20, 16), **{field: value})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("windows", (3,), r"QuantizedModel.windows: given size \(1,\), allowed \(2,\)"),
        ("windows", (0, -1), r"QuantizedModel.windows\[1\]: given -1, allowed 0\.\."),
        ("tables", (0, 0, 0), r"QuantizedModel.tables: given size \(3,\), allowed \(2,\)"),
        ("tables", (0, 1), r"rope: given shape \(1, 8, 3, 2\), allowed \(2, 8, 3, 2\)"),
        ("head_norms", "lane", r"head_norms: given 'lane', allowed \('', 'head', 'row'\)"),
        ("head_norms", "head", r"blocks\[0\].q_norm: given none, allowed one"),
        ("part_norms", True, r"blocks\[0\].o_norm: given none, allowed one"),
        ("pre_norms", False, r"blocks\[0\].norm1: given a Norm, allowed a Rescale"),
    ],
)
def test_other_kinds_refuse(gated: QuantizedModel, field: str, value: object, message: str) -> None:
    """What a shape says must be in every block, and nothing else."""
    with pytest.raises(ModelError, match=message):
        replace(gated, shape=replace(gated.shape, **{field: value}))  # type: ignore[arg-type]


def test_norms_of_other_sizes_are_refused(model: QuantizedModel) -> None:
    """Of a head, of a row, and of the stream; tables are of rotations."""
    with pytest.raises(ModelError, match=r"tables without rope: given size \(2,\), allowed \(0,\)"):
        replace(model, shape=replace(model.shape, tables=(0, 0)))
    heads, rows = (
        random_model(replace(GATED, head_norms=kind, part_norms=True), 3)
        for kind in ("head", "row")
    )
    one, other = heads.blocks[0], rows.blocks[0]
    assert one.q_norm is not None
    assert other.q_norm is not None
    assert other.k_norm is not None
    assert (one.q_norm.size, other.q_norm.size, other.k_norm.size) == (6, 24, 12)
    with pytest.raises(ModelError, match=r"Block.o_norm: given size \(6,\), allowed \(16,\)"):
        replace(one, o_norm=one.q_norm)
    for block, message in (
        (replace(one, q_norm=None), r"blocks\[0\].q_norm: given none, allowed one"),
        (replace(one, down_norm=None), r"blocks\[0\].down_norm: given none, allowed one"),
        (replace(one, k_norm=other.k_norm), r"k_norm: given size \(12,\), allowed \(6,\)"),
        (replace(one, norm2=Rescale(1 << 14, 20, 16)), r"norm2: given a Rescale, allowed a Norm"),
    ):
        with pytest.raises(ModelError, match=message):
            replace(heads, blocks=(block, *heads.blocks[1:]))
    with pytest.raises(ModelError, match=r"blocks\[0\].q_norm: given size \(24,\), allowed \(6,\)"):
        replace(heads, blocks=rows.blocks)


def test_one_shape() -> None:
    """A checkpoint, its integers and the compiled model have one shape; the floats add theirs."""
    floats = shape_of("qwen2", kv_heads=2)
    model = random_model(floats, 3)
    assert model.shape == floats.plain()
    assert type(model.shape) is Shape
    assert replace(floats, epsilon=1.0, activation="gelu").plain() == model.shape
    assert floats.plain() != replace(floats, window=3).plain()
