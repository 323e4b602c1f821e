# SPDX-License-Identifier: Apache-2.0
"""The quantiser: every integer against the real number it stands for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from weights.calibrate import ActivationScales, calibrate
from weights.checkpoint import Checkpoint
from weights.equalize import equalize
from weights.fixed_point import MAX_FACTOR, MIN_FACTOR, multiplier, multipliers, to_int
from weights.limits import INT32_MAX
from weights.model import Norm, QuantizedModel
from weights.quantize import (
    BIAS_LIMIT,
    MAX_INPUTS,
    activation_table,
    quantize,
    quantize_linear,
)
from weights.reference import activation, forward
from weights.synthetic import random_checkpoint, random_model, random_tokens, shape_of

SHAPE = shape_of(
    "gpt2", hidden=32, layers=2, heads=2, ffn=48, vocab=60, context=16, activation="gelu_new"
)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    """Return a small float model."""
    return random_checkpoint(SHAPE, 11)


@pytest.fixture(scope="module")
def scales(checkpoint: Checkpoint) -> ActivationScales:
    """Return its activation scales."""
    return calibrate(checkpoint, random_tokens(SHAPE, 16, 12))


@pytest.fixture(scope="module")
def model(checkpoint: Checkpoint, scales: ActivationScales) -> QuantizedModel:
    """Return its integer model."""
    return quantize(checkpoint, scales)


def test_multiplier_is_close_and_normalised() -> None:
    """(M, sh) is within 2^-15 of the factor over the whole range of factors."""
    rng = np.random.default_rng(1)
    factors = np.exp2(rng.uniform(math.log2(MIN_FACTOR), math.log2(MAX_FACTOR), 2000))
    mult, shift = multipliers("test", factors)
    assert mult.min() >= 1 << 14
    assert mult.max() < 1 << 15
    assert shift.max() <= 63
    for factor, m, s in zip(factors, mult, shift, strict=True):
        exact = Fraction(int(m), 1 << int(s))
        assert abs(exact - Fraction(float(factor))) <= Fraction(float(factor)) / (1 << 15)


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        (1.0, (1 << 14, 14)),
        (0.5, (1 << 14, 15)),
        (MAX_FACTOR, (32767, 0)),
        (MIN_FACTOR, (1 << 14, 63)),
        (1.0 - 2.0**-20, (1 << 14, 14)),  # rounds up to 2^15 and is halved
        ((16384 + 0.5) / 16384, (16384, 14)),  # half to even
        ((16385 + 0.5) / 16384, (16386, 14)),
    ],
)
def test_multiplier_cases(factor: float, expected: tuple[int, int]) -> None:
    """Ends of the range, the halving, and ties."""
    assert multiplier("test", factor) == expected


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf, 32768.0, MIN_FACTOR / 2])
def test_multiplier_refuses(factor: float) -> None:
    """What (M, sh) cannot express is refused with the range."""
    with pytest.raises(ValueError, match=r"head\[0\]: given requantisation factor .* allowed"):
        multipliers("head", np.array([factor]))


def test_to_int_rounds_half_to_even_and_saturates() -> None:
    """The offline rounding rule."""
    values = np.array([0.5, 1.5, -0.5, -2.5, 126.5, 127.5, 300.0, -300.0])
    rounded = to_int(values, np.int8, -128, 127)
    np.testing.assert_array_equal(rounded, [0, 2, 0, -2, 126, 127, 127, -128])
    assert rounded.dtype == np.int8


def test_linear_reproduces_the_real_layer() -> None:
    """Integers times scales are the weights within half a step, and the biases exactly enough."""
    rng = np.random.default_rng(2)
    weight = rng.normal(0, 1, (40, 7)) * np.exp2(np.arange(7) - 3.0)
    bias, out = rng.normal(0, 1, 7), 0.05
    layer = quantize_linear("test", weight, bias, out)
    step = layer.mult / np.exp2(layer.shift.astype(float)) * out
    np.testing.assert_allclose(step, np.abs(weight).max(axis=0) / 127, rtol=2.0**-15)
    assert (np.abs(layer.weight * step - weight) <= 0.501 * step + 1e-4 * np.abs(weight)).all()
    assert (np.abs(layer.bias * step - bias) <= 0.501 * step + 1e-4 * np.abs(bias)).all()
    np.testing.assert_array_equal(np.abs(layer.weight).max(axis=0), 127)


def test_linear_with_large_bias_and_dead_channels() -> None:
    """A bias cannot leave its 31 bits, whatever the weights; a dead column stays finite."""
    weight = np.array([[1e-9, 0.0, 0.0], [0.0, 0.0, 0.0]])
    bias = np.array([1e3, 2.0, 0.0])
    layer = quantize_linear("test", weight, bias, 0.1)
    assert np.abs(layer.bias.astype(np.int64)).max() <= BIAS_LIMIT
    assert layer.accumulator_bound() <= INT32_MAX
    real = layer.bias * (layer.mult / np.exp2(layer.shift.astype(float)) * 0.1)
    np.testing.assert_allclose(real, bias, rtol=1e-4, atol=0.06)


def test_accumulator_bound() -> None:
    """2^30 of bias and MAX_INPUTS full-scale products fit int32; one input more is refused."""
    assert BIAS_LIMIT + 128 * 127 * MAX_INPUTS <= INT32_MAX
    assert MAX_INPUTS == 66052
    layer = quantize_linear("test", np.ones((MAX_INPUTS, 1)), np.array([1e12]), 0.01)
    assert layer.accumulator_bound() <= INT32_MAX
    with pytest.raises(ValueError, match=r"test: given 66053 inputs, allowed at most 66052"):
        quantize_linear("test", np.ones((MAX_INPUTS + 1, 1)), np.zeros(1), 0.01)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "silu"])
def test_activation_table(name: str) -> None:
    """Entry i is the rounded activation of the int8 with bit pattern i."""
    table = activation_table(name, 0.05, 0.03)
    for pattern in range(256):
        value = pattern - 256 if pattern >= 128 else pattern
        real = activation(name, np.array([value * 0.05]))[0] / 0.03
        assert table[pattern] == max(-128, min(127, round(float(real))))
    assert table[127] == 127
    assert table[128] == (round(-6.4 / (1 + math.exp(6.4)) / 0.03) if name == "silu" else 0)


def test_dimensions_and_scales(model: QuantizedModel) -> None:
    """The integer model has the checkpoint's dimensions and names every scale."""
    assert (model.shape.hidden, model.shape.layers, model.shape.heads, model.shape.head_dim) == (
        32,
        2,
        2,
        16,
    )
    assert (model.shape.ffn, model.shape.vocab, model.shape.context) == (48, 60, 16)
    expected = {"residual", "logits"}
    expected |= {f"h.{i}.{key}" for i in (0, 1) for key in ("q", "k", "v", "ctx", "up", "act")}
    assert model.scales.keys() == expected
    assert model.scales["h.1.ctx"] == model.scales["h.1.v"]


