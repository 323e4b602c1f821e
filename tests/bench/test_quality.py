# SPDX-License-Identifier: Apache-2.0
"""What `make quality` makes of two networks: figures, bars, exit status, refusals; no PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tb import quality
from tb.quality import Quality, QualityError, Rows, Subject
from weights.corpus import Corpus, read_corpus

FINE = Quality("tiny", "gpt2", 1000, 2.0, 2.0119, 0.94, 0.006, 0.94, 1.0)
SUBJECT = Subject("tiny", Path("nowhere"))


def network(sharpness: float, wrong: int) -> Callable[[Rows], npt.NDArray[np.float64]]:
    """Return a network that gives the right next token `sharpness` nats, the first `wrong` not."""

    def logits(rows: Rows) -> npt.NDArray[np.float64]:
        found = np.zeros((*rows.shape, 4))
        for row, following in zip(found, np.roll(rows, -1, axis=1), strict=True):
            for position, token in enumerate(following):
                row[position, (token + 1) % 4 if position < wrong else token] = sharpness
        return found

    return logits


def test_figures() -> None:
    """Bits and agreement of networks whose cross entropy is known."""
    rows = np.random.default_rng(3).integers(0, 4, (37, 11))
    sure, less = network(9.0, 0), network(1.0, 0)
    moved: list[int] = []
    found = quality.compare(SUBJECT, "gpt2", rows, (sure, less), moved.append)
    assert found.tokens == 37 * 10
    assert found.float_bits == pytest.approx(np.log2(1 + 3 * np.exp(-9.0)))
    assert found.integer_bits == pytest.approx(np.log2(1 + 3 * np.exp(-1.0)))
    assert found.agreement == 1.0
    assert sum(moved) == 37
    wrong = quality.compare(SUBJECT, "gpt2", rows, (sure, network(9.0, 3)))
    assert wrong.agreement == pytest.approx(8 / 11)
    assert wrong.integer_bits > 2.0


@pytest.mark.parametrize(
    ("changes", "misses"),
    [
        ({}, []),
        ({"integer_bits": 2.0122}, ["bits per byte +0.61%, allowed +0.60%"]),
        ({"agreement": 0.9399}, ["top-1 93.99%, allowed at least 94.00%"]),
        ({"integer_bits": float("nan")}, ["bits per byte +nan%, allowed +0.60%"]),
        ({"agreement": 0.5, "min_agreement": 0.0}, []),
        ({"integer_bits": 2.079, "max_loss": 0.04}, []),
    ],
)
def test_bars(
    changes: dict[str, Any],
    misses: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A missed bar is named, marked, saved, and an error."""
    found = replace(FINE, **changes)
    assert found.misses == misses
    assert quality.conclude([FINE, found]) == bool(misses)
    shown = capsys.readouterr().out
    assert ("MISSED" in shown) == bool(misses)
    assert all(f"quality: tiny: {miss}" in shown for miss in misses)
    quality.save([found], tmp_path / "quality.json")
    saved = json.loads((tmp_path / "quality.json").read_text(encoding="utf-8"))
    assert saved["models"][0]["passed"] == (not misses)
    assert saved["models"][0]["tokens"] == 1000


def test_held_out_rows() -> None:
    """Enough tokens, of held-out text only, spread over all of it."""
    table = quality.held_out_rows(128, 5000)
    assert table.shape == (40, 128)
    text = read_corpus().held_out.tobytes()
    assert all(bytes(row.astype(np.uint8).tolist()) in text for row in table)
    assert bytes(table[-1].astype(np.uint8).tolist()) in text[-256:]
    with pytest.raises(QualityError, match=r"given 99999999 tokens, allowed at most \d+, what"):
        quality.held_out_rows(128, 99_999_999)


def test_the_text_is_long_enough() -> None:
    """The default number of tokens exists for every context of the shipped checkpoints."""
    corpus: Corpus = read_corpus()
    assert corpus.held_out.size * 127 // 128 - 127 > quality.TOKENS


def test_subjects(tmp_path: Path) -> None:
    """Every checkpoint, one by name, the outlier variant behind; unknown names are refused."""
    names = [subject.name for subject in quality.subjects((), tmp_path / "all")]
    shipped = sorted(path.name for path in quality.CHECKPOINTS.iterdir())
    variant = "gpt2-tiny, outlier channels"
    assert names == [*shipped, variant]
    chosen = list(quality.subjects(("gpt2-tiny",), tmp_path / "one"))
    assert [(one.name, one.max_loss, one.min_agreement) for one in chosen] == [
        ("gpt2-tiny", 0.006, 0.94),
        (variant, 0.04, 0.0),
    ]
    assert (chosen[1].folder / "model.safetensors").is_file()
    with pytest.raises(QualityError, match=r"given 'gpt3', allowed .*gpt2-tiny"):
        list(quality.subjects(("gpt3",), tmp_path))


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured ends in status 2 and one line."""
    for arguments, message in (
        (["gpt3"], "quality: given 'gpt3', allowed "),
        (["--tokens", "0"], "quality: tokens: given 0, allowed 1 and more"),
    ):
        assert quality.main(arguments) == 2
        assert capsys.readouterr().err.strip().startswith(message)
