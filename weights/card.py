# SPDX-License-Identifier: Apache-2.0
"""The learning curve and the model card of a trained checkpoint."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weights.figures import QualityFigures, read_figures

CURVE_JSON = "learning_curve.json"
CURVE_PNG = "learning_curve.png"
CARD = "README.md"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One evaluation, in bits per byte.

    Attributes:
        step, learning_rate: where the training was.
        train_bits: the training loss, mean since the last evaluation.
        judged_bits: on the text by which the weights were chosen (`TrainingRecord.judge`).
    """

    step: int
    learning_rate: float
    train_bits: float
    judged_bits: float


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """What a training run was given and what came out.

    Without validation text the weights were chosen by the held-out text.
    """

    recipe: dict[str, Any]
    train_bytes: int
    validation_bytes: int
    held_out_bytes: int
    train_files: int
    validation_files: int
    held_out_files: int
    curve: tuple[CurvePoint, ...]
    best_bits_per_byte: float
    seconds: float
    python: str
    torch: str
    patience: int
    min_improvement: float

    @property
    def judge(self) -> str:
        """The text by which the weights were chosen."""
        return "validation" if self.validation_bytes else "held-out"


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
    axes.plot(steps, [point.judged_bits for point in record.curve], label=record.judge)
    axes.set_xlabel("step")
    axes.set_ylabel("bits per byte")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(folder / CURVE_PNG, metadata={"Software": None})


def write_card(folder: Path, record: TrainingRecord) -> None:
    """Write the record, the plot and the model card README.md."""
    write_curve(folder, record)
    plot_curve(folder, record)
    write_page(folder, record)


def write_page(folder: Path, record: TrainingRecord) -> None:
    """Write the model card alone."""
    text = card_text(folder.name, record, read_figures().get(folder.name))
    (folder / CARD).write_text(text, encoding="utf-8")


def card_text(name: str, record: TrainingRecord, figures: QualityFigures | None) -> str:
    """Return the model card of the checkpoint `name`: from its record, and the published figures.

    `figures` None: it has not been measured yet.
    """
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
{_parts(record)}

That documentation belongs to the Python Software Foundation under the PSF licence. None of it is \
included here; the
weights are published under Apache-2.0.

## Result

| | |
|---|---|
{_measured(recipe, figures)}
| training bits per byte at the end | {last.train_bits:.4f} |
| steps of {recipe["batch"]} x {recipe["context"]} bytes | {last.step} |
| wall time, {recipe["threads"]} thread(s) of a shared machine | {record.seconds / 60:.0f} minutes |

{_chosen(record)}

![learning curve]({CURVE_PNG})

## Training

AdamW (betas 0.9, 0.95; weight decay {recipe["weight_decay"]} on matrices; gradients clipped at \
{recipe["clip"]}), no dropout, learning rate
{recipe["peak_rate"]:g} after {recipe["warmup"]} steps of warm-up, cosine to \
{recipe["floor_rate"]:g} at step {recipe["steps"]}, then constant until the {record.judge} loss
has not improved by {record.min_improvement} bits for {record.patience} evaluations \
({recipe["evaluate_every"]} steps apart){_cut(recipe)}. Seed {recipe["seed"]},
torch {record.torch}. All of it, with the curve, is in `{CURVE_JSON}`.

{_again(record)}

```
python -m weights.train --model {recipe["model"]}
```

`activation_scales.json` holds the activation scales of the integer model, made by
`python -m weights.calibrate weights/checkpoints/{name}`. `python -m weights.card \
weights/checkpoints/{name}`
writes this page anew from the record and the figures.
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


def _parts(record: TrainingRecord) -> str:
    """Return the rows of the parts of the text."""
    rows = [("training", record.train_files, record.train_bytes)]
    if record.validation_bytes:
        name = "validation, by hash of the file's path"
        rows.append((name, record.validation_files, record.validation_bytes))
    rows.append(
        ("held out, by hash of the file's path", record.held_out_files, record.held_out_bytes)
    )
    return "\n".join(f"| {name} | {files} | {size} |" for name, files, size in rows)


def _measured(recipe: dict[str, Any], figures: QualityFigures | None) -> str:
    """Return the rows of what `make quality` has measured."""
    if figures is None:
        return "| held-out bits per byte | not measured yet: `npu quality --publish` |"
    where = f"all {figures.windows} windows of {recipe['context']}"
    return f"""\
| held-out bits per byte, {where}, float32 | {figures.float_bits:.4f} |
| the same of the integer network | {figures.integer_bits:.4f} ({figures.loss:+.2%}) |
| most likely next byte the same in both | {figures.agreement:.2%} |"""


def _chosen(record: TrainingRecord) -> str:
    """Say how the weights were chosen, and what that means for the figures."""
    every = record.recipe["evaluate_every"]
    if record.validation_bytes:
        return (
            f"Of the weights after every {every} steps those were kept that predict the validation "
            "text best. The\nheld-out text was not looked at during the training."
        )
    return (
        f"Of the weights after every {every} steps those were kept that predict the held-out text "
        "best. So no training\nstep saw a byte of it, but it chose the weights and the end of the "
        "training: the held-out figures are\nslightly optimistic."
    )


def _again(record: TrainingRecord) -> str:
    """Return the words before the command that trains."""
    if record.validation_bytes:
        return (
            "To reproduce (torch, transformers and matplotlib installed; equal weights need the "
            "same Python, torch,\nthread count and processor type):"
        )
    return (
        "To train another one (torch, transformers and matplotlib installed). It will have other "
        "weights:\n`weights.train` sets a part of the training text aside and chooses them by it."
    )


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
    write_page(Path(sys.argv[1]), read_record(Path(sys.argv[1])))
