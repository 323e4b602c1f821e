# SPDX-License-Identifier: Apache-2.0
"""What `recipes/decoder_norm.patch` adds, a norm of embeddings, in a copy of the tree with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from golden.graph import run as golden_run
from npu.graph.evaluate import evaluate
from npu.graph.importers import read
from npu.graph.importers.checkpoint import LOGITS, TOKENS
from npu.planner.build_plan import CompileOptions, build_plan
from tessera.session import Session
from weights.checkpoint import Checkpoint, CheckpointError, check_generation
from weights.importer import load_checkpoint
from weights.reference import forward
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint

ROWS = {TOKENS: (1, 12)}
NORM = "embed_norm"


@pytest.fixture
def drawn(tmp_path: Path) -> Checkpoint:
    """A checkpoint of random weights, read from its folder."""
    write_checkpoint(random_checkpoint(shape_of("stable", kv_heads=2), 1), tmp_path)
    return load_checkpoint(str(tmp_path))


def test_reference_and_graph_compute_it(drawn: Checkpoint) -> None:
    """The same, and other logits with another gain."""
    tokens = random_tokens(drawn.shape, 1, 2)[:, :12].astype(np.int32)
    found = evaluate(read(drawn, shapes=ROWS), {TOKENS: tokens})[LOGITS]
    np.testing.assert_allclose(found, forward(drawn, tokens), rtol=0, atol=2e-4)
    gain = 1 + drawn.tensors[f"{NORM}.weight"]
    other = replace(drawn, tensors={**drawn.tensors, f"{NORM}.weight": gain})
    assert np.abs(forward(other, tokens) - found).max() > 1e-3


def test_a_model_on_the_chip(drawn: Checkpoint) -> None:
    """A plan whose norm is on the chip; the model of instructions and golden agree."""
    texts = random_tokens(drawn.shape, 34, 3)[:, :12].astype(np.int32)
    options = CompileOptions(shapes=ROWS, calibrate={TOKENS: texts[:32, None]})
    built = build_plan(drawn, options)
    assert NORM in {one.name for one in built.plan.graph.operations if one.on_chip}
    given = {TOKENS: texts[33:]}
    found = Session(built.plan).run(given)[LOGITS]
    np.testing.assert_array_equal(found, golden_run(built.passes["fuse"], given)[LOGITS])
    wanted = forward(drawn, texts[33:])
    assert np.abs(found - wanted).max() < 0.15 * np.abs(wanted).max()


def test_generation_refuses_it(drawn: Checkpoint) -> None:
    """As it refuses caps of scores."""
    with pytest.raises(CheckpointError, match="stable: given a norm of embeddings"):
        check_generation(drawn.shape)
