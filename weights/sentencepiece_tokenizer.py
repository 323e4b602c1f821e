# SPDX-License-Identifier: Apache-2.0
"""The tokenizer in a file of sentencepiece that stands alone, as the metadata of a GGUF file.

transformers takes from tokenizer_config.json what class a tokenizer is, whether a blank and a
first token go in front of a text, and without that file it puts neither there. The file itself
says the first; the second is what all families have whose tokenizers are of this kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weights.gguf_tokenizer import CHAT_TEMPLATE, KEY

MODEL = "tokenizer.model"
TEMPLATE = "chat_template.jinja"


class SentencePieceError(ValueError):
    """A file is no model of sentencepiece, or one that is not known."""


def metadata_of(folder: Path) -> dict[str, Any]:
    """Return what a GGUF file would say of the tokenizer in a folder, as llama.cpp converts it.

    Raises:
        SentencePieceError: there is none, or one of an unknown kind; names field, given, allowed.
        OSError: a file cannot be read.
    """
    model = _read(folder / MODEL)
    trainer, normalizer, pieces = model.trainer_spec, model.normalizer_spec, model.pieces
    _allow(folder, "model_type", trainer.ModelType.Name(trainer.model_type), "BPE")
    _allow(folder, "precompiled_charsmap", len(normalizer.precompiled_charsmap), 0)
    _allow(folder, "remove_extra_whitespaces", normalizer.remove_extra_whitespaces, allowed=False)
    _allow(folder, "escape_whitespaces", normalizer.escape_whitespaces, allowed=True)
    _allow(folder, "treat_whitespace_as_suffix", trainer.treat_whitespace_as_suffix, allowed=False)
    entries: dict[str, Any] = {
        "model": "llama",
        "tokens": [_text(one) for one in pieces],
        "scores": [float(one.score) for one in pieces],
        "token_type": [int(one.type) for one in pieces],
        "add_space_prefix": bool(normalizer.add_dummy_prefix),
        "add_bos_token": True,
    }
    ids = {
        "bos": trainer.bos_id,
        "eos": trainer.eos_id,
        "unknown": trainer.unk_id,
        "padding": trainer.pad_id,
    }
    entries |= {f"{name}_token_id": int(found) for name, found in ids.items() if found >= 0}
    metadata = {KEY + name: entry for name, entry in entries.items()}
    if (folder / TEMPLATE).is_file():
        metadata[CHAT_TEMPLATE] = (folder / TEMPLATE).read_text(encoding="utf-8-sig")
    return metadata


def _read(path: Path) -> Any:  # noqa: ANN401
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception:  # of protobuf, which has no types; a file of something else
        model.Clear()
    if not model.pieces:
        raise SentencePieceError(
            f"{path}: given no model of sentencepiece, allowed one, or a tokenizer.json beside it"
        )
    return model


def _allow(folder: Path, field: str, given: object, allowed: object) -> None:
    if given != allowed:
        raise SentencePieceError(
            f"{folder / MODEL}: {field}: given {given}, allowed {allowed}, or a tokenizer.json "
            "beside it"
        )


def _text(piece: Any) -> str:  # noqa: ANN401
    """Return the text of a piece; of one that is found before a text is cut, as it stands there."""
    text = str(piece.piece)
    return text.replace("▁", " ") if piece.type == piece.USER_DEFINED else text
