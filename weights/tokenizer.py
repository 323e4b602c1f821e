# SPDX-License-Identifier: Apache-2.0
"""Text to token ids and back: the tokenizer in a checkpoint's folder, or bytes.

A folder that holds a tokenizer is read by `transformers.AutoTokenizer`. A checkpoint without one
must be byte-level: a vocabulary of 256 ids that are the bytes of UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
)
"""What a folder or a hub snapshot may hold of a tokenizer."""
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
"""Any one of these makes a tokenizer."""
END_FILES = ("generation_config.json", "config.json")
"""Where a checkpoint names its end tokens; the first that does counts."""
BYTES = 256


class TokenizerError(ValueError):
    """A text or a token has no counterpart, or a folder has no usable tokenizer."""


class Tokenizer(Protocol):
    """Both directions between text and ids."""

    @property
    def name(self) -> str:
        """What it is, for messages."""

    @property
    def end(self) -> int | None:
        """Id of the end token, None without."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a prompt.

        Raises:
            TokenizerError: the text is empty.
        """

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; bytes that are no UTF-8 become U+FFFD."""

    def size(self, ids: Sequence[int]) -> int:
        """Return the bytes of text that ids stand for."""


def _said(error: Exception) -> str:
    """Return in one line what a library said."""
    return " ".join(str(error).split()) or type(error).__name__


class ByteTokenizer:
    """Ids are the bytes of UTF-8."""

    name = "bytes"
    end = None

    def encode(self, text: str) -> list[int]:
        """Return one id per byte."""
        if not text:
            raise TokenizerError("prompt: given an empty text, allowed at least one character")
        return list(text.encode("utf-8", "surrogateescape"))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of bytes."""
        return bytes(ids).decode("utf-8", "replace")

    def size(self, ids: Sequence[int]) -> int:
        """Return their number."""
        return len(ids)


class FolderTokenizer:
    """The tokenizer that a folder brings along."""

    def __init__(self, folder: Path) -> None:
        """Load it.

        Raises:
            TokenizerError: transformers cannot read it.
        """
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # whatever transformers makes of the user's files
            raise TokenizerError(
                f"{folder}: the tokenizer cannot be read: {_said(error)}"
            ) from error
        self.name = type(self._tokenizer).__name__

    @property
    def end(self) -> int | None:
        """Id of the end token, None without."""
        found = self._tokenizer.eos_token_id
        return None if found is None else int(found)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a prompt, with whatever the tokenizer puts in front of one."""
        try:
            ids = [int(i) for i in self._tokenizer.encode(text)]
        except Exception as error:  # bytes that are no UTF-8, words that it does not know
            raise TokenizerError(f"prompt: given {text!r}: {_said(error)}") from error
        if not ids:
            raise TokenizerError(f"prompt: given {text!r}, which has no tokens")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        # Without cleaning up: it would take back blanks that a longer text does not have.
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )

    def size(self, ids: Sequence[int]) -> int:
        """Return the bytes of text that ids stand for, without an unfinished character behind."""
        return len(self.decode(ids).rstrip("\ufffd").encode())


def load_tokenizer(folder: Path | None, vocab: int) -> Tokenizer:
    """Return the tokenizer of a checkpoint.

    Args:
        folder: the checkpoint's folder, None for a model without one.
        vocab: size of the model's vocabulary.

    Raises:
        TokenizerError: the folder has none and the vocabulary is not one of bytes.
    """
    if folder is not None and any((folder / name).is_file() for name in TOKENIZERS):
        return FolderTokenizer(folder)
    if vocab != BYTES:
        raise TokenizerError(
            f"{folder}: given no tokenizer ({', '.join(TOKENIZERS)}) and {vocab} token ids, "
            f"allowed without a tokenizer are {BYTES} ids, the bytes"
        )
    return ByteTokenizer()


def end_tokens(folder: Path | None, tokenizer: Tokenizer, vocab: int) -> list[int]:
    """Return the ids that end a text, the one to stop at first; [] for none.

    The configuration of the checkpoint names one or several, the tokenizer at most one. The
    tokenizer's own goes first where it is among them. Ids outside the vocabulary never come and
    are left out.

    Raises:
        TokenizerError: eos_token_id is no id and no list of ids.
    """
    ends: list[int] = []
    for name in END_FILES:
        ends = ends or _configured_ends(folder, name)
    own = tokenizer.end
    if own is not None and (own in ends or not ends):
        ends = [own, *ends]
    return [end for end in dict.fromkeys(ends) if 0 <= end < vocab]


def _configured_ends(folder: Path | None, name: str) -> list[int]:
    """Return eos_token_id of a JSON file, [] if there is no file or no such entry."""
    if folder is None or not (folder / name).is_file():
        return []
    try:
        content = json.loads((folder / name).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise TokenizerError(f"{folder}: {name} cannot be read: {error}") from error
    given = content.get("eos_token_id") if isinstance(content, dict) else None
    ids = given if isinstance(given, list) else [] if given is None else [given]
    if any(type(one) is not int for one in ids):
        raise TokenizerError(
            f"{folder}: {name} eos_token_id: given {given!r}, allowed an id or a list of ids"
        )
    return ids


class TextStream:
    """Turns a growing list of ids into pieces of text, each given out once and never taken back.

    The ids go on from those of a prompt, whose text is not given out: what a token reads as may
    depend on the ones before it, a blank in front for one. The last characters are held back while
    they may still change: an unfinished UTF-8 sequence decodes to U+FFFD until its last byte is
    there.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._ids = list(prompt)
        self._given = tokenizer.decode(self._ids).rstrip("\ufffd") if self._ids else ""

    def push(self, ids: Sequence[int]) -> str:
        """Add ids and return the text that is now certain and new."""
        self._ids += ids
        text = self._tokenizer.decode(self._ids)
        certain = text.rstrip("\ufffd")
        if not certain.startswith(self._given):
            return ""
        new = certain[len(self._given) :]
        self._given = certain
        return new

    def finish(self) -> str:
        """Return what was held back."""
        text = self._tokenizer.decode(self._ids)
        rest = text[len(self._given) :] if text.startswith(self._given) else ""
        self._given = text
        return rest


def text_after(tokenizer: Tokenizer, prompt: Sequence[int], ids: Sequence[int]) -> str:
    """Return the text of ids that go on from a prompt."""
    stream = TextStream(tokenizer, prompt)
    return stream.push(ids) + stream.finish()
