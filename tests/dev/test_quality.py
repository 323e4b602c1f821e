# SPDX-License-Identifier: Apache-2.0
"""What `make quality` makes of two networks: figures, bars, exit status, refusals; no PyTorch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dev import quality
from dev import quality_pages as pages
from dev.quality import QualityError, Rows, Subject
from dev.quality_report import FormatQuality, Quality, save
from npu.commands.arguments import UsageError
from weights.corpus import read_corpus
from weights.figures import FormatFigures, read_figures, read_text, write_figures

FINE = Quality("tiny", "gpt2", 10, 1000, 2.0, 2.0119, 0.94, 0.006, 0.94, 1.0)
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
    narrow = FormatQuality(FormatFigures("tiny", "int4g32", 1000, 2.0, 2.1, 4.5, 9000), 0.04)
    save((found,), (narrow,), tmp_path / "quality.json")
    saved = json.loads((tmp_path / "quality.json").read_text(encoding="utf-8"))
    assert saved["models"][0]["passed"] == (not misses)
    assert saved["models"][0]["tokens"] == 1000
    assert saved["formats"][0]["passed"] is False


def test_held_out_rows() -> None:
    """Enough tokens, of held-out text only, spread over all of it."""
    table = quality.held_out_rows(128, 5000)
    assert table.shape == (40, 128)
    text = read_corpus().held_out.tobytes()
    assert all(bytes(row.astype(np.uint8).tolist()) in text for row in table)
    assert bytes(table[-1].astype(np.uint8).tolist()) in text[-256:]
    whole = quality.held_out_rows(128)
    assert whole.shape == (len(text) // 128, 128)
    assert bytes(whole.astype(np.uint8)) == text[: whole.size]
    with pytest.raises(QualityError, match=r"given 99999999 tokens, allowed at most \d+, what"):
        quality.held_out_rows(128, 99_999_999)


def test_subjects(tmp_path: Path) -> None:
    """Every checkpoint, one by name, the outlier variant behind; unknown names are refused."""
    every = pages.check_request((), None, publish=True)
    names = [subject.name for subject in quality.subjects(every, tmp_path / "all")]
    shipped = sorted(path.name for path in quality.CHECKPOINTS.iterdir())
    variant = "gpt2-tiny, outlier channels"
    assert names == [*shipped, variant]
    chosen = list(quality.subjects(("gpt2-tiny",), tmp_path / "one"))
    assert [(one.name, one.max_loss, one.min_agreement) for one in chosen] == [
        ("gpt2-tiny", 0.006, 0.94),
        (variant, 0.005, 0.88),
    ]
    assert (chosen[1].folder / "model.safetensors").is_file()
    with pytest.raises(UsageError, match=r"given 'gpt3', allowed .*gpt2-tiny"):
        pages.check_request(("gpt3",), None, publish=False)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be measured ends in status 2 and one line."""
    for arguments, message in (
        (["gpt3"], "quality: given 'gpt3', allowed "),
        (["--tokens", "0"], "quality: tokens: given 0, allowed 1 and more"),
        (["--publish", "gpt2-tiny"], "quality: --publish: given a part, allowed all models on all"),
        (["--publish", "--tokens", "9"], "quality: --publish: given a part, allowed all models"),
        (["--publish", "--tier", "smoke"], "quality: --publish: given a part, allowed all models"),
        (["--tier", "nightly"], "quality: TIER=nightly: given 'nightly', allowed smoke, full"),
    ):
        assert quality.main(arguments) == 2
        assert capsys.readouterr().err.strip().startswith(message)


def test_published_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """README is what the published figures make of it, and publishing changes what it must."""
    page = pages.README.read_text(encoding="utf-8")
    assert pages.readme(page) == page
    shipped = {path.name for path in quality.CHECKPOINTS.iterdir()}
    figures = read_figures()
    assert figures.keys() == {*shipped, "gpt2-tiny, outlier channels"}
    copies = {"README": tmp_path / "README.md", "CHECKPOINTS": tmp_path / "checkpoints"}
    shutil.copytree(quality.CHECKPOINTS, copies["CHECKPOINTS"])
    copies["README"].write_text(page, encoding="utf-8")
    for name, path in copies.items():
        monkeypatch.setattr(pages, name, path)
    monkeypatch.setattr(pages, "write_figures", lambda text, found: None)
    pages.publish(list(figures.values()))
    assert copies["README"].read_text(encoding="utf-8") == page
    for name in shipped:
        card = copies["CHECKPOINTS"] / name / "README.md"
        assert card.read_bytes() == (quality.CHECKPOINTS / name / "README.md").read_bytes()
    with pytest.raises(ValueError, match=r"README.md needs one line"):
        pages.readme(page.replace(pages.END, ""))


def test_stale_pages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A measurement that differs from what is published is named; another text is no measure."""
    monkeypatch.setattr(pages, "text_here", read_text)
    found = list(read_figures().values())
    assert pages.stale(found) == []
    close = replace(found[0], float_bits=found[0].float_bits + 1e-4)
    assert pages.stale([close, *found[1:]]) == []
    worse = replace(found[0], integer_bits=found[0].integer_bits + 1e-3, windows=5)
    lines = pages.stale([worse, *found[2:]])
    assert [line.partition(";")[0] for line in lines] == [
        f"quality: {worse.model}: integer_bits: published {found[0].integer_bits}, measured "
        f"{worse.integer_bits}",
        f"quality: {worse.model}: windows: published {found[0].windows}, measured 5",
        f"quality: {found[1].model}: published only",
    ]
    monkeypatch.setattr(pages, "text_here", lambda: replace(read_text(), sha256="0"))
    assert pages.stale([worse]) == []
    assert "cannot be compared" in capsys.readouterr().out


def test_figures_file(tmp_path: Path) -> None:
    """What is written is read."""
    path = tmp_path / "quality.json"
    write_figures(read_text(), [FINE.figures], path)
    assert read_figures(path) == {"tiny": FINE.figures}
    assert read_text(path) == read_text()
    assert FINE.figures.integer_bits == 2.0119
