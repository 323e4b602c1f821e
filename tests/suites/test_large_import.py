# SPDX-License-Identifier: Apache-2.0
"""A decoder of more than a billion parameters is imported on an ordinary computer, and decodes.

TinyLlama's shape with random weights in shards of bfloat16: nightly all 22 layers, else two. A
vocabulary without text: activations are measured on few random tokens.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from spec.paths import ROOT
from tests.python.weights.chat_folder import chat_tokenizer
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointShape
from weights.stored.folder import INDEX
from weights.synthetic import config_of, shape_of

NIGHTLY = "NIGHTLY" in os.environ
LAYERS, MOST = (22, 4.0e9) if NIGHTLY else (2, 1.7e9)
"""Layers, and bytes of memory that the import may take at any moment."""
SEED = 1
CHILD = """
import re, sys
from pathlib import Path
from npu.cli import command_line
from weights.calibrate import SCALES_FILE, calibrate, save_scales
from weights.importer import load_checkpoint
from weights.synthetic import random_tokens

folder, output = Path(sys.argv[1]), sys.argv[2]
checkpoint = load_checkpoint(folder)
scales = calibrate(checkpoint, random_tokens(checkpoint.shape, 4, 1)[:, :512])
save_scales(scales, folder / SCALES_FILE)
del checkpoint
status = command_line.main(["compile", str(folder), "-o", output])
assert status == 0, status
# Not ru_maxrss, which begins with what the process had that this one came from.
print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]))
"""


def shards(shape: CheckpointShape) -> Iterator[dict[str, np.ndarray]]:
    """Yield the tensors of a file a layer at a time: all of them would take 2.2 GB."""
    architecture, rng = ARCHITECTURES[shape.family], np.random.default_rng(SEED)
    for _, some in groupby(architecture.sizes(shape).items(), lambda one: one[0].split(".")[:2]):
        found: dict[str, np.ndarray] = {}
        for name, size in some:
            values: np.ndarray = rng.standard_normal(size, np.float32)
            values = 1 + values / 10 if len(size) == 1 else values / np.float32(size[1] ** 0.5)
            found[architecture.full_name(name)] = values.astype(ml_dtypes.bfloat16)
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the model."""
    shape = shape_of(
        "llama", hidden=2048, layers=LAYERS, heads=32, kv_heads=4, ffn=5632, vocab=32000,
        context=2048,
    )  # fmt: skip
    made = tmp_path_factory.mktemp("large") / "model"
    made.mkdir()
    files: dict[str, str] = {}
    for number, tensors in enumerate(shards(shape)):
        file = f"model-{number:05}.safetensors"
        save_file(tensors, made / file)
        files |= dict.fromkeys(tensors, file)
    (made / INDEX).write_text(json.dumps({"weight_map": files}))
    (made / "config.json").write_text(json.dumps(config_of(shape)))
    chat_tokenizer(None).save_pretrained(made)
    return made


def test_from_shards_to_tokens(folder: Path) -> None:
    """An import holds no floats and the integers once or twice; a step on the RTL is golden's."""
    output = folder.parent / "large.tsr"
    command = [sys.executable, "-c", CHILD, str(folder), str(output)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    peak = int(run.stdout.splitlines()[-1])
    assert peak <= MOST, f"seed {SEED}: {peak:,} bytes"
    output.unlink()
    command = [sys.executable, "-m", "npu.cli", "generate", str(folder), "--prompt", "w"]
    command += ["--tokens", "2", "--accept-loss"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "yes, every token" in run.stderr
