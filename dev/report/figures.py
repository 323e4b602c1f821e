# SPDX-License-Identifier: Apache-2.0
"""Figures of the networks and of the design: quality by model and format, synthesis by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dev import synth
from dev.quality_report import QualityReport
from dev.report.source import Source, read_json

QUALITY_COMMAND, SYNTH_COMMAND = "make quality", "make synth"


@dataclass(frozen=True, slots=True)
class Synthesis:
    """All blocks, and what is said of those that may be so large at most.

    Attributes:
        blocks: in the order of the report.
        shares: a sentence for each block that is held against another.
        larger: names of blocks with more cells than they may have.
    """

    blocks: tuple[synth.BlockFigures, ...]
    shares: tuple[str, ...]
    larger: tuple[str, ...]


def read_quality(folder: Path) -> Source[QualityReport]:
    """Read quality.json of a folder of reports."""

    def make(found: QualityReport) -> QualityReport:
        # What cannot be a figure of bits shows here, not in the middle of the page.
        _ = found.missed
        return found

    return read_json(folder / "quality.json", QUALITY_COMMAND, QualityReport, make)


def read_synthesis(folder: Path) -> Source[Synthesis]:
    """Read synth.json of a folder of reports."""
    return read_json(
        folder / "synth.json", SYNTH_COMMAND, tuple[synth.BlockFigures, ...], _synthesis
    )


def _synthesis(blocks: tuple[synth.BlockFigures, ...]) -> Synthesis:
    cells: dict[str, Mapping[str, int]] = {one.block: asdict(one) for one in blocks}
    shares = tuple(
        synth.share_text(block, cells).replace("`", "")
        for block, share in synth.SHARES.items()
        if {block, share.of} <= cells.keys() and all(cells[share.of][kind] for kind in synth.KINDS)
    )
    return Synthesis(blocks, shares, tuple(synth.too_large(cells)))
