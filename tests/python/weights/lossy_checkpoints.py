# SPDX-License-Identifier: Apache-2.0
"""Checkpoints whose integers lose as much as a test wants: scales far wider than the activations.

One activation far beyond all others, which published models have, does the same.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from weights.calibrate import SCALES_FILE
from weights.shipped import CHECKPOINTS

GOOD, POOR, HOPELESS = 1.0, 128.0, 512.0
"""Factors on the range of the residual stream: nothing to say, a warning, a refusal."""


def lossy(folder: Path, factor: float, model: str = "llama-tiny") -> Path:
    """Write a copy of a shipped checkpoint whose residual stream has units so much coarser."""
    shutil.copytree(CHECKPOINTS / model, folder)
    scales = json.loads((folder / SCALES_FILE).read_text(encoding="utf-8"))
    scales["ranges"]["residual"] *= factor
    (folder / SCALES_FILE).write_text(json.dumps(scales), encoding="utf-8")
    return folder
