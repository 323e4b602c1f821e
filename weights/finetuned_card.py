# SPDX-License-Identifier: Apache-2.0
"""The model card of a checkpoint that was fine-tuned for a narrow weight format.

    python -m weights.finetuned_card weights/finetuned/NAME ...

writes it anew from the record of the training and the published figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

from weights.card import CARD, CURVE_JSON, CURVE_PNG, TrainingRecord, read_record
from weights.figures import FormatFigures, read_format_figures


def card_text(name: str, record: TrainingRecord, figures: FormatFigures | None) -> str:
    """Return the card; `figures` None: it has not been measured yet."""
    recipe = record.recipe
    first, last = record.curve[0], record.curve[-1]
    begin = (
        f"the error-compensated weights of `{recipe['start']}` in that format"
        if recipe["compensated"]
        else f"the float weights of `{recipe['start']}`"
    )
    return f"""\
---
license: apache-2.0
library_name: transformers
---

# {name}

`{recipe["start"]}`, fine-tuned with straight-through fake quantisation for the weight format
`{recipe["weights"]}` in all linear layers of its blocks. The weights in `model.safetensors` lie on
the grid of that format; the quantiser finds the same codes again. It exists to exercise an integer
transformer accelerator; it writes documentation-like text and knows nothing.

## Result

| | |
|---|---|
{_measured(recipe["start"], figures)}
| validation bits per byte, step {first.step} | {first.judged_bits:.4f} |
| validation bits per byte at the end, step {last.step} | {last.judged_bits:.4f} |

`{recipe["start"]}` was trained on text that includes this validation text: its figures here only
show how the training went. No step saw a byte of the held-out text.

![learning curve]({CURVE_PNG})

## Training

| | |
|---|---|
| starts from | {begin} |
| loss | {recipe["distillation"]:g} x divergence from the float `{recipe["start"]}`, \
{1 - recipe["distillation"]:g} x cross entropy |
| steps of {recipe["batch"]} x {recipe["context"]} bytes | {recipe["steps"]} |
| rate of AdamW (betas 0.9, 0.95) | {recipe["peak_rate"]:g} after {recipe["warmup"]} steps, \
cosine to {recipe["floor_rate"]:g} |
| seed | {recipe["seed"]} |
| text | training part of the documentation of CPython {record.python}, \
{record.train_bytes:,} bytes |
| wall time, one thread of a shared machine | {record.seconds / 60:.0f} minutes |
| software | torch {record.torch} |

Norms keep their gains and the channel ranges of the start. Rounding is passed through by the
gradient; the scales of the groups are learned as well. The curve is in `{CURVE_JSON}`.

```
python -m weights.finetune {name}
```

`activation_scales.json` and `input_covariance.safetensors` are written by the same command. The
documentation belongs to the Python Software Foundation under the PSF licence; none of it is
included here. The weights are published under Apache-2.0.
"""


def _measured(start: str, figures: FormatFigures | None) -> str:
    """Return the rows of what `make quality` has measured."""
    if figures is None:
        return "| held-out bits per byte | not measured yet: `npu quality --publish` |"
    return f"""\
| held-out bits per byte of the integer network, {figures.tokens:,} tokens | {figures.bits:.4f} |
| the same of `{start}` in int8 | {figures.int8_bits:.4f} ({figures.loss:+.2%}) |"""


def write_finetuned_page(folder: Path) -> Path:
    """Write the card of a folder from its record and the published figures; return its path."""
    figures = {one.model: one for one in read_format_figures()}
    text = card_text(folder.name, read_record(folder), figures.get(folder.name))
    (folder / CARD).write_text(text, encoding="utf-8")
    return folder / CARD


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(write_finetuned_page(Path(argument)))
