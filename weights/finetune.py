# SPDX-License-Identifier: Apache-2.0
"""Fine-tune a GPT-2 for a narrow weight format, with straight-through fake quantisation.

    python -m weights.finetune NAME [--output FOLDER] [--steps N]

weights.recipe.FINETUNES says what is trained: where it starts, format, steps, seed. The forward
pass sees the weights on the grid of their format, the gradient passes through the rounding as if it
were not there (Bengio et al., 2013) and also moves the scales of the groups (Esser et al., "Learned
Step Size Quantization", 2020). The loss is the divergence from the float model that the training
starts from, and some cross entropy. What is written has its weights on the grid: the quantiser
finds the same codes again, because gains and channel ranges of the norms stay those of the start
and the result is not equalised again. The text is the training part of weights.corpus.

Equal seeds, Python, torch and machine give equal weights.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from spec.isa import WeightFormat
from spec.isa.weight_formats import SPARSE
from weights.calibrate import (
    SCALES_FILE,
    ActivationScales,
    calibrate,
    calibration_tokens,
    norm_units,
    save_scales,
    scales_for,
)
from weights.card import CurvePoint, TrainingRecord, plot_curve, write_curve
from weights.checkpoint import Checkpoint
from weights.corpus import Corpus, read_corpus, windows
from weights.covariance import measure_on_text, moments_for
from weights.equalize import equalize
from weights.finetuned_card import write_finetuned_page
from weights.formats.linear import NarrowLinear, kept
from weights.formats.recipe import parse_recipe
from weights.importer import COVARIANCE_FILE, load_checkpoint
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.recipe import FINETUNES, Finetune, finetune_rate
from weights.shipped import CHECKPOINTS, FINETUNED
from weights.synthetic import write_checkpoint

LAYERS = ("q", "k", "v", "o", "up", "down")
LIMITS = {WeightFormat.INT4G: (-8, 7), WeightFormat.INT4S: (-8, 7), WeightFormat.INT2: (-1, 1)}
"""The codes of the formats that are trained; INT2 as ternary."""

Reals = npt.NDArray[np.float64]


class Grid(torch.nn.Module):  # type: ignore[misc]
    """The weight of one layer as the forward pass sees it.

    Attributes:
        latent: (K, N), what the gradient moves: the weight itself.
        log_unit: (groups, N), logarithm of the real value of one code step.
        rows: (K, 1), what each row is multiplied by before it is rounded.
        mask: (K, N), 1 where a 2:4 format keeps the row.
    """

    def __init__(
        self, latent: Reals, unit: Reals, rows: Reals, mask: Reals, fmt: WeightFormat
    ) -> None:
        super().__init__()
        self.latent = torch.nn.Parameter(torch.tensor(latent, dtype=torch.float32))
        self.log_unit = torch.nn.Parameter(torch.tensor(np.log(unit), dtype=torch.float32))
        self.rows = torch.tensor(rows[:, None], dtype=torch.float32)
        self.mask = torch.tensor(mask, dtype=torch.float32)
        self.limits = LIMITS[fmt]
        self.repeat = -(-latent.shape[0] // unit.shape[0])

    def forward(self) -> torch.Tensor:
        """Return the weight on its grid."""
        unit = self.log_unit.exp().repeat_interleave(self.repeat, 0)[: self.latent.shape[0]]
        steps = (self.latent * self.rows / unit).clamp(*self.limits)
        steps = steps + (steps.round() - steps).detach()
        return steps * unit / self.rows * self.mask


class Student(torch.nn.Module):  # type: ignore[misc]
    """A GPT-2 whose layers have their weights on a grid; norms stay as they are."""

    def __init__(self, start: Checkpoint, grids: dict[str, Grid]) -> None:
        super().__init__()
        self.shape = start.shape
        self.grids = torch.nn.ModuleDict({_key(name): grid for name, grid in grids.items()})
        fixed = {name for name in start.tensors if "norm" in name}
        free = start.tensors.keys() - fixed - {f"{name}.weight" for name in grids}
        self.fixed = {name: torch.from_numpy(start.tensors[name].copy()) for name in fixed}
        self.free = torch.nn.ParameterDict(
            {
                _key(name): torch.nn.Parameter(torch.from_numpy(start.tensors[name].copy()))
                for name in sorted(free)
            }
        )

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors of the checkpoint that the forward pass uses."""
        found = dict(self.fixed)
        found.update({key.replace("/", "."): value for key, value in self.free.items()})
        for key, grid in self.grids.items():
            found[key.replace("/", ".") + ".weight"] = grid()
        return found


