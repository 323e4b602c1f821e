# SPDX-License-Identifier: Apache-2.0
"""Packed matrices and pickles that are refused: other methods, contradictions, what is missing."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.python.weights.packed_matrices import (
    AWQ,
    COMPRESSED,
    GPTQ,
    Array,
    PackedMatrix,
    awq,
    compressed,
    gptq,
    write_packed,
)
from weights.checkpoint import CheckpointError
from weights.importer import load_checkpoint
from weights.stored.folder import PICKLE, WEIGHTS
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint

SHAPE = shape_of("llama", hidden=32, heads=4, ffn=32, layers=1, vocab=20, context=8)
CHECKPOINT = random_checkpoint(SHAPE, 1)
PACKS: dict[str, tuple[dict[str, Any], Callable[[PackedMatrix], dict[str, Array]]]] = {
    "gptq": (GPTQ, gptq),
    "awq": (AWQ, awq),
    "compressed-tensors": (COMPRESSED, compressed),
}
UP = "model.layers.0.mlp.up_proj"


def refused(folder: Path, message: str) -> None:
    """Check that a folder is refused in a line with its name."""
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert str(caught.value).startswith(f"{folder}: ")
    assert "\n" not in str(caught.value)


OPTIONS: list[tuple[str, dict[str, Any], str]] = [
    (
        "gptq",
        {"quant_method": "fbgemm_fp8"},
        r"quant_method: given 'fbgemm_fp8', allowed 'gptq' or",
    ),
    ("gptq", {"quant_method": None}, r"quant_method: given None, allowed 'gptq' or 'awq' or"),
    ("gptq", {"bits": 3}, r"config\.json quantization_config\.bits: given 3, allowed 4 or 8"),
    ("gptq", {"group_size": 0}, r"group_size: given 0, allowed int >= 1, or -1"),
    ("gptq", {"group_size": "16"}, r"group_size: given '16', allowed int >= 1, or -1"),
    (
        "gptq",
        {"checkpoint_format": "marlin"},
        r"checkpoint_format: given 'marlin', allowed 'gptq' o",
    ),
    (
        "gptq",
        {"dynamic": {"-:.*q": {}}},
        r"dynamic: given \{'-:\.\*q': \{\}\}, allowed None or \{\}",
    ),
    ("awq", {"bits": 8}, r"quantization_config\.bits: given 8, allowed 4"),
    ("awq", {"version": "gemv"}, r"quantization_config\.version: given 'gemv', allowed 'gemm'"),
    ("awq", {"zero_point": False}, r"zero_point: given False, allowed True"),
    (
        "compressed-tensors",
        {"format": "float-quantized"},
        r"format: given 'float-quantized', allow",
    ),
    (
        "compressed-tensors",
        {"kv_cache_scheme": {"num_bits": 8}},
        r"kv_cache_scheme: given \{'num_bit",
    ),
    (
        "compressed-tensors",
        {"transform_config": {"config_groups": {"u": {"type": "hadamard"}}}},
        r"quantization_config\.transform_config: given .*hadamard.*, allowed None$",
    ),
    (
        "compressed-tensors",
        {"sparsity_config": {"format": "sparse-24-bitmask"}},
        r"sparsity_config: given .*24-bitmask.*, allowed None or \{'format': 'dense'\}$",
    ),
    ("compressed-tensors", {"sparsity_config": 24}, r"sparsity_config: given 24, allowed None or"),
    ("compressed-tensors", {"config_groups": []}, r"config_groups: given \[\], allowed a map"),
    ("compressed-tensors", {"config_groups": {}}, r"config_groups: given \[\], allowed one group"),
    (
        "compressed-tensors",
        {"config_groups": {"a": {"weights": 3}}},
        r"a\.weights: given 3, allowed",
    ),
]


@pytest.mark.parametrize(("method", "changes", "message"), OPTIONS)
def test_options(tmp_path: Path, method: str, changes: dict[str, Any], message: str) -> None:
    """By name, whatever lies in the folder."""
    config, pack = PACKS[method]
    write_packed(CHECKPOINT, tmp_path, {**config, "bits": 4}, pack)
    write_packed(CHECKPOINT, tmp_path, {**copy.deepcopy(config), "bits": 4, **changes}, pack)
    refused(tmp_path, message)


GROUP_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"num_bits": 2}, r"config_groups\.group_0\.weights\.num_bits: given 2, allowed 4 or 8"),
    ({"type": "float"}, r"weights\.type: given 'float', allowed 'int'"),
    ({"strategy": "tensor"}, r"weights\.strategy: given 'tensor', allowed 'group' or 'channel'"),
    ({"group_size": None}, r"weights\.group_size: given None, allowed int >= 1, or -1"),
]


@pytest.mark.parametrize(("changes", "message"), GROUP_OPTIONS)
def test_options_of_a_group(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """compressed-tensors says for each group of layers what its numbers are."""
    config: dict[str, Any] = copy.deepcopy(COMPRESSED)
    config["config_groups"]["group_0"]["weights"] |= changes
    write_packed(CHECKPOINT, tmp_path, config, compressed)
    refused(tmp_path, message)


def test_another_format_of_a_group(tmp_path: Path) -> None:
    """Newer files say it of each group."""
    config: dict[str, Any] = copy.deepcopy(COMPRESSED)
    config["config_groups"]["group_0"]["format"] = "int-quantized"
    write_packed(CHECKPOINT, tmp_path, config, compressed)
    refused(tmp_path, r"group_0\.format: given 'int-quantized', allowed None or 'pack-quantized'")


def test_activations_that_are_rounded(tmp_path: Path) -> None:
    """They would be another network."""
    config: dict[str, Any] = copy.deepcopy(COMPRESSED)
    config["config_groups"]["group_0"]["input_activations"] = {"num_bits": 8}
    write_packed(CHECKPOINT, tmp_path, config, compressed)
    refused(tmp_path, r"group_0\.input_activations: given \{'num_bits': 8\}, allowed None")


PARTS: list[tuple[str, str, Array | None, str]] = [
    ("gptq", "qzeros", None, rf"tensor '{UP}\.qzeros' is missing, allowed with '{UP}\."),
    ("gptq", "qweight", np.zeros(8, np.int32), r"qweight': given shape \(8,\), allowed a matrix"),
    ("gptq", "qweight", np.zeros((4, 32), np.float32), r"qweight': given dtype F32, allowed I32"),
    (
        "gptq",
        "qweight",
        np.zeros((8, 32), np.int32),
        r"up_proj.weight': given shape \(32, 64\), allowed \(32, 32\)",
    ),
    (
        "gptq",
        "scales",
        np.zeros((2, 31), np.float16),
        r"scales': given shape \(2, 31\), allowed \(2",
    ),
    ("gptq", "scales", np.zeros((2, 32), np.int8), r"scales': given dtype I8, allowed F64, F32"),
    ("gptq", "g_idx", np.full(32, 2, np.int32), r"g_idx': given groups 2 to 2, allowed 0 to 1"),
    ("gptq", "g_idx", np.zeros(31, np.int32), r"g_idx': given shape \(31,\), allowed \(32,\)"),
    ("gptq", "scales", np.full((2, 32), np.nan, np.float16), r"given nan at index"),
    (
        "awq",
        "qweight",
        np.zeros((16, 4), np.int32),
        r"up_proj.weight': given shape \(32, 16\), allowed \(32, 32\)",
    ),
    (
        "awq",
        "qweight",
        np.zeros((32, 2), np.int32),
        r"up_proj.weight': given shape \(16, 32\), allowed \(32, 32\)",
    ),
    (
        "compressed-tensors",
        "weight_shape",
        np.array([32, 64]),
        r"shape': given \[32, 64\], allowed \[",
    ),
    (
        "compressed-tensors",
        "weight_shape",
        np.array([8]),
        r"weight_shape': given \[8\], allowed \[32",
    ),
    (
        "compressed-tensors",
        "weight_scale",
        np.zeros((32, 1), np.float16),
        r"given shape \(32, 1\), ",
    ),
    ("compressed-tensors", "weight_zero_point", None, r"weight_zero_point' is missing"),
]


@pytest.mark.parametrize(("method", "part", "value", "message"), PARTS)
def test_parts(tmp_path: Path, method: str, part: str, value: Array | None, message: str) -> None:
    """Parts of a matrix fit one another."""
    config, pack = PACKS[method]
    write_packed(CHECKPOINT, tmp_path, config, pack)
    load_checkpoint(tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    del tensors[f"{UP}.{part}"]
    save_file(tensors | ({} if value is None else {f"{UP}.{part}": value}), tmp_path / WEIGHTS)
    refused(tmp_path, message)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{UP}.bias", np.eye(1, 32, 3, np.float16)[0]),
        (f"{UP}.bias", np.full(32, np.nan, np.float16)),
        ("model.layers.0.input_layernorm.bias", np.zeros(32, np.float16)),
    ],
)
def test_biases_of_no_zeros_or_of_no_packed_matrix(tmp_path: Path, name: str, value: Array) -> None:
    """What the architecture lacks and is not nothing."""
    write_packed(CHECKPOINT, tmp_path, GPTQ, gptq)
    save_file(load_file(tmp_path / WEIGHTS) | {name: value}, tmp_path / WEIGHTS)
    refused(tmp_path, rf"tensor '{name.removeprefix('model.')}'")


def test_biases_of_an_architecture_that_has_them(tmp_path: Path) -> None:
    """They are read, zeros or not, and their shape is checked."""
    checkpoint = random_checkpoint(replace(SHAPE, family="qwen2", biases=("q", "k", "v")), 1)
    write_packed(checkpoint, tmp_path, GPTQ, gptq)
    name = "model.layers.0.self_attn.q_proj.bias"
    tensors = load_file(tmp_path / WEIGHTS)
    np.testing.assert_array_equal(load_checkpoint(tmp_path).tensors["h.0.q.bias"], tensors[name])
    save_file(tensors | {name: np.zeros(31, np.float16)}, tmp_path / WEIGHTS)
    refused(tmp_path, r"q_proj\.bias': given shape \(31,\), allowed \(32,\)")


def test_floats_of_8_bits(tmp_path: Path) -> None:
    """Without a scale that says what they are worth, they are refused by name."""
    write_checkpoint(CHECKPOINT, tmp_path)
    tensors = load_file(tmp_path / WEIGHTS)
    tensors[f"{UP}.weight"] = tensors[f"{UP}.weight"].astype(ml_dtypes.float8_e4m3fn)
    save_file(tensors, tmp_path / WEIGHTS)
    refused(tmp_path, rf"'{UP}\.weight': given dtype F8_E4M3, allowed F64, F32, F16, BF16")


def test_pickles_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, or how to convert."""
    write_checkpoint(CHECKPOINT, tmp_path)
    (tmp_path / WEIGHTS).rename(tmp_path / PICKLE)
    usual = builtins.__import__

    def without(name: str, *rest: Any) -> Any:  # noqa: ANN401
        if name == "torch":
            raise ImportError("No module named 'torch'")
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    refused(
        tmp_path,
        rf"pytorch_model\.bin is a pickle, which only PyTorch reads: No module named 'torch': pip "
        rf"install torch, or convert it .*from_pretrained\('{tmp_path}'\)\.save_pretrained\('NEW",
    )
