# SPDX-License-Identifier: Apache-2.0
"""Train the byte-level models that this repository ships, and write their model cards.

    python -m weights.train [--model NAME] [--output FOLDER] [--steps N] [--threads N]

This is the only module of the package that needs torch and transformers (and matplotlib for the
curve); weights.recipe says what is trained. The text is the documentation of the running Python's
standard library (weights.corpus). The learning rate follows warm-up, cosine and a floor; at the
floor the training goes on until the validation loss has not improved for three evaluations, or to
the recipe's last step. The weights that predict the validation text best so far are always on disk.
The held-out text is not looked at: `npu quality --publish` measures the finished model on it.

Equal seeds, Python, torch, thread count and machine give equal weights.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

from weights.card import CurvePoint, TrainingRecord, write_card, write_curve
from weights.corpus import Corpus, read_corpus, windows
from weights.recipe import RECIPES, Recipe, learning_rate
from weights.shipped import CHECKPOINTS

PATIENCE = 3
MIN_IMPROVEMENT = 5e-4
"""Bits per byte by which an evaluation must beat the best one to count as an improvement."""


def config_of(recipe: Recipe) -> PretrainedConfig:
    """Return the configuration; ids 0 stand in for the special tokens the model has none of."""
    if recipe.model == "gpt2":
        return AutoConfig.for_model(
            "gpt2",
            vocab_size=256,
            n_positions=recipe.context,
            n_embd=recipe.hidden,
            n_layer=recipe.layers,
            n_head=recipe.heads,
            n_inner=recipe.ffn,
            activation_function=recipe.activation,
            tie_word_embeddings=recipe.tied,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
    options = {} if recipe.window is None else {"sliding_window": recipe.window}
    return AutoConfig.for_model(
        recipe.model,
        vocab_size=256,
        max_position_embeddings=recipe.context,
        hidden_size=recipe.hidden,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.kv_heads,
        intermediate_size=recipe.ffn,
        hidden_act=recipe.activation,
        tie_word_embeddings=recipe.tied,
        bos_token_id=0,
        eos_token_id=0,
        **options,
    )


def build_model(recipe: Recipe) -> PreTrainedModel:
    """Return a freshly initialised model."""
    torch.manual_seed(recipe.seed)
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config_of(recipe))
    if recipe.activation == "gelu_new":
        for block in model.transformer.h:
            block.mlp.act = torch.nn.GELU(approximate="tanh")  # the same function, fused
    return model


def build_optimizer(model: PreTrainedModel, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW with weight decay on the matrices and none on norms and biases."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.95), fused=True)


def loss_of(model: PreTrainedModel, tokens: torch.Tensor) -> torch.Tensor:
    """Return the mean next-byte cross entropy in nats of (B, T) token rows."""
    logits = model(tokens, use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
    )


def evaluate(model: PreTrainedModel, rows: npt.NDArray[np.int64]) -> float:
    """Return bits per byte over (R, T) rows of tokens, each row from position 0."""
    total = 0.0
    with torch.inference_mode():
        for start in range(0, len(rows), 64):
            part = torch.from_numpy(rows[start : start + 64])
            total += float(loss_of(model, part)) * len(part)
    return total / len(rows) / math.log(2.0)


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write config.json and model.safetensors (tied embeddings once), readable by everybody."""
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "model.safetensors").chmod(0o644)


def train(recipe: Recipe, corpus: Corpus, output: Path) -> TrainingRecord:
    """Train, keep the best weights in `output`, and return the record for the model card."""
    torch.set_num_threads(recipe.threads)
    model = build_model(recipe)
    optimizer = build_optimizer(model, recipe)
    generator = np.random.default_rng(recipe.seed)
    offsets = np.arange(recipe.context)
    judge = windows(corpus.validation, recipe.context)
    curve: list[CurvePoint] = []
    best, since_best, step, started = math.inf, 0, 0, time.monotonic()
    recent: list[float] = []
    while True:
        first = generator.integers(0, corpus.train.size - recipe.context, recipe.batch)
        batch = corpus.train[first[:, None] + offsets].astype(np.int64)
        rate = learning_rate(recipe, step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, torch.from_numpy(batch))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        recent.append(float(loss.detach()))
        step += 1
        if step % recipe.evaluate_every:
            continue
        bits = evaluate(model, judge)
        train_bits = sum(recent) / len(recent) / math.log(2.0)
        recent.clear()
        curve.append(CurvePoint(step, rate, train_bits, bits))
        improved = bits < best - MIN_IMPROVEMENT
        if bits < best:
            best = bits
            save(model, output)
        since_best = 0 if improved or step <= recipe.steps else since_best + 1
        seconds = time.monotonic() - started
        print(
            f"{step:6d} {seconds:6.0f} s rate {rate:.2e} train {train_bits:.4f} "
            f"validation {bits:.4f}",
            flush=True,
        )
        record = _record(recipe, corpus, curve, best, seconds)
        write_curve(output, record)
        if since_best >= PATIENCE or step == recipe.last_step:
            return record


def _record(
    recipe: Recipe, corpus: Corpus, curve: list[CurvePoint], best: float, seconds: float
) -> TrainingRecord:
    return TrainingRecord(
        recipe=asdict(recipe),
        train_bytes=int(corpus.train.size),
        validation_bytes=int(corpus.validation.size),
        held_out_bytes=int(corpus.held_out.size),
        train_files=corpus.files["train"],
        validation_files=corpus.files["validation"],
        held_out_files=corpus.files["held_out"],
        curve=tuple(curve),
        best_bits_per_byte=best,
        seconds=seconds,
        python=platform.python_version(),
        torch=str(torch.__version__),
        patience=PATIENCE,
        min_improvement=MIN_IMPROVEMENT,
    )


def main() -> None:
    """Parse the command line, train, write checkpoint, curve and card."""
    parser = argparse.ArgumentParser(description="Train a byte-level checkpoint.")
    parser.add_argument("--model", choices=RECIPES, default="gpt2")
    parser.add_argument("--output", type=Path, help=f"default: {CHECKPOINTS}/MODEL-tiny")
    parser.add_argument("--steps", type=int, help="of warm-up and cosine; default: the recipe's")
    parser.add_argument("--threads", type=int, help="default: the recipe's")
    given = parser.parse_args()
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    recipe = RECIPES[given.model]
    recipe = replace(
        recipe, steps=given.steps or recipe.steps, threads=given.threads or recipe.threads
    )
    output = given.output or CHECKPOINTS / f"{given.model}-tiny"
    output.mkdir(parents=True, exist_ok=True)
    record = train(recipe, read_corpus(), output)
    write_card(output, record)
    print(json.dumps({"bits_per_byte": record.best_bits_per_byte, "seconds": record.seconds}))


if __name__ == "__main__":
    main()
