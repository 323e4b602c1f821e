# SPDX-License-Identifier: Apache-2.0
"""Folders that transformers writes in half precision and in shards, read by the command line.

The command runs in a process of its own, without torch. tests/bench/test_half_precision.py does the
same on folders of our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from npu.cli import command_line
from spec.paths import ROOT
from tests.bench.process import npu
from tests.forms import sample
from weights.calibrate import SCALES_FILE, calibrate, save_scales
from weights.importer import load_checkpoint
from weights.synthetic import random_tokens

CHECKPOINTS = ROOT / "weights" / "checkpoints"
GPT2: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16}
COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
}
SPECIAL: dict[str, Any] = {"vocab_size": 256, "bos_token_id": 0, "eos_token_id": 0}


@pytest.mark.parametrize("shard", sample(["20KB", "5GB"], 1))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2"])
def test_folders_of_transformers(
    tmp_path: Path, family: str, dtype: torch.dtype, shard: str
) -> None:
    """The compiled model is that of a float32 folder with the same numbers, byte for byte."""
    half, single = tmp_path / "half", tmp_path / "single"
    options = (GPT2 if family == "gpt2" else COMMON) | SPECIAL
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **options)).to(dtype)
    model.save_pretrained(half, max_shard_size=shard)
    assert (len(list(half.glob("*.safetensors"))) > 1) == (shard == "20KB")
    model.to(torch.float32).save_pretrained(single)
    checkpoint = load_checkpoint(single)
    scales = calibrate(checkpoint, random_tokens(checkpoint.shape, 2, 4))
    for folder in (half, single):
        save_scales(scales, folder / SCALES_FILE)
    run = npu("compile", str(half), "-o", str(tmp_path / "half.tsr"))
    assert run.returncode == 0, run.stderr
    assert command_line.main(["compile", str(single), "-o", str(tmp_path / "single.tsr")]) == 0
    assert (tmp_path / "half.tsr").read_bytes() == (tmp_path / "single.tsr").read_bytes()


def test_a_model_in_half_precision_writes(tmp_path: Path) -> None:
    """A shipped model that transformers stored anew in bfloat16 shards writes text on the RTL."""
    model = AutoModelForCausalLM.from_pretrained(CHECKPOINTS / "llama-tiny", dtype=torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="100KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "bfloat16"
    run = npu("generate", str(tmp_path), "--prompt", "This function returns", "--tokens", "12")
    assert run.returncode == 0, run.stderr
    assert "yes, every token" in run.stderr
    assert len(run.stdout) > len("This function returns\n")