def test_embeddings(
    checkpoint: Checkpoint, scales: ActivationScales, model: QuantizedModel
) -> None:
    """Embeddings are at the residual scale, which leaves a quarter of headroom."""
    unit = model.scales["residual"]
    assert unit == pytest.approx(scales.ranges["residual"] * 1.25 / 32767)
    for table, name in ((model.wte, "embed"), (model.wpe, "positions")):
        assert table is not None
        assert np.abs(table * unit - checkpoint.tensors[name]).max() <= 0.501 * unit


def test_norm(checkpoint: Checkpoint, scales: ActivationScales, model: QuantizedModel) -> None:
    """The largest normalised value of a channel becomes 127, and E is eps in integer units."""
    norm = model.blocks[1].norm2
    assert isinstance(norm, Norm)
    seen = np.array(scales.channels["h.1.norm2"])
    full = seen * 2**14 * norm.gain / np.exp2(norm.shift.astype(float))
    np.testing.assert_allclose(full, 127, rtol=1e-3)
    np.testing.assert_array_equal(norm.bias, 0)
    epsilon = norm.eps_term * model.scales["residual"] ** 2 / SHAPE.hidden**2
    assert epsilon == pytest.approx(checkpoint.shape.epsilon, rel=0.01)


def test_norm_gain_and_bias_are_folded(checkpoint: Checkpoint, model: QuantizedModel) -> None:
    """Norm and linear layer together are gain, beta, weight and bias of the float model."""
    block, floats = model.blocks[0], equalize(checkpoint)
    rng = np.random.default_rng(5)
    normalised = rng.normal(0, 1, (9, SHAPE.hidden))
    gain, beta = floats.norm("h.0.norm1")
    linears = [floats.linear(f"h.0.{name}") for name in ("q", "k", "v")]
    weight, bias = (np.concatenate(part, axis=-1) for part in zip(*linears, strict=True))
    wanted = (normalised * gain + beta) @ weight + bias
    assert isinstance(block.norm1, Norm)
    units = normalised * 2**14 * block.norm1.gain / np.exp2(block.norm1.shift.astype(float))
    sums = units @ block.qkv.weight.astype(float) + block.qkv.bias
    factor = block.qkv.mult / np.exp2(block.qkv.shift.astype(float))
    out = np.repeat([model.scales[f"h.0.{key}"] for key in "qkv"], SHAPE.hidden)
    np.testing.assert_allclose(sums * factor * out, wanted, atol=0.08)


