# SPDX-License-Identifier: Apache-2.0
"""An ONNX file of a decoder writes on the RTL what its checkpoint writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest

from golden.session import generate
from npu.cli import command_line
from tb.models import model_commands
from tests.python.graph.decoder_exports import exported
from weights.calibrate import SCALES_FILE
from weights.importer import load_checkpoint
from weights.quantize import quantize_loaded
from weights.shipped import shipped
from weights.tokenizer import load_tokenizer

PROMPT, COUNT = "The parser", 4


def test_a_file_with_past_keys_generates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One start, tokens of the integer network that the folder gives."""
    records: list[dict[str, Any]] = []
    monkeypatch.setattr(model_commands, "_save", lambda _, record, __: records.append(record))
    checkpoint = load_checkpoint("llama-tiny")
    for beside in ("config.json", SCALES_FILE):
        shutil.copy(shipped()["llama-tiny"] / beside, tmp_path)
    onnx.save(exported(checkpoint), tmp_path / "model.onnx")
    words = ["generate", str(tmp_path / "model.onnx"), "--prompt", PROMPT, "--tokens", str(COUNT)]
    assert command_line.main(words) == 0
    assert "every token" in capsys.readouterr().err
    tokenizer = load_tokenizer(checkpoint.folder, checkpoint.shape.vocab)
    expected = generate(quantize_loaded(checkpoint), tokenizer.encode(PROMPT), COUNT)
    assert records[0]["ids"] == expected
