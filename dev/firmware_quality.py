# SPDX-License-Identifier: Apache-2.0
"""Measures the transformer of the firmware on the held-out text, for docs/firmware-models.md.

python -m dev.firmware_quality [WINDOWS]
"""

from __future__ import annotations

import sys

from golden.recipes import bytelm_fp32, bytelm_int8
from weights.corpus import read_corpus, windows
from weights.firmware.bytelm import load_bytelm, program_form
from weights.firmware.bytelm_float import bits_per_byte, forward
from weights.firmware.bytelm_int8 import load_scales, quantise


def table(count: int | None = None) -> str:
    """Return the rows of the table for `count` windows of the text, all if None."""
    model = load_bytelm()
    rows = windows(read_corpus().held_out, model.shape.context, count)
    real = forward(model, rows)
    bits = bits_per_byte(real, rows)
    programs = {
        "FP32": bytelm_fp32.forward(program_form(model), rows).astype(float),
        "INT8": bytelm_int8.real_logits(bytelm_int8.forward(quantise(model, load_scales()), rows)),
    }
    text = f"{len(rows)} windows\n| transformer in float64 | {bits:.4f} | |\n"
    for name, logits in programs.items():
        same = (logits.argmax(axis=-1) == real.argmax(axis=-1)).mean()
        given = bits_per_byte(logits, rows)
        text += f"| {name} program | {given:.4f} ({given / bits - 1:+.2%}) | {same:.2%} |\n"
    return text


if __name__ == "__main__":
    print(table(int(sys.argv[1]) if len(sys.argv) > 1 else None), end="")
