# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as other tools write them: the same network as the one that is written plainly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from weights.checkpoint import CheckpointError
from weights.importer import load_checkpoint, parse_config
from weights.reference import forward
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint

Change = Callable[[str], str]
WEIGHTS = "model.safetensors"
FAMILIES = {
    "gpt2": shape_of(
        "gpt2", hidden=8, layers=2, heads=2, ffn=16, vocab=20, context=6, activation="gelu_new"
    ),
    "llama": shape_of(
        "llama", hidden=8, layers=2, heads=2, kv_heads=1, ffn=16, vocab=20, context=6
    ),
}
HEAD = "lm_head.weight"
TABLE = {"gpt2": "transformer.wte.weight", "llama": "model.embed_tokens.weight"}


def written(folder: Path, family: str, *, tied: bool = True) -> Path:
    """Write a checkpoint, with or without a head of its own, and return its folder."""
    write_checkpoint(random_checkpoint(replace(FAMILIES[family], tied=tied), 5), folder)
    return folder


def rename(folder: Path, change: Change) -> None:
    """Give every stored tensor another name."""
    tensors = load_file(folder / WEIGHTS)
    save_file({change(name): tensor for name, tensor in tensors.items()}, folder / WEIGHTS)


def configure(folder: Path, **changes: object) -> None:
    """Change fields of config.json."""
    file = folder / "config.json"
    content = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps(content), encoding="utf-8")


def same(folder: Path, plain: Path) -> None:
    """Check that two folders hold the same network, by tensors and by what it computes."""
    one, other = load_checkpoint(folder), load_checkpoint(plain)
    assert one.tensors.keys() == other.tensors.keys()
    for name, tensor in other.tensors.items():
        np.testing.assert_array_equal(one.tensors[name], tensor)
    tokens = np.array([[3, 1, 4, 1, 5]])
    np.testing.assert_array_equal(forward(one, tokens), forward(other, tokens))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tied_folder_that_stores_only_the_head(tmp_path: Path, family: str) -> None:
    """Safetensors keeps one of the names that share memory, often this one."""
    plain, other = written(tmp_path / "a", family), written(tmp_path / "b", family)
    rename(other, lambda name: HEAD if name == TABLE[family] else name)
    same(other, plain)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "wrap",
    [
        lambda name: f"_orig_mod.{name}",
        lambda name: f"module.{name}",
        lambda name: f"module._orig_mod.{name}",
        lambda name: f"_orig_mod.module.{name}",
        lambda name: f"_fsdp_wrapped_module.{name}",
        lambda name: re.sub(r"(\.\d+)\.", r"\1._orig_mod.", name),
        lambda name: re.sub(r"(\.\d+)\.", r"\1._checkpoint_wrapped_module.", name),
        lambda name: f"module.{name.split('.', 1)[1]}" if name != HEAD else f"module.{name}",
    ],
)
def test_names_of_wrapped_modules(tmp_path: Path, family: str, wrap: Change) -> None:
    """torch.compile, data parallel training and checkpointing put words into names."""
    for tied in (True, False):
        place = tmp_path / str(tied)
        plain = written(place / "a", family, tied=tied)
        other = written(place / "b", family, tied=tied)
        rename(other, wrap)
        same(other, plain)


def test_a_tensor_under_two_names_is_given_twice(tmp_path: Path) -> None:
    """Wrapped and plain at once is no network."""
    folder = written(tmp_path, "gpt2")
    tensors = load_file(folder / WEIGHTS)
    tensors["module.transformer.wte.weight"] = tensors["transformer.wte.weight"] + 1
    save_file(tensors, folder / WEIGHTS)
    with pytest.raises(CheckpointError, match=r"tensor '.*wte.weight': given twice"):
        load_checkpoint(folder)


