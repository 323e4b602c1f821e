# SPDX-License-Identifier: Apache-2.0
"""Models with massive activations at the first position: found, left out of scales, constant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from golden.decoder import forward_rows, forward_trace
from weights import reference
from weights.calibrate import (
    ScalesError,
    calibrate,
    load_scales,
    model_of,
    save_scales,
)
from weights.checkpoint import Checkpoint
from weights.limits import INT32_MAX, ModelError
from weights.model import Linear, accumulator_bound
from weights.quantize import _wide_down, quantize
from weights.reference import forward, watch
from weights.sink import behind_sink, is_sink, sink_rows, with_sink
from weights.synthetic import random_checkpoint, random_model, random_tokens, shape_of

SHAPES = {
    "gpt2": shape_of("gpt2", hidden=48, heads=3, ffn=64, context=32),
    "llama": shape_of("llama", hidden=64, heads=4, kv_heads=2, context=32),
}
LOUD, SINK = 30_000.0, 5


def loud(family: str, seed: int = 3) -> Checkpoint:
    """Return a model that is very loud in one channel at its first position, as published ones are.

    A learned position says so; a rotated one is known by its token, which then stands nowhere else.
    """
    model = random_checkpoint(SHAPES[family], seed)
    tensors = dict(model.tensors)
    name, row = ("positions", 0) if family == "gpt2" else ("embed", SINK)
    tensors[name] = tensors[name].copy()
    tensors[name][row, 11] = LOUD
    return replace(model, tensors=tensors)


def text(checkpoint: Checkpoint, rows: int, seed: int) -> np.ndarray:
    """Return rows of tokens that leave room for the sink, and do not have it."""
    tokens = random_tokens(checkpoint.shape, rows, seed)[:, 1:]
    return np.where(tokens == SINK, SINK + 1, tokens)


@pytest.mark.parametrize("family", SHAPES)
def test_a_loud_first_position_is_found(family: str) -> None:
    """And not where it is as loud as others, or loud only later."""
    checkpoint = loud(family)
    row = with_sink(text(checkpoint, 1, 4), SINK)[0]
    assert is_sink(checkpoint, row)
    assert not is_sink(random_checkpoint(SHAPES[family], 3), row)
    assert not is_sink(loud("llama"), np.array([3, SINK, 4]))
    assert not is_sink(checkpoint, row[:1])


def test_integers_are_near_the_floats_only_with_it() -> None:
    """One scale for all positions leaves nothing of a text."""
    checkpoint = loud("gpt2")
    tokens, other = text(checkpoint, 16, 4), text(checkpoint, 4, 5)
    real = forward(checkpoint, with_sink(other, SINK))[:, 1:]
    errors = {}
    for sink in (SINK, None):
        given = tokens if sink is not None else with_sink(tokens, SINK)
        model = quantize(checkpoint, calibrate(checkpoint, given, sink=sink))
        rows = other if sink is not None else with_sink(other, SINK)
        found = forward_rows(model, rows)[:, -real.shape[1] :] * model.scales["logits"]
        errors[sink] = float(np.sqrt(np.mean((found - real) ** 2)) / real.std())
    assert errors[SINK] < 0.15, errors
    assert errors[None] > 0.5, errors


def test_the_constants_are_the_rows_of_the_floats() -> None:
    """Keys and values of the first position of any text, rotated, in the units of the others."""
    checkpoint = loud("llama")
    scales = calibrate(checkpoint, text(checkpoint, 8, 4), sink=SINK)
    model, floats = quantize(checkpoint, scales), model_of(checkpoint, scales)
    assert model.sink is not None
    assert (model.sink.token, model.first) == (SINK, 1)
    seen = {}
    forward(floats, with_sink(text(checkpoint, 1, 6), SINK), lambda n, x: seen.update({n: x}))
    keys, values = zip(*sink_rows(floats, SINK), strict=True)
    for layer in range(checkpoint.shape.layers):
        first = seen[f"h.{layer}.k_rope"][0, :, 0].reshape(-1)
        np.testing.assert_allclose(keys[layer], first, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(values[layer], seen[f"h.{layer}.v"][0, 0], rtol=1e-4, atol=1e-5)
        unit = model.scales[f"h.{layer}.k"]
        assert np.abs(np.clip(keys[layer] / unit, -127, 127) - model.sink.k[layer]).max() <= 0.5001


@pytest.mark.parametrize("family", SHAPES)
def test_the_described_model_is_the_same_network(family: str) -> None:
    """Gated channels are divided between two layers by powers of two: equal but for rounding."""
    checkpoint = loud(family)
    scales = calibrate(checkpoint, text(checkpoint, 8, 4), sink=SINK)
    tokens = with_sink(text(checkpoint, 2, 7), SINK)
    seen: dict[str, float] = {}

    def observe(name: str, values: np.ndarray) -> None:
        seen[name] = float(np.abs(values[..., 1:, :]).max())

    logits = forward(model_of(checkpoint, scales), tokens, observe)
    np.testing.assert_allclose(logits, forward(checkpoint, tokens), rtol=2e-4, atol=2e-4)
    for layer in range(checkpoint.shape.layers):
        for name in ("up", "act"):
            assert seen[f"h.{layer}.{name}"] < 1.6 * scales.ranges[f"h.{layer}.{name}"]
    inner = [name for name in scales.channels if name.endswith("inner")]
    assert len(inner) == checkpoint.shape.layers * checkpoint.shape.gated
    for name in inner:
        assert set(np.frexp(scales.channels[name])[0]) == {0.5}, "powers of two"


def test_inner_tensors_of_a_gated_model_are_int16() -> None:
    """What `down` reads follows the floats far more finely than int8 could."""
    checkpoint = random_checkpoint(SHAPES["llama"], 3)
    scales = calibrate(checkpoint, text(checkpoint, 8, 4), sink=SINK)
    model, floats = quantize(checkpoint, scales), model_of(checkpoint, scales)
    tokens = text(checkpoint, 1, 6)
    seen = {}
    forward(floats, with_sink(tokens, SINK), lambda n, x: seen.update({n: x}))
    trace = forward_trace(model, tokens[0].tolist())
    block, real = trace.blocks[0], seen["h.0.act"][0, 1:]
    assert block.up.dtype == block.act.dtype == np.int16
    assert block.silu is not None
    assert block.gate is not None
    assert block.gate.dtype == block.silu.dtype == np.int16
    bent = reference.activation("silu", block.gate * model.scales["h.0.gate"])
    assert np.abs(block.silu * model.scales["h.0.silu"] - bent).max() < 0.01 * np.abs(bent).max()
    product = block.silu.astype(np.int64) * block.up
    shift, limit = model.blocks[0].product_shift, model.blocks[0].act_limit
    rounded = (product + (1 << shift >> 1)) >> shift
    np.testing.assert_array_equal(block.act, np.clip(rounded, -limit - 1, limit))
    unit, rough = model.scales["h.0.act"], scales.ranges["h.0.act"] / 127
    assert unit < rough / 50
    assert np.abs(block.act * unit - real).max() < 0.1 * np.abs(real).max()
    assert 5_000 < np.abs(block.act).max() < 32_767


def test_an_int16_input_cannot_overflow_an_accumulator() -> None:
    """The limit is the largest with which none can; a block that could is refused."""
    weight = np.full((2000, 1), 127, np.int8)
    one = np.ones(1, np.int32)
    layer = Linear(weight, one, np.full(1, 1 << 14, np.uint16), np.zeros(1, np.uint8))
    shift, limit, down = _wide_down(1.0, 1.0, lambda _: layer)
    assert down is layer
    assert accumulator_bound(layer, limit + 1) <= INT32_MAX < accumulator_bound(layer, limit + 2)
    assert limit << shift >= 32_767 > limit << shift - 1, "nothing of the range is cut off"
    easy = replace(layer, weight=np.ones((2000, 1), np.int8))
    assert _wide_down(1.0, 3.0, lambda _: easy)[:2] == (2, 32_767)
    wide = random_model(replace(SHAPES["llama"], ffn=2000), 1, SINK).blocks[0]
    steep = replace(wide.down, weight=np.full_like(wide.down.weight, 127))
    with pytest.raises(ModelError, match="down with an int16 input: accumulator bound: given"):
        replace(wide, down=steep, act_limit=32_767)
    with pytest.raises(ModelError, match="product_mult of a wide block: given 16384, allowed 0"):
        replace(wide, product_mult=1 << 14)


def test_nothing_of_the_first_position_is_measured() -> None:
    """The stream and the logits have the range of the others, though the first is louder."""
    checkpoint = loud("gpt2")
    tokens = text(checkpoint, 8, 4)
    scales = calibrate(checkpoint, tokens, sink=SINK)
    seen: dict[str, list[np.ndarray]] = {}
    rows = with_sink(tokens, SINK)
    forward(model_of(checkpoint, scales), rows, lambda n, x: seen.setdefault(n, []).append(x))
    parts = [name for name in seen if name.endswith(("residual", "addend"))]
    shown = [np.abs(x).max(axis=(0, 2)) for name in parts for x in seen[name]]
    loudest = np.max(shown, axis=0)
    assert scales.ranges["residual"] == pytest.approx(loudest[1:].max(), rel=1e-5)
    assert loudest[0] > 100 * loudest[1:].max()


def test_a_watched_pass_shows_what_a_whole_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a position on, logits in pieces that are all of them; no scores."""
    monkeypatch.setattr(reference, "LOGITS", 2 * 5 * SHAPES["llama"].vocab)
    checkpoint = random_checkpoint(SHAPES["llama"], 3)
    rows = random_tokens(checkpoint.shape, 2, 4)
    whole: dict[str, list[np.ndarray]] = {}
    seen: dict[str, list[np.ndarray]] = {}
    forward(checkpoint, rows, lambda n, x: whole.setdefault(n, []).append(x))

    def observe(name: str, values: np.ndarray) -> None:
        seen.setdefault(name, []).append(values)

    assert list(watch(checkpoint, [rows], observe, 1)) == list(range(checkpoint.shape.layers))
    assert [x.shape[1] for x in seen["logits"]] == [5] * 6 + [1]
    pieces = np.concatenate(seen.pop("logits"), axis=1)
    np.testing.assert_allclose(pieces, whole.pop("logits")[0][:, 1:], rtol=1e-4, atol=1e-4)
    whole = {name: x for name, x in whole.items() if not name.endswith("scores")}
    assert seen.keys() == whole.keys()
    for name, parts in seen.items():
        for part, other in zip(parts, whole[name], strict=True):
            np.testing.assert_array_equal(part, other[..., 1:, :])


def test_a_scale_file_keeps_it(tmp_path: Path) -> None:
    """And refuses what is no token."""
    checkpoint = loud("llama")
    scales = calibrate(checkpoint, text(checkpoint, 2, 4), sink=SINK)
    path = tmp_path / "scales.json"
    save_scales(scales, path)
    assert load_scales(path) == scales
    path.write_text(path.read_text().replace('"sink": 5', '"sink": "5"'))
    with pytest.raises(ScalesError, match="sink: given str, allowed int"):
        load_scales(path)


def test_a_prompt_may_begin_with_its_token() -> None:
    """It stands there once; alone it is a text as any other."""
    assert behind_sink([SINK, 1, 2], SINK) == [1, 2]
    assert behind_sink([1, SINK], SINK) == [1, SINK]
    assert behind_sink([SINK], SINK) == [SINK]
    assert behind_sink([SINK, 1], None) == [SINK, 1]
    assert with_sink(np.array([[1, 2]]), None).tolist() == [[1, 2]]
    assert with_sink(np.array([[1, 2]]), 9).tolist() == [[9, 1, 2]]
