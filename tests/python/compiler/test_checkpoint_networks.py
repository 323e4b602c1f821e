# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as networks: the float graph, what the passes make of it, and all their options."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessera
from golden.graph import run as golden_run
from golden.graph import run_steps
from npu.cli import command_line
from npu.commands.load_model import planned
from npu.graph.evaluate import evaluate
from npu.graph.form import GraphError
from npu.graph.importers import read
from npu.graph.importers.checkpoint import LOGITS, PAST, TOKENS
from npu.graph.passes.quantising.samples import random_samples
from npu.graph.states import States
from npu.graph.text import equal, parse, write
from npu.graph.verify import verify
from npu.planner.build_plan import Built, CompileOptions, build_plan
from npu.planner.partition import partition
from npu.runtime.plan_files import PlanFileError
from spec.isa.operands import Limits
from tessera.accuracy import loss_of
from tessera.delegate import Delegate, preprocess
from tessera.session import Session
from tests.forms import sample
from weights.architectures import ARCHITECTURES
from weights.calibrate import calibration_tokens
from weights.checkpoint import Checkpoint, CheckpointError
from weights.formats.recipe import INT8_WEIGHTS
from weights.importer import load_checkpoint
from weights.reference import bits_per_byte, forward
from weights.shipped import CHECKPOINTS
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

ROWS = {TOKENS: (1, 12)}
FORMS: dict[str, dict[str, Any]] = {
    **{family: {} for family in ARCHITECTURES},
    "llama": {"kv_heads": 2, "head_dim": 12, "biases": ("q", "k", "v", "o", "up", "down")},
    "mistral": {"kv_heads": 1, "window": 5},
    "qwen3": {"kv_heads": 2, "head_dim": 12, "rope_theta": 500.0},
    "gemma3_text": {"layers": 6, "logit_cap": 3.0, "score_cap": 2.0},
    "smollm3": {"layers": 4, "kv_heads": 2, "activation": "quick_gelu"},
    "opt": {"activation": "relu2"},
}
"""By family, what is drawn in another way than its usual configuration has it."""


def drawn(family: str) -> Checkpoint:
    """Return a checkpoint of random weights."""
    return random_checkpoint(shape_of(family, **FORMS[family]), 1)


def tiny(name: str) -> Built:
    """Return the network of a checkpoint that ships."""
    return build_plan(CHECKPOINTS / name, CompileOptions(shapes={TOKENS: (1, 32)}))


@pytest.mark.parametrize("family", FORMS)
def test_the_graph_computes_what_the_reference_does(family: str) -> None:
    """tests/oracles holds that against transformers."""
    checkpoint = drawn(family)
    graph = read(checkpoint, shapes=ROWS)
    verify(graph)
    assert equal(graph, parse(write(graph)))
    for row in random_tokens(checkpoint.shape, 3, 2)[:, :12]:
        found = evaluate(graph, {TOKENS: row[None].astype(np.int32)})[LOGITS]
        np.testing.assert_allclose(found, forward(checkpoint, row[None]), rtol=0, atol=2e-4)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("family", ["gpt2", "mistral", "qwen3", "gemma2", "gemma3_text", "smollm3"])
def test_a_text_that_goes_on_is_the_whole_text(family: str, rows: int) -> None:
    """K, V and the position are states; a window slides over what is gone."""
    checkpoint = drawn(family)
    graph = read(checkpoint, shapes={TOKENS: (1, rows), PAST: (12,)})
    verify(graph)
    assert {one.input for one in graph.states} > {"position", "h.1.past_k", "h.1.past_v"}
    text = random_tokens(checkpoint.shape, 1, 2)[:, :12].astype(np.int32)
    states, found = States(graph), []
    for first in range(0, 12, rows):
        values = evaluate(graph, {TOKENS: text[:, first : first + rows], **states.values})
        states.advance(values)
        found.append(values[LOGITS])
    wanted = forward(checkpoint, text)
    np.testing.assert_allclose(np.concatenate(found, 1), wanted, rtol=0, atol=2e-4)


