# SPDX-License-Identifier: Apache-2.0
"""A published encoder of sentences: cosines of its integers, and a sentence on the RTL.

Whatever two sentences of the documentation of Python are, int8 says it within 0.02 of float32.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from golden.graph import run as golden_run
from npu.graph.evaluate import evaluate
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.importers.encoder_checkpoint import EMBEDDING, MASK, padded
from npu.planner.build_plan import Built, CompileOptions, build_plan
from tessera.session import Session
from tests.published_model import published_encoder
from weights.corpus import read_corpus
from weights.encoder import EncoderCheckpoint
from weights.encoder_importer import load_encoder
from weights.tokenizer import load_tokenizer

ROWS = 64
PAIRS = 100
SENTENCES = 15
"""Of which each two are a pair: 105."""
MOST = 0.02


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> EncoderCheckpoint:
    """Return the encoder, calibrated on text that is not held out."""
    return load_encoder(published_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def built(encoder: EncoderCheckpoint) -> Built:
    """Return its network of 64 places."""
    return build_plan(encoder, CompileOptions(shapes={TOKENS: (1, ROWS)}))


def texts(count: int) -> list[str]:
    """Return sentences of the documentation that is held out, evenly spread."""
    text = bytes(read_corpus().held_out).decode("utf-8", "replace")
    paragraphs = (" ".join(one.split()) for one in text.split("\n\n"))
    found = [one.strip() for whole in paragraphs for one in whole.split(". ")]
    usual = [one for one in dict.fromkeys(found) if 30 <= len(one) <= 150 and one[0].isalpha()]
    return [usual[int(i)] for i in np.linspace(0, len(usual) - 1, count)]


def inputs_of(encoder: EncoderCheckpoint, text: str) -> dict[str, np.ndarray]:
    """Return the inputs of a sentence."""
    tokenizer = load_tokenizer(encoder.place, encoder.shape.vocab)
    return dict(zip((TOKENS, MASK), padded(tokenizer.ids(text), ROWS), strict=True))


def test_cosines_are_those_of_real_numbers(encoder: EncoderCheckpoint, built: Built) -> None:
    """Of pairs of sentences of different lengths, all with one program."""
    assert len(built.plan.segments) == 1
    given = [inputs_of(encoder, text) for text in texts(SENTENCES)]
    assert len({int(one[MASK].sum()) for one in given}) > 3
    real = np.concatenate([evaluate(built.passes["import"], one)[EMBEDDING] for one in given])
    ours = np.concatenate([golden_run(built.passes["fuse"], one)[EMBEDDING] for one in given])
    pairs = np.triu_indices(SENTENCES, 1)
    assert len(pairs[0]) >= PAIRS
    error = np.abs(ours @ ours.T - real @ real.T)[pairs]
    print(f"cosines: largest error {error.max():.4f}, mean {error.mean():.4f}")
    assert error.max() < MOST


def test_the_rtl_makes_the_same_vector(encoder: EncoderCheckpoint, built: Built) -> None:
    """Every tensor is compared; nightly of 64 places, else of 16."""
    nightly = "NIGHTLY" in os.environ
    inputs = inputs_of(encoder, "A bus has masters and slaves.")
    if not nightly:
        built = build_plan(encoder, CompileOptions(shapes={TOKENS: (1, 16)}))
        inputs = {name: data[:, :16] for name, data in inputs.items()}
    found = Session(built.plan, "rtl").run(inputs)[EMBEDDING]
    np.testing.assert_array_equal(found, golden_run(built.passes["fuse"], inputs)[EMBEDDING])
