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
from weights.tokenizer import load_tokenizer

VOCAB = 420
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
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        num_threads=1,
        minloglevel=2,
        **options,
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


def _folder(model: bytes, folder: Path) -> Path:
    """Write a model into the folder of a checkpoint."""
    write_checkpoint(random_checkpoint(shape_of("llama", vocab=VOCAB), 1), folder)
    (folder / "tokenizer.model").write_bytes(model)
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_ids_and_texts(tmp_path: Path, model: bytes, kind: str) -> None:
    """The ids of sentencepiece behind the beginning of a text, and the text again."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    path = _gguf(pieces, tmp_path) if kind == "gguf" else _folder(model, tmp_path / "model")
    tokenizer = load_tokenizer(path, VOCAB)
    # transformers leaves out the blank before a blank.
    for text in [*TEXTS, *([" two  blanks"] if kind == "gguf" else [])]:
        ids = tokenizer.encode(text)
        assert ids == [1, *pieces.Encode(text)], text
        assert tokenizer.decode(ids) == text
    assert tokenizer.end == 2


def test_pieces_of_gemma(tmp_path: Path) -> None:
    """No blank in front of a text, and pieces of several lines that are found first."""
    lines = ("\n\n", "\n\n\n")
    model = trained(add_dummy_prefix=False, user_defined_symbols=list(lines))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = load_tokenizer(_gguf(pieces, tmp_path, blank=False, user=lines), VOCAB)
    for text in [*TEXTS, " two  blanks", "a\n\nb\n\n\nc \n d", "\n\n"]:
        ids = tokenizer.encode(text)
        assert ids == [1, *pieces.Encode(text)], text
        assert tokenizer.decode(ids) == text
