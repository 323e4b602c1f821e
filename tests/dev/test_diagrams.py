# SPDX-License-Identifier: Apache-2.0
"""The timing diagrams of docs/rtl are what the RTL does, and their pictures are current."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dev import diagrams
from npu import optional
from tests.needs import needs


@pytest.fixture(scope="module")
def waveform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the test that the diagrams are taken from."""
    needs(*optional.WAVES)
    return diagrams.record_test(tmp_path_factory.mktemp("diagrams"), diagrams.load()[0])


def test_the_diagrams_are_those_of_the_rtl(waveform: Path) -> None:
    """Every diagram, taken anew, is the one in docs/rtl."""
    found = diagrams.take(waveform, diagrams.load()[1])
    for path in diagrams.sources():
        assert found[path.stem] == json.loads(path.read_text(encoding="utf-8")), path.name


def test_a_signal_that_is_not_there_is_named(waveform: Path) -> None:
    """A definition that the RTL has outgrown is an error, not an empty line."""
    first = diagrams.load()[1][0]
    broken = replace(first, rows=(diagrams.DiagramRow("gone", "no_such_signal"),))
    with pytest.raises(diagrams.DiagramError, match=r"no signal tb_top\..*\.no_such_signal"):
        diagrams.take(waveform, (broken,))


def test_a_beginning_that_never_comes_is_named(waveform: Path) -> None:
    """So is a rise that the waveform does not have."""
    first = replace(diagrams.load()[1][0], nth=1000)
    with pytest.raises(diagrams.DiagramError, match="does not rise 1000 times"):
        diagrams.take(waveform, (first,))


def test_a_row_is_written_as_wavejson() -> None:
    """Values stand in the lane once, what means nothing is x, what stays is a dot."""
    row = diagrams.DiagramRow("word", "addr")
    lane = diagrams._wave(row, [None, "1A", "1A", "2", None, None], one_bit=False)
    assert lane == {"name": "word", "wave": "x=.=x.", "data": ["1A", "2"]}
    lane = diagrams._wave(row, ["0", "1", "1", "0"], one_bit=True)
    assert lane == {"name": "word", "wave": "01.0"}


def test_the_definitions_have_one_picture_each() -> None:
    """No file of a diagram that is gone stays behind."""
    names = {diagram.name for diagram in diagrams.load()[1]}
    for suffix in ("json", "svg"):
        assert {path.stem for path in diagrams.FOLDER.glob(f"*.{suffix}")} == names
