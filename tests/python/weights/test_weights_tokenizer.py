# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, with bytes and with a tokenizer in the folder."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from weights.importer import HUB_FILES
from weights.tokenizer import (
    ByteTokenizer,
    TextStream,
    TokenizerError,
    end_tokens,
    load_tokenizer,
    text_after,
)

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


def test_tokens_stand_for_bytes(tmp_path: Path) -> None:
    """Also where a character is of several, and half of one is none."""
    assert load_tokenizer(None, 256).size("é!".encode()[:-2]) == 1
    tokenizer = load_tokenizer(_blank_folder(tmp_path), 5)
    assert tokenizer.size(tokenizer.encode("the bus is")) == len("the bus is")
    assert tokenizer.size([0]) == 0


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


def _blank_folder(folder: Path) -> Path:
    """Save a tokenizer whose words carry the blank before them, as SentencePiece has it."""
    words = {"<end>": 0, "\u2581the": 1, "\u2581bus": 2, "\u2581is": 3, "\u2581.": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", clean_up_tokenization_spaces=True
    )
    fast.save_pretrained(folder)
    return folder


def test_text_goes_on_from_the_prompt(tmp_path: Path) -> None:
    """The blank before the first word is there, and nothing given out is taken back."""
    tokenizer = load_tokenizer(_blank_folder(tmp_path), 5)
    prompt = tokenizer.encode("the bus")
    assert prompt == [1, 2]
    stream = TextStream(tokenizer, prompt)
    assert [stream.push([one]) for one in (3, 1, 4, 1)] == [" is", " the", " .", " the"]
    assert stream.finish() == ""
    assert text_after(tokenizer, prompt, [3, 0]) == " is"
    assert text_after(ByteTokenizer(), list(b"na\xc3"), list(b"\xaf\xff")) == "\u00ef\ufffd"


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        (None, None, [0]),
        (3, None, [3]),
        (3, 2, [2]),
        (3, [4, 2], [4, 2]),
        (None, [4, 0, 2], [0, 4, 2]),
        (99, None, []),
        (None, [99, 1], [1]),
        ([2, 2], None, [2]),
    ],
)
def test_end_tokens(tmp_path: Path, config: object, generation: object, ends: list[int]) -> None:
    """The configuration names the ends; the tokenizer's own goes first where it is one of them."""
    tokenizer = load_tokenizer(_word_folder(tmp_path), 5)
    for name, given in (("config.json", config), ("generation_config.json", generation)):
        (tmp_path / name).write_text(json.dumps({"eos_token_id": given}))
    assert end_tokens(tmp_path, tokenizer, 5) == ends


def test_no_end_token(tmp_path: Path) -> None:
    """Bytes without a configuration never end."""
    assert end_tokens(None, ByteTokenizer(), 256) == []
    assert end_tokens(tmp_path, ByteTokenizer(), 256) == []
    (tmp_path / "config.json").write_text('{"eos_token_id": 0}')
    assert end_tokens(tmp_path, ByteTokenizer(), 256) == [0]


@pytest.mark.parametrize("given", ["two", [1, "2"], {"a": 1}, 1.5, True])
def test_bad_end_token(tmp_path: Path, given: object) -> None:
    """What is no id is refused by file and field."""
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": given}))
    with pytest.raises(TokenizerError, match=r"generation_config.json eos_token_id: given .* allo"):
        end_tokens(tmp_path, ByteTokenizer(), 256)


def test_tokenizer_is_fetched_from_the_hub(tmp_path: Path) -> None:
    """Whatever a tokenizer saves is on the list of what is fetched with a checkpoint."""
    _blank_folder(tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    names += ["tokenizer.model", "vocab.json", "merges.txt", "config.json", "model.safetensors"]
    names += ["generation_config.json", "model-00001-of-00002.safetensors"]
    assert [name for name in names if not any(fnmatch(name, one) for one in HUB_FILES)] == []
    assert not any(fnmatch("pytorch_model.bin", one) for one in HUB_FILES)


@pytest.mark.parametrize("several", [False, True])
def test_chat_template(tmp_path: Path, several: bool) -> None:
    """From a file of its own, or of several in the configuration the default; bytes have none."""
    assert ByteTokenizer().chat_template is None
    folder = _word_folder(tmp_path)
    assert load_tokenizer(folder, 5).chat_template is None
    if several:
        path = folder / "tokenizer_config.json"
        named = [{"name": name, "template": name.upper()} for name in ("tool_use", "default")]
        path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": named}))
    else:
        (folder / "chat_template.jinja").write_text("DEFAULT")
    assert load_tokenizer(folder, 5).chat_template == "DEFAULT"
