# SPDX-License-Identifier: Apache-2.0
"""More kinds of decoders: what is measured of them, and their integers against the floats.

Parallel parts, norms of q and k, norms behind parts and none before them, windows and tables of
rotations by layer, a bias of the head, other activations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.decoder import forward_rows, forward_trace
from weights import quantize as module
from weights.calibrate import ActivationScales, calibrate, model_of
from weights.checkpoint import Checkpoint, CheckpointError, CheckpointShape
from weights.covariance import measure
from weights.equalize import positive
from weights.formats.recipe import parse_recipe
from weights.model import Norm, QuantizedModel, Rescale
from weights.quantize import NORM_UNITS, integer_rope, quantize
from weights.reference import ACTIVATIONS, forward
from weights.sink import sink_rows, with_sink
from weights.synthetic import random_checkpoint, random_tokens, shape_of

SINK = 5
GPT2: dict[str, Any] = {"hidden": 48, "heads": 3, "ffn": 64, "context": 32}
LLAMA: dict[str, Any] = {"kv_heads": 2, "context": 32}
KINDS = {
    "parallel": shape_of("gpt2", **GPT2, parallel=True),
    "parallel, rotated, a bias of the head": shape_of(
        "gpt2", **GPT2, parallel=True, rope=True, rope_theta=1e4, tied=False, biases=("v", "head")
    ),
    "norms of heads": shape_of("llama", **LLAMA, head_norms="head"),
    "LayerNorms of heads": shape_of("gpt2", **GPT2, head_norms="head"),
    "norms of rows and behind parts alone": shape_of(
        "llama", **LLAMA, head_norms="row", pre_norms=False, part_norms=True
    ),
    "norms on both sides": shape_of("llama", **LLAMA, part_norms=True, windows=(5, 0)),
    "everything": shape_of(
        "llama", **LLAMA, part_norms=True, parallel=True, head_norms="row", windows=(0, 7)
    ),
}
OTHERWISE: dict[str, dict[str, Any]] = {
    "parallel": {"parallel": False},
    "parallel, rotated, a bias of the head": {"parallel": False},
    "norms on both sides": {"windows": (0, 5)},
    "everything": {"windows": (7, 0)},
}
"""What makes another network of the same tensors."""


def text(shape: CheckpointShape, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return rows of tokens that leave room for a sink."""
    return random_tokens(shape, rows, seed)[:, 1:]


def measured(checkpoint: Checkpoint, sink: int | None = None) -> ActivationScales:
    """Return the scales of a checkpoint."""
    return calibrate(checkpoint, text(checkpoint.shape, 12, 4), sink=sink)


