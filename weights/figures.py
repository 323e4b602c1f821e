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
FORMATS_FILE = Path(__file__).parent / "quality_formats.json"


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
class FormatFigures:
    """The int8 network and the one with narrow weights of a model on windows of held-out text.

    Attributes:
        model: the checkpoint's name.
        recipe: of the weights (weights.formats.recipe).
        tokens: predictions.
        int8_bits: bits per byte in int8; of a fine-tuned checkpoint those of its start.
        bits: bits per byte in the recipe.
        weight_bits: of a weight in the stream, side bytes and padding included.
        bus_cycles: of the bus a token at position 0, as `npu inspect` says.
    """

    model: str
    recipe: str
    tokens: int
    int8_bits: float
    bits: float
    weight_bits: float
    bus_cycles: int

    @property
    def loss(self) -> float:
        """The relative increase of the bits per byte."""
        return self.bits / self.int8_bits - 1.0


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


def read_format_figures(path: Path = FORMATS_FILE) -> list[FormatFigures]:
    """Return the published figures of narrow formats, none if nothing is published."""
    if not path.is_file():
        return []
    entries = json.loads(path.read_text(encoding="utf-8"))["formats"]
    return [FormatFigures(**entry) for entry in entries]
