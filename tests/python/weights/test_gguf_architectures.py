# SPDX-License-Identifier: Apache-2.0
"""Folders of every architecture written as GGUF files, which are the same models.

Written by gguf_converter, from the source of llama.cpp's converter; what is refused is in
tests/bad_input, what transformers makes of such files in tests/oracles.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from tb.models.decoder_configs import random_config
from tests.forms import FULL
from tests.python.weights.gguf_converter import convert, sayable
from tests.python.weights.gguf_files import add_entry
from weights.architectures import ARCHITECTURES
from weights.importer import load_checkpoint, parse_config
from weights.reference import forward
from weights.stored.gguf_header import read_header
from weights.synthetic import config_of, random_checkpoint, shape_of, write_checkpoint

FAMILIES = [name for name, one in ARCHITECTURES.items() if one.gguf is not None]
WITHOUT = {"gpt_neo", "opt"}
"""Architectures that llama.cpp has no name for."""
TOLERANCE = 1e-5
"""Of the largest logit."""


def folder_of(family: str, config: dict[str, Any], seed: int, folder: Path) -> Path:
    """Write random weights of a configuration."""
    _, shape = parse_config(config, family)
    write_checkpoint(random_checkpoint(shape, seed), folder, config=config)
    return folder


def check_same(folder: Path, file: Path) -> None:
    """Compare the logits of a folder and of a file, on random tokens."""
    wanted, given = load_checkpoint(folder), load_checkpoint(file)
    tokens = np.random.default_rng(1).integers(0, wanted.shape.vocab, (2, wanted.shape.context))
    logits = forward(wanted, tokens)
    assert np.abs(logits).max() > 0.1
    assert np.abs(forward(given, tokens) - logits).max() <= TOLERANCE * np.abs(logits).max()
    plain = replace(wanted.shape, family="", rotations=(), rope_theta=0.0)
    assert replace(given.shape, family="", rotations=(), rope_theta=0.0) == plain


def test_every_architecture_that_has_a_name() -> None:
    """All but those that llama.cpp does not know."""
    assert set(ARCHITECTURES) - set(FAMILIES) == WITHOUT


@pytest.mark.parametrize("seed", range(20 if FULL else 6))
@pytest.mark.parametrize("family", FAMILIES)
def test_random_folders(tmp_path: Path, family: str, seed: int) -> None:
    """A folder and the file that is made of it have the same logits and dimensions."""
    random = np.random.default_rng(seed)
    config = sayable(family, random_config(family, random), random)
    folder = folder_of(family, config, seed, tmp_path / "folder")
    check_same(folder, convert(folder, tmp_path / "model.gguf"))


def converted(family: str, folder: Path, metadata: dict[str, Any], **options: Any) -> Path:  # noqa: ANN401
    """Return the file of a small folder with options, and with further metadata."""
    config = config_of(shape_of(family, hidden=48, kv_heads=2, layers=3)) | options
    folder_of(family, config, 1, folder)
    return convert(folder, folder.parent / "model.gguf", metadata)


def test_a_llama_with_a_window_is_a_mistral(tmp_path: Path) -> None:
    """Both have one name; the converter of today leaves windows out."""
    folder = tmp_path / "folder"
    window = {"llama.attention.sliding_window": 9}
    file = converted("mistral", folder, window, sliding_window=9)
    check_same(folder, file)
    assert load_checkpoint(file).shape.window == 9


@pytest.mark.parametrize("pattern", [2, [True, False, True]])
@pytest.mark.parametrize("family", ["gemma2", "gemma3_text"])
def test_patterns_of_windows(tmp_path: Path, family: str, pattern: int | list[bool]) -> None:
    """Every so many layers are full, or all are said one by one."""
    name, folder = family.removesuffix("_text"), tmp_path / "folder"
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    options = {"sliding_window": 9, "layer_types": kinds, "attn_logit_softcapping": 5.0}
    options |= {"final_logit_softcapping": 20.0, "query_pre_attn_scalar": 12}
    if family == "gemma3_text":
        del options["attn_logit_softcapping"]
    metadata = {f"{name}.attention.sliding_window_pattern": pattern}
    file = converted(family, folder, metadata, **options)
    check_same(folder, file)
    assert load_checkpoint(file).shape.windows == (9, 0, 9)


def test_gemma3_without_windows(tmp_path: Path) -> None:
    """No layer is of the kind that has one, with the rotations of it."""
    folder, near = tmp_path / "folder", {"rope_theta": 70.0, "rope_type": "default"}
    full = near | {"rope_theta": 900.0}
    file = converted(
        "gemma3_text",
        folder,
        {"gemma3.attention.sliding_window": None},
        query_pre_attn_scalar=12,
        final_logit_softcapping=None,
        layer_types=["full_attention"] * 3,
        sliding_window=4096,
        rope_parameters={"full_attention": full, "sliding_attention": near},
    )
    check_same(folder, file)
    shape = load_checkpoint(file).shape
    assert (shape.windows, shape.window, shape.table_count) == ((), 0, 1)
    assert shape.rope_theta == 900.0


def test_a_base_of_rotations_that_is_not_written_down(tmp_path: Path) -> None:
    """It is llama.cpp's, not what transformers has for the architecture."""
    gone: dict[str, Any] = {"smollm3.rope.freq_base": None}
    assert load_checkpoint(converted("smollm3", tmp_path / "folder", gone)).shape.rope_theta == 1e4


