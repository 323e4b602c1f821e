# SPDX-License-Identifier: Apache-2.0
"""`npu evaluate`: figures of a text, and where a model loses; no simulator."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from golden.decoder import forward_rows, forward_trace
from npu.cli import command_line
from npu.commands.files import as_json
from npu.tables import FitTable, as_text
from spec.paths import ROOT
from tb.models import evaluate, model_commands
from weights.calibrate import calibrate
from weights.formats.recipe import INT8_WEIGHTS
from weights.importer import load_checkpoint
from weights.loss import Loss, TextRow, rows_of
from weights.model import QuantizedModel
from weights.quantize import quantize, quantize_loaded
from weights.reference import forward
from weights.synthetic import random_checkpoint, random_tokens, shape_of
from weights.tokenizer import load_tokenizer

MODEL = ROOT / "weights" / "checkpoints" / "llama-tiny"
TEXT = b"A list is a sequence of items.  It has\tappend() and pop().\n" * 12
ROW, TOKENS = 64, 256
QUIET = Console(stderr=True, quiet=True)


@pytest.fixture(scope="module")
def found() -> evaluate.Evaluation:
    """Return what there is to say of a shipped model."""
    return evaluate.evaluate(str(MODEL), INT8_WEIGHTS, TEXT, TOKENS, ROW, QUIET)


@pytest.fixture(scope="module")
def model() -> QuantizedModel:
    """Return its integers."""
    return quantize_loaded(load_checkpoint(MODEL))


def test_figures_are_those_of_the_probabilities(
    found: evaluate.Evaluation, model: QuantizedModel
) -> None:
    """Sums of logarithms over words and bytes; a token of this model is a byte."""
    checkpoint = load_checkpoint(MODEL)
    rows = rows_of(
        checkpoint,
        load_tokenizer(MODEL, model.shape.vocab),
        np.frombuffer(TEXT, np.uint8),
        ROW,
        TOKENS // ROW,
    )
    ids = np.stack([row.ids for row in rows])
    networks = {
        "float32": forward(checkpoint, ids),
        "integers": forward_rows(model, ids) * model.scales["logits"],
    }
    words = sum(len(bytes(row[1:].astype(np.uint8)).split()) for row in ids)
    assert words == found.words > 20
    for name, logits in networks.items():
        powers = np.exp(logits[:, :-1].astype(np.float64))
        chances = np.take_along_axis(powers, ids[:, 1:, None], -1)[..., 0] / powers.sum(axis=-1)
        total = -np.log(chances).sum()
        figures = found.record()[name]
        assert figures["bits_per_byte"] == pytest.approx(total / chances.size / math.log(2))
        assert figures["byte_perplexity"] == pytest.approx(math.exp(total / chances.size))
        assert figures["token_perplexity"] == pytest.approx(math.exp(total / chances.size))
        assert figures["word_perplexity"] == pytest.approx(math.exp(total / words))
    same = networks["float32"].argmax(-1) == networks["integers"].argmax(-1)
    assert found.record()["top1_agreement"] == pytest.approx(same.mean())
    assert 0.5 < same.mean() < 1
    assert found.record()["bits_per_byte_increase"] > 0


@pytest.mark.parametrize(
    ("words", "bits", "row"),
    [
        (1, (8.0, 8.5), "word perplexity - - -"),  # two to the power of 1,600
        (20, (4.0, 4.5), "word perplexity 1.100e12 3.518e13 +3100.00%"),
        (5, (4.0, 4.5), "word perplexity 1.462e48 1.532e54 +1.0e8%"),
        (0, (4.0, 4.5), "word perplexity - - -"),
        (9, (1200.0, 1500.0), "byte perplexity - - -"),
        (9, (0.0, 0.5), "bits per byte 0.0000 0.5000 -"),
        (50, (4.0, 4.5), "word perplexity 65536.0000 262144.0000 +300.00%"),
    ],
)
def test_figures_that_are_no_numbers(words: int, bits: tuple[float, float], row: str) -> None:
    """A text with few blanks: a dash in the table and null in the record, and short columns."""
    layer = evaluate.LayerError(math.nan, "", 0.0)
    found = evaluate.Evaluation(Loss(200, 200, *bits, 8.0, 0.5), words, 1, (layer,))
    lines = [" ".join(line.split()) for table in found.tables() for line in _lines(table)]
    assert row in lines, lines
    assert "0 -" in lines
    record = json.loads(as_json(found.record()), parse_constant=pytest.fail)
    assert record["layers"][0]["stream_error"] is None
    for name in ("byte_perplexity", "word_perplexity"):
        dashed = row.startswith(name.replace("_", " ") + " -")
        assert not dashed or record["integers"][name] is None


def _lines(table: FitTable) -> list[str]:
    return [
        line.translate(dict.fromkeys(map(ord, "│┃"), " "))
        for line in as_text(table, 100).split("\n")
    ]


def test_layers_say_where_it_loses(model: QuantizedModel) -> None:
    """The error of the stream appears behind a layer that is spoiled, and clipped values in it."""
    checkpoint = load_checkpoint(MODEL)
    rows = rows_of(checkpoint, load_tokenizer(MODEL, 256), np.frombuffer(TEXT, np.uint8), ROW, 2)
    before = evaluate.layer_errors(checkpoint, model, rows)
    assert len(before) == model.shape.layers
    assert all(0.005 < one.stream < 0.2 for one in before)
    worse = replace(
        model.blocks[2], down=replace(model.blocks[2].down, shift=model.blocks[2].down.shift - 1)
    )
    spoiled = replace(model, blocks=(*model.blocks[:2], worse, *model.blocks[3:]))
    after = evaluate.layer_errors(checkpoint, spoiled, rows)
    assert [one.stream for one in after[:2]] == [one.stream for one in before[:2]]
    assert after[2].stream > 3 * before[2].stream
    loud = replace(
        model.blocks[1], up=replace(model.blocks[1].up, shift=model.blocks[1].up.shift - 4)
    )
    spoiled = replace(model, blocks=(model.blocks[0], loud, *model.blocks[2:]))
    after = evaluate.layer_errors(checkpoint, spoiled, rows)
    assert after[1].clipped in ("up", "act")
    trace = forward_trace(spoiled, rows[0].ids.tolist()).blocks[1]
    limits = np.mean([np.abs(trace.up.astype(int)) >= 127])
    assert after[1].share > limits / 3 > 0.05


def test_a_limited_product_is_clipped_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of int16 gates; what their table is read by, and its ends, lose nothing and are not named."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shape = shape_of("llama", hidden=64, heads=4, kv_heads=2, context=32)
    checkpoint = random_checkpoint(shape, 3)
    tokens = random_tokens(shape, 8, 4)[:, 1:]
    scales = calibrate(checkpoint, tokens, sink=5)
    monkeypatch.setattr(evaluate, "scales_for", lambda _: scales)
    wide = quantize(checkpoint, scales)
    rows = [TextRow(row, 1) for row in tokens[:2]]
    shut = [replace(block, near_mult=32_767, near_shift=12) for block in wide.blocks]
    for limit, named in ((32_767, False), (200, True)):
        blocks = tuple(replace(block, act_limit=limit) for block in shut)
        found = evaluate.layer_errors(checkpoint, replace(wide, blocks=blocks), rows)
        assert all((one.clipped == "act") == named for one in found), found
        assert all(one.clipped not in ("near", "ratio") for one in found)


def test_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables on standard error, figures in a record."""
    monkeypatch.setattr(model_commands, "REPORTS", tmp_path)
    monkeypatch.setattr(model_commands, "ROOT", tmp_path)
    text = tmp_path / "text.txt"
    text.write_bytes(TEXT)
    options = ["--text", str(text), "--tokens", str(TOKENS), "--row", str(ROW)]
    assert command_line.main(["evaluate", str(MODEL), *options]) == 0
    printed = capsys.readouterr().err
    for word in ("bits per byte", "word perplexity", "same likeliest token", "most clipped"):
        assert word in printed
    record = json.loads((tmp_path / "evaluate.json").read_text())
    assert (record["tokens"], record["rows"]) == (TOKENS - TOKENS // ROW, TOKENS // ROW)
    assert len(record["layers"]) == 4
