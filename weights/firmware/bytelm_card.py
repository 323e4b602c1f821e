# SPDX-License-Identifier: Apache-2.0
"""The model card of the byte-level transformer, written from the record of its training."""

from __future__ import annotations

from typing import Any

RECORD_FILE = "training.json"


def card_text(record: dict[str, Any]) -> str:
    """Return the card of a training's record (`weights.firmware.bytelm_train`)."""
    recipe, files, context = record["recipe"], record["files"], record["recipe"]["context"]
    held_out = f"held-out bits per byte, all windows of {context}, torch float32"
    validation = (
        f"validation, which chose among the weights of every {recipe['evaluate_every']} steps"
    )
    return f"""\
---
license: apache-2.0
---

# bytelm

A byte-level transformer of 134,592 parameters (vocabulary 256, dim 64, 4 heads, 2 layers,
context 32, feed-forward 256, RMSNorm, exact GELU) for `firmware/examples/bytelm_fp32` and
`bytelm_int8`, which compute it on a RISC-V core with the coprocessor's instructions. It writes
documentation-like text and knows nothing. `weights/firmware/models.py` names its tensors and gives
its formulas.

## What it was trained on

The docstrings and `pydoc` help topics of the standard library of CPython {record["python"]},
read at run time from the installed sources (`weights/corpus.py`).

| part | source files | bytes |
|---|---|---|
| training | {files["train"]} | {record["train_bytes"]} |
| {validation} | {files["validation"]} | {record["validation_bytes"]} |
| held out, measured once | {files["held_out"]} | {record["held_out_bytes"]} |

That documentation belongs to the Python Software Foundation under the PSF licence. None of it is
included here; the weights are published under Apache-2.0.

## Result

| | |
|---|---|
| {held_out} | {record["held_out_bits"]:.4f} |
| validation bits per byte | {record["validation_bits"]:.4f} |
| training bits per byte at the end | {record["curve"][-1]["train_bits"]:.4f} |
| steps of {recipe["batch"]} x {context} bytes | {recipe["steps"]} |
| wall time, {recipe["threads"]} thread(s) of a shared machine | {record["minutes"]} minutes |

`tests/python/weights/test_recipes.py` holds the integer form against it: `pytest -s` prints both.

## Training

AdamW (betas 0.9, 0.95; weight decay {recipe["weight_decay"]} on matrices; gradients clipped
at {recipe["clip"]}), no dropout, learning rate {recipe["peak_rate"]} after {recipe["warmup"]}
steps of warm-up, cosine to {recipe["floor_rate"]}. Inputs of GELU beyond 3.75 cost the square of
what exceeds it, because the table of the integer GELU ends at 4. Seed {recipe["seed"]},
torch {record["torch"]}. All of it, with the curve, is in `{RECORD_FILE}`;
`activation_scales.json` holds the scales of the integer form, made by
`python -m weights.firmware.bytelm_int8`. To reproduce (equal weights need the same Python, torch
and processor type):

```
python -m weights.firmware.bytelm_train
```
"""
