# SPDX-License-Identifier: Apache-2.0
"""Layers that were rounded once are found again, to the bit, and never instead of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.python.weights.moments_file import save_moments
from weights import kept_layers, quantize
from weights.calibrate import SCALES_FILE, calibrate, load_scales, save_scales
from weights.covariance import measure
from weights.formats.recipe import parse_recipe
from weights.importer import COVARIANCE_FILE, load_checkpoint
from weights.model import QuantizedModel
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

SHAPE = shape_of("llama", hidden=48, layers=2, heads=3, ffn=80, vocab=61, context=24)
RECIPE = "qkv=mxfp6e2,o=int4g32,up=nf4g16,gate=ternary,down=int4s,head=fp4g"
LAYERS = 2 * 7 + 1
"""Matrices that are rounded: q, k and v, and the others, and the head in one piece."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkpoint with scales and moments beside it, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "model"
    write_checkpoint(random_checkpoint(SHAPE, 1), made)
    checkpoint = load_checkpoint(made)
    save_scales(calibrate(checkpoint, random_tokens(SHAPE, 8, 2)), made / SCALES_FILE)
    measure_beside(made, 2)
    return made


def measure_beside(folder: Path, seed: int) -> None:
    """Write the moments of some tokens beside a checkpoint."""
    checkpoint, scales = load_checkpoint(folder), load_scales(folder / SCALES_FILE)
    found = measure(checkpoint, scales, random_tokens(SHAPE, 8, seed))
    save_moments(found, folder / COVARIANCE_FILE)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the place of every matrix that is rounded."""
    seen: list[str] = []
    whole: Callable[..., object] = quantize.quantize_linear

    def counted(where: str, *others: object) -> object:
        seen.append(where)
        return whole(where, *others)

    monkeypatch.setattr(quantize, "quantize_linear", counted)
    return seen


def run(folder: Path, recipe: str = RECIPE) -> QuantizedModel:
    """Quantise the checkpoint as a command does."""
    return quantize.quantize_checkpoint(str(folder), parse_recipe(recipe))


def assert_equal(model: QuantizedModel, other: QuantizedModel) -> None:
    """Compare all that the rounding makes."""
    for ours, theirs in zip(model.blocks, other.blocks, strict=True):
        for name in ("qkv", "proj", "up", "gate", "down"):
            assert_same_layer(getattr(ours, name), getattr(theirs, name))
    assert_same_layer(model.head, other.head)


def assert_same_layer(layer: object, other: object) -> None:
    """Compare every part of a layer."""
    assert type(layer) is type(other)
    for name in ("weight", "bias", "mult", "shift", "codes", "side", "format", "group"):
        ours, theirs = getattr(layer, name, None), getattr(other, name, None)
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("recipe", [RECIPE, "int8,o=int4g32", "int2,qkv=mxint8,head=mxfp8e4"])
def test_second_run_rounds_nothing(folder: Path, rounds: list[str], recipe: str) -> None:
    """It has the integers of the first, which are those of who keeps nothing."""
    first = run(folder, recipe)
    assert len(rounds) == LAYERS
    rounds.clear()
    assert_equal(run(folder, recipe), first)
    assert not rounds
    checkpoint = load_checkpoint(folder)
    scales = load_scales(folder / SCALES_FILE)
    moments = measure(checkpoint, scales, random_tokens(SHAPE, 8, 2))
    assert_equal(quantize.quantize(checkpoint, scales, parse_recipe(recipe), moments), first)


def test_what_differs_is_rounded(
    folder: Path, rounds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another format, text, scale, weight, or code that rounds."""
    run(folder)
    rounds.clear()
    run(folder, RECIPE.replace("up=nf4g16", "up=int4g16").replace("ternary", "int2"))
    assert rounds == [f"h.{layer}.norm2 -> linear {one}" for layer in (0, 1) for one in (0, 1)]
    rounds.clear()
    measure_beside(folder, 3)
    run(folder)
    assert len(rounds) == LAYERS
    rounds.clear()
    scales = load_scales(folder / SCALES_FILE)
    louder = scales.ranges | {"logits": 2 * scales.ranges["logits"]}
    save_scales(replace(scales, ranges=louder), folder / SCALES_FILE)
    measure_beside(folder, 3)
    run(folder)
    assert rounds == ["norm -> linear 0"]
    rounds.clear()
    monkeypatch.setattr(kept_layers, "_code", lambda: b"another")
    run(folder)
    assert len(rounds) == LAYERS


def files_in(folder: Path) -> dict[Path, bytes]:
    """Return all files below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def truncated(data: bytes) -> bytes:
    """Return the first half."""
    return data[: len(data) // 2]


def changed(data: bytes) -> bytes:
    """Return another last bit."""
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("damage", [truncated, changed, lambda _: b"", lambda _: b"x" * 999])
def test_damage_is_found(
    folder: Path, rounds: list[str], damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """A damaged file is rounded anew, to the same integers, and written again."""
    first = run(folder)
    files = files_in(tmp_path / "cache")
    assert len(files) == LAYERS
    worst = sorted(files)[3]
    worst.write_bytes(damage(files[worst]))
    rounds.clear()
    assert_equal(run(folder), first)
    assert len(rounds) == 1
    assert files_in(tmp_path / "cache") == files


def test_without_a_cache(folder: Path, rounds: list[str], tmp_path: Path) -> None:
    """Where nothing can be kept everything is rounded, and nobody is told."""
    (tmp_path / "cache").write_text("no folder")
    first = run(folder)
    assert_equal(run(folder), first)
    assert len(rounds) == 2 * LAYERS
