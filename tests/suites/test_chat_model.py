# SPDX-License-Identifier: Apache-2.0
"""A published chat model on golden and on the RTL: what it answers, how fast, and what it loses.

Its activations are measured for minutes once and kept in the cache of the user. In int4 every run
rounds its weights with error compensation for minutes, so that is nightly.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from golden.session import GoldenSession, greedy
from spec.paths import REPORTS, ROOT
from tests.published_model import published
from weights.chat import Question, prompt_ids
from weights.corpus import read_corpus, read_end
from weights.importer import load_checkpoint
from weights.quantize import quantize_loaded
from weights.sink import behind_sink
from weights.tokenizer import load_tokenizer

NIGHTLY = "NIGHTLY" in os.environ
QUESTION, ANSWER = "What is the capital of Japan?", "The capital of Japan is Tokyo."
LONGER = {"int8": "Name three colours.", "int4g32": "Explain how a bicycle works."}
"""Questions that take more than 32 tokens to answer; 33 and 35 with the chat template."""
FORMATS = ("int8", "int4g32") if NIGHTLY else ("int8",)
TOKENS = 32 if NIGHTLY else 4
STEP = 1.01
"""Cycles of a step over those that bus and array need."""
LOSS = {"int8": 0.01, "int4g32": 0.06}
"""Bits per byte over those of float32, as a share."""
TIMED, SLOWEST = 8, 1.0
"""Tokens behind the prompt, and seconds of processor time that golden takes for one."""
TEXT = 20_480 if NIGHTLY else 2_048
"""Tokens that are predicted."""


def npu(command: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the model; a difference between RTL and golden is an exit status."""
    words = [sys.executable, "-m", "npu.cli", command, str(published()), *options]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)


def report(command: str) -> dict[str, Any]:
    """Return the figures of the last run of a command."""
    found: dict[str, Any] = json.loads((REPORTS / f"{command}.json").read_text(encoding="utf-8"))
    return found


def test_golden_answers() -> None:
    """The known answer, though every weight and nearly every activation has eight bits."""
    assert ANSWER in npu("chat", QUESTION, "--on", "golden", "--tokens", "12").stdout


def test_golden_is_fast_enough() -> None:
    """A greedy token behind the prompt, in processor time of the process, so of one core."""
    checkpoint = load_checkpoint(published())
    tokenizer = load_tokenizer(checkpoint.place, checkpoint.shape.vocab)
    model = quantize_loaded(checkpoint)
    sink = None if model.sink is None else model.sink.token
    ids = behind_sink(prompt_ids(tokenizer, Question(LONGER["int8"])), sink)
    session = GoldenSession(model)
    produced = [greedy(session.prefill(ids)[-1])]
    start = time.process_time()
    for _ in range(TIMED):
        produced.append(greedy(session.step(produced[-1])))
    taken = time.process_time() - start
    assert tokenizer.end not in produced  # none of them comes behind the end of an answer
    assert taken <= SLOWEST * TIMED


@pytest.mark.parametrize("weights", FORMATS)
def test_the_rtl_answers_as_golden_does(weights: str) -> None:
    """Every token is compared; behind the prompt a token takes what the bus needs."""
    runs = []
    for tokens in (1, TOKENS):
        found = npu("chat", LONGER[weights], "--weights", weights, "--tokens", str(tokens))
        assert "yes, every token" in found.stderr
        runs.append(report("generate"))
    first, whole = runs
    assert whole["text"].strip()
    assert (len(first["ids"]), len(whole["ids"])) == (1, TOKENS)
    taken, needed = (whole[name] - first[name] for name in ("cycles", "ideal_cycles"))
    assert taken <= STEP * needed


@pytest.mark.parametrize("weights", FORMATS)
def test_text_is_predicted_as_by_float32(weights: str, tmp_path: Path) -> None:
    """CPython's documentation: the part that nothing is measured on, and the end of the other."""
    text = tmp_path / "text.txt"
    text.write_bytes(read_corpus().held_out.tobytes() + read_end().tobytes())
    npu("evaluate", "--text", str(text), "--tokens", str(TEXT), "--weights", weights)
    found = report("evaluate")
    assert found["tokens"] > TEXT * 0.95
    assert found["bits_per_byte_increase"] <= LOSS[weights]
