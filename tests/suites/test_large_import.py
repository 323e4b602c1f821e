# SPDX-License-Identifier: Apache-2.0
"""Imports on an ordinary computer, by what they take of its memory and of its processors.

TinyLlama's shape with random weights in shards of bfloat16, more than a billion parameters: nightly
all 22 layers, else two. A vocabulary without text: activations are measured on few random tokens.
GPT-2 small's shape, likewise, and a published chat model have the calibration that every
import has by default, 24,576 tokens, with nothing in the cache of the user.
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

from spec.paths import REPORTS, ROOT
from tests.published_model import published
from tests.python.plans.campaign_reports import into_report
from tests.python.weights.chat_folder import chat_tokenizer
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointShape
from weights.stored.folder import INDEX
from weights.synthetic import config_of, shape_of

NIGHTLY = "NIGHTLY" in os.environ
LAYERS, MOST = (22, 4.0e9) if NIGHTLY else (2, 1.7e9)
"""Layers, and bytes of memory that the import may take at any moment."""
SEED = 1
REPORT = REPORTS / "import.json"
"""Of imports with the default calibration, by model."""
SECONDS = 240.0
"""Processor time that an import with the default calibration may take."""
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


DEFAULT = """
import os, re, sys
from pathlib import Path
from npu.cli import command_line

status = command_line.main(["compile", *sys.argv[1:], "--accept-loss"])
assert status == 0, status
print(1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]))
print(sum(os.times()[:4]))
"""


def model_folder(made: Path, shape: CheckpointShape) -> Path:
    """Write a random model with a tokenizer of bytes."""
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the model."""
    shape = shape_of(
        "llama", hidden=2048, layers=LAYERS, heads=32, kv_heads=4, ffn=5632, vocab=32000,
        context=2048,
    )  # fmt: skip
    return model_folder(tmp_path_factory.mktemp("large") / "model", shape)


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


def check_default_import(model: Path, place: Path, most: float) -> None:
    """Import a model as `npu compile MODEL` does, the first time that it is seen."""
    command = [sys.executable, "-c", DEFAULT, str(model), "-o", str(place / "model.tsr")]
    environment = os.environ | {"XDG_CACHE_HOME": str(place / "cache")}
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    peak, seconds = (float(line) for line in run.stdout.splitlines()[-2:])
    figures = {"peak_bytes": int(peak), "processor_seconds": round(seconds, 1)}
    into_report(REPORT, {"calibration": "default"}, "imports", {model.name: figures})
    assert peak <= most, f"{peak:,.0f} bytes"
    assert seconds <= SECONDS, f"{seconds} s of processor time"


def test_gpt2_small_in_shards(tmp_path: Path) -> None:
    """The shape of GPT-2 small, 124 million parameters."""
    shape = shape_of("gpt2", hidden=768, layers=12, heads=12, ffn=3072, vocab=50257, context=1024)
    check_default_import(model_folder(tmp_path / "gpt2-small", shape), tmp_path, 1.5e9)


def test_published_chat_model(tmp_path: Path) -> None:
    """SmolLM2-135M-Instruct in Q4_1, its loss measured and all."""
    check_default_import(published(), tmp_path, 2.5e9)
