# SPDX-License-Identifier: Apache-2.0
"""The learning curve and the model card of a trained checkpoint."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CURVE_JSON = "learning_curve.json"
CURVE_PNG = "learning_curve.png"
CARD = "README.md"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One evaluation: training loss is the mean since the last one; both in bits per byte."""

    step: int
    learning_rate: float
    train_bits: float
    held_out_bits: float


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """What a training run was given and what came out."""

    recipe: dict[str, Any]
    train_bytes: int
    held_out_bytes: int
    train_files: int
    held_out_files: int
    curve: tuple[CurvePoint, ...]
    best_bits_per_byte: float
    seconds: float
    python: str
    torch: str
    patience: int
    min_improvement: float


def write_curve(folder: Path, record: TrainingRecord) -> None:
    """Write the record with its learning curve as JSON."""
    text = json.dumps(asdict(record), indent=1) + "\n"
    (folder / CURVE_JSON).write_text(text, encoding="utf-8")


def plot_curve(folder: Path, record: TrainingRecord) -> None:
    """Write the learning curve as PNG (needs matplotlib)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), dpi=120, layout="constrained")
    axes = figure.subplots()
    steps = [point.step for point in record.curve]
    axes.plot(steps, [point.train_bits for point in record.curve], label="training")
    axes.plot(steps, [point.held_out_bits for point in record.curve], label="held out")
    axes.set_xlabel("step")
    axes.set_ylabel("bits per byte")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(folder / CURVE_PNG, metadata={"Software": None})


def write_card(folder: Path, record: TrainingRecord) -> None:
    """Write the record, the plot and the model card README.md."""
    write_curve(folder, record)
    plot_curve(folder, record)
    (folder / CARD).write_text(card_text(folder.name, record), encoding="utf-8")


def card_text(name: str, record: TrainingRecord) -> str:
    """Return the model card of the checkpoint `name`, from the record alone."""
    recipe = record.recipe
    last = record.curve[-1]
    return f"""\
---
license: apache-2.0
library_name: transformers
---

# {name}

A byte-level `{recipe["model"]}` (vocabulary 256, a token is a byte):
{_dimensions(recipe)}.
It exists to exercise an integer transformer accelerator with realistic activations; it writes
documentation-like text and knows nothing.

```python
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("weights/checkpoints/{name}")
```

## What it was trained on

The docstrings and `pydoc` help topics of the standard library of CPython \
{record.python}, read at run time
from the installed sources (`weights/corpus.py`); tests and third-party packages are left out, \
repeated texts are kept once.

| part | source files | bytes |
|---|---|---|
| training | {record.train_files} | {record.train_bytes} |
| held out, by hash of the file's path | {record.held_out_files} | {record.held_out_bytes} |

That documentation belongs to the Python Software Foundation under the PSF licence. None of it is \
included here; the
weights are published under Apache-2.0.

## Result

| | |
|---|---|
| held-out bits per byte, windows of {recipe["context"]} | {record.best_bits_per_byte:.4f} |
| training bits per byte at the end | {last.train_bits:.4f} |
| steps of {recipe["batch"]} x {recipe["context"]} bytes | {last.step} |
| wall time, {recipe["threads"]} thread(s) of a shared machine | {record.seconds / 60:.0f} minutes |

![learning curve]({CURVE_PNG})

## Training

AdamW (betas 0.9, 0.95; weight decay {recipe["weight_decay"]} on matrices; gradients clipped at \
{recipe["clip"]}), no dropout, learning rate
{recipe["peak_rate"]:g} after {recipe["warmup"]} steps of warm-up, cosine to \
{recipe["floor_rate"]:g} at step {recipe["steps"]}, then constant until the held-out loss
has not improved by {record.min_improvement} bits for {record.patience} evaluations \
({recipe["evaluate_every"]} steps apart){_cut(recipe)}. Seed {recipe["seed"]},
torch {record.torch}. All of it, with the curve, is in `{CURVE_JSON}`.

To reproduce (torch, transformers and matplotlib installed; equal weights need the same Python, \
torch,
thread count and processor type):

```
python -m weights.train --model {recipe["model"]}
```

`activation_scales.json` holds the activation scales of the integer model, made by
`python -m weights.calibrate weights/checkpoints/{name}`. `python -m weights.card \
weights/checkpoints/{name}`
writes this page anew from the record.
"""


def _dimensions(recipe: dict[str, Any]) -> str:
    """Return the model's size and kind in words."""
    window = recipe["window"]
    parts = [
        f"hidden {recipe['hidden']}",
        f"{recipe['layers']} layers",
        f"{recipe['heads']} heads on {recipe['kv_heads']} K/V heads",
        f"FFN {recipe['ffn']}",
        f"context {recipe['context']}",
        *([] if window is None else [f"sliding window {window}"]),
        f"activation `{recipe['activation']}`",
        f"{'tied' if recipe['tied'] else 'untied'} embeddings",
    ]
    return ", ".join(parts)


def _cut(recipe: dict[str, Any]) -> str:
    """Return the other reason for which the training may have ended."""
    last = recipe["last_step"]
    return "" if last is None else f", at the latest at step {last}, which came first"


def read_record(folder: Path) -> TrainingRecord:
    """Read the record that `write_curve` wrote."""
    content = json.loads((folder / CURVE_JSON).read_text(encoding="utf-8"))
    curve = tuple(CurvePoint(**point) for point in content.pop("curve"))
    return TrainingRecord(curve=curve, **content)


if __name__ == "__main__":
    write_card(Path(sys.argv[1]), read_record(Path(sys.argv[1])))