@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize(
    "options",
    [
        {"type": "linear", "factor": 1.0},
        {"rope_type": "linear", "factor": 1},
        {"rope_type": "dynamic", "factor": 1.0},
        {"rope_type": "default", "factor": 1.0},
        {"factor": 1.0},
    ],
)
def test_scaling_by_one(tmp_path: Path, field: str, options: dict[str, object]) -> None:
    """Rotary positions divided by one are the plain ones."""
    plain, other = written(tmp_path / "a", "llama"), written(tmp_path / "b", "llama")
    configure(other, rope_parameters=None, rope_theta=10000.0)
    configure(other, **{field: options})
    same(other, plain)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "linear"}, r"rope_scaling.factor: given None, allowed a number of at least 1"),
        ({"type": "linear", "factor": 0.5}, r"rope_scaling.factor: given 0.5, allowed a number"),
        ({"type": "linear", "factor": True}, r"rope_scaling.factor: given True, allowed a number"),
        ({"type": "default", "factor": 4.0}, r"rope_scaling.factor: given 4.0, allowed 1"),
        ({"type": ["linear"], "factor": 1.0}, r"rope_scaling.type: given \['linear'\]"),
        ({"type": "ntk", "factor": 2.0}, r"rope_scaling.type: given 'ntk', allowed 'default' or"),
        (
            {"type": "linear", "rope_type": "yarn", "factor": 2.0},
            r"rope_scaling.type: given 'linear', allowed 'default' or",
        ),
        (
            {"type": "linear", "factor": 2.0, "beta_fast": 3},
            r"rope_scaling.beta_fast: given 3, allowed no options but \['factor', 'original",
        ),
        (
            {"type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 3},
            r"original_max_position_embeddings: given 3, allowed at least 6, the positions",
        ),
        (
            {"type": "llama3", "factor": 8.0, "low_freq_factor": 4, "high_freq_factor": 1},
            r"rope_scaling.high_freq_factor: given 1.0, allowed more than 4",
        ),
        (
            {"type": "llama3", "factor": 8.0, "low_freq_factor": 4},
            r"rope_scaling.high_freq_factor: given None, allowed a number above 0",
        ),
        ({"type": "yarn", "factor": 2, "truncate": 1}, r"truncate: given 1, allowed True or"),
        ({"type": "yarn", "factor": 2, "beta_slow": 0}, r"beta_slow: given 0, allowed a number"),
        (
            {"type": "yarn", "factor": 2, "mscale": "1", "mscale_all_dim": 1},
            r"attention_factor: given nan, allowed a number above 0",
        ),
        (
            {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0, 2.0]},
            r"rope_scaling.short_factor: given \[1.0\], allowed 2 numbers above 0",
        ),
        (
            {"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [1.0, "2"]},
            r"rope_scaling.long_factor: given \[1.0, '2'\], allowed 2 numbers above 0",
        ),
    ],
)
def test_scaling_that_makes_no_rotation(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    """Kinds that are not known, and options that are missing or out of range."""
    folder = written(tmp_path, "llama")
    configure(folder, rope_scaling=options)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", ["su", "yarn"])
def test_older_names_of_longrope(name: str) -> None:
    """Phi-3 has called its rotations otherwise; there it stands for no other kind."""
    scaling = {"short_factor": [2.0] * 48, "long_factor": [3.0] * 48}
    config = {"model_type": "phi3", "max_position_embeddings": 8192, "rope_scaling": scaling}
    shapes = []
    for kind in (name, "longrope"):
        scaling["type"] = kind  # type: ignore[assignment]
        shapes.append(parse_config(config, "test")[1])
    assert shapes[0] == shapes[1]
    assert shapes[0].rotation(0).kind == "longrope"


@pytest.mark.parametrize(
    ("family", "field", "name", "plain"),
    [
        ("gpt2", "activation_function", "gelu_fast", "gelu_new"),
        ("gpt2", "activation_function", "gelu_accurate", "gelu_new"),
        ("gpt2", "activation_function", "gelu_pytorch_tanh", "gelu_new"),
        ("gpt2", "activation_function", "gelu_python", "gelu"),
        ("llama", "hidden_act", "swish", "silu"),
    ],
)
def test_other_names_of_activations(
    tmp_path: Path, family: str, field: str, name: str, plain: str
) -> None:
    """The same function under the names that transformers has for it."""
    one, other = written(tmp_path / "a", family), written(tmp_path / "b", family)
    configure(one, **{field: plain})
    configure(other, **{field: name})
    same(other, one)


def test_missing_names_stand_beside_those_found(tmp_path: Path) -> None:
    """Shortened, so that whoever renamed them sees how."""
    folder = written(tmp_path, "gpt2")
    rename(folder, lambda name: name.replace("transformer.h.", "gpt.blocks."))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    text = str(caught.value)
    assert text.startswith(
        f"{folder}: tensor 'h.0.ln_1.weight' is missing (24 of 28 are), allowed shape (8,); found "
        "are 'gpt.blocks.0.attn.c_attn.bias', "
    )
    assert text.endswith("and 21 more of other names")
    assert "\n" not in text
    assert len(text) < 400
