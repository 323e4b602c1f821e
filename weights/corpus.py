# SPDX-License-Identifier: Apache-2.0
"""Text for training, calibration and evaluation: the standard library's own documentation.

The text is read at run time from the running Python: every docstring of its standard library and
the help topics of `pydoc`, found by `ast` without importing anything. Nothing of it is stored in
this repository. Different Python versions therefore give different texts; what depends on one
text (a checkpoint, its activation scales) names the version beside it.

Tokens are bytes: the UTF-8 encoding of the text, ids 0..255.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

EXCLUDED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
)
"""Folders below the standard library that hold other packages or tests."""
TOPICS_FILE = "pydoc_data/topics.py"
"""The help topics of pydoc, one dictionary of strings."""
HELD_OUT_PERCENT = VALIDATION_PERCENT = 6
"""A file is held out if the hash of its path modulo 100 is below the first number, and is for
validation if it is among the next ones."""
SEPARATOR = b"\n\n"
BODIES = ("body", "handlers", "orelse", "finalbody", "cases")
"""What holds statements. A docstring is in a statement, and most of a source is expressions."""


Part = Literal["train", "validation", "held_out"]
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documentation text, split by source file.

    Training learns from `train` and chooses by `validation`; only the finished model is measured on
    `held_out`. The shipped checkpoints were made before there was a validation part: they learned
    from `development`, which is also what activations are measured on.

    Attributes:
        train, validation, held_out: (n,) uint8 tokens.
        development: (n,) uint8, train and validation in the order of the files.
        files: the number of source files in each part.
    """

    train: npt.NDArray[np.uint8]
    validation: npt.NDArray[np.uint8]
    held_out: npt.NDArray[np.uint8]
    development: npt.NDArray[np.uint8]
    files: dict[Part, int]


def part_of(relative_path: str) -> Part:
    """Return the part that a file belongs to; stable over machines and versions.

    The help topics quote one another and stay in the training part.
    """
    if relative_path == TOPICS_FILE:
        return "train"
    digest = hashlib.sha256(relative_path.encode()).digest()
    number = int.from_bytes(digest[:4], "little") % 100
    if number < HELD_OUT_PERCENT:
        return "held_out"
    return "validation" if number < HELD_OUT_PERCENT + VALIDATION_PERCENT else "train"


def _statements(source: bytes) -> Iterator[ast.AST]:
    """Yield the module and all that its BODIES hold, level by level."""
    level: list[ast.AST] = [ast.parse(source)]
    while level:
        yield from level
        level = [below for node in level for name in BODIES for below in getattr(node, name, ())]


def docstrings(source: bytes) -> Iterator[str]:
    """Yield the cleaned docstrings of a Python source, in the order of the text."""
    found: list[tuple[int, str]] = []
    for node in _statements(source):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                found.append((node.body[0].lineno, text))
    for _, text in sorted(found, key=lambda item: item[0]):
        yield text


def topics(source: bytes) -> Iterator[str]:
    """Yield the values of the dictionary of help topics, in the order of the text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for value in node.values:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield inspect.cleandoc(value.value)


def _sources(root: Path) -> list[str]:
    """Return the paths, relative to root, of the standard library's modules, sorted."""
    paths = (path.relative_to(root) for path in root.rglob("*.py"))
    return sorted(one.as_posix() for one in paths if not EXCLUDED_FOLDERS.intersection(one.parts))


def read_corpus(root: Path | None = None) -> Corpus:
    """Return the documentation of the standard library under `root`.

    By default that is the running Python's, which a process reads once.

    A text that occurs more than once is kept once, and not in the held-out part if it occurs in
    another.

    Raises:
        FileNotFoundError: no documentation was found under `root`.
    """
    return _running_pythons() if root is None else _read(root)


@cache
def _running_pythons() -> Corpus:
    return _read(_library())


def _library() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


@cache
def read_end() -> npt.NDArray[np.uint8]:
    """Return the text of the last tenth of the files that `development` is read from.

    A process reads it once, in a tenth of the time that the corpus takes.
    """
    root = _library()
    names = [name for name in _sources(root) if part_of(name) != "held_out"]
    return _joined(text for _, text in _read_files(root, names[-(len(names) // 10) :]))


def _read(where: Path) -> Corpus:
    """Return the documentation under a folder."""
    names = sorted(_sources(where), key=lambda name: part_of(name) == "held_out")
    found = list(_read_files(where, names))
    files = Counter(part for part, _ in found)
    if not all(files[part] for part in PARTS):
        raise FileNotFoundError(
            f"read_corpus: no standard library documentation under {where}; "
            "allowed is a folder with the .py sources of the standard library"
        )

    def tokens(*parts: Part) -> npt.NDArray[np.uint8]:
        return _joined(text for part, text in found if part in parts)

    return Corpus(
        train=tokens("train"),
        validation=tokens("validation"),
        held_out=tokens("held_out"),
        development=tokens("train", "validation"),
        files={part: files[part] for part in PARTS},
    )


def _read_files(root: Path, names: Iterable[str]) -> Iterator[tuple[Part, bytes]]:
    """Yield part and text of each file that has any; a text that occurs twice is read once."""
    seen: set[str] = set()
    for relative in names:
        source = (root / relative).read_bytes()
        try:
            texts = list(topics(source) if relative == TOPICS_FILE else docstrings(source))
        except SyntaxError:
            continue
        fresh = [text for text in dict.fromkeys(texts) if text not in seen]
        if fresh:
            seen.update(fresh)
            text = b"".join(text.encode("utf-8", "replace") + SEPARATOR for text in fresh)
            yield part_of(relative), text


def _joined(texts: Iterable[bytes]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(texts), np.uint8)


def windows(
    tokens: npt.NDArray[np.uint8], length: int, count: int | None = None
) -> npt.NDArray[np.int64]:
    """Cut `tokens` into rows of `length`, without overlap, at most `count`, evenly spread.

    Returns:
        (rows, length) int64 token ids. The rest that does not fill a row is dropped.
    """
    rows = tokens.size // length
    if rows == 0:
        raise ValueError(f"windows: given {tokens.size} tokens, allowed at least {length}")
    table = tokens[: rows * length].reshape(rows, length).astype(np.int64)
    if count is None or count >= rows:
        return table
    picked: npt.NDArray[np.int64] = table[np.linspace(0, rows - 1, count).astype(np.int64)]
    return picked
