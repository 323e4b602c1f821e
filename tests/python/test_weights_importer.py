# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints: the layouts that are accepted; what is not, is in tests/bad_input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from weights.importer import Gpt2Shape, load_checkpoint
from weights.synthetic import random_checkpoint, write_checkpoint

SHAPE = Gpt2Shape(
    hidden=8, layers=1, heads=2, ffn=16, vocab=20, context=4, epsilon=1e-5, activation="gelu"
)
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a small checkpoint in it."""
    write_checkpoint(random_checkpoint(SHAPE, 1), tmp_path / "model")
    return tmp_path / "model"


def change_tensor(folder: Path, name: str, value: np.ndarray | None) -> None:
    """Replace a stored tensor, or remove it."""
    tensors = load_file(folder / WEIGHTS)
    tensors.pop(name, None)
    if value is not None:
        tensors[name] = value
    save_file(tensors, folder / WEIGHTS)


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_prefix(tmp_path: Path, prefix: str) -> None:
    """Names come with the prefix of GPT2LMHeadModel or without, as from GPT2Model."""
    written = random_checkpoint(SHAPE, 1)
    write_checkpoint(written, tmp_path, prefix=prefix)
    read = load_checkpoint(tmp_path)
    assert read.shape == SHAPE
    assert read.tensors.keys() == written.tensors.keys()
    for name, tensor in written.tensors.items():
        np.testing.assert_array_equal(read.tensors[name], tensor)


def test_untied_head(tmp_path: Path) -> None:
    """A head of its own is read; a tied one is the token table."""
    written = random_checkpoint(SHAPE, 2, tied=False)
    write_checkpoint(written, tmp_path)
    read = load_checkpoint(tmp_path)
    np.testing.assert_array_equal(read.tensors["lm_head.weight"], written.tensors["lm_head.weight"])
    assert read.tensors["lm_head.weight"] is not read.tensors["wte.weight"]


def test_shards(folder: Path) -> None:
    """Shards named by an index give the same tensors."""
    whole = load_checkpoint(folder)
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: tensors[name] for name in some}, folder / file)
    (folder / WEIGHTS).unlink()
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    read = load_checkpoint(folder)
    for name, tensor in whole.tensors.items():
        np.testing.assert_array_equal(read.tensors[name], tensor)


def test_half_precision(folder: Path) -> None:
    """float16 and bfloat16 become float32 exactly."""
    bias = np.array([0.5, -1.25, 3, 0, 0, 0, 0, 1])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        change_tensor(folder, "transformer.ln_f.bias", bias.astype(dtype))
        read = load_checkpoint(folder).tensors["ln_f.bias"]
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, bias)


def test_mask_buffers_are_dropped(folder: Path) -> None:
    """Old checkpoints store the causal mask."""
    change_tensor(folder, "transformer.h.0.attn.bias", np.tri(4, dtype=np.float32)[None, None])
    assert "h.0.attn.bias" not in load_checkpoint(folder).tensors


OFFLINE = """
import sys
from weights.importer import load_checkpoint, CheckpointError
assert "torch" not in sys.modules
try:
    print(load_checkpoint(sys.argv[1]).shape.hidden)
except CheckpointError as error:
    print(error)
assert "torch" not in sys.modules
"""


def run_offline(source: str, cache: Path) -> str:
    """Load a checkpoint in a fresh Python that is told to stay off the network."""
    result = subprocess.run(
        [sys.executable, "-c", OFFLINE, source],
        env={"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(cache), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def test_hub_cache_without_network(tmp_path: Path, folder: Path) -> None:
    """A hub id is read from the local cache; what is not there is refused with both choices."""
    assert "neither a folder nor in the local cache" in run_offline("nobody/nothing", tmp_path)
    entry = tmp_path / "models--some--gpt"
    snapshot = entry / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    folder.rename(snapshot)
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("0" * 40)
    assert run_offline("some/gpt", tmp_path).strip() == "8"
