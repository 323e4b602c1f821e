# SPDX-License-Identifier: Apache-2.0
"""Folders of GPTQ, AWQ and compressed-tensors: packed codes become exactly what they stand for."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.python.weights.packed_matrices import (
    AWQ,
    COMPRESSED,
    GPTQ,
    GROUP,
    Array,
    PackedMatrix,
    awq,
    compressed,
    gptq,
    write_packed,
)
from weights.importer import load_checkpoint, load_shape
from weights.synthetic import random_checkpoint, shape_of

SHAPE = shape_of("llama", hidden=64, heads=4, kv_heads=2, ffn=96, layers=1)
CHECKPOINT = random_checkpoint(SHAPE, 1)


def check(folder: Path, wanted: dict[str, Array]) -> None:
    """Check that a folder holds these matrices, and all other tensors of the checkpoint."""
    read = load_checkpoint(folder)
    assert read.shape == load_shape(folder) == SHAPE
    assert len(wanted) == 7
    for name, tensor in wanted.items():
        part = name.split(".")[-2].removesuffix("_proj")
        np.testing.assert_array_equal(read.tensors[f"h.0.{part}.weight"], tensor.T)
    for name in ("embed", "head", "h.0.norm1.weight"):
        np.testing.assert_array_equal(read.tensors[name], CHECKPOINT.tensors[name])


@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
@pytest.mark.parametrize("bits", [4, 8])
def test_gptq(tmp_path: Path, version: str, bits: int) -> None:
    """The first format stores zero points less one, 0 as the largest."""
    config = GPTQ | {"checkpoint_format": version, "bits": bits}
    check(tmp_path, write_packed(CHECKPOINT, tmp_path, config, partial(gptq, version=version)))


def test_gptq_by_order_of_activations(tmp_path: Path) -> None:
    """Inputs of a group lie anywhere."""

    def shuffle(one: PackedMatrix) -> None:
        one.owner = np.random.default_rng(2).permutation(one.owner)

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, GPTQ | {"desc_act": True}, gptq, shuffle))


def test_gptq_without_owners(tmp_path: Path) -> None:
    """Without g_idx inputs are in the order of groups."""

    def without(one: PackedMatrix) -> dict[str, Array]:
        return {name: part for name, part in gptq(one).items() if name != "g_idx"}

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, GPTQ, without))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gptq_with_biases_of_zeros(tmp_path: Path, dtype: type[np.floating[Any]]) -> None:
    """Older AutoGPTQ gives each matrix one, also where the architecture has none."""

    def parts(one: PackedMatrix) -> dict[str, Array]:
        return gptq(one) | {"bias": np.zeros(one.shape[0], dtype)}

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, GPTQ, parts))


@pytest.mark.parametrize("names", [("bits", "group_size"), ("w_bit", "q_group_size")])
def test_awq(tmp_path: Path, names: tuple[str, str]) -> None:
    """Eight columns in an order of their own; options have older names, too."""
    usual = {key: value for key, value in AWQ.items() if key not in ("bits", "group_size")}
    config = usual | dict(zip(names, (4, GROUP), strict=True))
    check(tmp_path, write_packed(CHECKPOINT, tmp_path, config, awq))


@pytest.mark.parametrize("symmetric", [True, False])
def test_compressed_tensors(tmp_path: Path, symmetric: bool) -> None:
    """Symmetric codes have their zero in the middle, others a zero point."""
    config: dict[str, Any] = copy.deepcopy(COMPRESSED)
    config["config_groups"]["group_0"]["weights"]["symmetric"] = symmetric

    def middle(one: PackedMatrix) -> None:
        if symmetric:
            one.zeros[:] = 8

    def parts(one: PackedMatrix) -> dict[str, Array]:
        gone = ("weight_zero_point",) if symmetric else ()
        return {name: part for name, part in compressed(one).items() if name not in gone}

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, config, parts, middle))


@pytest.mark.parametrize("shuffled", [True, False])
def test_compressed_tensors_by_order_of_activations(tmp_path: Path, shuffled: bool) -> None:
    """Inputs of a group lie anywhere, or are in order where owners are -1."""

    def shuffle(one: PackedMatrix) -> None:
        if shuffled:
            one.owner = np.random.default_rng(2).permutation(one.owner)

    def parts(one: PackedMatrix) -> dict[str, Array]:
        owner = one.owner if shuffled else np.full(one.owner.size, -1)
        return compressed(one) | {"weight_g_idx": owner.astype(np.int32)}

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, COMPRESSED, parts, shuffle))


def test_compressed_tensors_by_channel(tmp_path: Path) -> None:
    """A scale for all inputs of an output, and owners of inputs."""
    config: dict[str, Any] = copy.deepcopy(COMPRESSED)
    config["config_groups"]["group_0"]["weights"] |= {"strategy": "channel", "group_size": None}

    def whole(one: PackedMatrix) -> None:
        one.scales, one.zeros = one.scales[:, :1], one.zeros[:, :1]
        one.owner = np.zeros_like(one.owner)

    def parts(one: PackedMatrix) -> dict[str, Array]:
        return compressed(one) | {"weight_g_idx": one.owner.astype(np.int32)}

    check(tmp_path, write_packed(CHECKPOINT, tmp_path, config, parts, whole))


@pytest.mark.parametrize(
    "options",
    [
        {"transform_config": None, "sparsity_config": None},
        {"transform_config": {}, "sparsity_config": {}},
        {"transform_config": {"config_groups": {}}, "sparsity_config": {"format": "dense"}},
    ],
)
def test_compressed_tensors_with_options_that_change_nothing(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """Neither rotated nor sparse."""
    check(tmp_path, write_packed(CHECKPOINT, tmp_path, COMPRESSED | options, compressed))
