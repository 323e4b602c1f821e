# SPDX-License-Identifier: Apache-2.0
"""The model and the text that the main job and the benchmarks run."""

from __future__ import annotations

from spec.paths import ROOT

CHECKPOINT = ROOT / "weights" / "checkpoints" / "gpt2-tiny"
TEXT = (
    "The parser accepts a list of strings and returns a namespace object. If an option is not "
    "present at the command line, its default value is used."
)
