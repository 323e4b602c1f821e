# SPDX-License-Identifier: Apache-2.0
"""The documentation text: what is taken, what is left out, and the split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weights.corpus import docstrings, is_held_out, read_corpus, topics, windows


def library(root: Path) -> list[str]:
    """Write a small library and return the paths of its modules."""
    names = [f"module_{i}.py" for i in range(200)]
    for i, name in enumerate(names):
        (root / name).write_text(f'"""Text {i}."""\nx = "not documentation"\n')
    for folder in ("site-packages", "test"):
        (root / folder).mkdir()
        (root / folder / "a.py").write_text('"""Foreign text."""\n')
    (root / "broken.py").write_text("def (:\n")
    (root / "pydoc_data").mkdir()
    (root / "pydoc_data" / "topics.py").write_text('topics = {"if": "A topic."}\n')
    return names


def test_docstrings_in_order() -> None:
    """Module, class, function and coroutine docstrings, cleaned; no other strings."""
    source = b'''"""Module."""
class A:
    """Class.

    More.
    """
    def f(self):
        "Method."
        return "value"
async def g():
    """Coroutine."""
def h(): return 1
'''
    assert list(docstrings(source)) == ["Module.", "Class.\n\nMore.", "Method.", "Coroutine."]
    assert list(topics(b'topics = {"a": "One.", "b": "Two."}')) == ["One.", "Two."]


def test_split_by_file(tmp_path: Path) -> None:
    """Whole files are held out, by the hash of their path; tests and packages are left out."""
    names = library(tmp_path)
    corpus = read_corpus(tmp_path)
    train, held_out = bytes(corpus.train).decode(), bytes(corpus.held_out).decode()
    for i, name in enumerate(names):
        inside, outside = (held_out, train) if is_held_out(name) else (train, held_out)
        assert f"Text {i}.\n" in inside
        assert f"Text {i}.\n" not in outside
    assert corpus.held_out_files == sum(map(is_held_out, names))
    assert 3 <= corpus.held_out_files <= 30
    assert corpus.train_files == 201 - corpus.held_out_files
    assert "A topic." in train
    assert not {"Foreign", "not documentation"} & set(train + held_out)
    assert "Foreign" not in train + held_out


def test_repeated_text_stays_out_of_the_held_out_part(tmp_path: Path) -> None:
    """What training has seen is no measure."""
    names = library(tmp_path)
    held = next(name for name in names if is_held_out(name))
    seen = next(name for name in names if not is_held_out(name))
    (tmp_path / held).write_text((tmp_path / seen).read_text())
    corpus = read_corpus(tmp_path)
    assert corpus.held_out_files == sum(map(is_held_out, names)) - 1


def test_no_library(tmp_path: Path) -> None:
    """A folder without sources is refused by name."""
    with pytest.raises(FileNotFoundError, match=r"no standard library documentation under"):
        read_corpus(tmp_path)


def test_windows() -> None:
    """Rows do not overlap, drop the rest, and spread evenly when limited."""
    tokens = np.arange(23, dtype=np.uint8)
    np.testing.assert_array_equal(windows(tokens, 5)[:, 0], [0, 5, 10, 15])
    np.testing.assert_array_equal(windows(tokens, 5, 2)[:, 0], [0, 15])
    assert windows(tokens, 5).dtype == np.int64
    with pytest.raises(ValueError, match=r"given 23 tokens, allowed at least 24"):
        windows(tokens, 24)
