# SPDX-License-Identifier: Apache-2.0
"""GGUF files that are refused: damaged ones, and such as say what no model here can be.

Every message is one line with the file, what was given and what is allowed.
"""

from __future__ import annotations

import builtins
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from npu.cli import command_line
from tests.python.weights.gguf_converter import convert
from tests.python.weights.gguf_files import WORDS, tensors_of, tokenizer_metadata, write_gguf
from weights.checkpoint import CheckpointError
from weights.importer import load_checkpoint, load_shape
from weights.stored.gguf_header import read_header
from weights.synthetic import config_of, random_checkpoint, shape_of, write_checkpoint
from weights.tokenizer import TokenizerError, load_tokenizer

SHAPE = shape_of("llama", hidden=32, layers=1, kv_heads=2, ffn=32, vocab=60, context=16)
CHECKPOINT = random_checkpoint(SHAPE, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the file of a test is."""
    return tmp_path / "model.gguf"


def refused(path: Path, message: str) -> None:
    """Check that a file is refused in a line with its name."""
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_cut_off_anywhere(path: Path) -> None:
    """Every end within the header, and within the numbers."""
    data = write_gguf(CHECKPOINT, path, metadata=tokenizer_metadata()).read_bytes()
    start = min(one.start for one in read_header(path, "").tensors.values())
    for size in range(4, start, 7):
        path.write_bytes(data[:size])
        refused(path, r"is cut off in|given \d+, allowed 0 to \d+, for which|given bytes \d+ to")
    path.write_bytes(data[:-40])
    refused(path, r"tensor '[\w.]+': given bytes \d+ to \d+, allowed within the \d+ bytes of the")
    path.write_bytes(data)
    assert load_checkpoint(path).shape == SHAPE


def test_damaged_anywhere(path: Path) -> None:
    """A byte of the header more or less is refused, or is part of a name or number; it ends."""
    data = write_gguf(CHECKPOINT, path).read_bytes()
    start = min(one.start for one in read_header(path, "").tensors.values())
    for at in range(start):
        for value in (0, 0xFF, data[at] ^ 1):
            path.write_bytes(data[:at] + bytes([value]) + data[at + 1 :])
            try:
                load_checkpoint(path)
            except CheckpointError as error:
                assert "\n" not in str(error)


def test_what_is_no_file_of_ours(path: Path) -> None:
    """Another kind, another byte order, another version, nothing at all."""
    refused(path, "cannot be read: No such file")
    path.write_bytes(b"GGML" + bytes(40))
    refused(path, r"given a file without b'GGUF' in front, allowed is a GGUF file")
    write_gguf(CHECKPOINT, path, endianess=gguf.GGUFEndian.BIG)
    refused(path, "byte order: given big-endian numbers, allowed little-endian ones")
    path.write_bytes(b"GGUF" + struct.pack("<I", 1) + bytes(40))
    refused(path, "version: given 1, allowed 2 or 3")


def test_two_files_in_a_folder(path: Path) -> None:
    """Which one is meant, nobody knows."""
    for name in ("a.gguf", "b.gguf"):
        write_gguf(CHECKPOINT, path.with_name(name))
    with pytest.raises(
        CheckpointError, match=r"given 2 GGUF files, allowed is one, .*a\.gguf, b\."
    ):
        load_checkpoint(path.parent)


METADATA: list[tuple[dict[str, Any], str]] = [
    (
        {"general.architecture": "nonsense"},
        r"general\.architecture: given 'nonsense', allowed \['falcon', 'gemma', 'gemma2', "
        r"'gemma3', 'gpt2', 'gptneox', 'granite', 'llama', 'olmo2', 'phi2', 'phi3', 'qwen2', "
        r"'qwen3', 'smollm3', 'stablelm', 'starcoder2'\]$",
    ),
    ({"llama.block_count": None}, r"metadata llama\.block_count is missing"),
    ({"llama.block_count": 700}, r"llama\.block_count: given 700, allowed at most the number of"),
    ({"llama.block_count": 2}, r"tensor 'blk\.1\.attn_norm\.weight' is missing"),
    (
        {"llama.embedding_length": 64},
        r"'token_embd\.weight': given shape \(60, 32\), allowed \(60, 6",
    ),
    ({"llama.embedding_length": "x"}, r"llama\.embedding_length: given 'x', allowed int >= 1"),
    (
        {"llama.attention.head_count": [4, 4]},
        r"llama\.attention\.head_count: given \[4, 4\], allow",
    ),
    ({"llama.attention.head_count": 3}, r"head_count: given 3, allowed a multiple of 2 K/V heads"),
    (
        {"llama.attention.head_count_kv": 4},
        r"'blk\.0\.attn_k\.weight': given shape \(16, 32\), all",
    ),
    ({"llama.vocab_size": 61}, r"'token_embd\.weight': given shape \(60, 32\), allowed \(61, 32\)"),
    ({"llama.rope.dimension_count": 4}, r"dimension_count: given 4, allowed 8, the size of a head"),
    ({"llama.attention.value_length": 16}, r"value_length: given 16, allowed 8, the size of a"),
    ({"llama.rope.scaling.type": "spiral"}, r"llama\.rope\.scaling\.type: given 'spiral', al"),
    ({"llama.rope.scaling.factor": 4.0}, r"llama\.rope\.scaling\.factor: given 4\.0, allowed 1"),
    ({"llama.attention.layer_norm_rms_epsilon": 2.0}, r"rms_epsilon: given 2\.0, allowed a number"),
    (
        {"llama.expert_count": 8},
        r"metadata llama\.expert_count: given 8, allowed 0: mixtures of experts are not read",
    ),
    (
        {"llama.attention.temperature_scale": 0.1},
        r"temperature_scale: given 0\.1, allowed are no options of a llama but context_len",
    ),
    (
        {"llama.a\nb\x1b[31m\u202e": 3},
        r"metadata llama\.a\\nb\\x1b\[31m\\u202e: given 3, allowed are no options of a llama but",
    ),
    ({"llama.attention.causal": False}, r"attention\.causal: given False, allowed True"),
    (
        tokenizer_metadata(tokens=["x"] * 61),
        r"tokenizer\.ggml\.tokens: given 61 tokens, allowed up to 60, the vocabulary of the model",
    ),
    ({"general.alignment": 3}, r"'general\.alignment': given 3, allowed a power of two"),
]


@pytest.mark.parametrize(("metadata", "message"), METADATA)
def test_metadata(path: Path, metadata: dict[str, Any], message: str) -> None:
    """What contradicts the tensors, is missing, or no option of the architecture."""
    write_gguf(CHECKPOINT, path, metadata=metadata)
    refused(path, message)


OTHERS: list[tuple[str, dict[str, Any], str]] = [
    (
        "granite",
        {"granite.attention.scale": None},
        r"metadata granite\.attention\.scale is missing",
    ),
    (
        "granite",
        {"granite.rope.scaling.finetuned": False},
        r"granite\.rope\.scaling\.finetuned: given False, allowed True",
    ),
    ("granite", {"granite.residual_scale": -1.0}, r"residual_scale: given -1\.0, allowed a number"),
    (
        "gpt_neox",
        {"gptneox.rope.dimension_count": 7},
        r"metadata gptneox\.rope\.dimension_count: given 7, allowed an even number up to 8, the",
    ),
    (
        "phi",
        {"phi2.rope.dimension_count": 10},
        r"given 10, allowed an even number up to 8, the size",
    ),
    (
        "phi",
        {"phi2.attention.key_length": 6},
        r"attn_q\.weight': given shape \(32, 32\), allowed \(2",
    ),
    (
        "falcon",
        {"falcon.attention.key_length": 6},
        r"key_length: given 6, allowed 8, the size of a",
    ),
    ("falcon", {"falcon.attention.head_count_kv": 3}, r"head_count_kv: given 3, allowed a divisor"),
    (
        "gemma2",
        {"gemma2.attention.sliding_window_pattern": [True] * 5},
        r"gemma2\.attention\.sliding_window_pattern: given \['sliding_attention', .*, allowed 1 of",
    ),
    (
        "gemma2",
        {"gemma2.final_logit_softcapping": "x"},
        r"softcapping: given 'x', allowed a number",
    ),
    (
        "olmo2",
        {"olmo2.attention.sliding_window": 9},
        r"sliding_window: given 9, allowed are no opt",
    ),
    (
        "phi3",
        {"phi3.rope.scaling.type": "longrope"},
        r"rope_scaling\.short_factor: given None, all",
    ),
    (
        "starcoder2",
        {"starcoder2.attention.layer_norm_epsilon": None},
        r"metadata starcoder2\.attention\.layer_norm_epsilon is missing",
    ),
    (
        "smollm3",
        {"smollm3.expert_used_count": 2},
        r"given 2, allowed 0: mixtures of experts are not",
    ),
]


@pytest.mark.parametrize(("family", "metadata", "message"), OTHERS)
def test_metadata_of_other_architectures(
    path: Path, family: str, metadata: dict[str, Any], message: str
) -> None:
    """Sizes of heads, scales, windows and what only some values of are computed."""
    shape = shape_of(family, hidden=32, layers=1, ffn=128, vocab=60, context=16)
    options: dict[str, Any] = {}
    if family == "gemma2":
        options = {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 5.0}
        options["sliding_window"] = 9
    folder = path.with_suffix("")
    write_checkpoint(random_checkpoint(shape, 1), folder, config=config_of(shape) | options)
    convert(folder, path, metadata)
    refused(path, message)


def test_factors_of_long_rotations(path: Path) -> None:
    """As many as there are rotated pairs."""
    shape = shape_of("phi3", hidden=32, layers=1, ffn=32, vocab=60, context=16)
    factors = {"short_factor": [1.0] * 4, "long_factor": [1.0] * 4, "rope_type": "longrope"}
    config = config_of(shape) | {"rope_parameters": {"rope_theta": 1e4, **factors}}
    folder = path.with_suffix("")
    write_checkpoint(random_checkpoint(shape, 1), folder, config=config)
    convert(folder, path, {"phi3.rope.dimension_count": 6})
    refused(path, r"tensor rope_factors_short\.weight: given \[.*\], allowed 3 numbers above 0")


def test_keys_and_tensors_twice(path: Path) -> None:
    """Each has one meaning."""
    data = write_gguf(CHECKPOINT, path).read_bytes()
    path.write_bytes(data.replace(b"llama.context_length", b"llama.rope.freq_base"))
    refused(path, r"metadata 'llama\.rope\.freq_base': given it twice, allowed once")
    path.write_bytes(data.replace(b"blk.0.attn_k.weight", b"blk.0.attn_v.weight"))
    refused(path, r"tensor 'blk\.0\.attn_v\.weight': given it twice, allowed once")


def test_types_that_are_not_read(path: Path) -> None:
    """By name if they have one."""
    data = write_gguf(CHECKPOINT, path).read_bytes()
    name = b"blk.0.ffn_up.weight"
    at = data.index(name) + len(name) + 4 + 16
    for number, shown in ((99, "99"), (16, "IQ2_XXS"), (24, "I8")):
        path.write_bytes(data[:at] + struct.pack("<I", number) + data[at + 4 :])
        refused(
            path, rf"tensor 'blk\.0\.ffn_up\.weight': given type {shown}, allowed F64, F32, F16"
        )
    path.write_bytes(data[:at] + struct.pack("<I", 12) + data[at + 4 :])
    refused(path, r"'blk\.0\.ffn_up\.weight': given rows of 32 as Q4_K, allowed a multiple of 256")


def test_tensors(path: Path) -> None:
    """Numbers that are none, tensors of other models, and none at all."""
    tensors = tensors_of(CHECKPOINT)
    wrong = np.full(32, np.inf, np.float32)
    write_gguf(CHECKPOINT, path, tensors=tensors | {"output_norm.weight": wrong})
    refused(path, r"'output_norm\.weight': given inf at index \(0,\), allowed finite float32")
    write_gguf(CHECKPOINT, path, tensors=tensors | {"blk.0.ffn_gate_inp.weight": wrong})
    refused(
        path, r"tensor 'blk\.0\.ffn_gate_inp\.weight': given shape \(32,\), but a llama of this"
    )
    write_gguf(
        CHECKPOINT,
        path,
        tensors=tensors | {"rope_freqs.weight": np.array([1, 2, 3, 9], np.float32)},
    )
    refused(path, r"'rope_freqs\.weight': given 4 factors up to 9, allowed 4 as LLaMA 3 has them")
    del tensors["token_embd.weight"]
    write_gguf(CHECKPOINT, path, tensors=tensors)
    refused(path, r"tensor 'token_embd\.weight' is missing")


def test_without_the_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dimensions are read without it; for tensors the message says what to install."""
    write_gguf(CHECKPOINT, path)
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:  # noqa: ANN401
        if name == "gguf":
            raise ImportError("No module named 'gguf'")
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert load_shape(path) == SHAPE
    refused(path, r"reading GGUF needs a package: No module named 'gguf': pip install -e")


TOKENIZERS: list[tuple[dict[str, object], str]] = [
    ({"model": None}, r"ggml\.model: given none, allowed str"),
    ({"model": "bert"}, r"ggml\.model: given 'bert', allowed \['gpt2', 'llama'\]"),
    ({"tokens": None}, r"ggml\.tokens: given none, allowed list"),
    (
        {"pre": "bloom"},
        r"ggml\.pre: given 'bloom', allowed \['default', 'gpt-2', 'phi-2', .*'tekken'\]",
    ),
    ({"merges": ["t h", "the"]}, r"ggml\.merges: given 'the', allowed two tokens with a blank"),
    ({"merges": ["t h", "q z"]}, r"the tokenizer cannot be read: .*qz"),
    (
        {"eos_token_id": 60},
        rf"ggml\.eos_token_id: given 60, allowed 0 to {len(WORDS) - 1}, a token",
    ),
    ({"eos_token_id": "end"}, r"ggml\.eos_token_id: given str, allowed int"),
    (
        {"token_type": [1, 1]},
        rf"ggml\.token_type: given 2 entries, allowed {len(WORDS)}, as tokens",
    ),
    ({"model": "llama"}, r"ggml\.scores: given none, allowed list"),
]


@pytest.mark.parametrize(("changes", "message"), TOKENIZERS)
def test_tokenizers(path: Path, changes: dict[str, object], message: str) -> None:
    """Unknown kinds, and entries that contradict one another."""
    write_gguf(CHECKPOINT, path, metadata=tokenizer_metadata(**changes))
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(path, SHAPE.vocab)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["inspect", "compile", "quality"])
def test_commands(path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Exit status 2 and one line."""
    write_gguf(CHECKPOINT, path, metadata={"llama.expert_count": 8})
    more = ["-o", str(path.with_suffix(".tsr"))] if command == "compile" else []
    assert command_line.main([command, str(path), *more]) == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith(f"npu: {path}: metadata llama.expert_count: given 8")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
