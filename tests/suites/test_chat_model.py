# SPDX-License-Identifier: Apache-2.0
"""A published chat model answers a question, in int8 on golden and token by token on the RTL.

Its activations are measured for minutes once and kept in the cache of the user.
"""

from __future__ import annotations

import os
import subprocess
import sys

from spec.paths import ROOT
from tests.published_model import published

QUESTION, ANSWER = "What is the capital of France?", "The capital of France is Paris."
WHOLE, SAMPLE = "12", "4"
"""Tokens: of the answer with its end, and what a regression has time for."""


def chat(*options: str) -> subprocess.CompletedProcess[str]:
    """Ask the question; a difference between RTL and golden is an exit status."""
    command = [sys.executable, "-m", "npu.cli", "chat", str(published()), QUESTION, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def test_golden_answers() -> None:
    """The known answer, though every weight and nearly every activation has eight bits."""
    assert ANSWER in chat("--on", "golden", "--tokens", WHOLE).stdout


def test_the_rtl_answers_as_golden_does() -> None:
    """Every token is compared; nightly it is the whole answer."""
    nightly = "NIGHTLY" in os.environ
    found = chat("--on", "rtl", "--tokens", WHOLE if nightly else SAMPLE)
    assert "yes, every token" in found.stderr
    assert ANSWER.startswith(found.stdout.strip()) or ANSWER in found.stdout
    assert found.stdout.strip()
