# SPDX-License-Identifier: Apache-2.0
"""The published quality of the shipped checkpoints: one file, from which README and cards are made.

weights/quality.json is written by `npu quality --publish` (dev.quality, which measures) and read
here. It holds for one text: other Pythons have other documentation (weights.corpus).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = Path(__file__).parent / "quality.json"


@dataclass(frozen=True, slots=True)
class QualityFigures:
    """The float32 and the integer network of one model on all windows of the held-out text.

    Attributes:
        model: the checkpoint's name, or that of a variant of it.
        windows, tokens: rows of text, and the predictions in them.
        float_bits, integer_bits: bits per byte.
        agreement: share of positions with the same most likely next byte.
    """

    model: str
    windows: int
    tokens: int
    float_bits: float
    integer_bits: float
    agreement: float

    @property
    def loss(self) -> float:
        """The relative increase of the bits per byte."""
        return self.integer_bits / self.float_bits - 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """The text that figures are of: the Python whose documentation it is, bytes, SHA-256."""

    python: str
    bytes: int
    sha256: str


def read_text(path: Path = FILE) -> Text:
    """Return what text the published figures are of."""
    return Text(**json.loads(path.read_text(encoding="utf-8"))["text"])


def read_figures(path: Path = FILE) -> dict[str, QualityFigures]:
    """Return the published figures by model."""
    entries = json.loads(path.read_text(encoding="utf-8"))["models"]
    return {entry["model"]: QualityFigures(**entry) for entry in entries}


def write_figures(text: Text, figures: list[QualityFigures], path: Path = FILE) -> None:
    """Publish figures."""
    content = {"text": asdict(text), "models": [asdict(one) for one in figures]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
