# SPDX-License-Identifier: Apache-2.0
"""Folders of ViT and Whisper that are refused, and commands that are not for them, in a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from npu.cli import command_line
from tests.bad_input.nothing import nothing_there
from tests.python.importers.small_encoders import random_signal, write_encoder

Change = Callable[[Path], None]


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build an error."""
    nothing_there(monkeypatch)


def folder_of(family: str, place: Path) -> Path:
    """Write a folder of random weights."""
    write_encoder(random_signal(family), place / "model")
    return place / "model"


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command and return the line that it refuses with."""
    assert command_line.main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1, printed.err
    return printed.err.strip()


def configured(**fields: object) -> Change:
    """Return what changes config.json."""

    def write(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | fields))

    return write


def without(name: str) -> Change:
    """Return what takes a tensor out."""

    def write(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        del tensors[name]
        save_file(tensors, folder / "model.safetensors")

    return write


def reshaped(name: str, *size: int) -> Change:
    """Return what gives a tensor another shape."""

    def write(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        assert name in tensors
        save_file(tensors | {name: np.zeros(size, np.float32)}, folder / "model.safetensors")

    return write


QUERY = "encoder.layer.1.attention.attention.query.weight"
PATCH = "embeddings.patch_embeddings.projection.weight"


@pytest.mark.parametrize(
    ("family", "change", "message"),
    [
        ("vit", without(QUERY), f"tensor '{QUERY}' is missing (1 of 40 are), allowed shape"),
        ("vit", without("classifier.bias"), "tensor 'classifier.bias' is missing"),
        ("vit", reshaped(PATCH, 48, 3, 8, 4), f"'{PATCH}': given shape (48, 3, 8, 4), allowed (48"),
        ("vit", configured(image_size=50), "image_size: given 50, allowed a multiple of patch_siz"),
        ("vit", configured(image_size=[48, 48]), "image_size: given [48, 48], allowed int >= 1"),
        ("vit", configured(image_size=64), "embeddings': given shape (1, 37, 48), allowed (1, 65"),
        ("vit", configured(hidden_act="snake"), "hidden_act: given 'snake', allowed ['gelu'"),
        ("vit", configured(num_attention_heads=5), "hidden_size: given 48, allowed a multiple of"),
        ("vit", configured(qkv_bias=1), "config.json qkv_bias: given 1, allowed True or False"),
        ("vit", configured(qkv_bias=False), "tensor 'encoder.layer.0.attention.attention.key.bia"),
        ("vit", configured(id2label=[]), "id2label: given [], allowed a map from number to label"),
        ("vit", configured(pooler_act="relu"), "config.json pooler_act: given 'relu', allowed"),
        (
            "vit",
            configured(architectures=["ViTForMaskedImageModeling"]),
            "architectures: given ['ViTForMaskedImageModeling'], allowed ['ViTModel', 'ViTForIma",
        ),
        ("vit", configured(architectures=7), "config.json architectures: given 7, allowed"),
        ("vit", configured(num_hidden_layers=10**7), "num_hidden_layers: given 10000000, allowed"),
        ("deit", configured(model_type="vit", architectures=["ViTForImageClassification"]), "dis"),
        ("whisper", without("encoder.conv2.bias"), "tensor 'encoder.conv2.bias' is missing"),
        ("whisper", reshaped("encoder.conv1.weight", 64, 20, 5), "given shape (64, 20, 5), allow"),
        ("whisper", configured(num_mel_bins=80), "given shape (64, 20, 3), allowed (64, 80, 3)"),
        ("whisper", configured(max_source_positions=0), "max_source_positions: given 0, allowed"),
        ("whisper", configured(activation_function="tan"), "activation_function: given 'tan'"),
        ("whisper", configured(encoder_attention_heads=7), "d_model: given 64, allowed a multi"),
        (
            "whisper",
            configured(architectures=["WhisperForAudioClassification"]),
            "given ['WhisperForAudioClassification'], allowed ['WhisperForConditionalGeneration'",
        ),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "compile"])
def test_folders_that_are_refused(
    family: str,
    change: Change,
    message: str,
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With file, field or tensor, what was given and what is allowed; nothing is written."""
    folder = folder_of(family, tmp_path)
    change(folder)
    options = ["-o", str(tmp_path / "out"), "--calibrate", "random:2"]
    line = refusal([command, str(folder), *(options if command == "compile" else [])], capsys)
    assert message in line
    assert not (tmp_path / "out").exists()


def test_samples_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of another shape are refused."""
    folder, out = folder_of("whisper", tmp_path), str(tmp_path / "out")
    line = refusal(["compile", str(folder), "-o", out], capsys)
    assert "needs samples (--calibrate FILE.npz, or random:N), allowed are 'mels': float32" in line
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 20, 50), np.float32))
    options = ["--calibrate", str(tmp_path / "x.npy"), "-o", out]
    assert "'mels'" in refusal(["compile", str(folder), *options], capsys)


@pytest.mark.parametrize(
    ("family", "uses"),
    [
        ("vit", "an encoder of pictures: npu compile, npu run"),
        ("whisper", "an encoder of sound: npu compile, npu run"),
    ],
)
def test_what_reads_no_text_says_which_commands_are_for_it(
    family: str, uses: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of chat, generate and embed."""
    name = str(folder_of(family, tmp_path))
    for command in (["chat", name, "a"], ["generate", name, "--prompt", "a"], ["embed", name, "a"]):
        assert uses in refusal(command, capsys)
