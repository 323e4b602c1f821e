# SPDX-License-Identifier: Apache-2.0
"""The integer form of the byte-level transformer: parameters, and how they follow from the floats.

The network is defined by golden.recipes.bytelm_int8; this module makes its numbers.

    python -m weights.firmware.bytelm_int8      writes activation_scales.json of the shipped model

Scales say how much an integer step is worth. Weights have a scale per row (output), activations one
per tensor: 1/steps for what a norm gives (`steps`, an integer), 1/32 before and after GELU (its
table's), 1/127 of the largest value that occurs for q, k and v, and 1/(127 * 256) of it for the
residual stream, which is kept in 32 bits.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weights.corpus import read_corpus, windows
from weights.firmware.bytelm import CHECKPOINTS, load_bytelm, without_gains
from weights.firmware.bytelm_float import Float64, forward
from weights.firmware.models import (
    ADD_SHIFT,
    LOGIT_BITS,
    OUTPUT_SHIFT,
    ByteLm,
    ByteLmInt8,
    Int8,
    Int8Linear,
)

SCALES_FILE = "activation_scales.json"
RESIDUAL_BITS = 8
"""Fraction bits of the residual stream below a byte of its largest value."""
GELU_STEPS = 32
"""Steps per unit before and after GELU."""
Scales = dict[str, float]
"""Largest absolute value of each tensor of `weights.firmware.bytelm_float.forward`."""


def measure(model: ByteLm, tokens: npt.NDArray[np.int64]) -> Scales:
    """Return the largest absolute value of every tensor of a model without gains."""
    scales: defaultdict[str, float] = defaultdict(float)

    def tap(name: str, x: Float64) -> None:
        scales[name] = max(scales[name], float(np.abs(x).max()))

    forward(model, tokens, tap)
    return dict(scales)


def _bytes(x: Float64, step: Float64 | float) -> Int8:
    return np.clip(np.rint(x / step), -127, 127).astype(np.int8)


def _table(x: Float64, unit: float) -> tuple[Int8, int]:
    """Return a table in bytes, and the whole number of units that one step is worth."""
    factor = max(1, round(float(np.abs(x).max()) / 127 / unit))
    return _bytes(x, factor * unit), factor


def integer_layer(
    weight: Float64,
    bias: Float64,
    step_in: float,
    unit_out: float,
    shift: int,
    floored: bool = False,
) -> Int8Linear:
    """Quantise a layer.

    Args:
        weight: (out, in) float64.
        bias: (out,) float64.
        step_in: value of one step of the input.
        unit_out: value of one unit of the result.
        shift: behind QMUL.
        floored: whether the input was cut by VMUL.
    """
    step = np.abs(weight).max(axis=1, keepdims=True) / 127
    quantised = _bytes(weight, step)
    per_sum = step[:, 0] * step_in / unit_out
    factor = np.rint(per_sum * 2.0 ** (8 + shift))
    half = 0.5 / per_sum if shift else 0.0
    cut = 0.5 * quantised.sum(axis=1, dtype=np.int64) if floored else 0.0
    sums = np.rint(bias / (step[:, 0] * step_in) + half + cut)
    largest = 128 * np.abs(quantised.astype(np.int64)).sum(axis=1) + np.abs(sums)
    if (largest * factor >= 2.0**39).any() or (largest >= 2.0**31).any():
        raise ValueError("Int8Linear: a sum times its factor does not fit QMUL")
    return Int8Linear(quantised, sums.astype(np.int32), factor.astype(np.int32))


def quantise(model: ByteLm, scales: Scales) -> ByteLmInt8:
    """Return the integer form of a float model with norm gains, by the scales of `measure`."""
    shape, t = (
        model.shape,
        {n: a.astype(np.float64) for n, a in without_gains(model).tensors.items()},
    )
    unit = scales["residual"] / 127 / 2**RESIDUAL_BITS
    names = [name for name in scales if "norm" in name]
    steps = {name: int(127 / scales[name]) for name in names}
    linear: dict[str, Int8Linear] = {}
    factors = []
    for layer in range(shape.layers):
        of_byte = {name: scales[f"{layer}.{name}"] / 127 for name in "qkv"}

        def add(
            name: str, step_in: float, unit_out: float, shift: int, floored: bool, at: int = layer
        ) -> None:
            weight, bias = t[f"{at}.{name}.weight"], t[f"{at}.{name}.bias"]
            linear[f"{at}.{name}"] = integer_layer(weight, bias, step_in, unit_out, shift, floored)

        for name in "qkv":
            add(name, 1 / steps[f"{layer}.norm1"], of_byte[name], OUTPUT_SHIFT, True)
        per_product = of_byte["q"] * of_byte["k"] / math.sqrt(shape.head_dim)
        factors.append(round(per_product * 2**24))
        add("o", of_byte["v"], unit, ADD_SHIFT, False)
        add("up", 1 / steps[f"{layer}.norm2"], 1 / GELU_STEPS, OUTPUT_SHIFT, True)
        add("down", 1 / GELU_STEPS, unit, ADD_SHIFT, False)
    zeros = np.zeros(shape.vocab)
    linear["head"] = integer_layer(t["head"], zeros, 1 / steps["norm"], 2.0**-LOGIT_BITS, 0, True)
    wte, wte_factor = _table(t["wte"], unit)
    wpe, wpe_factor = _table(t["wpe"], unit)
    epsilon = max(1, round(shape.epsilon / unit**2 * 65536))
    return ByteLmInt8(
        shape, wte, wpe, wte_factor, wpe_factor, linear, steps, epsilon, tuple(factors)
    )


def load_scales(folder: Path = CHECKPOINTS / "bytelm") -> Scales:
    """Read the scales beside a model."""
    scales: Scales = json.loads((folder / SCALES_FILE).read_text(encoding="utf-8"))
    return scales


def main() -> None:
    """Measure the shipped model on training text and write its scales."""
    model, folder = without_gains(load_bytelm()), CHECKPOINTS / "bytelm"
    rows = windows(read_corpus().train, model.shape.context, 1000)
    text = json.dumps(measure(model, rows), indent=1) + "\n"
    (folder / SCALES_FILE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
