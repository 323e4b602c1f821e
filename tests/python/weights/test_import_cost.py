# SPDX-License-Identifier: Apache-2.0
"""What is foretold of an import, against one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from spec.paths import ROOT
from weights.checkpoint import CheckpointShape
from weights.formats.recipe import parse_recipe
from weights.import_cost import TOKENIZER_BYTES, import_cost
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


LLAMA = shape_of(
    "llama", hidden=2048, layers=22, heads=32, kv_heads=4, ffn=5632, vocab=32000, context=2048
)
SMOLLM2 = shape_of(
    "llama", hidden=576, layers=30, heads=9, kv_heads=3, ffn=1536, vocab=49152, context=8192
)
GPT2 = shape_of("gpt2", hidden=768, layers=12, heads=12, ffn=3072, vocab=50257, context=1024)


@pytest.mark.parametrize(
    ("shape", "tied", "recipe", "measured", "seconds"),
    [
        (LLAMA, False, "int8", 3.16e9, None),
        (SMOLLM2, True, "int8", 1.11e9, 213),
        (GPT2, True, "int8", 1.29e9, 117),
        (SMOLLM2, True, "int4g32", 1.18e9, None),
    ],
    ids=["llama", "smollm2", "gpt2", "smollm2 int4g32"],
)
def test_measured_imports(
    shape: CheckpointShape, tied: bool, recipe: str, measured: float, seconds: float | None
) -> None:
    """Memory and processor time that imports of whole models took on an otherwise idle server."""
    foretold = import_cost(shape, tied=tied, weights=parse_recipe(recipe))
    assert foretold.bytes == pytest.approx(measured, rel=0.15)
    if seconds is not None:
        assert foretold.seconds == pytest.approx(seconds, rel=0.15)


def test_narrow_formats_cost_more() -> None:
    """Moments and rounding take time, codes beside their expansion memory, below 4 GB."""
    plain = import_cost(LLAMA, tied=False)
    narrow = import_cost(LLAMA, tied=False, weights=parse_recipe("int4g32"))
    assert plain.bytes < narrow.bytes < 4e9
    assert narrow.seconds > 2 * plain.seconds
    assert narrow.parameters == plain.parameters == 1_099_956_224


def test_memory_is_near_the_measured_one() -> None:
    """The peak of a process that calibrates and quantises a batch of the calibration text."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, check=True
    )
    foretold = import_cost(shape_of("llama", **SIZES), tied=False).bytes
    foretold -= TOKENIZER_BYTES  # it reads none
    assert int(run.stdout) == pytest.approx(foretold, rel=0.25)
