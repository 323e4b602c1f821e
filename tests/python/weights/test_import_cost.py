# SPDX-License-Identifier: Apache-2.0
"""What is foretold of an import, against one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spec.paths import ROOT
from weights.import_cost import import_cost
from weights.synthetic import shape_of

SIZES = {"hidden": 256, "heads": 8, "ffn": 768, "vocab": 8192, "context": 512}
CHILD = f"""
import re
from pathlib import Path
import numpy as np
from weights.calibrate import calibrate
from weights.quantize import quantize
from weights.synthetic import random_checkpoint, shape_of

checkpoint = random_checkpoint(shape_of("llama", **{SIZES!r}), 1)
tokens = np.random.default_rng(1).integers(0, 8192, (8, 512))
quantize(checkpoint, calibrate(checkpoint, tokens))
# Not ru_maxrss, which begins with what the process had that this one came from.
status = Path("/proc/self/status").read_text()
print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]))
"""


def test_memory_is_near_the_measured_one() -> None:
    """The peak of a process that calibrates and quantises a batch of the calibration text."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, check=True
    )
    foretold = import_cost(shape_of("llama", **SIZES), tied=False).bytes
    assert int(run.stdout) == pytest.approx(foretold, rel=0.4)
