# SPDX-License-Identifier: Apache-2.0
"""GGUF files against transformers' own reading of them, logits and tokens.

Needs torch (the optional group `oracles`): pytest tests/oracles. The published model is in the
group `published`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.published_model import published
from tests.python.weights.gguf_converter import convert
from tests.python.weights.gguf_files import tokenizer_metadata, write_gguf
from weights.checkpoint import CheckpointShape
from weights.importer import load_checkpoint
from weights.reference import forward
from weights.stored.gguf_header import read_header
from weights.synthetic import config_of, random_checkpoint, shape_of, write_checkpoint
from weights.tokenizer import load_tokenizer

TOLERANCE = 1e-4
WIDE = shape_of("llama", hidden=256, heads=4, kv_heads=2, ffn=512, layers=1)
CASES: list[tuple[CheckpointShape, str]] = [
    (shape_of("gpt2", ffn=256, context=1024), "F32"),  # both as transformers assumes
    (shape_of("llama", kv_heads=2, tied=True, rope_theta=300.0), "F32"),
    (shape_of("qwen2", kv_heads=2), "F32"),
    (shape_of("qwen3", kv_heads=2, head_dim=128), "F32"),
    *((WIDE, kind) for kind in ("F16", "BF16", "Q8_0", "Q5_0", "Q5_1", "Q4_0", "Q4_1")),
    *((WIDE, kind) for kind in ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")),
]
TEXTS = [
    "def main():\n    print(12345 + 6.5)  # it's 'done'\n\n\n",
    "Hello  world, don't I'LL naïve 日本 — 🙂!\t\tx\r\n  y ",
    "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n",
    " 1234 ١٢٣ x1y22z333",
]


def logits_of(path: Path, tokens: np.ndarray) -> np.ndarray:
    """Return what transformers makes of a file."""
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    with torch.inference_mode():
        found: np.ndarray = model(torch.from_numpy(tokens)).logits.numpy()
    return found


@pytest.mark.parametrize(("shape", "kind"), CASES, ids=lambda case: getattr(case, "family", case))
def test_logits(tmp_path: Path, shape: CheckpointShape, kind: str) -> None:
    """Every architecture, and every type of tensors."""
    path = write_gguf(
        random_checkpoint(shape, 5),
        tmp_path / "model.gguf",
        gguf.GGMLQuantizationType[kind],
        metadata=tokenizer_metadata(
            tokens=[f"t{index}" for index in range(shape.vocab)], token_type=[1] * shape.vocab
        ),
    )
    tokens = np.random.default_rng(5).integers(0, shape.vocab, (3, 24))
    given, wanted = forward(load_checkpoint(path), tokens), logits_of(path, tokens)
    assert np.abs(given).max() > 0.5  # the tolerance is much less than the logits
    np.testing.assert_allclose(given, wanted, atol=TOLERANCE, rtol=TOLERANCE)


GEMMA: dict[str, Any] = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 256}
CONVERTED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama", {"kv_heads": 2, "head_dim": 24}, {"rope_parameters": {"rope_theta": 500.0}}),
    ("qwen2", {"kv_heads": 2}, {}),
    ("qwen3", {"kv_heads": 2, "head_dim": 128}, {}),
    ("gemma2", {**GEMMA, "layers": 3}, {"sliding_window": 7}),
    ("gemma3_text", {**GEMMA, "layers": 7}, {"sliding_window": 7}),
    ("phi3", {"kv_heads": 2}, {"sliding_window": None}),
    ("stablelm", {"hidden": 64, "kv_heads": 2}, {"use_qkv_bias": True}),
    ("stablelm", {"hidden": 64, "one_norm": True, "parallel": True}, {}),
    ("starcoder2", {"kv_heads": 2, "epsilon": 1e-4}, {}),
    ("falcon", {"kv_heads": 1, "ffn": 256, "one_norm": True}, {"new_decoder_architecture": False}),
    ("gpt2", {"ffn": 256, "context": 1024}, {}),
]
"""Architectures that transformers reads, with what it assumes where it does not look."""


@pytest.mark.parametrize(("family", "dimensions", "options"), CONVERTED)
def test_logits_of_converted_folders(
    tmp_path: Path, family: str, dimensions: dict[str, Any], options: dict[str, Any]
) -> None:
    """Files as the converter makes them: names, order of rows and gains, options by keys."""
    shape = shape_of(family, tied=family in ("falcon", "gemma2", "gemma3_text"), **dimensions)
    config = config_of(shape) | options
    write_checkpoint(random_checkpoint(shape, 5), tmp_path / "folder", config=config)
    words = [f"t{index}" for index in range(shape.vocab)]
    usual = [1] * shape.vocab
    metadata = tokenizer_metadata(tokens=words, token_type=usual, padding_token_id=0)
    path = convert(tmp_path / "folder", tmp_path / "model.gguf", metadata)
    tokens = np.random.default_rng(5).integers(0, shape.vocab, (3, 24))
    checkpoint = load_checkpoint(path)
    assert checkpoint.shape.family == family
    given, wanted = forward(checkpoint, tokens), logits_of(path, tokens)
    assert np.abs(given).max() > 0.5  # the tolerance is much less than the logits
    assert np.abs(given - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_logits_of_a_published_model() -> None:
    """SmolLM2-135M-Instruct, on a text."""
    path = published()
    checkpoint = load_checkpoint(path)
    ids = np.array([load_tokenizer(path, checkpoint.shape.vocab).encode(TEXTS[0])])
    given, wanted = forward(checkpoint, ids), logits_of(path, ids)
    np.testing.assert_allclose(given, wanted, atol=2e-3)
    assert np.abs(given).max() > 10


def of_transformers(path: Path) -> Any:  # noqa: ANN401
    """Return the tokenizer that transformers makes of a file."""
    return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


@pytest.mark.parametrize("cut", ["gpt-2", "llama-bpe", "qwen2"])
def test_how_texts_are_cut(tmp_path: Path, cut: str) -> None:
    """The words that merges see, by the vocabulary of a published model."""
    header = read_header(published(), "published")
    more = {key: value for key, value in header.metadata.items() if key.startswith("tokenizer.")}
    metadata = more | {"tokenizer.ggml.pre": cut, "llama.vocab_size": None}
    path = write_gguf(random_checkpoint(WIDE, 1), tmp_path / "model.gguf", metadata=metadata)
    given, wanted = load_tokenizer(path, 49152), of_transformers(path)
    for text in TEXTS:
        assert given.encode(text) == wanted.encode(text), text
        assert given.decode(given.encode(text)) == wanted.decode(
            wanted.encode(text), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )


def test_digits_of_smollm() -> None:
    """Each is a word of its own, which transformers does not know of: "12" are two tokens."""
    path = published()
    given = load_tokenizer(path, 49152)
    plain = of_transformers(path)
    plain.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    for text in TEXTS:
        assert given.encode(text) == plain.encode(text), text


def test_sentencepiece(tmp_path: Path) -> None:
    """Pieces by their scores, bytes of what has no piece, and a blank in front."""
    random = np.random.default_rng(3)
    letters = [*"▁abcdefgh", "ab", "cd", "▁a", "abc", "▁ab", "gh", "fgh", "bc", "▁▁"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    scores = [0.0] * 259 + [float(one) for one in -random.permutation(len(letters))]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256, *[1] * len(letters)],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "llama.vocab_size": None,
    }
    path = write_gguf(random_checkpoint(WIDE, 1), tmp_path / "model.gguf", metadata=metadata)
    given, wanted = load_tokenizer(path, len(pieces)), of_transformers(path)
    assert given.encode("ab")[0] == 1
    for _ in range(200):
        text = "".join(random.choice([*"abcdefgh  é🙂"], 12))
        assert given.decode(given.encode(text)) == text, text
        text = text.lstrip()  # sentencepiece puts a blank before a blank, transformers does not
        assert given.encode(text) == wanted.encode(text), text
    assert given.encode("  ")[1:] == [pieces.index("▁▁"), pieces.index("▁")]