@pytest.mark.parametrize("past", sample([16, 24, 64], 1))
def test_generation_is_a_graph_with_states(past: int) -> None:
    """Token by token: programs equal golden.graph, and write what real numbers write."""
    checkpoint = load_checkpoint(CHECKPOINTS / "llama-tiny")
    built = build_plan(checkpoint, CompileOptions(shapes={TOKENS: (1, 1), PAST: (past,)}))
    on_chip = {one.kind for one in built.plan.graph.operations if one.on_chip}
    assert ("attention" in on_chip) == (past % 16 == 0)
    text = calibration_tokens(checkpoint)[-1:, :8].astype(np.int32)
    session, written = Session(built.plan), list(text[0])
    logits = [session.run({TOKENS: text[:, i : i + 1]})[LOGITS] for i in range(8)]
    for _ in range(past - 8):
        written.append(np.int32(logits[-1].argmax()))
        logits.append(session.run({TOKENS: written[-1].reshape(1, 1)})[LOGITS])
    wanted = run_steps(built.passes["fuse"], {TOKENS: np.array(written).reshape(-1, 1, 1)})[LOGITS]
    np.testing.assert_array_equal(np.stack(logits), wanted)
    real = forward(checkpoint, np.array(written)[None])[0].argmax(-1)
    assert (real == np.stack(logits)[:, 0, 0].argmax(-1)).mean() > 0.85
    with pytest.raises(GraphError, match=rf"indices {past}\.\.{past}, allowed"):
        session.run({TOKENS: text[:, :1]})
    session.reset()
    np.testing.assert_array_equal(session.run({TOKENS: text[:, :1]})[LOGITS], logits[0])


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_every_weight_counts(family: str) -> None:
    """A tensor of the checkpoint that is left out would leave the logits as they are."""
    checkpoint = drawn(family)
    inputs = {TOKENS: random_tokens(checkpoint.shape, 1, 2)[:, :12].astype(np.int32)}
    before = evaluate(read(checkpoint, shapes=ROWS), inputs)[LOGITS]
    for name, tensor in checkpoint.tensors.items():
        values = tensor.copy()
        tensor += 0.5
        after = evaluate(read(checkpoint, shapes=ROWS), inputs)[LOGITS]
        assert np.abs(after - before).max() > 1e-3, name
        tensor[...] = values


@pytest.mark.parametrize("name", ["gpt2-tiny", "qwen2-tiny"])
def test_integers_tell_nearly_as_much_as_real_numbers(name: str) -> None:
    """Within 2 % in bits per byte of texts that did not calibrate; programs equal golden.graph."""
    checkpoint, built = load_checkpoint(CHECKPOINTS / name), tiny(name)
    texts = calibration_tokens(checkpoint)[-6:, :32]
    session, fused = Session(built.plan), built.passes["fuse"]
    rows = [{TOKENS: text[None].astype(np.int32)} for text in texts]
    found = [session.run(row)[LOGITS] for row in rows]
    np.testing.assert_array_equal(found[0], golden_run(fused, rows[0])[LOGITS])
    ours = bits_per_byte(np.concatenate(found), texts)
    assert 1.0 < ours < 1.02 * bits_per_byte(forward(checkpoint, texts), texts)


def test_the_chip_has_all_but_the_table_of_tokens() -> None:
    """Nothing of a block runs on the host."""
    built = tiny("llama-tiny")
    steps = {one.name for one in built.plan.graph.operations if not one.on_chip}
    assert steps == {"embedding", "embedding.in", "logits.out"}
    assert built.plan.origin.calibration.startswith("32 samples")


def test_norms_of_heads_are_on_the_chip() -> None:
    """A decoder that generation has no program for is a network like the others."""
    checkpoint = random_checkpoint(shape_of("qwen3", kv_heads=2), 1)
    texts = random_tokens(checkpoint.shape, 34, 3)[:, :12].astype(np.int32)
    built = build_plan(
        checkpoint, CompileOptions(shapes=ROWS, calibrate={TOKENS: texts[:32, None]})
    )
    assert {one.name for one in built.plan.graph.operations if one.on_chip} > {
        *("h.0.q_norm", "h.1.k_norm", "h.0.q_rope")
    }
    found = Session(built.plan).run({TOKENS: texts[33:]})[LOGITS]
    np.testing.assert_array_equal(
        found, golden_run(built.passes["fuse"], {TOKENS: texts[33:]})[LOGITS]
    )
    wanted = forward(checkpoint, texts[33:])
    assert np.abs(found - wanted).max() < 0.08 * np.abs(wanted).max()


def test_generation_refuses_what_it_has_no_program_for() -> None:
    """With what is allowed instead."""
    shape = shape_of("qwen3", score_cap=30.0)
    message = r"qwen3: given a cap of scores, .* allowed as a network: npu compile --shape"
    with pytest.raises(CheckpointError, match=message):
        planned(shape, Limits(), "auto", INT8_WEIGHTS)
    planned(replace(shape, score_cap=0.0), Limits(), "auto", INT8_WEIGHTS)


