# SPDX-License-Identifier: Apache-2.0
"""Folders with pickles of PyTorch: what is read, and what is no weights.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.python.weights.packed_matrices import GPTQ, gptq, write_packed
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointError, digest
from weights.importer import load_checkpoint
from weights.stored.folder import PICKLE, PICKLE_INDEX, WEIGHTS
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint


def folder_of(family: str, folder: Path) -> dict[str, Any]:
    """Write a folder without its weights, which are returned."""
    write_checkpoint(random_checkpoint(shape_of(family), 1), folder)
    tensors: dict[str, Any] = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    return tensors


@pytest.mark.parametrize("family", ARCHITECTURES)
@pytest.mark.parametrize("old", [False, True])
def test_one_file(tmp_path: Path, family: str, old: bool) -> None:
    """Of each architecture, in both formats of PyTorch."""
    write_checkpoint(random_checkpoint(shape_of(family), 1), tmp_path / "safe")
    tensors = folder_of(family, tmp_path)
    torch.save(tensors, tmp_path / PICKLE, _use_new_zipfile_serialization=not old)
    assert digest(load_checkpoint(tmp_path)) == digest(load_checkpoint(tmp_path / "safe"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_types(tmp_path: Path, dtype: torch.dtype) -> None:
    """All become float32; parameters are tensors, too."""
    tensors = folder_of("llama", tmp_path)
    half = {name: torch.nn.Parameter(one.to(dtype)) for name, one in tensors.items()}
    torch.save(half, tmp_path / PICKLE)
    found = load_checkpoint(tmp_path).tensors["embed"]
    wanted = half["model.embed_tokens.weight"].detach().to(torch.float32).numpy()
    np.testing.assert_array_equal(found, wanted)


def test_shards(tmp_path: Path) -> None:
    """An index names them."""
    tensors = folder_of("gpt2", tmp_path)
    names = list(tensors)
    parts = {"a.bin": names[::2], "b.bin": names[1::2]}
    for file, some in parts.items():
        torch.save({name: tensors[name] for name in some}, tmp_path / file)
    index = {name: file for file, some in parts.items() for name in some}
    (tmp_path / PICKLE_INDEX).write_text(json.dumps({"weight_map": index}))
    assert digest(load_checkpoint(tmp_path)) == digest(random_checkpoint(shape_of("gpt2"), 1))


def test_packed_matrices(tmp_path: Path) -> None:
    """Codes are whole numbers, as older AutoGPTQ saved them."""
    checkpoint = random_checkpoint(shape_of("llama", hidden=64, heads=4, ffn=96), 1)
    write_packed(checkpoint, tmp_path / "safe", GPTQ, gptq)
    wanted = digest(load_checkpoint(tmp_path / "safe"))
    shutil.copytree(tmp_path / "safe", tmp_path / "bin")
    torch.save(load_file(tmp_path / "bin" / WEIGHTS), tmp_path / "bin" / PICKLE)
    (tmp_path / "bin" / WEIGHTS).unlink()
    assert digest(load_checkpoint(tmp_path / "bin")) == wanted


class Runs:
    """Leaves a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.filterwarnings("ignore:.*torch.*:UserWarning")
@pytest.mark.parametrize(
    ("change", "dtype"),
    [
        (torch.Tensor.to_sparse, r"float32 without zeros \(sparse_coo\)"),
        (torch.Tensor.to_sparse_csr, r"float32 without zeros \(sparse_csr\)"),
        (lambda one: one.to("meta"), r"float32 without numbers \(meta\)"),
        (lambda one: torch.quantize_per_tensor(one, 0.1, 0, torch.qint8), "qint8"),
        (lambda one: one.to(torch.complex64).conj(), "complex64"),
        (lambda one: torch.nested.nested_tensor([one, one[:1]]), "float32 of several lengths"),
    ],
)
def test_numbers_that_are_stored_otherwise(
    tmp_path: Path, change: Callable[[torch.Tensor], torch.Tensor], dtype: str
) -> None:
    """They are refused by the name of the tensor; beside a model they are no matter."""
    tensors = folder_of("llama", tmp_path)
    torch.save(tensors | {"lm_head.weight": change(tensors["lm_head.weight"])}, tmp_path / PICKLE)
    with pytest.raises(CheckpointError, match=f"'lm_head.weight': given dtype {dtype}") as caught:
        load_checkpoint(tmp_path)
    assert "\n" not in str(caught.value)
    unused = {"model.layers.0.self_attn.rotary_emb.inv_freq": change(torch.ones(2, 2))}
    torch.save(tensors | unused, tmp_path / PICKLE)
    assert digest(load_checkpoint(tmp_path)) == digest(random_checkpoint(shape_of("llama"), 1))


def test_negated_views(tmp_path: Path) -> None:
    """PyTorch keeps the sign beside the numbers."""
    tensors = folder_of("llama", tmp_path)
    views = {name: torch._neg_view(-one) for name, one in tensors.items()}
    torch.save(views, tmp_path / PICKLE)
    assert digest(load_checkpoint(tmp_path)) == digest(random_checkpoint(shape_of("llama"), 1))


def test_what_pytorch_says_is_plain(tmp_path: Path) -> None:
    """Not coloured, and never nothing."""
    folder_of("llama", tmp_path)
    for content, message in ((b"", "EOFError$"), (pickle.dumps(Runs(tmp_path)), "Weights only")):
        (tmp_path / PICKLE).write_bytes(content)
        with pytest.raises(CheckpointError, match=f"as weights alone: {message}") as caught:
            load_checkpoint(tmp_path)
        assert str(caught.value).isprintable()


def test_what_is_no_weights(tmp_path: Path) -> None:
    """Code is not run; what is left is refused in a line."""
    place, tensors = tmp_path / "model", folder_of("llama", tmp_path / "model")
    for content, message in (
        ({**tensors, "x": Runs(tmp_path / "harm")}, "cannot be read as weights alone: Weights onl"),
        ([1, 2], "given list, allowed tensors by name"),
        ({**tensors, "step": 3}, "given int as 'step', allowed tensors by name"),
        ({"model": tensors}, "given dict as 'model', allowed tensors by name"),
        (
            {**tensors, "lm_head.weight": tensors["lm_head.weight"].to(torch.int8)},
            "tensor 'lm_head.weight': given dtype int8, allowed F64, F32, F16, BF16",
        ),
    ):
        torch.save(content, place / PICKLE)
        with pytest.raises(CheckpointError, match=message) as caught:
            load_checkpoint(place)
        assert "\n" not in str(caught.value)
    (place / PICKLE).write_bytes(pickle.dumps(Runs(tmp_path / "harm")))
    with pytest.raises(CheckpointError, match="cannot be read as weights alone"):
        load_checkpoint(place)
    torch.save(tensors, place / PICKLE)
    (place / PICKLE).write_bytes((place / PICKLE).read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="cannot be read as weights alone"):
        load_checkpoint(place)
    assert not (tmp_path / "harm").exists()
