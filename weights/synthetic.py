# SPDX-License-Identifier: Apache-2.0
"""Random GPT-2 checkpoints of any shape, for tests of everything that reads a model.

The initialisation is wider than the one for training, so that gains, biases, scores and all
activations vary as in a trained network and no tensor of the integer model is degenerate.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weights.calibrate import calibrate
from weights.importer import CONFIG, WEIGHTS, Checkpoint, Gpt2Shape, expected_tensors
from weights.model import QuantizedModel
from weights.quantize import quantize

GAIN_SPREAD = 0.3
BIAS_SPREAD = 0.1
QUERY_SPREAD = 1.5
"""Query and key weights are this much wider than the rest, so that attention is not flat."""


def random_checkpoint(shape: Gpt2Shape, seed: int, *, tied: bool = True) -> Checkpoint:
    """Return a float model with weights of variance 1 / inputs; equal seeds give equal models."""
    rng = np.random.default_rng(seed)
    tensors: dict[str, npt.NDArray[np.float32]] = {}
    for name, size in expected_tensors(shape).items():
        noise = rng.standard_normal(size)
        if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
            values = 1.0 + GAIN_SPREAD * noise
        elif len(size) == 1:
            values = BIAS_SPREAD * noise
        elif name in ("wte.weight", "wpe.weight", "lm_head.weight"):
            values = noise
        else:
            values = noise / np.sqrt(size[0])
            if name.endswith("c_attn.weight"):
                values[:, : 2 * shape.hidden] *= QUERY_SPREAD
        tensors[name] = values.astype(np.float32)
    if tied:
        tensors["lm_head.weight"] = tensors["wte.weight"]
    return Checkpoint("gpt2", shape, tensors, f"random model, seed {seed}")


def random_tokens(shape: Gpt2Shape, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return (rows, context) ids, uniform."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, shape.vocab, (rows, shape.context), np.int64)


def random_model(shape: Gpt2Shape, seed: int) -> QuantizedModel:
    """Return the integer model of `random_checkpoint`, calibrated on random tokens."""
    checkpoint = random_checkpoint(shape, seed)
    return quantize(checkpoint, calibrate(checkpoint, random_tokens(shape, 8, seed + 1)))


def config_of(shape: Gpt2Shape, *, tied: bool = True) -> dict[str, object]:
    """Return the content of config.json for a shape."""
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": shape.hidden,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_inner": shape.ffn,
        "vocab_size": shape.vocab,
        "n_positions": shape.context,
        "layer_norm_epsilon": shape.epsilon,
        "activation_function": shape.activation,
        "tie_word_embeddings": tied,
    }


def write_checkpoint(checkpoint: Checkpoint, folder: Path, *, prefix: str = "transformer.") -> None:
    """Write config.json and model.safetensors as Hugging Face does (a tied head is left out)."""
    from safetensors.numpy import save_file

    tied = checkpoint.tensors["lm_head.weight"] is checkpoint.tensors["wte.weight"]
    named = {
        (name if name.startswith("lm_head") else prefix + name): tensor
        for name, tensor in checkpoint.tensors.items()
        if not (tied and name == "lm_head.weight")
    }
    folder.mkdir(parents=True, exist_ok=True)
    config = json.dumps(config_of(checkpoint.shape, tied=tied), indent=1) + "\n"
    (folder / CONFIG).write_text(config, encoding="utf-8")
    save_file(named, folder / WEIGHTS, metadata={"format": "pt"})
