# SPDX-License-Identifier: Apache-2.0
"""Folders in half precision and in shards, read by the command line in a process of its own.

A test that writes such a folder has imported `ml_dtypes`, with which numpy knows bfloat16; a user's
process has not. tests/oracles does the same on folders that transformers writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file

from npu.cli import command_line
from tests.bench.process import npu
from weights.calibrate import SCALES_FILE, calibrate, save_scales
from weights.importer import load_checkpoint
from weights.stored.folder import INDEX, WEIGHTS
from weights.synthetic import random_checkpoint, random_tokens, shape_of, write_checkpoint


def write_shards(folder: Path, tensors: dict[str, npt.NDArray[Any]]) -> None:
    """Write every tensor into a file of its own, with an index, as transformers does."""
    names = sorted(tensors)
    files = [f"model-{n:05}-of-{len(names):05}.safetensors" for n in range(1, len(names) + 1)]
    for name, file in zip(names, files, strict=True):
        save_file({name: tensors[name]}, folder / file, metadata={"format": "pt"})
    size = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(zip(names, files, strict=True))}
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_shards_in_half_precision(tmp_path: Path, dtype: type[np.generic]) -> None:
    """The compiled model is that of a float32 folder with the same numbers, byte for byte."""
    half, single = tmp_path / "half", tmp_path / "single"
    shape = shape_of("llama", hidden=16, heads=2, layers=1, ffn=16, vocab=256, context=8)
    for folder in (half, single):
        write_checkpoint(random_checkpoint(shape, 5), folder)
    rounded = {name: tensor.astype(dtype) for name, tensor in load_file(half / WEIGHTS).items()}
    (half / WEIGHTS).unlink()
    write_shards(half, rounded)
    save_file({name: t.astype(np.float32) for name, t in rounded.items()}, single / WEIGHTS)
    scales = calibrate(load_checkpoint(single), random_tokens(shape, 2, 6))
    for folder in (half, single):
        save_scales(scales, folder / SCALES_FILE)
    run = npu("compile", str(half), "-o", str(tmp_path / "half.tsr"))
    assert run.returncode == 0, run.stderr
    assert command_line.main(["compile", str(single), "-o", str(tmp_path / "single.tsr")]) == 0
    assert (tmp_path / "half.tsr").read_bytes() == (tmp_path / "single.tsr").read_bytes()
