# SPDX-License-Identifier: Apache-2.0
"""A rotated stream: the same network, in which no channel is louder than the others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from golden.decoder import forward_rows
from weights import calibrate as calibration
from weights.calibrate import calibrate, load_scales, model_of, save_scales
from weights.checkpoint import Checkpoint
from weights.quantize import quantize
from weights.reference import forward
from weights.rotated_stream import orthogonal, rotatable, rotated
from weights.sink import with_sink
from weights.synthetic import random_checkpoint, random_tokens, shape_of

SHAPES = {
    "gpt2": shape_of("gpt2", hidden=45, heads=3, ffn=64, context=32),
    "llama": shape_of("llama", hidden=64, heads=4, kv_heads=2, context=32, tied=True),
    "qwen2": shape_of("qwen2", hidden=46, heads=4, kv_heads=2, head_dim=6, tied=False, context=32),
}
LOUD = 7
FAMILIES = pytest.mark.parametrize("family", SHAPES)


def loud(family: str) -> Checkpoint:
    """Return a model whose stream is loud in one channel, at a token that stands here and there."""
    model = random_checkpoint(SHAPES[family], 5)
    embed = model.tensors["embed"].copy()
    embed[LOUD, 11] = 30_000 * embed.std()
    return replace(model, tensors={**model.tensors, "embed": embed})


def keep_largest(seen: dict[str, float], name: str, values: np.ndarray) -> None:
    """Note the largest magnitude of a tensor."""
    seen[name] = max(seen.get(name, 0.0), float(np.abs(values).max()))


@pytest.mark.parametrize("size", [1, 2, 3, 45, 64, 576])
def test_the_matrix_is_orthogonal_and_keeps_the_row_of_ones(size: int) -> None:
    """So norms of both kinds commute with it; and no entry is large."""
    turn = orthogonal(size)
    np.testing.assert_allclose(turn @ turn.T, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(turn.sum(axis=0), np.ones(size), atol=1e-12)
    if size > 40:
        assert np.abs(turn).max() < 3 / np.sqrt(size)


@FAMILIES
def test_it_is_the_same_network(family: str) -> None:
    """Logits of both are equal but for rounding, with other weights everywhere."""
    model = loud(family)
    tokens = random_tokens(model.shape, 2, 3)
    turned = rotated(model)
    logits = forward(model, tokens)
    np.testing.assert_allclose(
        forward(turned, tokens), logits, rtol=1e-4, atol=1e-5 * np.abs(logits).max()
    )
    matrices = [name for name, x in model.tensors.items() if x.ndim == 2]
    assert not any(np.array_equal(model.tensors[n], turned.tensors[n]) for n in matrices)
    assert (turned.tensors["norm.weight"] == 1).all()


@FAMILIES
def test_no_channel_of_the_stream_is_loud(family: str) -> None:
    """The largest value of the stream shrinks towards that of its row's length."""
    model = loud(family)
    tokens = random_tokens(model.shape, 2, 3)
    largest = {}
    for name, one in (("as it is", model), ("rotated", rotated(model))):
        seen: dict[str, float] = {"residual": 0.0}
        forward(one, tokens, partial(keep_largest, seen))
        largest[name] = seen["residual"]
    assert largest["rotated"] < 0.6 * largest["as it is"], largest


@FAMILIES
def test_integers_behind_a_sink_are_those_of_the_rotated_model(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And are nearer to the floats than those of the model as it is."""
    model = loud(family)
    tokens = random_tokens(model.shape, 8, 3)[:, 1:]
    scales = calibrate(model, tokens, sink=5)
    assert scales.rotated
    save_scales(scales, tmp_path / "scales.json")
    assert load_scales(tmp_path / "scales.json") == scales
    assert model_of(model, scales).tensors["embed"].shape == model.tensors["embed"].shape
    assert not calibrate(model, tokens).rotated
    real = forward(model, with_sink(tokens, 5))[:, 1:]
    errors = []
    for turned in (True, False):
        monkeypatch.setattr(calibration, "rotatable", lambda shape, turned=turned: turned)
        integers = quantize(model, calibrate(model, tokens, sink=5))
        found = forward_rows(integers, tokens) * integers.scales["logits"]
        usual = tokens != LOUD
        errors.append(float(np.sqrt(np.mean((found - real)[usual] ** 2)) / real[usual].std()))
    assert errors[0] < 0.7 * errors[1], errors


def test_what_cannot_take_it_in_stays_as_it_is() -> None:
    """A norm behind a part has a gain for each channel of the stream."""
    shape = SHAPES["llama"]
    assert rotatable(shape)
    assert not rotatable(replace(shape, part_norms=True))
    assert not rotatable(replace(shape, pre_norms=False))


def test_the_unit_of_the_stream_grows_with_it() -> None:
    """Early layers have finer units, powers of two apart, and the integers are nearer for it."""
    shape = shape_of("llama", hidden=64, heads=4, kv_heads=2, layers=4, context=32)
    model = random_checkpoint(shape, 5)
    loud = {f"h.{layer}.down.weight": 2000.0 for layer in (2, 3)}
    tensors = {name: x * np.float32(loud.get(name, 1.0)) for name, x in model.tensors.items()}
    model = replace(model, tensors=tensors)
    tokens = random_tokens(model.shape, 8, 3)[:, 1:]
    scales = calibrate(model, tokens, sink=5)
    ranges = [scales.ranges[f"h.{layer}.residual"] for layer in range(4)]
    assert max(ranges) == scales.ranges["residual"]
    integers = quantize(model, scales)
    shifts = [block.stream_shift for block in integers.blocks]
    assert shifts[0] == shifts[1] == 0
    assert shifts[2] > 3
    for layer, largest in enumerate(ranges):
        room = integers.stream_unit(layer) * 32767
        assert largest <= room
        assert layer > 1 or room < largest * 4
    plain = replace(scales, ranges={n: x for n, x in scales.ranges.items() if "h.0.resid" not in n})
    assert all(block.stream_shift == 0 for block in quantize(model, plain).blocks)


def test_values_have_their_ranges_near_one_another() -> None:
    """Value channels are divided by what they reach; the network is the same."""
    model = loud("llama")
    spread = np.exp2(np.linspace(-3, 3, 32)).astype(np.float32)
    name = "h.0.v.weight"
    model = replace(model, tensors={**model.tensors, name: model.tensors[name] * spread})
    tokens = random_tokens(model.shape, 8, 3)[:, 1:]
    scales = calibrate(model, tokens, sink=5)
    reached: list[np.ndarray] = []
    for one in (model, model_of(model, scales)):
        seen: dict[str, np.ndarray] = {}
        forward(one, with_sink(tokens, 5), seen.__setitem__)
        reached.append(np.abs(seen["h.0.v"][:, 1:]).max(axis=(0, 1)))
    before, after = (values.max() / values.min() for values in reached)
    assert after < before**0.5
    assert reached[1].max() == pytest.approx(scales.ranges["h.0.v"], rel=1e-4)
