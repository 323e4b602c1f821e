# SPDX-License-Identifier: Apache-2.0
"""Texts that begin with a byte order mark, as some editors write them, are read as without it."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from dev import quality_folder
from npu.cli import command_line
from npu.commands.files import read_text
from npu.graph.importers import read
from npu.graph.text import write
from weights.importer import load_checkpoint
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint
from weights.tokenizer import end_tokens, load_tokenizer

SHAPE = shape_of("gpt2", hidden=8, layers=1, heads=2, ffn=16, vocab=256, context=4)
MODULE = """module @net {
  func.func public @main(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}
"""


def mark(path: Path) -> None:
    """Put a byte order mark in front of a file."""
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())


def test_a_program(tmp_path: Path) -> None:
    """`npu asm` makes the same words of it; a place in it counts without the mark."""
    plain, marked = tmp_path / "a.npu", tmp_path / "b.npu"
    for path in (plain, marked):
        path.write_text("NOP\nEND\n", encoding="utf-8")
    mark(marked)
    for path in (plain, marked):
        assert command_line.main(["asm", str(path)]) == 0
        assert command_line.main(["inspect", str(path)]) == 0
    assert plain.with_suffix(".bin").read_bytes() == marked.with_suffix(".bin").read_bytes()


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "index"])
def test_a_checkpoint(tmp_path: Path, file: str) -> None:
    """Its configuration, the one of its end tokens, the index of its shards."""
    written = random_checkpoint(SHAPE, 1)
    write_checkpoint(written, tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 7}', encoding="utf-8")
    if file == "index":
        file = "model.safetensors.index.json"
        tensors = load_file(tmp_path / "model.safetensors")
        save_file(tensors, tmp_path / "part.safetensors")
        (tmp_path / "model.safetensors").unlink()
        names = ", ".join(f'"{name}": "part.safetensors"' for name in tensors)
        (tmp_path / file).write_text(f'{{"weight_map": {{{names}}}}}', encoding="utf-8")
    mark(tmp_path / file)
    read_back = load_checkpoint(tmp_path)
    assert (read_back.tensors["embed"] == written.tensors["embed"]).all()
    assert end_tokens(tmp_path, load_tokenizer(None, 256), 256) == [7]


def test_stablehlo(tmp_path: Path) -> None:
    """By suffix, by content and as a text."""
    named, unnamed = tmp_path / "net.mlir", tmp_path / "net"
    for path in (named, unnamed):
        path.write_text(MODULE, encoding="utf-8")
        mark(path)
    expected = write(read(MODULE))
    for source in ("\ufeff" + MODULE, named.read_bytes()):
        assert write(read(source)) == expected
    for path in (named, unnamed):
        assert write(read(path)).splitlines()[1:] == expected.splitlines()[1:]


@pytest.mark.parametrize("reader", [read_text, lambda path: bytes(quality_folder.text_bytes(path))])
def test_a_text(tmp_path: Path, reader: Callable[[Path], str | bytes]) -> None:
    """A text that a model is measured on has no mark that would count as three letters."""
    path = tmp_path / "text"
    path.write_text("abc", encoding="utf-8")
    plain = reader(path)
    mark(path)
    assert reader(path) == plain
