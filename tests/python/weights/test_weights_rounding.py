# SPDX-License-Identifier: Apache-2.0
"""Rounding to narrow formats: nearest, with compensation, 2:4 masks, the inputs' covariance."""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from spec.isa import WeightFormat
from tests.python.weights.moments_file import save_moments
from weights import covariance
from weights.calibrate import ActivationScales, calibrate, load_scales, save_scales
from weights.checkpoint import Checkpoint
from weights.covariance import (
    CovarianceError,
    InputMoments,
    load_moments,
    main,
    measure,
    moments_for,
)
from weights.formats import NarrowLinear
from weights.formats.element import elements, expansion
from weights.formats.linear import expand, kept
from weights.formats.recipe import WORDS, parse_recipe
from weights.formats.rounding import (
    Feedback,
    Reals,
    column_scale,
    feedback,
    int8_scale,
    rounded,
    rounded_int8,
)
from weights.importer import COVARIANCE_FILE, load_checkpoint
from weights.model import Linear, QuantizedModel
from weights.quantize import quantize, quantize_checkpoint, quantize_linear
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

CHECKPOINT = Path(__file__).parents[3] / "weights" / "checkpoints" / "gpt2-tiny"
NARROW = sorted(word for word, encoding in WORDS.items() if encoding.format is not None)
DIGEST = "e5871a199574302e05bda5aef4b9e55923e93e814cb4bfd1d740e65cb3e010b1"
"""SHA-256 of all codes and side bytes of gpt2-tiny in `RECIPE`: equal on every machine."""
RECIPE = "qkv=mxfp6e2,o=int4g32,up=nf4g16,down=int4s,head=fp4g"


def weights(rows: int = 72, columns: int = 24, seed: int = 3) -> Reals:
    """Return a matrix whose columns have different scales."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, columns)) * np.exp2(rng.uniform(-3, 3, columns))


def moments(rows: int = 72, seed: int = 4) -> npt.NDArray[np.int64]:
    """Return second moments of inputs that move together."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((500, rows)) @ rng.standard_normal((rows, rows))
    inputs = np.rint(mixed + 4 * rng.standard_normal((500, 1))).astype(np.int64)
    return inputs.T @ inputs


def test_feedback() -> None:
    """The decomposition gives the damped moments back."""
    given = moments()
    found = feedback(given)
    damped = given + 0.01 * np.trace(given) / 72 * np.eye(72)
    np.testing.assert_allclose((found.upper * found.cost) @ found.upper.T, damped, atol=1e-6)
    np.testing.assert_array_equal(found.upper, np.triu(found.upper))
    np.testing.assert_allclose(found.importance, damped.diagonal())
    assert (feedback(np.zeros((3, 3), np.int64)).cost == 1).all()  # inputs that are always 0


def _loss(weight: Reals, given: Reals, inputs: npt.NDArray[np.int64]) -> float:
    error = weight - given
    return float(np.einsum("kn,kj,jn->", error, inputs.astype(float), error))


def _real(word: str, given: Reals, learned: Feedback | None) -> Reals:
    """Return the weights that a format holds for given ones."""
    encoding = WORDS[word]
    assert encoding.format is not None
    importance = np.ones(len(given)) if learned is None else learned.importance
    scale = column_scale(encoding, given, importance)
    codes, side = rounded(encoding, given / scale, learned)
    if encoding.ternary:
        assert codes.max() <= 3 and not (codes == 2).any()
    return expand(encoding.format, encoding.group, codes, side) * scale


@pytest.mark.parametrize("word", NARROW)
def test_compensation_pays(word: str) -> None:
    """With the moments the outputs' error is smaller, in every format."""
    given, inputs = weights(), moments()
    plain = _loss(_real(word, given, None), given, inputs)
    assert _loss(_real(word, given, feedback(inputs)), given, inputs) < 0.8 * plain


def test_compensation_in_int8() -> None:
    """The same for int8."""
    given, inputs = weights(), moments()
    scale = int8_scale(given)
    found = rounded_int8(given / scale, feedback(inputs))
    plain = np.rint(given / scale)
    assert _loss(found * scale, given, inputs) < 0.8 * _loss(plain * scale, given, inputs)
    assert np.abs(found).max() <= 127


