# SPDX-License-Identifier: Apache-2.0
"""Files that a user names: read and written with one-line errors."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class FileError(ValueError):
    """A file that cannot be read or written, or is of no kind that the command takes."""


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises FileError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def text_of(data: bytes) -> str | None:
    """Return bytes as text, None if they are no text: not UTF-8, or with control characters."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    odd = any(ord(char) < 32 and char not in "\t\n\r\f" for char in text)
    return None if odd or not text.strip() else text


def read_text(path: Path) -> str:
    """Return the content of a text file. Raises FileError."""
    data = read_bytes(path)
    text = text_of(data)
    if text is None:
        raise FileError(f"{path}: given {len(data)} bytes that are no text, allowed is UTF-8 text")
    return text


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as editors count them.

    `splitlines` also cuts at form feeds, U+0085, U+2028 and others, which stand in sentences.
    """
    return text.replace("\r\n", "\n").split("\n")


def as_json(record: object) -> str:
    """Return a record as JSON, which has neither infinity nor a number that is none: null."""
    return json.dumps(_finite(record), indent=1, allow_nan=False)


def _finite(value: object) -> object:
    """Return a value without numbers that are infinite or none."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def check_output(path: Path) -> None:
    """Raise FileError if it is plain before the work that a file cannot be written."""
    if path.is_dir():
        raise FileError(f"{path}: cannot be written: {os.strerror(errno.EISDIR)}")
    if not path.parent.is_dir():
        raise FileError(f"{path}: cannot be written: {os.strerror(errno.ENOENT)}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FileError(f"{path}: cannot be written: no right to, or a read-only file system")


@contextmanager
def fresh(path: Path) -> Iterator[Path]:
    """Give a new file to write, which takes a place at the end.

    What lies there before is replaced, a link by the file and not what it leads to. Raises
    FileError if the folder cannot be made, is a link, or no file can be written there.
    """
    folder = path.parent
    new = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        if folder.is_symlink():
            raise FileError(f"{folder}: cannot be written: given a link, allowed a folder")
        folder.mkdir(exist_ok=True)
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
        try:
            yield new
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None


def write(path: Path, *contents: bytes | str) -> None:
    """Write a file of some pieces; its folder must exist. Raises FileError."""
    try:
        with path.open("wb") as file:
            file.writelines(one.encode() if isinstance(one, str) else one for one in contents)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror}") from None
