# SPDX-License-Identifier: Apache-2.0
"""Encoders as networks: the float graph, one segment, masks at run time, folders and commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tessera
from golden.graph import run as golden_run
from npu.cli import command_line
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.importers.encoder_checkpoint import EMBEDDING, MASK, ROWS, TYPES
from npu.planner.build_plan import Built, CompileOptions, build_plan
from tessera.session import Session
from tests.python.importers.small_encoders import (
    MEAN,
    TEXTS,
    random_encoder,
    sentences,
    write_encoder,
)
from weights.checkpoint import CheckpointError
from weights.encoder import EncoderCheckpoint, Pooling
from weights.encoder_importer import load_encoder
from weights.importer import load_shape

SHAPES = {TOKENS: (1, 32)}
LENGTHS = (32, 3, 17, 1)


def one(samples: dict[str, Array], number: int) -> dict[str, Array]:
    """Return a sentence of several."""
    return {name: data[number] for name, data in samples.items()}


def built(checkpoint: EncoderCheckpoint, samples: dict[str, Array], **options: object) -> Built:
    """Return the network of an encoder, calibrated on sentences."""
    given = {"shapes": SHAPES, "calibrate": samples, **options}
    return build_plan(checkpoint, CompileOptions(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize("family", TEXTS)
def test_an_encoder_is_one_segment_for_all_lengths(family: str) -> None:
    """From the sum of embeddings to the last norm; programs equal golden.graph, and are close."""
    checkpoint = random_encoder(family)
    samples = sentences(checkpoint, 32, LENGTHS)
    network = built(checkpoint, samples)
    assert len(network.plan.segments) == 1
    operations = network.passes["canonical"].operations
    inner = {op.name for op in operations if op.name.startswith(("h.", "norm0", "positioned"))}
    placed = {op.name: op.on_chip for op in network.passes["place"].operations}
    assert len(inner) > 30
    assert {name for name in inner if not placed.get(name, True)} == set()
    session = Session(network.plan)
    for number in range(len(LENGTHS)):
        inputs = one(samples, number)
        found = session.run(inputs)[EMBEDDING]
        np.testing.assert_array_equal(found, golden_run(network.passes["fuse"], inputs)[EMBEDDING])
        wanted = evaluate(network.passes["import"], inputs)[EMBEDDING]
        np.testing.assert_allclose(np.square(found).sum(), 1, rtol=1e-5)
        assert (found * wanted).sum() > 0.998


def test_what_lies_behind_a_sentence_changes_nothing() -> None:
    """Not a bit: neither in real numbers nor on the chip, whose scores of 16 bits saturate."""
    checkpoint = random_encoder()
    samples = sentences(checkpoint, 32, LENGTHS)
    network = built(checkpoint, samples)
    session = Session(network.plan)
    inputs = one(samples, 2)
    other = inputs | {TOKENS: np.where(inputs[MASK] > 0, inputs[TOKENS], 79 - inputs[TOKENS])}
    assert (other[TOKENS] != inputs[TOKENS]).any()
    for run in (session.run, lambda given: evaluate(network.passes["import"], given)):
        np.testing.assert_array_equal(run(inputs)[EMBEDDING], run(other)[EMBEDDING])
    seen = other | {MASK: np.ones_like(other[MASK])}
    assert (session.run(seen)[EMBEDDING] != session.run(other)[EMBEDDING]).any()


def test_a_shorter_program_says_the_same() -> None:
    """In real numbers a sentence of 16 places is what it is in 32."""
    checkpoint = random_encoder("roberta")
    long = one(sentences(checkpoint, 32, [13]), 0)
    short = {name: data[:, :16] for name, data in long.items()}
    wide, narrow = (
        evaluate(read(checkpoint, shapes={TOKENS: (1, size)}), inputs)[EMBEDDING]
        for size, inputs in ((32, long), (16, short))
    )
    np.testing.assert_allclose(wide, narrow, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "output"),
    [
        (None, ROWS),
        (MEAN, EMBEDDING),
        (Pooling("mean", unit=False, longest=64), EMBEDDING),
        (Pooling("first", unit=False, longest=64), EMBEDDING),
        (Pooling("first", unit=True, longest=64), EMBEDDING),
    ],
)
def test_rows_become_what_the_modules_say(pooling: Pooling | None, output: str) -> None:
    """Against numpy on the rows."""
    inputs = one(sentences(random_encoder(), 32, [9]), 0)
    rows = evaluate(read(random_encoder(pooling=None), shapes=SHAPES), inputs)[ROWS]
    assert rows.shape == (1, 32, 64)
    wanted = rows
    if pooling is not None:
        wanted = rows[:, 0] if pooling.pool == "first" else rows[:, :9].mean(axis=1)
        wanted = wanted / np.linalg.norm(wanted) if pooling.unit else wanted
    found = evaluate(read(random_encoder(pooling=pooling), shapes=SHAPES), inputs)[output]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", TEXTS)
@pytest.mark.parametrize("pooling", [None, MEAN, Pooling("first", unit=False, longest=64)])
def test_a_folder_says_all(family: str, pooling: Pooling | None, tmp_path: Path) -> None:
    """Shape, tensors and pooling."""
    given = random_encoder(family, pooling=pooling)
    write_encoder(given, tmp_path)
    found = load_encoder(tmp_path)
    assert (found.shape, found.pooling) == (given.shape, pooling)
    assert found.tensors.keys() == given.tensors.keys()
    for name, tensor in given.tensors.items():
        np.testing.assert_array_equal(found.tensors[name], tensor)


def test_the_shorter_of_two_limits_counts(tmp_path: Path) -> None:
    """Of the positions and of max_seq_length."""
    write_encoder(random_encoder(), tmp_path)
    for given, longest in ((20, 20), (500, 64), (None, 64)):
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": given}))
        assert load_encoder(tmp_path).longest == longest


def test_the_tokenizer_limits_a_sentence_if_nothing_else_does(tmp_path: Path) -> None:
    """As in sentence-transformers; a number of thirty digits is no limit."""
    write_encoder(random_encoder(), tmp_path)
    for given, longest in ((20, 20), (10**30, 64), (None, 64)):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": given}))
        assert load_encoder(tmp_path).longest == longest


def test_token_types_are_an_input_where_they_are_asked_for() -> None:
    """Type 0 else."""
    checkpoint = random_encoder()
    inputs = one(sentences(checkpoint, 32, [20]), 0)
    plain = evaluate(read(checkpoint, shapes=SHAPES), inputs)[EMBEDDING]
    typed = read(checkpoint, shapes=SHAPES | {TYPES: (1, 32)})
    zeros, ones = (inputs | {TYPES: np.full((1, 32), kind, np.int32)} for kind in (0, 1))
    np.testing.assert_allclose(evaluate(typed, zeros)[EMBEDDING], plain, rtol=0, atol=1e-6)
    assert np.abs(evaluate(typed, ones)[EMBEDDING] - plain).max() > 0.01


def test_activations_of_16_bits_are_what_makes_them_close() -> None:
    """An activation far out costs all others their bits where it is a table alone."""
    checkpoint = random_encoder()
    for layer in range(2):  # two columns of each feed-forward are forty times as large
        checkpoint.tensors[f"h.{layer}.up.weight"][:, :2] *= 40
        checkpoint.tensors[f"h.{layer}.down.weight"][:2] /= 40
    samples = sentences(checkpoint, 32, LENGTHS * 2)
    usual = built(checkpoint, samples)
    assert usual.wide == ("h.0.act", "h.1.act", "h.1.norm2")
    narrow = build_plan(
        read(checkpoint, shapes=SHAPES), CompileOptions(calibrate=samples, wide=["h.1.norm2"])
    )
    wanted = evaluate(usual.passes["import"], one(samples, 2))[EMBEDDING]
    near, far = (
        1 - float((golden_run(each.passes["fuse"], one(samples, 2))[EMBEDDING] * wanted).sum())
        for each in (usual, narrow)
    )
    assert near < far / 5


def test_a_folder_compiles_and_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command without an option but samples, and in Python."""
    checkpoint = random_encoder()
    write_encoder(checkpoint, tmp_path / "model")
    samples = sentences(checkpoint, 64, LENGTHS)
    np.savez(tmp_path / "samples.npz", tokens=samples[TOKENS], mask=samples[MASK])
    out = tmp_path / "out"
    options = ["--calibrate", str(tmp_path / "samples.npz"), "-o", str(out)]
    assert command_line.main(["compile", str(tmp_path / "model"), *options]) == 0
    assert "outputs equal golden.graph on a drawn input" in capsys.readouterr().out
    inputs = one(samples, 1)
    found = tessera.load(out).run(inputs)[EMBEDDING]
    loaded = tessera.load(tmp_path / "model", calibrate=samples).run(inputs)[EMBEDDING]
    np.testing.assert_array_equal(found, loaded)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({TOKENS: (1, 65)}, "shape of tokens: given [1, 65], allowed [1, S] with S from 1 to 64"),
        ({TOKENS: (2, 8)}, "shape of tokens: given [2, 8], allowed [1, S] with S from 1 to 64"),
        ({TOKENS: (1, 8), MASK: (1, 9)}, "shape of mask: allowed that of tokens, [1, 8]"),
        ({TYPES: (1, 9)}, "shape of types: given [1, 9], allowed that of tokens, [1, 64]"),
        ({"past": (9,)}, "'past' is no input, allowed tokens, mask, types"),
    ],
)
def test_a_shape_that_is_no_sentence_is_refused(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    """With the positions of the model."""
    with pytest.raises(GraphError, match=re.escape(message)):
        read(random_encoder(), shapes=shapes)


def test_token_types_are_refused_without_a_table() -> None:
    """DistilBERT has none."""
    with pytest.raises(GraphError, match=r"shape of types: given \[1, 64\], allowed none"):
        read(random_encoder("distilbert"), shapes={TYPES: (1, 64)})


def test_an_encoder_does_not_generate(tmp_path: Path) -> None:
    """And says what it does instead."""
    write_encoder(random_encoder(), tmp_path)
    with pytest.raises(CheckpointError, match="an encoder: npu embed, npu compile"):
        load_shape(tmp_path)
    with pytest.raises(GraphError, match="given no tokenizer, allowed one beside the checkpoint"):
        tessera.load(tmp_path)
