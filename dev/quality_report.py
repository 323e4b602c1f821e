# SPDX-License-Identifier: Apache-2.0
"""build/reports/quality.json: what `make quality` has measured, with its bars."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from spec.paths import REPORTS
from weights.figures import FormatFigures, QualityFigures

REPORT = REPORTS / "quality.json"


@dataclass(frozen=True, slots=True)
class Quality:
    """The figures of one model.

    Attributes:
        model: the checkpoint's name.
        family: its architecture.
        windows: of text.
        tokens: how many predictions the figures are of.
        float_bits, integer_bits: bits per byte.
        agreement: share of positions with the same top-1 token.
        max_loss: allowed relative increase of the bits per byte.
        min_agreement: smallest allowed agreement; 0: none is asked.
        seconds: of both networks.

    """

    model: str
    family: str
    windows: int
    tokens: int
    float_bits: float
    integer_bits: float
    agreement: float
    max_loss: float
    min_agreement: float
    seconds: float

    @property
    def loss(self) -> float:
        """The relative increase of the bits per byte."""
        return self.integer_bits / self.float_bits - 1.0

    @property
    def figures(self) -> QualityFigures:
        """What is published of it."""
        return QualityFigures(
            model=self.model,
            windows=self.windows,
            tokens=self.tokens,
            float_bits=round(self.float_bits, 6),
            integer_bits=round(self.integer_bits, 6),
            agreement=round(self.agreement, 6),
        )

    @property
    def misses(self) -> list[str]:
        """What is worse than its bar, as text."""
        found = []
        if not self.loss <= self.max_loss:
            found.append(f"bits per byte {self.loss:+.2%}, allowed {self.max_loss:+.2%}")
        if not self.agreement >= self.min_agreement:
            found.append(f"top-1 {self.agreement:.2%}, allowed at least {self.min_agreement:.2%}")
        return found


@dataclass(frozen=True, slots=True)
class FormatQuality:
    """What was measured of narrow weights against int8, and its bar, None for none."""

    figures: FormatFigures
    max_loss: float | None

    @property
    def misses(self) -> list[str]:
        """What is worse than its bar, as text."""
        loss = self.figures.loss
        if self.max_loss is None or loss <= self.max_loss:
            return []
        return [f"{self.figures.recipe}: {loss:+.2%} over int8, allowed {self.max_loss:+.2%}"]


@dataclass(frozen=True, slots=True)
class QualityReport:
    """All that `make quality` has measured, and the Python whose documentation the text is."""

    python: str
    models: tuple[Quality, ...]
    formats: tuple[FormatQuality, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        """What is worse than its bar."""
        narrow = [one.figures for one in self.formats if one.misses]
        return (
            *(one.model for one in self.models if one.misses),
            *(f"{one.model} {one.recipe}" for one in narrow),
        )


def save(
    models: tuple[Quality, ...], formats: tuple[FormatQuality, ...] = (), path: Path = REPORT
) -> None:
    """Write the figures, for people with what follows from them."""
    content = asdict(QualityReport(platform.python_version(), models, formats))
    for entry, one in zip(content["models"], models, strict=True):
        entry |= {"loss": one.loss, "passed": not one.misses}
    for entry, narrow in zip(content["formats"], formats, strict=True):
        entry |= {"loss": narrow.figures.loss, "passed": not narrow.misses}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
