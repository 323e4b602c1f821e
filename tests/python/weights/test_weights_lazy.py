# SPDX-License-Identifier: Apache-2.0
"""Tensors of a checkpoint are read when they are asked for, a layer at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from weights import calibrate as calibration
from weights.calibrate import calibrate, model_of
from weights.checkpoint import Checkpoint, GroupedTensors, digest, group_of
from weights.importer import load_checkpoint
from weights.quantize import quantize
from weights.stored import folder as stored_folder
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

SHAPES = {
    family: shape_of(family, tied=tied) for family, tied in (("llama", False), ("gpt2", True))
}
SINK = 5


@pytest.fixture(params=SHAPES)
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Checkpoint, Checkpoint]:
    """Return a model in memory, and the same on disk."""
    whole = random_checkpoint(SHAPES[request.param], 3)
    write_checkpoint(whole, tmp_path / "model")
    return whole, load_checkpoint(tmp_path / "model")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often each tensor of a file was read."""
    found: Counter[str] = Counter()
    read = stored_folder._read

    def counted(path: Path, name: str, source: str) -> np.ndarray:
        found[name] += 1
        return read(path, name, source)

    monkeypatch.setattr(stored_folder, "_read", counted)
    return found


@pytest.mark.parametrize("sink", [None, SINK])
def test_layers_are_read_once(
    reads: Counter[str],
    given: tuple[Checkpoint, Checkpoint],
    sink: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By calibration, whatever its batches are, and by the quantiser, sink or not."""
    monkeypatch.setattr(calibration, "BATCH", 2)
    whole, lazy = given
    tokens = random_tokens(whole.shape, 7, 4)[:, int(sink is not None) :]
    reads.clear()
    scales = calibrate(lazy, tokens, sink=sink)
    layers = {name: count for name, count in reads.items() if ".norm." not in name and "h." in name}
    layers |= {name: count for name, count in reads.items() if "layers." in name}
    assert layers and set(layers.values()) == {1}
    reads.clear()
    quantize(lazy, scales)
    assert {reads[name] for name in layers} == {1}
    assert scales == calibrate(whole, tokens, sink=sink)


def test_rewritten_models_are_made_a_layer_at_a_time(
    given: tuple[Checkpoint, Checkpoint], reads: Counter[str]
) -> None:
    """Equal to those of a model in memory; one group is kept, and no more."""
    whole, lazy = given
    tokens = random_tokens(whole.shape, 7, 4)[:, 1:]
    scales = calibrate(whole, tokens, sink=SINK)
    model, wanted = model_of(lazy, scales), model_of(whole, scales)
    assert isinstance(model.tensors, GroupedTensors)
    reads.clear()
    assert model.sizes == {name: tensor.shape for name, tensor in wanted.tensors.items()}
    assert "h.1.v.weight" in model.tensors and "h.9.v.weight" not in model.tensors
    assert not reads
    for name in wanted.tensors:
        np.testing.assert_array_equal(model.tensors[name], wanted.tensors[name])
        kept, held = model.tensors._kept
        assert kept == group_of(name) and {group_of(one) for one in held} == {kept}


def test_the_digest_is_computed_once(
    given: tuple[Checkpoint, Checkpoint], reads: Counter[str]
) -> None:
    """When a file is read; that of a rewritten model is another."""
    whole, lazy = given
    assert digest(lazy) == digest(whole)
    assert not reads
    scales = calibrate(whole, random_tokens(whole.shape, 2, 4)[:, 1:], sink=SINK)
    assert digest(model_of(lazy, scales)) != digest(lazy)
    assert digest(replace(lazy, source="elsewhere")) == digest(whole)
