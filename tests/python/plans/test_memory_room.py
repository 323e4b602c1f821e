# SPDX-License-Identifier: Apache-2.0
"""Models for which the chip's memory is too small: refused by config.json, before anything else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npu.cli import command_line
from npu.compiler import compile_model
from npu.compiler.model_plan import (
    BESIDE,
    MEMORY_BYTES,
    Place,
    memory_parts,
    plan_model,
    stream_bytes,
)
from npu.planner.placement import Placement
from spec.isa.operands import Limits
from weights.formats.recipe import INT8_WEIGHTS, parse_recipe
from weights.importer import load_shape
from weights.quantize import quantize_checkpoint
from weights.shipped import shipped
from weights.stored.folder import WEIGHTS
from weights.synthetic import random_model, shape_of

BIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "vocab_size": 151_936,
    "max_position_embeddings": 32_768,
    "tie_word_embeddings": True,
}
"""Near the 4 GiB: the cache decides."""


def folder_of(place: Path, **changes: object) -> Path:
    """Write a checkpoint of which there is config.json, and weights that nobody may read."""
    (place / "config.json").write_text(json.dumps(BIG | changes), encoding="utf-8")
    with (place / WEIGHTS).open("wb") as file:
        file.truncate(1 << 40)  # holes alone: it takes no room, but reading it would fail
    return place


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must be refused and return its line."""
    assert command_line.main([str(one) for one in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["inspect", "compile", "generate", "profile"])
def test_every_command_refuses_by_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """No tensor is read, nothing measured; parts, sum, what is allowed and what would fit."""
    folder = folder_of(tmp_path, max_position_embeddings=32_000, num_hidden_layers=44)
    options: dict[str, list[object]] = {
        "inspect": [],
        "compile": ["-o", tmp_path / "x.tsr"],
        "generate": ["--prompt", "x"],
        "profile": ["--prompt", "x"],
    }
    line = refused(capsys, command, folder, *options[command])
    assert line.startswith("npu: memory: given a model of 44 layers, hidden 2048, ffn 11008, ")
    parts = [int(one.replace(",", "")) for one in re.findall(r" ([\d,]{4,})[,)]", line)]
    assert f"allowed {MEMORY_BYTES:,}" in line
    assert "a context of up to " in line or "no context is short enough" in line
    assert sum(parts) > MEMORY_BYTES


def test_what_is_said_to_fit_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest context that is named passes, one position more does not."""
    line = refused(capsys, "inspect", folder_of(tmp_path))
    match = re.search(r"a context of up to ([\d,]+) would fit", line)
    assert match is not None, line
    longest = int(match[1].replace(",", ""))
    shape, limits = load_shape(tmp_path), Limits()
    assert plan_model(replace(shape, context=longest), limits, "auto").cache.in_memory
    with pytest.raises(ValueError, match="memory: given"):
        plan_model(replace(shape, context=longest + 1), limits, "auto")


def test_narrow_weights_make_room(tmp_path: Path) -> None:
    """What is too large in int8 is planned in four bits."""
    shape = replace(load_shape(folder_of(tmp_path)), layers=60, context=2048)
    limits = Limits()
    with pytest.raises(ValueError, match="no context is short enough, narrower --weights"):
        plan_model(shape, limits, "auto", stream_bytes(shape, limits.edge))
    plan_model(shape, limits, "auto", stream_bytes(shape, limits.edge, parse_recipe("int4g32")))


@pytest.mark.parametrize("name", sorted(shipped()))
@pytest.mark.parametrize("word", ["int8", "int4g32", "mxfp6e2", "int8s", "int4,head=int4"])
def test_the_stream_is_as_long_as_foretold(name: str, word: str) -> None:
    """To the byte, in every kind of layout."""
    recipe = parse_recipe(word)
    model = quantize_checkpoint(str(shipped()[name]), recipe if recipe.narrow else None)
    compiled = compile_model(model)
    limits = compiled.limits
    assert stream_bytes(model.shape, limits.edge, recipe) == len(compiled.stream)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2"])
@pytest.mark.parametrize("place", ["sram", "memory"])
def test_the_memory_is_as_full_as_foretold(family: str, place: Place) -> None:
    """The placement of a model ends below what was foretold, and by less than what is kept."""
    model = random_model(shape_of(family), 3)
    compiled = compile_model(model, cache=place)
    shape, edge = model.shape, compiled.limits.edge
    cache = compiled.cache.bytes if compiled.cache.in_memory else 0
    parts = memory_parts(shape, edge, stream_bytes(shape, edge, INT8_WEIGHTS), cache)
    assert 0 < sum(parts.values()) - Placement(compiled).end < BESIDE
    tables = sum(map(len, compiled.sections.values()))
    assert parts["token table"] + parts["positions"] == tables