def observed(checkpoint: Checkpoint, tokens: npt.NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Return the tensors of a pass in floats by name; of several the first."""
    seen: dict[str, Any] = {}
    forward(checkpoint, tokens, lambda name, values: seen.setdefault(name, values))
    return seen


def distance(
    model: QuantizedModel, checkpoint: Checkpoint, sink: int | None = None, seed: int = 6
) -> float:
    """Return the error of the integer logits in standard deviations of the real ones."""
    tokens = text(checkpoint.shape, 3, seed)
    real = forward(checkpoint, with_sink(tokens, sink))[:, model.first :]
    found = forward_rows(model, tokens) * model.scales["logits"]
    return float(np.sqrt(np.mean((found - real) ** 2)) / real.std())


@pytest.mark.parametrize("sink", [None, SINK])
@pytest.mark.parametrize("kind", KINDS)
def test_integers_are_near_the_floats(kind: str, sink: int | None) -> None:
    """And far from those of the network that the kind is told from."""
    checkpoint = random_checkpoint(KINDS[kind], 3)
    model = quantize(checkpoint, measured(checkpoint, sink))
    assert model.shape.plain() == replace(KINDS[kind].plain(), wide=model.shape.wide)
    assert model.shape.wide is (sink is not None and model.shape.gated)
    assert distance(model, checkpoint, sink) < 0.12
    if kind in OTHERWISE:
        other = replace(checkpoint, shape=replace(checkpoint.shape, **OTHERWISE[kind]))
        assert distance(model, other, sink) > 0.2


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("gated", [False, True])
def test_every_activation(name: str, gated: bool) -> None:
    """With a gate and without."""
    shape = shape_of("llama" if gated else "gpt2", hidden=32, heads=2, ffn=48, activation=name)
    checkpoint = random_checkpoint(shape, 7)
    model = quantize(checkpoint, measured(checkpoint))
    assert distance(model, checkpoint) < 0.12
    spoiled = [replace(one, table=np.zeros_like(one.table)) for one in model.blocks]
    assert distance(replace(model, blocks=tuple(spoiled)), checkpoint) > 0.2


def test_a_large_bias_of_the_head() -> None:
    """Logits of rare tokens are that much lower."""
    checkpoint = random_checkpoint(KINDS["parallel, rotated, a bias of the head"], 3)
    tensors = dict(checkpoint.tensors)
    tensors["head.bias"] = 100.0 * tensors["head.bias"]
    loud = replace(checkpoint, tensors=tensors)
    model = quantize(loud, measured(loud))
    assert distance(model, loud) < 0.03
    assert distance(model, checkpoint) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_every_tensor_has_a_scale(kind: str) -> None:
    """Integers times their unit are the tensors of the floats, by the names of golden."""
    checkpoint = random_checkpoint(KINDS[kind], 3)
    scales = measured(checkpoint)
    model, shape = quantize(checkpoint, scales), checkpoint.shape
    tokens = text(shape, 1, 8)
    seen = observed(model_of(checkpoint, scales), tokens)
    trace = forward_trace(model, tokens[0].tolist()).blocks[0].tensors()
    names = {"q": "q", "k": "k", "v": "v", "ctx": "ctx", "up": "up", "act": "act"}
    if shape.head_norms:
        names |= {"q_norm": "q_norm", "k_norm": "k_norm"}
    if shape.part_norms:
        names |= {"proj": "o", "down": "down"}
    if not shape.pre_norms:
        names |= {"norm1": "norm1", "norm2": "norm2"}
    for ours, theirs in names.items():
        real = seen[f"h.0.{theirs}"][0]
        real = real.swapaxes(0, 1) if real.ndim == 3 else real
        real = real.reshape(len(real), -1)
        found = trace[ours] * model.scales[f"h.0.{ours}"]
        assert np.sqrt(np.mean((found - real) ** 2)) / real.std() < 0.1, ours
        if trace[ours].dtype == np.int16:  # a quarter more than was measured
            assert model.scales[f"h.0.{ours}"] == pytest.approx(
                scales.ranges[f"h.0.{theirs}"] * 1.25 / 32767
            )
            assert 8_000 < np.abs(trace[ours]).max() < 32_767
    for layer in range(shape.layers):
        given = {name for name in model.scales if name.startswith(f"h.{layer}.")}
        gated = {"gate", "silu"} if shape.gated else set()
        assert given == {f"h.{layer}.{name}" for name in {*names, *gated}}


@pytest.mark.parametrize("kind", ["LayerNorms of heads", "norms of heads", "everything"])
def test_constant_keys_are_those_that_attention_reads(kind: str) -> None:
    """Normalised, and rotated where the model rotates."""
    checkpoint = random_checkpoint(KINDS[kind], 3)
    scales = measured(checkpoint, SINK)
    model, floats = quantize(checkpoint, scales), model_of(checkpoint, scales)
    seen = observed(floats, with_sink(text(checkpoint.shape, 1, 6), SINK))
    assert model.sink is not None
    for layer, found in enumerate(key for key, _ in sink_rows(floats, SINK)):
        real = seen[f"h.{layer}.k_{'rope' if checkpoint.shape.rope else 'norm'}"][0]
        first = (real[:, 0] if real.ndim == 3 else real[0]).reshape(-1)
        np.testing.assert_allclose(found, first, rtol=1e-4, atol=1e-5)
        units = (found / model.scales[f"h.{layer}.k_norm"]).clip(-127, 127)
        assert np.abs(units - model.sink.k[layer]).max() <= 0.5001


def test_ranges_of_queries_and_keys() -> None:
    """In front of their norms the largest magnitude; behind them and rotated the percentile."""
    checkpoint = random_checkpoint(KINDS["norms of heads"], 3)
    scales = measured(checkpoint)
    seen = observed(model_of(checkpoint, scales), text(checkpoint.shape, 12, 4))
    assert scales.ranges["h.0.k"] == pytest.approx(np.abs(seen["h.0.k"]).max(), rel=1e-5)
    both = max(np.percentile(np.abs(seen[f"h.0.k_{name}"]), 99.99) for name in ("norm", "rope"))
    assert scales.ranges["h.0.k_norm"] == pytest.approx(both, rel=1e-4)


def test_a_stream_that_is_not_normalised_is_measured_where_it_is_read() -> None:
    """The first is the embedding, and the unit of int8 follows from its percentile."""
    checkpoint = random_checkpoint(KINDS["norms of rows and behind parts alone"], 3)
    scales = measured(checkpoint)
    model = quantize(checkpoint, scales)
    embedded = np.abs(checkpoint.tensors["embed"][text(checkpoint.shape, 12, 4)])
    assert scales.ranges["h.0.norm1"] == pytest.approx(np.percentile(embedded, 99.99), rel=1e-5)
    assert scales.ranges["h.1.norm1"] > scales.ranges["h.0.norm2"] > scales.ranges["h.0.norm1"]
    assert set(scales.channels) == {"norm"}
    for layer, block in enumerate(model.blocks):
        for name, one in (("norm1", block.norm1), ("norm2", block.norm2)):
            assert isinstance(one, Rescale)
            unit = scales.ranges[f"h.{layer}.{name}"] / 127
            factor = one.mult / 2.0**one.shift
            assert factor == pytest.approx(model.scales["residual"] / unit, rel=1e-4)


def test_records_of_norms_hold_gain_and_bias() -> None:
    """In units of what they give; a gain of 0 is none."""
    checkpoint = random_checkpoint(KINDS["LayerNorms of heads"], 3)
    tensors = dict(checkpoint.tensors)
    tensors["h.0.q_norm.weight"] = tensors["h.0.q_norm.weight"].copy()
    tensors["h.0.q_norm.weight"][3] = 0.0
    checkpoint = replace(checkpoint, tensors=tensors)
    model = quantize(checkpoint, measured(checkpoint))
    unit, one = model.scales["h.0.q_norm"], model.blocks[0].q_norm
    assert isinstance(one, Norm)
    gain, beta = checkpoint.norm("h.0.q_norm")
    found = one.gain / np.exp2(one.shift.astype(float)) * NORM_UNITS * unit
    np.testing.assert_allclose(found, gain, rtol=1e-4)
    assert np.abs(one.bias * unit - beta).max() <= 0.5001 * unit
    assert np.abs(one.bias).max() > 2
    epsilon = one.eps_term * model.scales["h.0.q"] ** 2 / 16**2
    assert epsilon == pytest.approx(checkpoint.shape.epsilon, rel=0.01)
    assert distance(model, checkpoint) < 0.12


def negated(kind: str) -> Checkpoint:
    """Return a model with negative gains in all norms that are records of integers."""
    checkpoint = random_checkpoint(KINDS[kind], 3)
    tensors = dict(checkpoint.tensors)
    for name, tensor in tensors.items():
        if name.split(".")[-2:][0] in ("q_norm", "k_norm", "o_norm", "down_norm"):
            signs = np.random.default_rng(9).choice(np.array([-1, 1], np.float32), tensor.shape)
            tensors[name] = tensor * signs if name.endswith("weight") else tensor
    return replace(checkpoint, tensors=tensors)


@pytest.mark.parametrize("kind", ["norms of heads", "everything"])
def test_negative_gains_turn_the_channels_before_them(kind: str) -> None:
    """The same network, bit for bit, and its integers."""
    checkpoint = negated(kind)
    turned, tokens = positive(checkpoint), text(checkpoint.shape, 2, 4)
    np.testing.assert_array_equal(forward(turned, tokens), forward(checkpoint, tokens))
    for name in ("h.0.q_norm.weight", "h.1.k_norm.weight"):
        assert checkpoint.tensors[name].min() < 0 < turned.tensors[name].min()
    assert distance(quantize(checkpoint, measured(checkpoint)), checkpoint) < 0.12


def test_a_negative_gain_of_a_layernorm_is_refused() -> None:
    """Negating a channel would move the mean of its row."""
    checkpoint = negated("LayerNorms of heads")
    with pytest.raises(
        CheckpointError, match=r"seed 3: h\.0\.q_norm\.weight: given -\d.*allowed 0 and more in"
    ):
        quantize(checkpoint, measured(checkpoint))


def test_a_large_bias_behind_a_part_is_refused() -> None:
    """A record of a norm has 8 bits for it, and the stream 16."""
    checkpoint = random_checkpoint(shape_of("gpt2", **GPT2, part_norms=True), 3)
    with pytest.raises(
        CheckpointError, match=r"h\.0\.o_norm\.bias: given 0\.\d+, allowed up to .* 127 units"
    ):
        quantize(checkpoint, measured(checkpoint))
    small = {
        name: tensor / np.float32(100)
        if name.endswith(("o_norm.bias", "down_norm.bias"))
        else tensor
        for name, tensor in checkpoint.tensors.items()
    }
    checkpoint = replace(checkpoint, tensors=small)
    model = quantize(checkpoint, measured(checkpoint))
    assert model.blocks[0].o_norm is not None
    assert model.blocks[0].o_norm.bias.any()
    assert distance(model, checkpoint) < 0.12


def test_tables_of_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number has its table, of all positions."""
    shape = shape_of("llama", **LLAMA, layers=3)

    def table(shape: CheckpointShape, positions: int, number: int = 0) -> npt.NDArray[np.float64]:
        return np.full((positions, shape.head_dim // 2, 2), (number + 1) / 8)

    monkeypatch.setattr(module, "rope_table", table)
    found = integer_rope(replace(shape, tables=(0, 1, 0)))
    assert found.shape == (2, 32, 8, 2)
    assert found.dtype == np.int16
    assert [np.unique(one).tolist() for one in found] == [[2048], [4096]]
    assert integer_rope(shape).shape == (1, 32, 8, 2)


@pytest.mark.parametrize(
    "kind", ["norms of rows and behind parts alone", "norms of heads", "parallel"]
)
def test_narrow_formats_with_moments(kind: str) -> None:
    """All layers are narrow, and errors that make up for one another are smaller."""
    checkpoint = random_checkpoint(KINDS[kind], 3)
    scales, tokens = measured(checkpoint), text(checkpoint.shape, 12, 4)
    recipe, moments = parse_recipe("int4g"), measure(checkpoint, scales, tokens)
    if not checkpoint.shape.pre_norms:
        unit = scales.ranges["h.0.norm1"] / 127
        rows = np.rint(checkpoint.tensors["embed"][tokens] / unit).clip(-128, 127)
        rows = rows.reshape(-1, checkpoint.shape.hidden)
        np.testing.assert_array_equal(moments.moments["h.0.norm1"], rows.T @ rows)
    plain = distance(quantize(checkpoint, scales, recipe), checkpoint)
    learned = distance(quantize(checkpoint, scales, recipe, moments), checkpoint)
    assert learned < plain < 0.5
