# SPDX-License-Identifier: Apache-2.0
"""Narrow weights that commands refuse: recipes, calibration text; nothing built, nothing written.

Values that cannot be imported are in tests/python/weights/test_weights_foreign.py, codes that a
layer cannot hold in test_weights_formats.py, packed files in test_packed_files.py and
test_compiler_model.py.
"""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from npu.cli import command_line
from spec.paths import ROOT
from tb.models import profile
from tests.bad_input.nothing import nothing_there
from weights import covariance
from weights.calibrate import SCALES_FILE, calibrate, save_scales
from weights.importer import load_checkpoint
from weights.stored.folder import WEIGHTS
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

MODEL = str(ROOT / "weights" / "checkpoints" / "gpt2-tiny")
SHAPE = shape_of(
    "gpt2", hidden=16, layers=1, heads=1, ffn=48, vocab=256, context=16, activation="gelu"
)


@pytest.fixture(autouse=True)
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every attempt to build an error: a bad input must not get that far."""
    nothing_there(monkeypatch)
    monkeypatch.setattr(profile, "require_pictures", lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a small checkpoint and its scales in it."""
    path = tmp_path / "model"
    write_checkpoint(random_checkpoint(SHAPE, 1), path)
    checkpoint = load_checkpoint(path)
    save_scales(calibrate(checkpoint, random_tokens(SHAPE, 4, 2)), path / SCALES_FILE)
    return path


def refused(capsys: pytest.CaptureFixture[str], place: Path, *arguments: str) -> str:
    """Run a command; return the one line that it refuses with; `place` stays as it is."""
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    try:
        status: object = command_line.main(list(arguments))
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert (status, printed.out, len(lines)) == (2, "", 1), (status, printed)
    assert before == {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    return lines[0]


@pytest.mark.parametrize("command", ["compile", "generate", "profile", "inspect"])
@pytest.mark.parametrize(
    ("recipe", "line"),
    [
        ("int5", "given the format 'int5', allowed fp4g, fp4g128, "),
        ("int4g24", "given the format 'int4g24', allowed fp4g, "),
        ("INT4", "given the format 'INT4', allowed fp4g, "),
        ("", "given the format '', allowed fp4g, "),
        ("kv=int4", "given the tensor kind 'kv' in 'kv=int4', allowed qkv, o, up, gate, down, "),
        ("qkv=", "given the format '', allowed fp4g, "),
        ("o=int4,o=int8", "given 'o' twice in 'o=int4,o=int8', allowed once"),
        ("int4,int8", "given 'int8' in 'int4,int8', allowed one word for the blocks, first, "),
    ],
)
def test_recipes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, recipe: str, line: str
) -> None:
    """An unknown word or kind, in every command that takes a recipe."""
    rest = {"compile": ["-o", str(tmp_path / "x.tsr")], "inspect": []}
    arguments = [command, MODEL, "--weights", recipe, *rest.get(command, ["--prompt", "The"])]
    found = refused(capsys, tmp_path, *arguments)
    # What names stand for in `npu compile` is known once it is known that this is no network.
    where = "npu: --weights" if command == "compile" else f"npu {command}: argument --weights"
    assert found.startswith(f"{where}: {line}"), found


def test_text_too_short(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is kept of moments that say nothing, and nothing is compiled."""
    text = random_tokens(SHAPE, 2, 3)
    monkeypatch.setattr(covariance, "calibration_tokens", lambda _: text)
    output = str(folder.parent / "x.tsr")
    found = refused(
        capsys, folder.parent, "compile", str(folder), "-o", output, "--weights", "nf4g"
    )
    assert found == (
        f"npu: {folder}: calibration text too short for the covariance: given {text.size} tokens, "
        "allowed at least 48, the inputs of h.0.act"
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers(
    capsys: pytest.CaptureFixture[str], folder: Path, dtype: type, value: float
) -> None:
    """NaN and infinity in a checkpoint of 16 bits: tensor, row, column and value are named."""
    tensors = load_file(folder / WEIGHTS)
    name = next(one for one in tensors if one.endswith("mlp.c_proj.weight"))
    tensors[name] = tensors[name].astype(dtype)
    tensors[name][40, 3] = value
    save_file(tensors, folder / WEIGHTS)
    output = str(folder.parent / "x.tsr")
    found = refused(
        capsys, folder.parent, "compile", str(folder), "-o", output, "--weights", "int4"
    )
    place = f"given {value} at index (40, 3), allowed finite float32 numbers"
    assert "mlp.c_proj.weight" in found and found.endswith(place), found
