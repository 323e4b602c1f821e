# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that come with the project, by name."""

from __future__ import annotations

from pathlib import Path

CHECKPOINTS = Path(__file__).parent / "checkpoints"
FINETUNED = Path(__file__).parent / "finetuned"


def shipped() -> dict[str, Path]:
    """Return the folder of every checkpoint that ships, those trained for int8 first."""
    folders = (path for place in (CHECKPOINTS, FINETUNED) for path in sorted(place.glob("*-tiny*")))
    return {folder.name: folder for folder in folders if folder.is_dir()}
