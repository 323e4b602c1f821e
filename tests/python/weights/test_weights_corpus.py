# SPDX-License-Identifier: Apache-2.0
"""The documentation text: what is taken, what is left out, and the split."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from weights.corpus import (
    PARTS,
    TOPICS_FILE,
    Part,
    docstrings,
    part_of,
    read_corpus,
    topics,
    windows,
)


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


def test_docstrings_of_every_statement() -> None:
    """Definitions inside any other statement, each named by the keyword before it."""
    keywords = (
        "if x:", "else:", "for y in x:", "else:", "while x:", "else:", "with x:", "try:",
        "except A:", "else:", "finally:", "try:", "except* B:", "match x:\n case 1:",
        "async def f():\n async with x:", "async def f():\n async for y in x:",
    )  # fmt: skip
    lines = []
    for number, keyword in enumerate(keywords):
        indent = " " * (2 + keyword.count("\n"))
        lines.append(f"{keyword}\n{indent}def g(): '{number}: {keyword.split()[0]}'")
    found = list(docstrings("\n".join([*lines, "z = lambda: 'none'"]).encode()))
    assert found == [f"{number}: {word.split()[0]}" for number, word in enumerate(keywords)]


def test_split_by_file(tmp_path: Path) -> None:
    """Whole files make up the parts, by the hash of their path; tests and packages are left out."""
    names = library(tmp_path)
    corpus = read_corpus(tmp_path)
    parts = {part: bytes(getattr(corpus, part)).decode() for part in PARTS}
    for i, name in enumerate(names):
        where = [part for part, text in parts.items() if f"Text {i}.\n" in text]
        assert where == [part_of(name)]
    assert corpus.files == Counter(map(part_of, [*names, TOPICS_FILE]))
    assert all(3 <= corpus.files[part] <= 30 for part in ("held_out", "validation"))
    assert "A topic." in parts["train"]
    everything = "".join(parts.values())
    assert "not documentation" not in everything
    assert "Foreign" not in everything


def test_development_part(tmp_path: Path) -> None:
    """Everything that is not held out, in the order of the files."""
    names = library(tmp_path)
    corpus = read_corpus(tmp_path)
    text = bytes(corpus.development).decode()
    assert corpus.development.size == corpus.train.size + corpus.validation.size
    order = [f"Text {names.index(name)}.\n" for name in sorted(names)]
    places = [text.find(one) for one in order if one in text]
    assert places == sorted(places)
    assert len(places) == len(names) - corpus.files["held_out"]


@pytest.mark.parametrize("other", ["train", "validation"])
def test_repeated_text_stays_out_of_the_held_out_part(tmp_path: Path, other: Part) -> None:
    """What training has seen, or chosen by, is no measure."""
    names = library(tmp_path)
    held = next(name for name in names if part_of(name) == "held_out")
    seen = next(name for name in names if part_of(name) == other)
    before = read_corpus(tmp_path).files
    (tmp_path / held).write_text((tmp_path / seen).read_text())
    assert read_corpus(tmp_path).files == before | {"held_out": before["held_out"] - 1}


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
