# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, with bytes and with a tokenizer in the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from weights.tokenizer import ByteTokenizer, TextStream, TokenizerError, load_tokenizer

TEXT = "naïve 日本 — 🙂!"


def _word_folder(folder: Path) -> Path:
    """Save a tokenizer of whole words in a folder."""
    words = {"<end>": 0, "the": 1, "bus": 2, "is": 3, "full": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    return folder


def test_bytes_round_trip() -> None:
    """Ids are the bytes of UTF-8."""
    tokenizer = load_tokenizer(None, 256)
    assert tokenizer.encode(TEXT) == list(TEXT.encode())
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.end is None


def test_tokenizer_of_the_folder(tmp_path: Path) -> None:
    """A folder with a tokenizer is read by AutoTokenizer, whatever the size of the vocabulary."""
    tokenizer = load_tokenizer(_word_folder(tmp_path), 5)
    assert tokenizer.encode("the bus is full") == [1, 2, 3, 4]
    assert tokenizer.decode([2, 4]) == "bus full"
    assert tokenizer.end == 0


def test_folder_without_tokenizer(tmp_path: Path) -> None:
    """Without a tokenizer only bytes make sense."""
    assert isinstance(load_tokenizer(tmp_path, 256), ByteTokenizer)
    with pytest.raises(TokenizerError, match=r"50257 token ids, allowed .* 256 ids, the bytes"):
        load_tokenizer(tmp_path, 50257)


def test_damaged_tokenizer(tmp_path: Path) -> None:
    """A file that is no tokenizer is refused by the name of its folder."""
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(TokenizerError, match=rf"{tmp_path}: the tokenizer cannot be read"):
        load_tokenizer(tmp_path, 256)


def test_empty_prompt() -> None:
    """A prompt has at least one token."""
    with pytest.raises(TokenizerError, match="given an empty text"):
        ByteTokenizer().encode("")


def test_text_appears_in_whole_characters() -> None:
    """Pieces join to the text; no piece holds half a character."""
    stream = TextStream(ByteTokenizer())
    pieces = [stream.push([byte]) for byte in TEXT.encode()]
    assert "".join(pieces) + stream.finish() == TEXT
    assert "\ufffd" not in "".join(pieces)
    assert sum(map(bool, pieces)) == len(TEXT)


def test_bytes_that_are_no_text() -> None:
    """What never becomes a character is given out at the end, marked."""
    stream = TextStream(ByteTokenizer())
    assert stream.push(list(b"a\xff")) == "a"
    assert stream.finish() == "\ufffd"
    stream = TextStream(ByteTokenizer())
    assert stream.push(list(b"a\xffb")) == "a\ufffdb"
