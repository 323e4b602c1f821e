# SPDX-License-Identifier: Apache-2.0
"""A text that the host draws from the RTL's logits: it is golden's, token by token."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from golden.decoder import forward_rows
from npu.commands.load_model import load
from spec.isa.operands import Limits
from spec.paths import ROOT
from tb.models import generate
from tb.run.build import Configuration

MODEL = str(ROOT / "weights" / "checkpoints" / "llama-tiny")
NEVER = 255
"""A byte that no text has."""


def test_drawn_on_rtl() -> None:
    """Drawn with every setting; the host stops the chip at an end token that is not the first."""
    configuration = Configuration()
    assert configuration.binary.exists(), f"{configuration.binary} is not built: run make test"
    console = Console(quiet=True)
    request = generate.Request(
        "The parser",
        8,
        temperature=0.9,
        top_k=40,
        top_p=0.9,
        min_p=0.05,
        repetition_penalty=1.2,
        seed=3,
    )
    loaded = load(MODEL, Limits(), "auto", console, integers=forward_rows)
    whole = generate.run_on_golden(replace(loaded, ends=()), request, console)
    loaded = replace(loaded, ends=(NEVER, whole.ids[4]))
    expected = generate.run_on_golden(loaded, request, console)
    found = generate.run(loaded, request, configuration, console)
    assert found.mismatch == ""
    assert (found.ids, found.text) == (expected.ids, expected.text)
    assert found.simulated is not None
    assert found.simulated.ids == expected.ids == whole.ids[: len(expected.ids)]
    assert len(expected.ids) < 8
