# SPDX-License-Identifier: Apache-2.0
"""Train the byte-level transformer of the firmware, and write its folder.

    python -m weights.firmware.bytelm_train [--output FOLDER] [--steps N]

Needs torch. The text is that of weights.corpus; the validation text chooses among the weights of
every evaluation, the held-out text is measured once at the end. Equal seeds, Python, torch, thread
count and machine give equal weights.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from torch.nn import functional

from weights.corpus import read_corpus, windows
from weights.firmware.bytelm import CHECKPOINTS, CONFIG_FILE, WEIGHTS_FILE, config_text
from weights.firmware.bytelm_card import RECORD_FILE, card_text
from weights.firmware.models import ByteLmShape
from weights.recipe import Recipe, learning_rate

RECIPE = Recipe(
    model="bytelm",
    layers=2,
    context=32,
    tied=False,
    activation="gelu",
    batch=64,
    steps=12000,
    last_step=12000,
    evaluate_every=1000,
)
"""How the model that ships was made."""
GELU_RANGE = 3.75
"""The integer GELU knows -4..4: inputs beyond this cost the square of what exceeds it."""
Parameters = dict[str, torch.Tensor]


def initial(shape: ByteLmShape, seed: int) -> Parameters:
    """Return fresh parameters: gains 1, biases 0, the rest normal with deviation 0.02.

    Layers that add to the residual stream start smaller by sqrt(2 * layers), as in GPT-2.
    """
    generator = torch.Generator().manual_seed(seed)
    parameters: Parameters = {}
    for name, size in shape.tensors().items():
        if len(size) == 1:
            fresh = torch.ones(size) if "norm" in name else torch.zeros(size)
        else:
            into_residual = name.split(".")[1:2] in (["o"], ["down"])
            scale = 0.02 / (math.sqrt(2 * shape.layers) if into_residual else 1.0)
            fresh = torch.randn(size, generator=generator) * scale
        parameters[name] = fresh.requires_grad_(True)
    return parameters


def logits_of(
    shape: ByteLmShape, p: Parameters, tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (B, T, 256) logits of (B, T) int64 tokens, and how far GELU's inputs leave its table.

    That is the mean of the squares of what exceeds GELU_RANGE.
    """

    def norm(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        mean = x.square().mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(mean + shape.epsilon) * gain

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return functional.linear(x, p[f"{name}.weight"], p[f"{name}.bias"])

    batch, length = tokens.shape
    excess = torch.zeros(())
    x = p["wte"][tokens] + p["wpe"][:length]
    for layer in range(shape.layers):
        h = norm(x, p[f"{layer}.norm1"])
        q, k, v = (
            linear(h, f"{layer}.{name}").view(batch, length, shape.heads, -1).transpose(1, 2)
            for name in "qkv"
        )
        context = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(context.transpose(1, 2).reshape(batch, length, -1), f"{layer}.o")
        h = norm(x, p[f"{layer}.norm2"])
        up = linear(h, f"{layer}.up")
        excess = excess + functional.relu(up.abs() - GELU_RANGE).square().mean()
        x = x + linear(functional.gelu(up), f"{layer}.down")
    return norm(x, p["norm"]) @ p["head"].T, excess


def loss_of(
    shape: ByteLmShape, p: Parameters, tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean next-byte cross entropy in nats of (B, T) token rows, and GELU's excess."""
    logits, excess = logits_of(shape, p, tokens)
    flat = logits[:, :-1].reshape(-1, shape.vocab)
    return functional.cross_entropy(flat, tokens[:, 1:].reshape(-1)), excess


def evaluate(shape: ByteLmShape, p: Parameters, rows: npt.NDArray[np.int64]) -> float:
    """Return bits per byte over (R, T) rows of tokens, each row from position 0."""
    total = 0.0
    with torch.inference_mode():
        for start in range(0, len(rows), 256):
            part = torch.from_numpy(rows[start : start + 256])
            total += float(loss_of(shape, p, part)[0]) * len(part)
    return total / len(rows) / math.log(2.0)


def train(recipe: Recipe, output: Path) -> None:
    """Train, keep the best weights in `output`, and write the record and the model card."""
    torch.set_num_threads(recipe.threads)
    torch.use_deterministic_algorithms(True)
    shape, corpus = ByteLmShape(), read_corpus()
    parameters = initial(shape, recipe.seed)
    groups = [
        {
            "params": [p for p in parameters.values() if (p.dim() == 2) == matrices],
            "weight_decay": recipe.weight_decay if matrices else 0.0,
        }
        for matrices in (True, False)
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.95), fused=True)
    generator = np.random.default_rng(recipe.seed)
    offsets = np.arange(recipe.context)
    judge = windows(corpus.validation, recipe.context)
    best, curve, recent, kept = math.inf, [], [], parameters
    started = time.monotonic()
    for step in range(1, recipe.steps + 1):
        first = generator.integers(0, corpus.train.size - recipe.context, recipe.batch)
        batch = corpus.train[first[:, None] + offsets].astype(np.int64)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step - 1)
        loss, excess = loss_of(shape, parameters, torch.from_numpy(batch))
        optimizer.zero_grad(set_to_none=True)
        (loss + excess).backward()
        torch.nn.utils.clip_grad_norm_(list(parameters.values()), recipe.clip)
        optimizer.step()
        recent.append(float(loss.detach()))
        if step % recipe.evaluate_every and step != recipe.steps:
            continue
        bits = evaluate(shape, parameters, judge)
        train_bits = sum(recent) / len(recent) / math.log(2.0)
        recent.clear()
        curve.append({"step": step, "train_bits": train_bits, "validation_bits": bits})
        print(
            f"{step:6d} {time.monotonic() - started:6.0f} s {train_bits:.4f} {bits:.4f}", flush=True
        )
        if bits < best:
            best = bits
            kept = {name: p.detach().clone() for name, p in parameters.items()}
    record = {
        "recipe": asdict(recipe),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "train_bytes": int(corpus.train.size),
        "validation_bytes": int(corpus.validation.size),
        "held_out_bytes": int(corpus.held_out.size),
        "files": corpus.files,
        "minutes": round((time.monotonic() - started) / 60),
        "validation_bits": best,
        "held_out_bits": evaluate(shape, kept, windows(corpus.held_out, recipe.context)),
        "curve": curve,
    }
    save_file({name: p.contiguous() for name, p in kept.items()}, output / WEIGHTS_FILE)
    (output / WEIGHTS_FILE).chmod(0o644)
    (output / CONFIG_FILE).write_text(config_text(shape), encoding="utf-8")
    (output / RECORD_FILE).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (output / "README.md").write_text(card_text(record), encoding="utf-8")


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Train the byte-level transformer of firmware.")
    parser.add_argument("--output", type=Path, default=CHECKPOINTS / "bytelm")
    parser.add_argument("--steps", type=int, default=RECIPE.steps)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    train(replace(RECIPE, steps=given.steps, last_step=given.steps), given.output)


if __name__ == "__main__":
    main()