def test_score_factor(model: QuantizedModel) -> None:
    """Scores count 2^-6 of a binary logarithm of the float attention weight."""
    block = model.blocks[1]
    unit = model.scales["h.1.q"] * model.scales["h.1.k"]
    wanted = unit / math.sqrt(16) * math.log2(math.e) * 64
    assert block.score_mult / 2.0**block.score_shift == pytest.approx(wanted, rel=1e-4)


def test_logits_share_one_scale(checkpoint: Checkpoint, model: QuantizedModel) -> None:
    """A head channel's weights times its own factor are real logits, equal units for all."""
    unit = model.final_norm.gain / np.exp2(model.final_norm.shift.astype(float)) * 2**14
    factor = model.head.mult / np.exp2(model.head.shift.astype(float)) * model.scales["logits"]
    real = unit[:, None] * model.head.weight * factor
    wanted = checkpoint.tensors["norm.weight"][:, None] * checkpoint.head
    assert np.abs(real - wanted).max() < 0.01 * np.abs(wanted).max()


def test_accumulators_fit(model: QuantizedModel) -> None:
    """The bound of every layer is inside int32."""
    layers = [model.head]
    for block in model.blocks:
        layers += [block.qkv, block.proj, block.up, block.down]
    assert max(layer.accumulator_bound() for layer in layers) <= INT32_MAX


def test_deterministic(
    checkpoint: Checkpoint, scales: ActivationScales, model: QuantizedModel
) -> None:
    """Equal inputs give equal integers."""
    again = quantize(checkpoint, scales)
    np.testing.assert_array_equal(again.head.weight, model.head.weight)
    np.testing.assert_array_equal(again.blocks[1].qkv.bias, model.blocks[1].qkv.bias)


# -----------------------------------------------------------------------------------------------
# Rotary positions, grouped queries, a gate, a window
# -----------------------------------------------------------------------------------------------
GATED = shape_of(
    "qwen2", hidden=24, layers=2, heads=6, kv_heads=2, head_dim=10, ffn=48, vocab=60, context=16
)


@pytest.fixture(scope="module")
def gated_checkpoint() -> Checkpoint:
    """Return a small float model."""
    return random_checkpoint(GATED, 21)


@pytest.fixture(scope="module")
def gated_scales(gated_checkpoint: Checkpoint) -> ActivationScales:
    """Return its activation scales."""
    return calibrate(gated_checkpoint, random_tokens(GATED, 16, 22))


@pytest.fixture(scope="module")
def gated(gated_checkpoint: Checkpoint, gated_scales: ActivationScales) -> QuantizedModel:
    """Return its integer model."""
    return quantize(gated_checkpoint, gated_scales)


def test_dimensions_and_scales_of_a_gated_model(gated: QuantizedModel) -> None:
    """Heads, groups and the tensors of a gated feed-forward."""
    assert (gated.shape.family, gated.shape.norm, gated.shape.window) == ("qwen2", "rmsnorm", 0)
    assert (gated.shape.heads, gated.shape.kv_heads, gated.shape.group, gated.shape.head_dim) == (
        6,
        2,
        3,
        10,
    )
    assert gated.blocks[0].qkv.outputs == (6 + 2 + 2) * 10
    assert gated.blocks[0].proj.inputs == 60
    assert gated.wpe is None
    keys = ("q", "k", "v", "ctx", "gate", "silu", "up", "act")
    expected = {"residual", "logits"} | {f"h.{i}.{key}" for i in (0, 1) for key in keys}
    assert gated.scales.keys() == expected


def test_window_of_the_model() -> None:
    """The window is handed on."""
    assert random_model(shape_of("mistral", window=5, kv_heads=1), 1).shape.window == 5


def test_rope_table(gated: QuantizedModel) -> None:
    """Q1.14 cosines and sines of position * theta^(-2t/D)."""
    assert gated.rope is not None
    assert gated.rope.shape == (1, 16, 5, 2)
    for position, pair in ((0, 0), (1, 0), (3, 2), (15, 4)):
        angle = position * 10000.0 ** (-2 * pair / 10)
        wanted = [round(math.cos(angle) * 16384), round(math.sin(angle) * 16384)]
        assert gated.rope[0, position, pair].tolist() == wanted


