# SPDX-License-Identifier: Apache-2.0
"""Reading checkpoints: layouts that are accepted, and the message for everything that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from weights.importer import CheckpointError, Gpt2Shape, load_checkpoint
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


def change_config(folder: Path, **changes: object) -> None:
    """Change entries of config.json."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


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
    (folder / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"shard b.safetensors is missing"):
        load_checkpoint(folder)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, r"model_type: given 'mamba', allowed \['gpt2'\]"),
        ({"model_type": None}, r"model_type: given None"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, r"architectures: given \['GPT2For"),
        ({"activation_function": "relu"}, r"activation_function: given 'relu', allowed \['gelu'"),
        ({"scale_attn_weights": False}, r"scale_attn_weights: given False, allowed True"),
        ({"scale_attn_by_inverse_layer_idx": True}, r"inverse_layer_idx: given True, allowed Fal"),
        ({"add_cross_attention": True}, r"add_cross_attention: given True, allowed False"),
        ({"n_head": 3}, r"n_embd: given 8, allowed a multiple of n_head = 3"),
        ({"n_layer": 0}, r"n_layer: given 0, allowed int >= 1"),
        ({"n_embd": "8"}, r"n_embd: given '8', allowed int >= 1"),
        ({"layer_norm_epsilon": 0}, r"layer_norm_epsilon: given 0, allowed a number between"),
        ({"n_layer": 2}, r"tensor 'h.1.ln_1.weight' is missing \(12 of 29 are\), allowed .*\(8,\)"),
        ({"vocab_size": 21}, r"'wte.weight': given shape \(20, 8\), allowed \(21, 8\)"),
        ({"tie_word_embeddings": False}, r"tensor 'lm_head.weight' is missing"),
    ],
)
def test_config_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    """Every refused config names the entry, what was given and what is allowed."""
    change_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_inner_width_defaults_to_four_times_hidden(folder: Path) -> None:
    """GPT2Config leaves n_inner empty for 4 * n_embd."""
    change_config(folder, n_inner=None)
    with pytest.raises(CheckpointError, match=r"'h.0.mlp.c_fc.weight'.*\(8, 16\), allowed \(8, 32"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"'ln_f.bias' is missing"),
        (np.zeros(7, np.float32), r"'ln_f.bias': given shape \(7,\), allowed \(8,\)"),
        (np.zeros(8, np.int32), r"'transformer.ln_f.bias': given dtype int32, allowed float32"),
        (np.full(8, np.nan, np.float32), r"'ln_f.bias': given nan at index \(0,\), allowed finite"),
        (np.array([0, 0, -np.inf, 0, 0, 0, 0, 0], np.float32), r"given -inf at index \(2,\)"),
    ],
)
def test_tensor_is_refused(folder: Path, value: np.ndarray | None, message: str) -> None:
    """Missing, misshapen, integer and non-finite tensors are refused by name."""
    change_tensor(folder, "transformer.ln_f.bias", value)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


def test_unknown_tensor_is_refused(folder: Path) -> None:
    """A tensor that the model would ignore is a sign of another architecture."""
    change_tensor(folder, "transformer.h.0.attn.rotary", np.zeros(2, np.float32))
    with pytest.raises(CheckpointError, match=r"'h.0.attn.rotary': given shape \(2,\), but"):
        load_checkpoint(folder)


def test_damaged_file(folder: Path) -> None:
    """A truncated file is refused, not half read."""
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read"):
        load_checkpoint(folder)


def test_incomplete_folder(folder: Path) -> None:
    """A folder needs a config and weights."""
    (folder / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=r"no weights in .*; allowed is model.safetensors"):
        load_checkpoint(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"config.json: given list, allowed map"):
        load_checkpoint(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json is not JSON"):
        load_checkpoint(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config.json is missing in"):
        load_checkpoint(folder)


def test_no_folder_and_no_hub_id() -> None:
    """A path that is no folder cannot be a hub id either."""
    with pytest.raises(CheckpointError, match=r"given '/nowhere/at/all', which is no folder"):
        load_checkpoint("/nowhere/at/all")


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
