# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of sentencepiece, in a folder and in a GGUF file, against sentencepiece itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from tests.python.weights.gguf_files import write_gguf
from weights.corpus import read_corpus
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint
from weights.tokenizer import TokenizerError, load_tokenizer

VOCAB = 420
IDENTITY: dict[str, Any] = {
    "model_type": "bpe",
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}
"""Of LLaMA's tokenizers: texts are taken as they are."""
TEXTS = [
    "The parser accepts",
    "def f(x):\n    return x",
    "naïve 日本 🙂",
    "a  b   c",
    "x",
    "1234.5 ",
]


@pytest.fixture(scope="module")
def model() -> bytes:
    """Return a model of pieces by merging, with bytes, of a little text."""
    return trained()


def trained(**options: Any) -> bytes:  # noqa: ANN401
    """Return a model that is trained with some more options."""
    text = bytes(read_corpus().development[:20000]).decode("utf-8", "replace")
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text.splitlines()),
        model_writer=written,
        vocab_size=VOCAB,
        byte_fallback=True,
        num_threads=1,
        minloglevel=2,
        **IDENTITY | options,
    )
    return written.getvalue()


def _gguf(pieces: Any, folder: Path, *, blank: bool = True, user: tuple[str, ...] = ()) -> Path:  # noqa: ANN401
    """Write the pieces of a model into a GGUF file, as llama.cpp's converter does.

    With `blank` a text gets one in front; `user` are pieces that are found before it is cut.
    """
    count = range(pieces.GetPieceSize())
    kinds = [
        4
        if pieces.IdToPiece(i) in user
        else 2
        if pieces.IsUnknown(i)
        else 3
        if pieces.IsControl(i)
        else 6
        if pieces.IsByte(i)
        else 1
        for i in count
    ]
    entries = {
        "model": "llama",
        "pre": "default",
        "tokens": [pieces.IdToPiece(i) for i in count],
        "scores": [float(pieces.GetScore(i)) for i in count],
        "token_type": kinds,
        "unknown_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    entries |= {} if blank else {"add_space_prefix": False}
    metadata = {f"tokenizer.ggml.{key}": value for key, value in entries.items()}
    checkpoint = random_checkpoint(shape_of("llama", vocab=VOCAB), 1)
    return write_gguf(checkpoint, folder / "model.gguf", metadata=metadata)


def _folder(model: bytes, folder: Path, config: dict[str, object] | None, family: str) -> Path:
    """Write a model into the folder of a checkpoint, with a configuration or alone."""
    write_checkpoint(random_checkpoint(shape_of(family, vocab=VOCAB), 1), folder)
    (folder / "tokenizer.model").write_bytes(model)
    if config is not None:
        special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
        (folder / "tokenizer_config.json").write_text(json.dumps(special | config))
    return folder


CONFIGS: list[dict[str, object] | None] = [
    None,
    {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True},
    {"tokenizer_class": "LlamaTokenizerFast", "legacy": True},
    {"tokenizer_class": "CodeLlamaTokenizer"},
]


@pytest.mark.parametrize("family", ["llama", "mistral"])
@pytest.mark.parametrize("config", CONFIGS)
def test_folders(
    tmp_path: Path, model: bytes, config: dict[str, object] | None, family: str
) -> None:
    """The ids of sentencepiece behind the beginning of a text, whatever is beside the file."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = load_tokenizer(_folder(model, tmp_path / "model", config, family), VOCAB)
    # transformers leaves out the blank before a blank.
    for text in [*TEXTS, *([" two  blanks"] if config is None else [])]:
        ids = tokenizer.encode(text)
        assert ids == [1, *pieces.Encode(text)], text
        assert tokenizer.decode(ids) == text
    assert (tokenizer.begin, tokenizer.end) == (1, 2)


def test_a_folder_that_wants_no_beginning(tmp_path: Path, model: bytes) -> None:
    """What a configuration says counts."""
    config: dict[str, object] = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False}
    tokenizer = load_tokenizer(_folder(model, tmp_path / "model", config, "llama"), VOCAB)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert tokenizer.encode(TEXTS[0]) == pieces.Encode(TEXTS[0])


def test_a_chat_template_beside_a_model_alone(tmp_path: Path, model: bytes) -> None:
    """It has the special tokens of the model."""
    folder = _folder(model, tmp_path / "model", None, "llama")
    (folder / "chat_template.jinja").write_text(
        "{{ bos_token }}{% for one in messages %}{{ one.content }}{{ eos_token }}{% endfor %}"
    )
    tokenizer = load_tokenizer(folder, VOCAB)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = tokenizer.conversation([{"role": "user", "content": "The parser"}])
    assert ids == [1, *pieces.Encode("The parser"), 2]
    assert tokenizer.turn_end == 2


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "unigram"}, r"tokenizer\.model: model_type: given UNIGRAM, allowed BPE, or a"),
    ({"normalization_rule_name": "nfkc"}, r"precompiled_charsmap: given \d+, allowed 0, or a tok"),
    ({"remove_extra_whitespaces": True}, r"extra_whitespaces: given True, allowed False, or a tok"),
    ({"treat_whitespace_as_suffix": True}, r"as_suffix: given True, allowed False, or a tokenizer"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_models_alone_that_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    """By name, with what would help, instead of wrong tokens."""
    folder = _folder(trained(**options), tmp_path / "model", None, "llama")
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(folder, VOCAB)
    assert str(caught.value).startswith(f"{folder}/tokenizer.model: ")


@pytest.mark.parametrize("data", [b"", b"IQ== 0\nIg== 1\n", b"\n\x02"])
def test_a_file_of_something_else(tmp_path: Path, data: bytes) -> None:
    """Tokenizers of LLaMA 3 have the same name and are another kind."""
    folder = _folder(data, tmp_path / "model", None, "llama")
    with pytest.raises(TokenizerError, match=r"tokenizer\.model: given no model of sentencepiece"):
        load_tokenizer(folder, VOCAB)


def test_files_that_change_the_tokens_of_a_model(tmp_path: Path, model: bytes) -> None:
    """A configuration that does not say a known class is none to go by."""
    folder = _folder(model, tmp_path / "model", {}, "llama")
    config = folder / "tokenizer_config.json"
    refused = (
        r"tokenizer_config\.json tokenizer_class: given {}, allowed LlamaTokenizer, .*"
        r"GemmaTokenizer, or a tokenizer\.json"
    )
    with pytest.raises(TokenizerError, match=refused.format(r"none beside tokenizer_config\.json")):
        load_tokenizer(folder, VOCAB)
    config.write_text('{"tokenizer_class": "BaichuanTokenizer"}')
    with pytest.raises(TokenizerError, match=refused.format("'BaichuanTokenizer'")):
        load_tokenizer(folder, VOCAB)
    config.rename(folder / "added_tokens.json")
    with pytest.raises(TokenizerError, match=refused.format(r"none beside added_tokens\.json")):
        load_tokenizer(folder, VOCAB)


def test_ids_and_texts(tmp_path: Path, model: bytes) -> None:
    """The ids of sentencepiece behind the beginning of a text, and the text again."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = load_tokenizer(_gguf(pieces, tmp_path), VOCAB)
    for text in [*TEXTS, " two  blanks"]:
        ids = tokenizer.encode(text)
        assert ids == [1, *pieces.Encode(text)], text
        assert tokenizer.decode(ids) == text
    assert tokenizer.end == 2


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_pieces_of_gemma(tmp_path: Path, kind: str) -> None:
    """No blank in front of a text, and pieces of several lines that are found first."""
    lines = ("\n\n", "\n\n\n")
    model = trained(add_dummy_prefix=False, user_defined_symbols=list(lines))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    path = (
        _gguf(pieces, tmp_path, blank=False, user=lines)
        if kind == "gguf"
        else _folder(model, tmp_path / "model", None, "gemma")
    )
    tokenizer = load_tokenizer(path, VOCAB)
    for text in [*TEXTS, " two  blanks", "a\n\nb\n\n\nc \n d", "\n\n"]:
        ids = tokenizer.encode(text)
        assert ids == [1, *pieces.Encode(text)], text
        assert tokenizer.decode(ids) == text
