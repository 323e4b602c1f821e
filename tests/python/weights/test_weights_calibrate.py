# SPDX-License-Identifier: Apache-2.0
"""Activation scales: what is measured, where it is kept, and whose it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weights import calibrate as module
from weights.calibrate import (
    SCALES_FILE,
    ScalesError,
    _Largest,
    cache_path,
    calibrate,
    calibration_tokens,
    load_scales,
    save_scales,
    scales_for,
)
from weights.checkpoint import Checkpoint, digest
from weights.corpus import Corpus
from weights.equalize import equalize
from weights.importer import load_checkpoint
from weights.reference import Floats, forward
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

SHAPE = shape_of(
    "gpt2", hidden=16, layers=2, heads=2, ffn=20, vocab=256, context=12, activation="gelu_new"
)


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """Return a checkpoint in a folder, with the cache and the corpus out of the way."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = np.random.default_rng(3).integers(32, 127, 4000, np.uint8)
    monkeypatch.setattr(module, "read_corpus", lambda: Corpus(text, text, text, text, {}))
    write_checkpoint(random_checkpoint(SHAPE, 4), tmp_path / "model")
    return load_checkpoint(tmp_path / "model")


def test_only_the_largest_magnitudes_are_kept() -> None:
    """Not the batches that they come from, which are gigabytes of a published model."""
    largest = _Largest(total=100_000)
    largest.add(np.arange(50_000, dtype=np.float32))
    held = largest.values if largest.values.base is None else largest.values.base
    assert isinstance(held, np.ndarray)
    assert held.size == largest.keep < 20


def test_ranges_are_percentiles_of_all_batches() -> None:
    """The running percentile equals numpy's over everything at once."""
    checkpoint, tokens = random_checkpoint(SHAPE, 1), random_tokens(SHAPE, 19, 2)
    scales = calibrate(checkpoint, tokens)
    seen: dict[str, list[Floats]] = {}
    forward(equalize(checkpoint), tokens, lambda name, x: seen.setdefault(name, []).append(x))
    for name in ("h.0.q", "h.1.k", "h.0.v", "h.1.ctx", "h.0.up", "h.1.act"):
        wanted = np.percentile(np.abs(seen[name][0]), 99.99)
        assert scales.ranges[name] == pytest.approx(wanted, rel=1e-5)
    parts = [name for name in seen if name.endswith(("residual", "addend"))]
    stream = max(float(np.abs(x).max()) for name in parts for x in seen[name])
    assert scales.ranges["residual"] == pytest.approx(stream, rel=1e-5)
    assert scales.ranges["logits"] == pytest.approx(np.abs(seen["logits"][0]).max(), rel=1e-5)
    for name in ("h.0.norm1", "h.1.norm2", "norm"):
        wanted = np.abs(seen[name][0]).max(axis=(0, 1))
        np.testing.assert_allclose(scales.channels[name], wanted, rtol=1e-4)


def test_file_round_trip(tmp_path: Path) -> None:
    """Writing and reading keeps every bit."""
    scales = calibrate(random_checkpoint(SHAPE, 1), random_tokens(SHAPE, 2, 2), {"text": "noise"})
    save_scales(scales, tmp_path / "s.json")
    assert load_scales(tmp_path / "s.json") == scales


def test_digest_sees_every_tensor() -> None:
    """One changed weight is another checkpoint."""
    checkpoint = random_checkpoint(SHAPE, 1)
    before = digest(checkpoint)
    assert before == digest(random_checkpoint(SHAPE, 1))
    checkpoint.tensors["h.1.up.bias"][3] += 1.0
    assert digest(checkpoint) != before


def test_scales_are_kept_beside_the_checkpoint(stored: Checkpoint) -> None:
    """The first use calibrates and writes; the second reads."""
    assert stored.folder is not None
    path = stored.folder / SCALES_FILE
    first = scales_for(stored)
    assert load_scales(path) == first == scales_for(stored)
    assert first.provenance["tokens"] == "333 rows of 12"


def test_scales_of_a_read_only_folder_go_to_the_cache(
    stored: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of the hub is not written to."""
    assert stored.folder is not None
    monkeypatch.setattr("os.access", lambda path, _: path != stored.folder)
    first = scales_for(stored)
    assert not (stored.folder / SCALES_FILE).exists()
    assert load_scales(cache_path(stored)) == first == scales_for(stored)


def test_scales_of_another_checkpoint_are_refused(stored: Checkpoint) -> None:
    """A stale file beside retrained weights is an error, not a silent loss of quality."""
    assert stored.folder is not None
    scales_for(stored)
    write_checkpoint(random_checkpoint(SHAPE, 5), stored.folder)
    with pytest.raises(ScalesError, match=r"run python -m weights.calibrate"):
        scales_for(load_checkpoint(stored.folder))


def test_words_need_a_tokenizer(stored: Checkpoint) -> None:
    """A vocabulary that is not bytes cannot be fed text without a tokenizer."""
    shape = replace(SHAPE, vocab=300)
    with pytest.raises(ScalesError, match=r"given a vocabulary of 300 and no tokenizer.json"):
        calibration_tokens(random_checkpoint(shape, 1))
    rows = calibration_tokens(stored)
    assert rows.shape == (333, 12)


def test_tokenizer_beside_the_checkpoint(stored: Checkpoint) -> None:
    """With tokenizer.json the text becomes the model's own tokens."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split

    assert stored.folder is not None
    vocabulary = {chr(code): code - 32 for code in range(32, 127)} | {"?": 31}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = Split("", "isolated")
    tokenizer.save(str(stored.folder / "tokenizer.json"))
    shape = replace(SHAPE, vocab=300)
    write_checkpoint(random_checkpoint(shape, 1), stored.folder)
    rows = calibration_tokens(load_checkpoint(stored.folder))
    assert rows.shape[1] == 12
    assert rows.min() >= 0
    assert rows.max() < 300


def test_vocabulary_and_merges_beside_the_checkpoint(stored: Checkpoint) -> None:
    """So do other tokenizers than tokenizer.json."""
    assert stored.folder is not None
    letters = ["<|endoftext|>", *(chr(code) for code in range(33, 127)), "Ġ"]
    vocabulary = {letter: index for index, letter in enumerate(letters)}
    (stored.folder / "vocab.json").write_text(json.dumps(vocabulary))
    (stored.folder / "merges.txt").write_text("#version: 0.2\n")
    write_checkpoint(random_checkpoint(replace(SHAPE, vocab=300), 1), stored.folder)
    rows = calibration_tokens(load_checkpoint(stored.folder))
    text = np.random.default_rng(3).integers(32, 127, 4000, np.uint8)[:12]  # of the fixture
    assert rows.shape[1] == 12
    assert [letters[token] for token in rows[0]] == [chr(one) if one > 32 else "Ġ" for one in text]
