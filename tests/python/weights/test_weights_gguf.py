# SPDX-License-Identifier: Apache-2.0
"""Reading models and tokenizers from GGUF files; what is refused, is in tests/bad_input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

import tessera
from npu.cli import command_line
from npu.graph.importers import kind_of
from tests.python.weights.gguf_files import (
    MERGES,
    WORDS,
    tensors_of,
    tokenizer_metadata,
    write_gguf,
)
from weights.calibrate import cache_path, scales_for
from weights.checkpoint import CheckpointShape, digest
from weights.importer import load_checkpoint, load_shape
from weights.reference import forward
from weights.stored.gguf_file import GgufModel
from weights.stored.gguf_header import read_header
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


TURN = (
    "{% for one in messages %}<|{{ one.role }}|>{{ one.content | trim }} <end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.mark.parametrize(
    "text",
    [
        *("<end_of_turn>", "<|end|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>"),
        *("<|end_of_text|>", "<EOT>", "_<EOT>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
        "<end_of_utterance>",
    ],
)
def test_ends_that_only_the_vocabulary_has(tmp_path: Path, text: str) -> None:
    """As llama.cpp finds them, by their texts; a piece of usual text is none."""
    tokens = ["<end>", text, *WORDS[2:]]
    for kind, ends in ((3, [0, 1]), (4, [0, 1]), (1, [0])):
        kinds = [3, kind, *[1] * (len(tokens) - 2)]
        metadata = tokenizer_metadata(tokens=tokens, token_type=kinds, bos_token_id=None)
        path = write_gguf(
            random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=metadata
        )
        assert end_tokens(path, load_tokenizer(path, 80), 80) == ends


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        (None, [0, 1, 2]),
        (TURN, [2, 0, 1]),
        (TURN.replace("<end_of_turn>", "{{ eos_token }}"), [0, 1, 2]),
        (TURN.replace("<end_of_turn>", "<unknown>"), [0, 1, 2]),
        (TURN.replace("<end_of_turn>", "{{ raise_exception('no') }}"), [0, 1, 2]),
        ("{{ messages[0].content }}<end_of_turn>", [0, 1, 2]),
    ],
)
def test_end_of_an_answer(tmp_path: Path, template: str | None, ends: list[int]) -> None:
    """What the chat template writes behind one goes first: the chip knows only that."""
    tokens = ["<end>", "<|im_end|>", "<end_of_turn>", *WORDS[2:]]
    metadata = tokenizer_metadata(
        tokens=tokens, token_type=[3, 3, 3, *[1] * (len(tokens) - 3)], bos_token_id=None
    )
    metadata |= {} if template is None else {"tokenizer.chat_template": template}
    path = write_gguf(random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=metadata)
    assert end_tokens(path, load_tokenizer(path, 80), 80) == ends


def test_beginning_of_a_text(tmp_path: Path) -> None:
    """The token in front is there if the file says so, or says nothing and LLaMA 3 has it."""
    for says, cut, first in (
        (True, "smollm", True),
        (False, "llama-bpe", False),
        (None, "llama-bpe", True),
        (None, "smollm", False),
    ):
        more = tokenizer_metadata(add_bos_token=says, pre=cut)
        path = write_gguf(random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=more)
        assert (load_tokenizer(path, 80).encode("a")[0] == 1) == first, (says, cut)


def test_a_vocabulary_size_that_is_not_written_down(tmp_path: Path) -> None:
    """The token table has it, and a missing number of K/V heads is that of heads."""
    shape = replace(SHAPES[2], kv_heads=4)
    gone = {"llama.vocab_size": None, "llama.attention.head_count_kv": None}
    path = write_gguf(random_checkpoint(shape, 1), tmp_path / "model.gguf", metadata=gone)
    assert load_checkpoint(path).shape == shape


def test_scaled_frequencies(tmp_path: Path) -> None:
    """Their factors are those of LLaMA 3; other kinds of scaling have keys of their own."""
    checkpoint, theta = random_checkpoint(shape_of("llama", head_dim=64), 1), 10000.0
    wave = 2 * np.pi * theta ** (np.arange(32) / 32)
    smooth = (8192 / wave - 1) / 3
    middle = 1 / ((1 - smooth) / 32 + smooth)
    factors = np.where(wave < 8192 / 4, 1, np.where(wave > 8192, 32, middle))
    assert 0 < (factors % 31 != 1).sum() < 32
    tensors = tensors_of(checkpoint) | {"rope_freqs.weight": factors.astype(np.float32)}
    path = write_gguf(checkpoint, tmp_path / "model.gguf", tensors=tensors)
    assert GgufModel(path, "x").config.content["rope_scaling"] == {
        "rope_type": "llama3",
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    keys = {"type": "yarn", "factor": 4.0, "original_context_length": 6, "finetuned": True}
    metadata = {f"llama.rope.scaling.{key}": value for key, value in keys.items()}
    write_gguf(checkpoint, path, metadata=metadata)
    assert GgufModel(path, "x").config.content["rope_scaling"] == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 6,
    }


CUTS = {
    "gpt-2": ["1234", "Ġ12", "Ċ", "Ċ", "the"],
    "smollm": ["1", "2", "3", "4", "Ġ", "1", "2", "Ċ", "Ċ", "the"],
    "llama-bpe": ["123", "4", "Ġ", "12", "ĊĊ", "the"],
    "qwen2": ["1", "2", "3", "4", "Ġ", "1", "2", "ĊĊ", "the"],
}


@pytest.mark.parametrize(("cut", "wanted"), CUTS.items())
def test_how_texts_are_cut(tmp_path: Path, cut: str, wanted: list[str]) -> None:
    """Merges join what stands in one word."""
    tokens = [*WORDS, "12", "34", "1234", "123", "Ġ12", "ĊĊ", "xy"]
    merges = [*MERGES, "1 2", "3 4", "12 34", "12 3", "Ġ 12", "Ċ Ċ"]
    metadata = tokenizer_metadata(pre=cut, tokens=tokens, token_type=None, merges=merges)
    path = write_gguf(random_checkpoint(SHAPES[2], 1), tmp_path / "model.gguf", metadata=metadata)
    tokenizer = load_tokenizer(path, 80)
    assert [tokens[index] for index in tokenizer.encode("1234 12\n\nthe")] == wanted
    # A word that is a token needs no merges, in LLaMA 3.
    assert len(tokenizer.encode("xy")) == (1 if cut == "llama-bpe" else 2)


def test_blocks_of_256(tmp_path: Path) -> None:
    """Q4_K and Q6_K number by number, as the structures of llama.cpp say."""
    checkpoint = random_checkpoint(shape_of("llama", hidden=256, ffn=256, layers=1), 1)
    for kind, number in (("Q4_K", _q4_k), ("Q6_K", _q6_k)):
        path = write_gguf(checkpoint, tmp_path / f"{kind}.gguf", gguf.GGMLQuantizationType[kind])
        places = read_header(path, "").tensors
        place = places["blk.0.ffn_up.weight"]
        size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][1]
        blocks = np.frombuffer(path.read_bytes(), np.uint8, 256 * size, place.start)
        wanted = [[number(row, index) for index in range(256)] for row in blocks.reshape(256, -1)]
        found = load_checkpoint(path).tensors["h.0.up.weight"].T
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def _half(block: np.ndarray, at: int) -> float:
    return float(block[at : at + 2].view("<f2")[0])


def _q4_k(block: np.ndarray, index: int) -> float:
    """Return number 0 to 255 of a block: d, dmin, 12 bytes of scales and minima, 4-bit codes."""
    part, scales = index // 32, [int(one) for one in block[4:16]]
    scale, least = scales[part % 4] & 63, scales[part % 4 + 4] & 63
    if part >= 4:
        low = scales[part + 4]
        scale = low & 15 | scales[part - 4] >> 6 << 4
        least = low >> 4 | scales[part] >> 6 << 4
    code = int(block[16 + index // 64 * 32 + index % 32]) >> 4 * (part % 2) & 15
    return _half(block, 0) * scale * code - _half(block, 2) * least


def _q6_k(block: np.ndarray, index: int) -> float:
    """Return number 0 to 255 of a block: low 4 bits, high 2 bits, 16 scales, d."""
    half, part, lane = index // 128, index % 128 // 32, index % 32
    low = int(block[64 * half + 32 * (part % 2) + lane]) >> 4 * (part // 2) & 15
    high = int(block[128 + 32 * half + lane]) >> 2 * part & 3
    scale = int(block[192 + index // 16].view(np.int8))
    return _half(block, 208) * scale * ((low | high << 4) - 32)


def test_a_network_of_a_file(tmp_path: Path) -> None:
    """A file, and the folder that holds it, are a checkpoint to tessera as they are to npu."""
    shape = shape_of("llama", hidden=16, heads=2, layers=1, ffn=16, vocab=60, context=8)
    checkpoint = random_checkpoint(shape, 1)
    path = write_gguf(checkpoint, tmp_path / "model.gguf", metadata=tokenizer_metadata())
    assert kind_of(path) == kind_of(path.rename(tmp_path / "model")) == "checkpoint"
    (tmp_path / "model").rename(path)
    tokens = np.array([[1, 2, 3, 4]], np.int32)
    wanted = forward(checkpoint, tokens)
    for source in (path, tmp_path):
        session = tessera.load(source, shapes={"tokens": (1, 4)})
        found = session.run({"tokens": tokens})["logits"]
        assert np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("options", [["--shape", "tokens=1,4"], ["--accept-loss"]])
def test_commands(tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is compiled as a network, or as a decoder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shape = shape_of("llama", hidden=16, heads=1, layers=1, ffn=16, vocab=60, context=16)
    more = tokenizer_metadata()
    path = write_gguf(random_checkpoint(shape, 1), tmp_path / "model.gguf", metadata=more)
    output = tmp_path / "out"
    assert command_line.main(["compile", str(path), "-o", str(output), *options]) == 0
    assert output.exists()
    assert command_line.main(["inspect", str(path)]) == 0


def test_a_cut_that_is_not_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command says that it was guessed, and goes on."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shape = shape_of("llama", hidden=16, heads=1, layers=1, ffn=16, vocab=60, context=16)
    for pre in (None, "default"):
        more = tokenizer_metadata(pre=pre)
        path = write_gguf(random_checkpoint(shape, 1), tmp_path / "model.gguf", metadata=more)
        output = str(tmp_path / "out")
        assert command_line.main(["compile", str(path), "-o", output, "--accept-loss"]) == 0
        said = f"warning: {path}: tokenizer.ggml.pre is missing: texts are cut"
        assert (said in capsys.readouterr().err) == (pre is None)
