# SPDX-License-Identifier: Apache-2.0
"""What `make quality` measures of narrow formats: subjects, bars, published figures, cards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dev import quality_formats as formats
from dev.quality import held_out_rows
from dev.quality_formats import FormatSubject
from dev.quality_report import FormatQuality
from weights.card import CARD, read_record
from weights.figures import FormatFigures, read_format_figures
from weights.finetuned_card import card_text
from weights.formats.recipe import parse_recipe
from weights.importer import load_checkpoint
from weights.quantize import quantize_checkpoint
from weights.recipe import FINETUNES, finetune_rate

FIGURES = FormatFigures("tiny", "int4g32", 1000, 2.0, 2.1, 4.5, 9000)


def test_subjects() -> None:
    """Every recipe on both models, every fine-tuned checkpoint in its own; int8 comes first.

    The smoke tier has what has a bar, recipes of one model only, and what that is held against.
    """
    subjects = list(formats.format_subjects(full=True))
    assert len(subjects) == 2 * len(formats.RECIPES) + len(formats.finetuned())
    smoke = list(formats.format_subjects(full=False))
    assert smoke == [
        one
        for one in subjects
        if one.recipe == "int8"
        or (one.max_loss is not None and one.model in ("llama-tiny", "gpt2-tiny-int4g32"))
    ]
    assert {one.model for one in smoke} == {"gpt2-tiny", "llama-tiny", "gpt2-tiny-int4g32"}
    for one in subjects:
        assert parse_recipe(one.recipe).narrow == (one.recipe != "int8")
        assert (one.folder / "model.safetensors").is_file()
        assert (one.folder / "input_covariance.safetensors").is_file()
        assert (one.reference / "activation_scales.json").is_file()
        first = next(other for other in subjects if other.reference == one.reference)
        assert (first.recipe, first.folder) == ("int8", one.reference)
    bars = {(one.model, one.recipe): one.max_loss for one in subjects}
    assert bars["llama-tiny", "mxfp6e2,head=mxfp6e2"] == 0.005
    assert bars["gpt2-tiny-int4g32", "int4g32"] == 0.015


def test_measurement() -> None:
    """Narrower costs more, and a recipe that is int8 costs nothing."""
    folder = formats.CHECKPOINTS / "gpt2-tiny"
    rows = held_out_rows(128, 2000)
    moved: list[int] = []
    found = formats.measure_formats(
        [FormatSubject("m", word, folder, folder, 0.1) for word in ("int8", "nf4g32", "int4s")],
        rows,
        moved.append,
    )
    assert [one.figures.tokens for one in found] == [len(rows) * 127] * 3
    assert found[0].figures.loss == 0.0
    assert [one.figures.weight_bits for one in found] == [8.0, 4.6923, 3.3846]
    assert [one.figures.bus_cycles for one in found] == [14_852, 9_348, 7_172]
    assert 0.0 < found[1].figures.loss < 0.06
    assert found[2].figures.loss > 0.3
    assert [bool(one.misses) for one in found] == [False, False, True]
    assert sum(moved) == 3 * len(rows)


def test_bars() -> None:
    """A missed bar is named; no bar is never missed."""
    assert FormatQuality(FIGURES, 0.06).misses == []
    assert FormatQuality(FIGURES, None).misses == []
    assert FormatQuality(FIGURES, 0.04).misses == ["int4g32: +5.00% over int8, allowed +4.00%"]
    assert formats.render_formats([FormatQuality(FIGURES, 0.04)]).row_count == 1


def test_published() -> None:
    """What is published is measured and within its bars; a difference is named."""
    published = read_format_figures()
    bars = {(one.model, one.recipe): one.max_loss for one in formats.format_subjects(full=True)}
    found = [FormatQuality(one, bars[one.model, one.recipe]) for one in published]
    assert [one.misses for one in found] == [[]] * len(found)
    assert formats.stale_formats(found) == []
    worse = FormatQuality(replace(published[0], bits=9.0), None)
    lines = formats.stale_formats([worse, *found[2:]])
    assert len(lines) == 2
    assert lines[0].endswith(f"{published[1].recipe}: published only")
    assert "bits=9.0" in lines[1]
    for change in ({"tokens": 3}, {"weight_bits": 1.0}, {"bus_cycles": 7}, {"bits": 1.0}):
        other = FormatQuality(replace(published[0], **change), None)
        assert len(formats.stale_formats([other, *found[1:]])) == 1
        assert len(formats.stale_formats([other], full=False)) == 1
    assert formats.stale_formats(found[:1], full=False) == []
    unknown = FormatQuality(replace(published[0], recipe="int3"), None)
    (line,) = formats.stale_formats([unknown], full=False)
    assert line.endswith("int3: measured only")


@pytest.mark.parametrize("name", formats.finetuned())
def test_finetuned_checkpoints(name: str) -> None:
    """Checkpoint, record and card belong together; the record is that of the recipe."""
    folder = formats.FINETUNED / name
    checkpoint, record = load_checkpoint(folder), read_record(folder)
    assert checkpoint.shape.hidden == 64
    finetune = FINETUNES[name]
    assert record.recipe["seed"] == finetune.seed
    assert record.recipe["steps"] == finetune.steps == record.curve[-1].step
    assert record.recipe["peak_rate"] == finetune.peak_rate
    figures = next(one for one in read_format_figures() if one.model == name)
    assert (folder / CARD).read_text(encoding="utf-8") == card_text(name, record, figures)
    assert "not measured yet" in card_text(name, record, None)
    narrow = quantize_checkpoint(str(folder), parse_recipe(finetune.weights))
    for one, other in zip(narrow.blocks, quantize_checkpoint(str(folder)).blocks, strict=True):
        for kind in ("qkv", "proj", "up", "down"):  # on the grid: narrow weights are int8's, nearly
            layers = getattr(one, kind), getattr(other, kind)
            real = [x.weight * x.mult / np.exp2(x.shift.astype(float)) for x in layers]
            error = np.abs(real[0] - real[1]).max(axis=0) / np.abs(real[1]).max(axis=0)
            assert np.median(error) < 0.02, kind  # a group's 8-bit scale may miss a little


def test_finetune_rate() -> None:
    """Linear warm-up to the peak, cosine to the floor."""
    recipe = next(iter(FINETUNES.values()))
    rates = [finetune_rate(recipe, step) for step in range(recipe.steps + 1)]
    assert max(rates) == rates[recipe.warmup] == recipe.peak_rate
    assert rates[0] == pytest.approx(recipe.peak_rate / recipe.warmup)
    assert rates[-1] == pytest.approx(recipe.floor_rate)