def test_queries_before_and_after_the_rotation_share_a_scale(
    gated_checkpoint: Checkpoint, gated_scales: ActivationScales
) -> None:
    """The rotation has no scale of its own, so the range is the larger of both."""
    seen: dict[str, np.ndarray] = {}
    tokens = random_tokens(GATED, 16, 22)
    forward(equalize(gated_checkpoint), tokens[:8], lambda name, x: seen.update({name: x}))
    other: dict[str, np.ndarray] = {}
    forward(equalize(gated_checkpoint), tokens[8:], lambda name, x: other.update({name: x}))
    for name in ("h.0.q", "h.1.q", "h.0.k", "h.1.k"):
        ranges = [
            np.percentile(np.abs(np.concatenate([seen[key].ravel(), other[key].ravel()])), 99.99)
            for key in (name, f"{name}_rope")
        ]
        assert ranges[0] != pytest.approx(ranges[1], rel=1e-3)
        assert gated_scales.ranges[name] == pytest.approx(max(ranges), rel=1e-5)


def test_gate_table_and_product(gated: QuantizedModel) -> None:
    """The table maps the gate's scale to that of silu; the product lands at act's scale."""
    block, scales = gated.blocks[1], gated.scales
    gate, silu, up, act = (scales[f"h.1.{key}"] for key in ("gate", "silu", "up", "act"))
    for value in (-128, -40, -1, 0, 1, 77, 127):
        real = value * gate / (1 + math.exp(-value * gate)) / silu
        assert block.table[value & 255] == max(-128, min(127, round(real)))
    factor = block.product_mult / 2.0**block.product_shift
    assert factor == pytest.approx(silu * up / act, rel=1e-4)


def test_gated_feed_forward_is_the_float_one(
    gated_checkpoint: Checkpoint, gated: QuantizedModel
) -> None:
    """Integers of norm, gate, up and product, in real numbers, are the float feed-forward."""
    block, floats, scales = gated.blocks[0], equalize(gated_checkpoint), gated.scales
    normalised = np.random.default_rng(5).normal(0, 1, (9, GATED.hidden))
    assert block.gate is not None
    assert isinstance(block.norm2, Norm)
    units = normalised * 2**14 * block.norm2.gain / np.exp2(block.norm2.shift.astype(float))
    values = {}
    for name, layer in (("gate", block.gate), ("up", block.up)):
        weight, bias = floats.linear(f"h.0.{name}")
        wanted = (normalised * floats.norm("h.0.norm2")[0]) @ weight + bias
        factor = layer.mult / np.exp2(layer.shift.astype(float))
        values[name] = (units @ layer.weight.astype(float) + layer.bias) * factor
        np.testing.assert_allclose(values[name] * scales[f"h.0.{name}"], wanted, atol=0.08)
    gate = np.clip(np.rint(values["gate"]), -128, 127).astype(np.int64)
    up = np.clip(np.rint(values["up"]), -128, 127).astype(np.int64)
    product = block.table[gate & 255].astype(np.int64) * up * block.product_mult
    act = np.clip((product >> (block.product_shift - 1)) + 1 >> 1, -128, 127)
    inner = act @ block.down.weight.astype(np.int64)
    factor = block.down.mult / np.exp2(block.down.shift.astype(float)) * scales["residual"]
    h = normalised * floats.norm("h.0.norm2")[0]
    gated_real = activation("silu", h @ floats.linear("h.0.gate")[0]) * (
        h @ floats.linear("h.0.up")[0]
    )
    wanted = gated_real @ floats.linear("h.0.down")[0]
    error = np.abs(inner * factor - wanted).max()
    assert error < 0.05 * np.abs(wanted).max()


def test_score_factor_of_heads_of_their_own_size(gated: QuantizedModel) -> None:
    """The factor has sqrt(head_dim), not hidden / heads."""
    block = gated.blocks[0]
    unit = gated.scales["h.0.q"] * gated.scales["h.0.k"]
    wanted = unit / math.sqrt(10) * math.log2(math.e) * 64
    assert block.score_mult / 2.0**block.score_shift == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2"])
@pytest.mark.parametrize("head_dim", [16, 64])
def test_accumulators_of_every_family(family: str, head_dim: int) -> None:
    """Random models of every family are legal, and no tensor is degenerate."""
    heads = {"hidden": 2 * head_dim, "heads": 2} if family == "gpt2" else {"kv_heads": 2}
    shape = shape_of(family, head_dim=head_dim, **heads)
    model = random_model(shape, 7)
    for block in model.blocks:
        layers = [block.qkv, block.proj, block.up, block.down]
        layers += [] if block.gate is None else [block.gate]
        assert max(layer.accumulator_bound() for layer in layers) <= INT32_MAX
        assert min(np.unique(layer.weight).size for layer in layers) > 150
        assert np.unique(block.table).size > 100