def _key(name: str) -> str:
    """Return a name that torch takes."""
    return name.replace(".", "/")


def logits_of(
    shape_heads: tuple[int, int, float], tensors: dict[str, torch.Tensor], tokens: torch.Tensor
) -> torch.Tensor:
    """Return the logits (B, T, V) of a GPT-2 given as (layers, heads, epsilon) and tensors."""
    layers, heads, epsilon = shape_heads
    x = tensors["embed"][tokens] + tensors["positions"][: tokens.shape[1]]
    hidden = x.shape[-1]

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return functional.layer_norm(x, (hidden,), weight, bias, epsilon)

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    for layer in range(layers):
        at = f"h.{layer}"
        y = norm(x, f"{at}.norm1")
        q, k, v = (
            linear(y, f"{at}.{name}").unflatten(-1, (heads, -1)).transpose(1, 2) for name in "qkv"
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(mixed.transpose(1, 2).flatten(-2), f"{at}.o")
        y = functional.gelu(linear(norm(x, f"{at}.norm2"), f"{at}.up"), approximate="tanh")
        x = x + linear(y, f"{at}.down")
    return norm(x, "norm") @ tensors["embed"].T


def grids_of(
    recipe: Finetune, start: Checkpoint, scales: ActivationScales, model: QuantizedModel
) -> dict[str, Grid]:
    """Return the grid of every layer: units, masks and first weights as the quantiser has them."""
    fmt = parse_recipe(recipe.weights)["o"].format
    assert fmt is not None
    found = {}
    for index, block in enumerate(model.blocks):
        at, queries = f"h.{index}", start.shape.q_columns
        parts = {
            "q": (block.qkv, slice(0, queries), "norm1"),
            "k": (block.qkv, slice(queries, 2 * queries), "norm1"),
            "v": (block.qkv, slice(2 * queries, None), "norm1"),
            "o": (block.proj, slice(None), ""),
            "up": (block.up, slice(None), "norm2"),
            "down": (block.down, slice(None), ""),
        }
        for name, (layer, columns, norm) in parts.items():
            assert isinstance(layer, NarrowLinear)
            out = model.scales.get(f"{at}.{name}", model.scales["residual"])
            scale = layer.mult[columns] / np.exp2(layer.shift[columns].astype(float)) * out
            if norm:
                gain = start.norm(f"{at}.{norm}")[0].astype(np.float64)
                rows = gain * norm_units(f"{at}.{norm}", scales, gain.size)
            else:
                unit = {"o": "v", "down": "act"}[name]
                rows = np.full(layer.inputs, model.scales[f"{at}.{unit}"])
            side = layer.side[:, columns]
            units = scale * side / 16.0 if fmt == WeightFormat.INT4G else scale[None, :]
            if recipe.compensated:
                latent = layer.weight[:, columns] * scale / rows[:, None]
            else:
                latent = start.tensors[f"{at}.{name}.weight"].astype(np.float64)
            mask = np.ones(latent.shape)
            if fmt in SPARSE:
                mask[~kept(side, layer.inputs, layer.head_dim)] = 0.0
            found[f"{at}.{name}"] = Grid(latent, units, rows, mask, fmt)
    return found


def train(recipe: Finetune, corpus: Corpus, output: Path) -> TrainingRecord:
    """Train, write checkpoint, scales and covariance to `output`, return the record."""
    torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    source = load_checkpoint(CHECKPOINTS / recipe.start)
    start_scales = scales_for(source)
    start = equalize(source)
    model = quantize(
        source, start_scales, parse_recipe(recipe.weights), moments_for(source, start_scales)
    )
    student = Student(start, grids_of(recipe, start, start_scales, model))
    shape = (start.shape.layers, start.shape.heads, start.shape.epsilon)
    teacher = {name: torch.from_numpy(value.copy()) for name, value in start.tensors.items()}
    optimizer = torch.optim.AdamW(
        student.parameters(), lr=recipe.peak_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    generator = np.random.default_rng(recipe.seed)
    offsets = np.arange(recipe.context)
    judge = windows(corpus.validation, recipe.context, 128)
    curve: list[CurvePoint] = []
    recent: list[float] = []
    started = time.monotonic()
    for step in range(recipe.steps):
        first = generator.integers(0, corpus.train.size - recipe.context, recipe.batch)
        tokens = torch.from_numpy(corpus.train[first[:, None] + offsets].astype(np.int64))
        for group in optimizer.param_groups:
            group["lr"] = finetune_rate(recipe, step)
        with torch.no_grad():
            wanted = logits_of(shape, teacher, tokens).log_softmax(-1)
        logits = logits_of(shape, student.tensors(), tokens)
        own = logits.log_softmax(-1)
        divergence = (wanted.exp() * (wanted - own)).sum(-1).mean()
        entropy = functional.nll_loss(own[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        loss = recipe.distillation * divergence + (1.0 - recipe.distillation) * entropy
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        recent.append(float(entropy.detach()))
        if (step + 1) % recipe.evaluate_every and step + 1 < recipe.steps:
            continue
        bits = _bits(shape, student, judge)
        train_bits = sum(recent) / len(recent) / math.log(2.0)
        recent.clear()
        curve.append(CurvePoint(step + 1, finetune_rate(recipe, step), train_bits, bits))
        print(
            f"{step + 1:6d} {time.monotonic() - started:6.0f} s train {train_bits:.4f} "
            f"validation {bits:.4f} divergence {float(divergence.detach()):.4f}",
            flush=True,
        )
    write(start, start_scales, student, output)
    return _record(recipe, start, corpus, curve, time.monotonic() - started)


def _bits(shape: tuple[int, int, float], student: Student, rows: npt.NDArray[np.int64]) -> float:
    """Return bits per byte of rows (R, T)."""
    total = 0.0
    with torch.inference_mode():
        tensors = student.tensors()
        for start in range(0, len(rows), 64):
            part = torch.from_numpy(rows[start : start + 64])
            own = logits_of(shape, tensors, part).log_softmax(-1)
            loss = functional.nll_loss(own[:, :-1].flatten(0, 1), part[:, 1:].flatten())
            total += float(loss) * len(part)
    return total / len(rows) / math.log(2.0)


def write(
    start: Checkpoint, start_scales: ActivationScales, student: Student, output: Path
) -> None:
    """Write the checkpoint with its weights on the grid, its scales and its covariance."""
    with torch.no_grad():
        tensors = {name: value.numpy().copy() for name, value in student.tensors().items()}
    write_checkpoint(Checkpoint(start.shape, tensors, "fine-tuned"), output)
    final = load_checkpoint(output)
    provenance = {
        "text": f"training part of the documentation of CPython {platform.python_version()}",
        "command": "python -m weights.finetune",
        "channels": "those that the training started from",
    }
    measured = calibrate(final, calibration_tokens(final), provenance, equalized=False)
    scales = replace(measured, channels=start_scales.channels)
    save_scales(scales, output / SCALES_FILE)
    measure_on_text(final, scales, output / COVARIANCE_FILE)


def _record(
    recipe: Finetune, start: Checkpoint, corpus: Corpus, curve: list[CurvePoint], seconds: float
) -> TrainingRecord:
    shape = start.shape
    size = {
        "model": shape.family,
        "hidden": shape.hidden,
        "layers": shape.layers,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "ffn": shape.ffn,
        "window": shape.window or None,
        "tied": shape.tied,
        "activation": shape.activation,
        "threads": 1,
    }
    return TrainingRecord(
        recipe={**size, **asdict(recipe)},
        train_bytes=int(corpus.train.size),
        validation_bytes=int(corpus.validation.size),
        held_out_bytes=int(corpus.held_out.size),
        train_files=corpus.files["train"],
        validation_files=corpus.files["validation"],
        held_out_files=corpus.files["held_out"],
        curve=tuple(curve),
        best_bits_per_byte=curve[-1].judged_bits,
        seconds=seconds,
        python=platform.python_version(),
        torch=str(torch.__version__),
        patience=0,
        min_improvement=0.0,
    )


def main() -> None:
    """Parse the command line, train, write checkpoint and card."""
    parser = argparse.ArgumentParser(description="Fine-tune a checkpoint for a narrow format.")
    parser.add_argument("name", choices=FINETUNES)
    parser.add_argument("--output", type=Path, help=f"default: {FINETUNED}/NAME")
    parser.add_argument("--steps", type=int, help="default: the recipe's")
    given = parser.parse_args()
    recipe = FINETUNES[given.name]
    recipe = replace(recipe, steps=given.steps or recipe.steps)
    output = given.output or FINETUNED / given.name
    output.mkdir(parents=True, exist_ok=True)
    record = train(recipe, read_corpus(), output)
    write_curve(output, record)
    plot_curve(output, record)
    write_finetuned_page(output)


if __name__ == "__main__":
    main()
