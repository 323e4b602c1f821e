# SPDX-License-Identifier: Apache-2.0
"""A loss that was measured once is found again, and never instead of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from golden.decoder import forward_rows
from weights import kept_loss
from weights.calibrate import calibrate
from weights.loss import Loss, TextRow
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.synthetic import random_checkpoint, random_tokens, shape_of

SHAPE = shape_of("llama", vocab=61, context=24)
CHECKPOINT = random_checkpoint(SHAPE, 1)
MODEL = quantize(CHECKPOINT, calibrate(CHECKPOINT, random_tokens(SHAPE, 8, 2)))
ROWS = [TextRow(ids, ids.size) for ids in random_tokens(SHAPE, 3, 3)]
RUNS: list[int] = []


def network(model: QuantizedModel, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    """Return golden's logits, and note that it was asked."""
    RUNS.append(len(ids))
    return forward_rows(model, ids)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache, in which every loss is worth a file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_loss, "LEAST", 0.0)
    RUNS.clear()
    return tmp_path


def loss(model: QuantizedModel = MODEL, rows: list[TextRow] = ROWS) -> Loss:
    """Return what a model loses."""
    return kept_loss.kept_loss(CHECKPOINT, model, rows, network)


def test_the_second_time_nothing_runs() -> None:
    """And the figures are the same."""
    first = loss()
    assert RUNS
    RUNS.clear()
    assert loss() == first
    assert not RUNS


def test_others_are_measured() -> None:
    """One weight more, one token of the text, or another float model."""
    first = loss()
    weight = MODEL.head.weight.copy()
    weight[0, 0] ^= 1
    model = replace(MODEL, head=replace(MODEL.head, weight=weight))
    ids = ROWS[0].ids.copy()
    ids[5] ^= 1
    others = (loss(model), loss(rows=[TextRow(ids, ids.size), *ROWS[1:]]))
    assert len({first.integer_bits, *(one.integer_bits for one in others)}) == 3
    RUNS.clear()
    kept_loss.kept_loss(random_checkpoint(SHAPE, 4), MODEL, ROWS, network)
    assert RUNS


def test_a_damaged_file_is_as_good_as_none(cache: Path) -> None:
    """Cut off, of another form, or no JSON; it is measured again and replaced."""
    first = loss()
    (path,) = cache.rglob("loss-*.json")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], b"[]", b'{"tokens": 1}', b"\xff"):
        path.write_bytes(damaged)
        RUNS.clear()
        assert loss() == first
        assert RUNS
        assert path.read_bytes() == whole


def test_what_takes_no_time_has_no_file(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that cannot be written is no error either."""
    monkeypatch.setattr(kept_loss, "LEAST", 1e9)
    first = loss()
    assert not [*cache.rglob("loss-*")]
    monkeypatch.setattr(kept_loss, "LEAST", 0.0)
    (cache / "tessera").write_text("no folder", encoding="utf-8")
    assert loss() == first
