# SPDX-License-Identifier: Apache-2.0
"""ONNX files of decoders with past keys and values are the checkpoints that they were made from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from npu.cli import command_line
from npu.compiler import compile_model
from npu.planner.decoder_file import DecoderFileError, is_decoder, read_decoder
from spec.isa.operands import Limits
from tests.python.graph.decoder_exports import exported
from weights.calibrate import SCALES_FILE
from weights.checkpoint import Checkpoint
from weights.importer import load_checkpoint
from weights.quantize import quantize_loaded
from weights.shipped import shipped

NAMES = ("llama-tiny", "gpt2-tiny", "qwen2-tiny")


@cache
def given(name: str) -> Checkpoint:
    """Return a shipped checkpoint."""
    return load_checkpoint(name)


def written(folder: Path, name: str, **form: bool) -> Path:
    """Write the file of a decoder, with what lies beside it; return its path."""
    for beside in ("config.json", SCALES_FILE):
        shutil.copy(shipped()[name] / beside, folder)
    onnx.save(exported(given(name), **form), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_the_checkpoint(tmp_path: Path, name: str, fused: bool) -> None:
    """Dimensions, constants and every weight, with other forms of products and positions too."""
    path, expected = written(tmp_path, name, fused=fused, tables=fused), given(name)
    assert is_decoder(path)
    found = read_decoder(path)
    assert found.shape == expected.shape
    assert found.tensors.keys() == expected.tensors.keys()
    for tensor, values in expected.tensors.items():
        np.testing.assert_array_equal(found.tensors[tensor], values, tensor)


def test_its_program_and_stream_are_the_checkpoints(tmp_path: Path) -> None:
    """So tokens and cycles are."""
    path = written(tmp_path, "llama-tiny")
    packed = [
        compile_model(quantize_loaded(model), Limits()).packed()
        for model in (read_decoder(path), given("llama-tiny"))
    ]
    assert packed[0] == packed[1]


def test_a_window_is_not_in_the_file(tmp_path: Path) -> None:
    """What was sliding is the file's own attention: all positions."""
    path = written(tmp_path, "mistral-tiny")
    expected = replace(given("mistral-tiny").shape, family="llama", window=0)
    assert read_decoder(path).shape == expected


def test_other_files_are_networks(tmp_path: Path) -> None:
    """A file without past keys, one that is no ONNX, and none at all."""
    path = written(tmp_path, "gpt2-tiny")
    model = onnx.load(path)
    for one in model.graph.input:
        one.name = one.name.replace("past_key_values", "cache")
    onnx.save(model, tmp_path / "other.onnx")
    (tmp_path / "text.onnx").write_text("text", encoding="utf-8")
    for name in ("other.onnx", "text.onnx", "none.onnx", "config.json"):
        assert not is_decoder(tmp_path / name)


def _constant(model: onnx.ModelProto, name: str, change: Callable[[np.ndarray], object]) -> None:
    for one in model.graph.initializer:
        if one.name == name:
            value = np.array(change(numpy_helper.to_array(one).copy()))
            one.CopyFrom(numpy_helper.from_array(value, name))


def _node(model: onnx.ModelProto, operator: str, change: Callable[[onnx.NodeProto], None]) -> None:
    change(next(one for one in model.graph.node if one.op_type == operator))


def _scale(model: onnx.ModelProto) -> None:
    """Scale the scores of the first block otherwise."""
    product = next(one for one in model.graph.node if one.op_type == "Transpose" and
                   list(one.attribute[0].ints) == [0, 1, 3, 2])  # fmt: skip
    scores = next(one for one in model.graph.node if product.output[0] in one.input)
    scaled = next(one for one in model.graph.node if scores.output[0] in one.input)
    _constant(model, scaled.input[1], lambda value: value * np.float32(1.5))


def _renamed(model: onnx.ModelProto) -> None:
    next(one for one in model.graph.input if one.name == "position_ids").name = "places"
    for one in model.graph.node:
        one.input[:] = ["places" if name == "position_ids" else name for name in one.input]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_scale, "its logits at position 1 differ from those of llama with its weights by"),
        (_renamed, "given the input 'places', allowed is a decoder as GPT-2 or Llama"),
        (
            lambda model: _node(model, "Sigmoid", lambda one: setattr(one, "op_type", "Tanh")),
            "allowed is a decoder as GPT-2 or Llama",
        ),
    ],
)
def test_another_network_is_refused(
    tmp_path: Path, change: Callable[[onnx.ModelProto], None], said: str
) -> None:
    """In one line, though its structure may be a decoder's."""
    path = written(tmp_path, "llama-tiny")
    model = onnx.load(path)
    change(model)
    onnx.save(model, path)
    with pytest.raises(DecoderFileError) as refused:
        read_decoder(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_commands_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a folder; what only config.json says is asked for."""
    path = written(tmp_path, "llama-tiny")
    assert command_line.main(["inspect", str(path)]) == 0
    assert "llama" in capsys.readouterr().out
    assert command_line.main(["compile", str(path), "-o", str(tmp_path / "m.npu")]) == 0
    assert (tmp_path / "m.npu").stat().st_size > 100_000
    (tmp_path / "config.json").unlink()
    capsys.readouterr()
    assert command_line.main(["inspect", str(path)]) == 2
    said = capsys.readouterr().err
    assert "the file does not say for how many positions it is" in said
    assert said.count("\n") == 1