def test_samples_of_ones_own_calibrate_as_well() -> None:
    """The texts are those of the checkpoint only where none are given."""
    given = build_plan(CHECKPOINTS / "gpt2-tiny", CompileOptions(shapes=ROWS, calibrate="random:2"))
    assert given.plan.origin.calibration == "random:2"
    usual = build_plan(CHECKPOINTS / "gpt2-tiny", CompileOptions(shapes=ROWS))
    assert usual.plan.stream != given.plan.stream
    assert loss_of(usual).output < loss_of(given, usual.samples).output


@pytest.mark.parametrize(
    "options",
    [
        {"host": ["attention"]},
        {"npu": ["h.0.q"], "split": ["h.0.down"]},
        {"weights": "int4g32,h.0.q=int8,logits=int8"},
        {"io": "int8"},
        {"calibration": "max"},
    ],
    ids=lambda options: "-".join(options),
)
def test_options_of_networks_are_those_of_checkpoints(options: dict[str, Any]) -> None:
    """Each changes what it says, and programs stay equal to the integers of the graph."""
    source = CHECKPOINTS / "gpt2-tiny"
    plain = tessera.load(source, shapes=ROWS).plan
    built = build_plan(source, CompileOptions(shapes=ROWS, **options))
    assert (built.plan.stream, built.plan.steps) != (plain.stream, plain.steps)
    inputs = {name: one[0] for name, one in random_samples(built.plan.graph, 1, 3).items()}
    wanted = golden_run(built.passes["fuse"], inputs)
    found = Session(built.plan).run(inputs)
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


def test_drawn_tokens_are_of_the_whole_vocabulary() -> None:
    """Not 0 and 1, as integers of which nothing is known."""
    tokens = random_samples(read(CHECKPOINTS / "gpt2-tiny"), 8)[TOKENS]
    assert tokens.min() >= 0
    assert 240 < tokens.max() < 256


def test_a_delegate_takes_the_parts_of_a_checkpoint() -> None:
    """The table of tokens stays with the runtime that delegates, as its graph has it."""
    parts = partition(CHECKPOINTS / "gpt2-tiny", shapes=ROWS)
    assert [part.delegated for part in parts] == [False, True, False]
    chip = Delegate(preprocess(parts[1].graph))
    report = chip.report()
    assert sum(one.cost.macs for one in report.operations) > 1_000_000
    whole = Delegate(
        preprocess(read(CHECKPOINTS / "gpt2-tiny", shapes=ROWS), {"calibrate": "random:2"})
    )
    assert whole.inputs == (TOKENS,)


def test_the_command_compiles_a_checkpoint_as_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One option of networks is enough; what runs is what `tessera.load` gives."""
    folder = tmp_path / "out"
    options = ["--shape", "tokens=1,12", "--max-error", "20%", "-o", str(folder)]
    assert command_line.main(["compile", "gpt2-tiny", *options]) == 0
    said = capsys.readouterr().out
    assert "1 of 1 outputs equal golden.graph on a drawn input" in said
    assert re.search(r"h\.0\.up \+ h\.0\.act +npu", said)
    tokens = np.arange(12, dtype=np.int32)[None]
    found = tessera.load(folder).run({TOKENS: tokens})[LOGITS]
    library = tessera.load("weights/checkpoints/gpt2-tiny", shapes=ROWS)
    np.testing.assert_array_equal(found, library.run({TOKENS: tokens})[LOGITS])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (1, 4)}, "'x' is no input, allowed tokens, and past for a state"),
        ({PAST: (25,)}, "shape of past: given [25], allowed [C] with C from 1 to 24"),
        ({TOKENS: (1, 4), PAST: (3,)}, "shape of past: given [3], allowed [C] with C from 4 to 24"),
        ({TOKENS: (2, 4)}, "shape of tokens: given [2, 4], allowed [1, S] with S from 1 to 24"),
        ({TOKENS: (1, 25)}, "shape of tokens: given [1, 25], allowed [1, S] with S from 1 to 24"),
        ({TOKENS: (12,)}, "shape of tokens: given [12], allowed [1, S] with S from 1 to 24"),
    ],
)
def test_a_shape_that_is_no_text_is_refused(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    """With the context of the model."""
    with pytest.raises(GraphError, match=re.escape(message)):
        read(drawn("gpt2"), shapes=shapes)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    """An empty folder, and a checkpoint without a text to calibrate with."""
    with pytest.raises(GraphError, match=r"config\.json"):
        read(tmp_path)
    with pytest.raises(PlanFileError, match=r"without plan\.json"):
        tessera.load(tmp_path)
    write_checkpoint(drawn("gpt2"), tmp_path)
    with pytest.raises(GraphError, match=r"no tokenizer\.json, .* or samples of your own"):
        tessera.load(tmp_path)
    assert tessera.load(tmp_path, calibrate="random:4").inputs == (TOKENS,)
