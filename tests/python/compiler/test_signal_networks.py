# SPDX-License-Identifier: Apache-2.0
"""Encoders of pictures and sound as networks: one segment of any number of rows, folders, commands.

tests/oracles compares the float graph with transformers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tessera
from golden.graph import run as golden_run
from npu.cli import command_line
from npu.graph.evaluate import evaluate
from npu.graph.form import GraphError
from npu.graph.importers import read
from npu.graph.importers.checkpoint import LOGITS
from npu.graph.importers.signal_checkpoint import MELS, PIXELS, POOLED, ROWS
from npu.planner.build_plan import CompileOptions, build_plan
from tessera.session import Session
from tests.python.importers.small_encoders import (
    SIGNALS,
    random_encoder,
    random_signal,
    signals,
    write_encoder,
)
from weights.encoder_importer import load_any_encoder
from weights.signal_encoder import SignalCheckpoint

ERROR = 0.05
"""Of outputs, over the largest: what 8 bits leave of random networks."""


def bare(family: str) -> SignalCheckpoint:
    """Return an encoder of pictures without a head, with a pooler of 20 columns."""
    return random_signal(family, labels=0, pooled=20)


@pytest.mark.parametrize("family", SIGNALS)
def test_an_encoder_is_one_segment(family: str) -> None:
    """From patches or windows to the end, 37, 38 or 30 rows; programs equal golden.graph."""
    checkpoint = random_signal(family)
    samples = signals(checkpoint, 8)
    network = build_plan(checkpoint, CompileOptions(calibrate=samples))
    assert len(network.plan.segments) == 1
    placed = {op.name: op.on_chip for op in network.passes["place"].operations}
    inner = [op.name for op in network.passes["canonical"].operations if op.name[:2] == "h."]
    front = ["patch"] if checkpoint.shape.patch else ["conv1", "conv2"]
    assert len(inner) > 20
    assert [name for name in (*front, *inner) if not placed.get(name, True)] == []
    session = Session(network.plan)
    for number in range(2):
        inputs = {name: data[number] for name, data in samples.items()}
        found, wanted = session.run(inputs), evaluate(network.passes["import"], inputs)
        golden = golden_run(network.passes["fuse"], inputs)
        for name, values in found.items():
            np.testing.assert_array_equal(values, golden[name])
            assert np.abs(values - wanted[name]).max() < ERROR * np.abs(wanted[name]).max()


@pytest.mark.parametrize("family", ["vit", "deit"])
def test_without_a_head_rows_and_the_pooler_are_the_outputs(family: str) -> None:
    """The logits of a head that is the pooler's layer are the pooled row before tanh."""
    given = bare(family)
    inputs = {name: data[0] for name, data in signals(given, 1).items()}
    found = evaluate(read(given), inputs)
    assert (found[ROWS].shape, found[POOLED].shape) == ((1, given.shape.context, 48), (1, 20))
    tensors = {name.replace("pooler", "head"): data for name, data in given.tensors.items()}
    headed = SignalCheckpoint(replace(given.shape, labels=20, pooled=0), tensors, "headed")
    logits = evaluate(read(headed), inputs)[LOGITS]
    np.testing.assert_allclose(np.tanh(logits), found[POOLED], rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", SIGNALS)
def test_a_folder_says_all(family: str, tmp_path: Path) -> None:
    """Shape and tensors, with a head or without, with a pooler or without."""
    given = [random_signal(family)]
    if given[0].shape.patch:
        given += [bare(family), random_signal(family, labels=0)]
        given.append(random_signal(family, biases=("o", "up", "down")))
    for number, one in enumerate(given):
        write_encoder(one, tmp_path / str(number))
        found = load_any_encoder(tmp_path / str(number))
        assert found.shape == one.shape
        assert found.tensors.keys() == one.tensors.keys()
        for name, tensor in one.tensors.items():
            np.testing.assert_array_equal(found.tensors[name], tensor)


def test_shorter_sound_has_fewer_rows() -> None:
    """The first rows of the table of positions are theirs."""
    checkpoint = random_signal("whisper")
    mels = signals(checkpoint, 1)[MELS][0][..., :40]
    found = evaluate(read(checkpoint, shapes={MELS: (1, 20, 40)}), {MELS: mels})[ROWS]
    shape = replace(checkpoint.shape, signal=(20, 40), context=20)
    tensors = {**checkpoint.tensors} | {"positions": checkpoint.tensors["positions"][:20]}
    whole = SignalCheckpoint(shape, tensors, "short")
    np.testing.assert_array_equal(found, evaluate(read(whole), {MELS: mels})[ROWS])


def test_a_folder_compiles_and_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command with an .npy of samples, and in Python."""
    checkpoint = random_signal("vit")
    write_encoder(checkpoint, tmp_path / "model")
    samples = signals(checkpoint, 4)
    np.save(tmp_path / "samples.npy", samples[PIXELS])
    out = tmp_path / "out"
    options = ["--calibrate", str(tmp_path / "samples.npy"), "-o", str(out)]
    assert command_line.main(["compile", str(tmp_path / "model"), *options]) == 0
    assert "outputs equal golden.graph on a drawn input" in capsys.readouterr().out
    inputs = {PIXELS: samples[PIXELS][1]}
    found = tessera.load(out).run(inputs)[LOGITS]
    loaded = tessera.load(tmp_path / "model", calibrate=samples).run(inputs)[LOGITS]
    np.testing.assert_array_equal(found, loaded)


@pytest.mark.parametrize(
    ("family", "shapes", "message"),
    [
        ("vit", {PIXELS: (1, 3, 64, 64)}, "given [1, 3, 64, 64], allowed [1, 3, 48, 48]"),
        ("vit", {MELS: (1, 20, 60)}, "'mels' is no input, allowed pixels"),
        ("whisper", {MELS: (1, 20, 61)}, "allowed [1, 20, 60], or an even number from 2 at"),
        ("whisper", {MELS: (1, 20, 62)}, "shape of mels: given [1, 20, 62], allowed"),
        ("whisper", {MELS: (1, 21, 60)}, "shape of mels: given [1, 21, 60], allowed"),
        ("whisper", {MELS: (20, 60)}, "shape of mels: given [20, 60], allowed"),
    ],
)
def test_a_shape_that_is_no_signal_is_refused(
    family: str, shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    """With the shape of the model."""
    with pytest.raises(GraphError, match=re.escape(message)):
        read(random_signal(family), shapes=shapes)


@pytest.mark.parametrize("family", SIGNALS)
def test_samples_are_needed(family: str, tmp_path: Path) -> None:
    """Nothing is known that would calibrate a picture or a sound."""
    write_encoder(random_signal(family), tmp_path)
    with pytest.raises(GraphError, match=r"needs samples \(--calibrate FILE.npz, or random:N\)"):
        tessera.load(tmp_path)


def test_inspect_shows_an_encoder_and_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of text too."""
    write_encoder(random_signal("whisper"), tmp_path / "whisper")
    file = tmp_path / "whisper" / "model.safetensors"
    others = (
        "model.decoder.embed_tokens.weight",
        "model.decoder.layer_norm.bias",
        "proj_out.weight",
    )
    tensors = load_file(file) | {name: np.zeros((1, 1), np.float32) for name in others}
    save_file(tensors, file)
    write_encoder(random_signal("vit"), tmp_path / "vit")
    write_encoder(random_encoder(), tmp_path / "bert")
    wanted = {
        "whisper": ("20 x 60", "tensors of decoder (2), proj_out (1)", "of sound: npu compile"),
        "vit": ("3 x 48 x 48, patches of 8 x 8", "patch.weight", "of pictures: npu compile"),
        "bert": ("vocabulary    80 ", "an encoder: npu embed, npu compile"),
    }
    for name, texts in wanted.items():
        assert command_line.main(["inspect", str(tmp_path / name)]) == 0
        printed = capsys.readouterr().out
        for text in texts:
            assert text in printed
        assert ("left out" in printed) == (name == "whisper")