@pytest.mark.parametrize(("family", "layers"), [("gemma2", 46), ("gemma3_text", 62)])
def test_scale_of_scores_of_large_gemmas(tmp_path: Path, family: str, layers: int) -> None:
    """The 27B models divide by the root of hidden / heads, not of a head's size; by layers."""
    folder = tmp_path / "folder"
    config = config_of(shape_of(family, hidden=48, heads=4, head_dim=8, layers=1, vocab=60))
    config |= {"query_pre_attn_scalar": 12, "final_logit_softcapping": 20.0}
    config |= {"num_hidden_layers": layers, "layer_types": None, "sliding_window": 9}
    if family == "gemma2":
        config["attn_logit_softcapping"] = 5.0
    folder_of(family, config, 1, folder)
    check_same(folder, convert(folder, tmp_path / "model.gguf"))


@pytest.mark.parametrize("family", ["phi", "qwen2", "starcoder2"])
def test_q_k_and_v_as_one_tensor(tmp_path: Path, family: str) -> None:
    """As files of Phi-2 had them at first: all of q, all of k, all of v."""
    folder = tmp_path / "folder"
    options: dict[str, Any] = {"num_key_value_heads": 4, "intermediate_size": 192}
    if family == "phi":
        options["rope_parameters"] = {"rope_theta": 1e4, "partial_rotary_factor": 0.5}
    separate = converted(family, folder, {}, **options)
    header, tensors = read_header(separate, ""), load_tensors(separate)
    joined = {name: tensor for name, tensor in tensors.items() if ".attn_k." not in name}
    for name in [one for one in joined if ".attn_q." in one]:
        parts = [tensors[name.replace("attn_q", f"attn_{part}")] for part in "qkv"]
        joined[name.replace("attn_q", "attn_qkv")] = np.concatenate(parts)
        del joined[name], joined[name.replace("attn_q", "attn_v")]
    file = tmp_path / "joined.gguf"
    name = header.metadata["general.architecture"]
    writer = gguf.GGUFWriter(file, name)
    for key, value in header.metadata.items():
        if key != "general.architecture":
            add_entry(writer, key, value)
    for one, tensor in joined.items():
        writer.add_tensor(one, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert any("attn_qkv.bias" in one for one in read_header(file, "").tensors)
    check_same(folder, file)


def load_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a file by their names, as the package gguf reads them."""
    found = gguf.GGUFReader(path).tensors
    return {one.name: np.array(one.data) for one in found}
