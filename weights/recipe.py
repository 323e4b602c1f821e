# SPDX-License-Identifier: Apache-2.0
"""How the checkpoints that ship were trained: everything that decides their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the weights, besides the text and the software.

    `model` is transformers' model_type; `window` is the sliding window, None for none. `steps` is
    the length of warm-up and cosine; learning rates are per step of AdamW. `last_step` ends the
    training though the loss may still fall, None does not.
    """

    model: str = "gpt2"
    seed: int = 20240607
    hidden: int = 64
    layers: int = 4
    heads: int = 4
    kv_heads: int = 4
    ffn: int = 256
    context: int = 128
    window: int | None = None
    tied: bool = True
    activation: str = "gelu_new"
    batch: int = 32
    steps: int = 5000
    last_step: int | None = None
    warmup: int = 300
    peak_rate: float = 4e-3
    floor_rate: float = 4e-5
    weight_decay: float = 0.1
    clip: float = 1.0
    evaluate_every: int = 250
    threads: int = 1


_GATED = Recipe(kv_heads=2, ffn=128, tied=False, activation="silu", steps=4000)
RECIPES = {
    "gpt2": Recipe(),
    "llama": replace(_GATED, model="llama"),
    "mistral": replace(_GATED, model="mistral", window=32, last_step=4750),
    "qwen2": replace(_GATED, model="qwen2", tied=True, steps=1500, last_step=2500),
}
"""How the checkpoints that ship were made."""


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the rate of a step: linear warm-up, cosine, floor."""
    if step < recipe.warmup:
        return recipe.peak_rate * (step + 1) / recipe.warmup
    if step >= recipe.steps:
        return recipe.floor_rate
    phase = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    span = recipe.peak_rate - recipe.floor_rate
    return recipe.floor_rate + span * 0.5 * (1.0 + math.cos(math.pi * phase))


@dataclass(frozen=True, slots=True)
class Finetune:
    """Everything that decides the weights of a checkpoint fine-tuned for a narrow format.

    Attributes:
        start: the checkpoint that the training starts from, which is also the teacher.
        weights: recipe of weight formats (weights.formats.recipe) of the blocks.
        compensated: whether the first weights are the error-compensated ones of the format.
        distillation: share of the divergence from the teacher in the loss; the rest is cross
            entropy.
        steps, batch, context: rows of text in a step, bytes in a row.
        warmup, peak_rate, floor_rate: of AdamW's rate: linear, then cosine.
    """

    start: str
    weights: str
    seed: int
    steps: int
    peak_rate: float
    compensated: bool = True
    distillation: float = 0.7
    batch: int = 32
    context: int = 128
    warmup: int = 100
    floor_rate: float = 1e-5
    evaluate_every: int = 250


FINETUNES = {
    "gpt2-tiny-int4g32": Finetune("gpt2-tiny", "int4g32", 20240611, 2500, 1e-4),
    "gpt2-tiny-int4s": Finetune("gpt2-tiny", "int4s", 20240612, 2500, 1e-3),
    "gpt2-tiny-ternary": Finetune("gpt2-tiny", "ternary", 20240613, 2000, 2e-3, compensated=False),
}
"""How the checkpoints for narrow formats were made."""


def finetune_rate(recipe: Finetune, step: int) -> float:
    """Return the rate of a step: linear warm-up, cosine to the floor at the last step."""
    if step < recipe.warmup:
        return recipe.peak_rate * (step + 1) / recipe.warmup
    phase = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    span = recipe.peak_rate - recipe.floor_rate
    return recipe.floor_rate + span * 0.5 * (1.0 + math.cos(math.pi * phase))
