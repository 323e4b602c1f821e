# SPDX-License-Identifier: Apache-2.0
"""Reading models and tokenizers from GGUF files; what is refused, is in tests/bad_input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from tests.python.weights.gguf_files import WORDS, tokenizer_metadata, write_gguf
from weights.calibrate import cache_path, scales_for
from weights.checkpoint import CheckpointShape, digest
from weights.importer import load_checkpoint, load_shape
from weights.synthetic import random_checkpoint, shape_of
from weights.tokenizer import end_tokens, load_tokenizer

SHAPES = [
    shape_of("gpt2", epsilon=1e-6),
    shape_of("gpt2", tied=False),
    shape_of("llama", hidden=32, heads=4, kv_heads=2, rope_theta=5e5, epsilon=1e-5),
    shape_of("llama", head_dim=24, tied=True),
    shape_of("llama", biases=("q", "k", "v", "o", "gate", "up", "down"), kv_heads=1),
    shape_of("qwen2", kv_heads=2, rope_theta=1e6),
    shape_of("qwen3", kv_heads=2, head_dim=20),
    shape_of("qwen3", biases=("q", "k", "v", "o"), tied=True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.family)
def test_every_tensor_and_dimension(tmp_path: Path, shape: CheckpointShape) -> None:
    """What is written as float32 is read, with every dimension."""
    written = random_checkpoint(shape, 1)
    path = write_gguf(written, tmp_path / "model.gguf")
    read = load_checkpoint(path)
    assert read.shape == load_shape(path) == shape
    assert digest(read) == digest(written)
    assert (read.folder, read.file) == (None, path)


def test_a_folder_with_one_file(tmp_path: Path) -> None:
    """A folder without config.json is its GGUF file."""
    written = random_checkpoint(SHAPES[2], 1)
    path = write_gguf(written, tmp_path / "model.gguf")
    assert load_checkpoint(tmp_path).file == path


HALF = {"F16": 1e-3, "BF16": 4e-3}
ROUNDED = {"Q8_0": 0.01, "Q5_0": 0.08, "Q5_1": 0.08, "Q4_0": 0.15, "Q4_1": 0.15}
"""Types that the package quantises to, with the largest difference as a share of the largest."""


@pytest.mark.parametrize("kind", [*HALF, *ROUNDED])
def test_types_of_tensors(tmp_path: Path, kind: str) -> None:
    """Matrices come back as far off as their type rounds, and in their places."""
    written = random_checkpoint(shape_of("llama", kv_heads=2), 1)
    read = load_checkpoint(
        write_gguf(written, tmp_path / "model.gguf", gguf.GGMLQuantizationType[kind])
    )
    for name, tensor in written.tensors.items():
        worst = np.abs(read.tensors[name] - tensor).max() / np.abs(tensor).max()
        assert worst <= (HALF | ROUNDED)[kind], name
        assert (worst > 0) == (tensor.ndim == 2), name


def test_measured_ranges_go_to_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written beside a file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "model.gguf"
    checkpoint = load_checkpoint(
        write_gguf(
            random_checkpoint(shape_of("llama", vocab=256), 1), path, metadata=tokenizer_metadata()
        )
    )
    scales = scales_for(checkpoint)
    assert cache_path(checkpoint).is_file()
    assert scales_for(checkpoint) == scales
    assert list(path.parent.iterdir()) == [path]


def test_tokenizer_of_bytes_with_merges(tmp_path: Path) -> None:
    """Merges, special tokens, ends and chat template come from the metadata."""
    more = tokenizer_metadata(eot_token_id=1) | {"tokenizer.chat_template": "{{ messages }}"}
    path = write_gguf(random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=more)
    tokenizer = load_tokenizer(path, SHAPES[2].vocab)
    ids = tokenizer.encode("the the<|turn|>a 1")
    assert [WORDS[index] for index in ids] == ["the", "Ġthe", "<|turn|>", "a", "Ġ", "1"]
    assert tokenizer.decode(ids) == "the thea 1"
    assert tokenizer.end == 0
    assert end_tokens(path, tokenizer, 80) == [0, 1]
    assert tokenizer.chat_template == "{{ messages }}"


def test_beginning_of_a_text(tmp_path: Path) -> None:
    """The token in front is there if the file says so."""
    more = tokenizer_metadata(add_bos_token=True)
    path = write_gguf(random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=more)
    assert load_tokenizer(path, 80).encode("a")[0] == 1


def test_a_vocabulary_size_that_is_not_written_down(tmp_path: Path) -> None:
    """The token table has it, and a missing number of K/V heads is that of heads."""
    shape = replace(SHAPES[2], kv_heads=4)
    gone = {"llama.vocab_size": None, "llama.attention.head_count_kv": None}
    path = write_gguf(random_checkpoint(shape, 1), tmp_path / "model.gguf", metadata=gone)
    assert load_checkpoint(path).shape == shape