@pytest.mark.parametrize("word", NARROW)
def test_nearest(word: str) -> None:
    """Without moments every kept weight has the nearest value of its group's scale."""
    encoding, x = WORDS[word], weights(70, 6)
    assert encoding.format is not None
    x = x / column_scale(encoding, x, np.ones(70))
    codes, side = rounded(encoding, x)
    found = elements(encoding.format)
    real = found.v * 2.0**-found.t
    usable = found.number & ((np.abs(real) < 2) if encoding.ternary else True)
    table = expansion(encoding.format)
    mask = (
        kept(side, 70)
        if encoding.format in (WeightFormat.INT4S, WeightFormat.INT8S)
        else np.ones_like(x)
    )
    for k, n in zip(*np.nonzero(mask), strict=True):
        b = side[k // encoding.group, n] if encoding.group else 0
        factor = real * 0 + 1.0
        if encoding.group:
            factor = factor * (b / 256 if encoding.group and not word.startswith("mx") else 0.5**b)
        best = np.abs(real * factor - x[k, n])[usable].min()
        assert abs(real[codes[k, n]] * factor[0] - x[k, n]) == pytest.approx(best)
        assert abs(int(table[b, codes[k, n]]) - real[codes[k, n]] * factor[0]) <= 0.5


@pytest.mark.parametrize("word", ["int4s", "int8s"])
def test_masks(word: str) -> None:
    """Of four rows the two largest stay; what does not lie in four fills up with zeros."""
    x = weights(70, 6)
    x[8:12] = 0.0
    x[8 + 2] = 1.0
    encoding = WORDS[word]
    scale = column_scale(encoding, x, np.ones(70))
    codes, side = rounded(encoding, x / scale)
    assert (side[2] == 0 + 4 * 2).all()  # the only value of the quad, and the lowest free row
    for quad, start in enumerate(range(0, 68, 4)):
        for n in range(6):
            pairs = {p + 4 * q: x[start + p, n] ** 2 + x[start + q, n] ** 2
                     for p, q in combinations(range(4), 2)}  # fmt: skip
            if word == "int8s":  # of 4 bits, rounding decides as well
                assert pairs[side[quad, n]] >= 0.9 * max(pairs.values())
    assert not codes[~kept(side, 70)].any()


@pytest.mark.parametrize("word", ["int4", "int4s", "ternary", "int4g32", "int4g16"])
def test_weights_on_a_grid_are_found(word: str) -> None:
    """What was rounded once is rounded to itself, up to the 8 bits of a group's scale."""
    encoding = WORDS[word]
    once = _real(word, weights(64, 9), None)
    again = _real(word, once, None)
    if encoding.group:
        np.testing.assert_allclose(again, once, atol=np.abs(once).max() / 100)
    else:
        np.testing.assert_allclose(again, once, rtol=1e-12)


@pytest.mark.parametrize("word", NARROW)
@pytest.mark.parametrize("head_dim", [12, 18])
def test_groups_count_padded_heads(word: str, head_dim: int) -> None:
    """Rows of heads are rounded as where rows of zeros lie between the heads."""
    encoding, given = WORDS[word], weights(4 * head_dim, 6)
    assert encoding.format is not None
    size = -(-head_dim // 16) * 16
    rows = [head * size + row for head in range(4) for row in range(head_dim)]
    padded = np.zeros((4 * size, 6))
    padded[rows] = given
    scale = column_scale(encoding, given, np.ones(len(given)), head_dim)
    np.testing.assert_array_equal(scale, column_scale(encoding, padded, np.ones(len(padded))))
    codes, side = rounded(encoding, given / scale, head_dim=head_dim)
    wanted, sides = rounded(encoding, padded / scale)
    found = expand(encoding.format, encoding.group, codes, side, head_dim)
    same = expand(encoding.format, encoding.group, wanted, sides)
    np.testing.assert_array_equal(found, same[rows])
    assert side.shape == sides.shape


def test_zero_column() -> None:
    """A column of zeros stays one in every format."""
    given = weights(40, 3)
    given[:, 1] = 0.0
    for word in NARROW:
        layer = quantize_linear("test", given, np.zeros(3), 0.1, WORDS[word])
        assert not layer.weight[:, 1].any()
        assert layer.weight[:, 0].any()


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
def measured(checkpoint: Checkpoint, scales: ActivationScales) -> InputMoments:
    """Return its moments."""
    return measure(checkpoint, scales, random_tokens(SHAPE, 16, 12), {"text": "random"})


def test_moments(measured: InputMoments, scales: ActivationScales, tmp_path: Path) -> None:
    """One matrix an input, symmetric, of int8 values; written and read again."""
    assert set(measured.moments) == {
        *(f"h.{layer}.{name}" for layer in (0, 1) for name in ("norm1", "ctx", "norm2", "act")),
        "norm",
    }
    for name, found in measured.moments.items():
        np.testing.assert_array_equal(found, found.T)
        size = 48 if name.endswith("act") else 32
        assert found.shape == (size, size)
        assert 256 * 100 < found.diagonal().max() <= 256 * 128**2
    save_moments(measured, tmp_path / COVARIANCE_FILE)
    first = (tmp_path / COVARIANCE_FILE).read_bytes()
    for _ in range(8):  # metadata in no order would come in another one
        save_moments(measured, tmp_path / COVARIANCE_FILE)
        assert (tmp_path / COVARIANCE_FILE).read_bytes() == first
    again = load_moments(tmp_path / COVARIANCE_FILE, random_checkpoint(SHAPE, 11))
    assert again.owner == measured.owner
    assert again.provenance == {"text": "random"}
    for name, found in measured.moments.items():
        np.testing.assert_array_equal(again.moments[name], found)


def test_moments_of_one_layer_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither who measures nor who reads them holds those of all."""
    shape = shape_of("llama", hidden=32, layers=12, heads=2, ffn=512, vocab=60, context=32)
    write_checkpoint(random_checkpoint(shape, 11), tmp_path)
    own = load_checkpoint(tmp_path)
    tokens = random_tokens(shape, 32, 12)
    found = calibrate(own, tokens)
    monkeypatch.setattr(covariance, "calibration_tokens", lambda _: tokens)
    one, path = 8 * 512**2, tmp_path / COVARIANCE_FILE
    tracemalloc.start()
    try:
        covariance.measure_on_text(own, found, path)
        assert tracemalloc.get_traced_memory()[1] < 6 * one
        tracemalloc.reset_peak()
        again = load_moments(path, own)
        sums = {name: int(moments.sum()) for name, moments in again.moments.items()}
        assert tracemalloc.get_traced_memory()[1] < 4 * one
    finally:
        tracemalloc.stop()
    whole = measure(own, found, tokens)
    assert list(whole.moments)[-2:] == ["h.11.act", "norm"]
    assert sums == {name: int(moments.sum()) for name, moments in whole.moments.items()}
    assert again.owner == whole.owner


def test_large_sums(measured: InputMoments, tmp_path: Path) -> None:
    """Sums that int32 does not hold are written as int64."""
    large = replace(measured, moments={name: one << 20 for name, one in measured.moments.items()})
    save_moments(large, tmp_path / COVARIANCE_FILE)
    again = load_moments(tmp_path / COVARIANCE_FILE, random_checkpoint(SHAPE, 11))
    for name, found in large.moments.items():
        np.testing.assert_array_equal(again.moments[name], found)


def test_text_too_short(checkpoint: Checkpoint, scales: ActivationScales) -> None:
    """Fewer positions than inputs say nothing about which of them move together."""
    with pytest.raises(
        CovarianceError,
        match=r"calibration text too short for the covariance: given 32 tokens, allowed at least "
        r"48, the inputs of h\.0\.act",
    ):
        measure(checkpoint, scales, random_tokens(SHAPE, 2, 12))


def test_moments_of_another(
    checkpoint: Checkpoint, scales: ActivationScales, measured: InputMoments, tmp_path: Path
) -> None:
    """Moments belong to checkpoint and scales; a damaged file is named."""
    other = replace(scales, ranges=scales.ranges | {"residual": 1.0})
    with pytest.raises(CovarianceError, match="moments of other scales"):
        quantize(checkpoint, other, parse_recipe("int4g"), measured)
    write_checkpoint(checkpoint, tmp_path)
    own = load_checkpoint(tmp_path)
    save_moments(replace(measured, owner="0"), tmp_path / COVARIANCE_FILE)
    with pytest.raises(CovarianceError, match=r"moments of other activation scales.*run python"):
        moments_for(own, scales)
    (tmp_path / COVARIANCE_FILE).write_bytes(b"no tensors")
    with pytest.raises(CovarianceError, match="cannot be read as input covariance"):
        load_moments(tmp_path / COVARIANCE_FILE, own)
    few = replace(measured, moments={"norm": measured.moments["norm"]})
    save_moments(few, tmp_path / COVARIANCE_FILE)
    with pytest.raises(CovarianceError, match=r"h\.0\.norm1: given nothing, allowed \(528,\)"):
        load_moments(tmp_path / COVARIANCE_FILE, own)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured ends in status 2 and one line."""
    assert main(["nowhere at all"]) == 2
    assert capsys.readouterr().err.startswith("covariance: load_checkpoint: given 'nowhere at all'")


def layers(model: QuantizedModel) -> dict[str, Linear | NarrowLinear]:
    """Return the layers of the first block, and the head, by kind."""
    block = model.blocks[0]
    found = {"qkv": block.qkv, "o": block.proj, "up": block.up, "down": block.down}
    return found | {"head": model.head} | ({} if block.gate is None else {"gate": block.gate})


@pytest.mark.parametrize("compensated", [False, True])
def test_recipe_reaches_every_tensor(
    checkpoint: Checkpoint, scales: ActivationScales, measured: InputMoments, compensated: bool
) -> None:
    """Each kind gets its format; the real weights are near those of int8, the biases too."""
    recipe = parse_recipe("qkv=mxfp6e2,o=int4g32,up=nf4g16,down=mxint8")
    model = quantize(checkpoint, scales, recipe, measured if compensated else None)
    plain = layers(quantize(checkpoint, scales))
    for kind, layer in layers(model).items():
        word = str(recipe[kind])  # type: ignore[index]
        if isinstance(layer, NarrowLinear):
            assert word.startswith(layer.format.asm)
            assert layer.group in (16, 32)
        else:
            assert word == "int8"
        real, expected = (
            one.weight * (one.mult / np.exp2(one.shift.astype(float)))
            for one in (layer, plain[kind])
        )
        assert np.abs(real - expected).max() < 0.4 * np.abs(expected).max()
        bias, wanted = (
            one.bias * (one.mult / np.exp2(one.shift.astype(float))) for one in (layer, plain[kind])
        )
        np.testing.assert_allclose(bias, wanted, atol=1.0)


def test_codes_of_a_shipped_checkpoint() -> None:
    """The codes follow from files of the repository, to the byte."""
    model = quantize_checkpoint(str(CHECKPOINT), parse_recipe(RECIPE))
    state = hashlib.sha256()
    for block in model.blocks:
        for layer in (block.qkv, block.proj, block.up, block.down, model.head):
            assert isinstance(layer, NarrowLinear)
            state.update(layer.codes.tobytes() + layer.side.tobytes())
    assert state.hexdigest() == DIGEST


def test_scales_of_a_model_on_a_grid(
    checkpoint: Checkpoint, scales: ActivationScales, tmp_path: Path
) -> None:
    """Weights that were trained on a grid are not equalised; the scale file says so."""
    kept_as_is = calibrate(checkpoint, random_tokens(SHAPE, 16, 12), equalized=False)
    assert not kept_as_is.equalized
    save_scales(kept_as_is, tmp_path / "scales.json")
    assert load_scales(tmp_path / "scales.json") == kept_as_is
    model = quantize(checkpoint, kept_as_is)
    value = checkpoint.tensors["h.0.o.weight"]
    step = model.blocks[0].proj.mult / np.exp2(model.blocks[0].proj.shift.astype(float))
    unit = model.scales["h.0.v"] / model.scales["residual"]
    np.testing.assert_allclose(
        model.blocks[0].proj.weight * step, value * unit, atol=0.51 * float(step.max())
    )
