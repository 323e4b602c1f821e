# SPDX-License-Identifier: Apache-2.0
"""The perceptron for digits of 28 x 28 pixels: its folder, its pictures, its integers.

Pictures are of 8 x 8 pixels with 17 levels and are scaled up by linear interpolation, to the size
and the row length (784) of the well-known set that cannot be had here.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from weights.firmware.bytelm import CHECKPOINTS, CONFIG_FILE, WEIGHTS_FILE
from weights.firmware.bytelm_float import Float64
from weights.firmware.bytelm_int8 import integer_layer
from weights.firmware.models import OUTPUT_SHIFT, DigitsInt8, Int8

SMALL, LARGE = 8, 28
LEVELS = 16
"""Largest value of a small picture's pixel."""
PIXEL_MAX = 127


def enlarged(pictures: npt.NDArray[np.uint8]) -> Int8:
    """Return (n, 784) int8 pixels 0..127 of (n, 64) pictures with pixels 0..16.

    Pixel centres are interpolated linearly along both axes; beyond the outer centres their values
    go on.
    """
    places = np.clip((np.arange(LARGE) + 0.5) * SMALL / LARGE - 0.5, 0, SMALL - 1)
    weights = np.maximum(0.0, 1.0 - np.abs(places[:, None] - np.arange(SMALL)))
    small = pictures.reshape(-1, SMALL, SMALL).astype(np.float64)
    large = weights @ small @ weights.T * (PIXEL_MAX / LEVELS)
    return np.rint(large).astype(np.int8).reshape(len(pictures), -1)


def quantised(tensors: dict[str, npt.NDArray[np.generic]], hidden_max: float) -> DigitsInt8:
    """Return the integer form of the tensors of the shipped file.

    Args:
        tensors: hidden.weight (32, 784), hidden.bias, output.weight (10, 32), output.bias float32,
            of a model whose pixels are 0..1; samples (n, 64) and labels (n,) uint8.
        hidden_max: largest value behind RELU.
    """

    def layer(name: str) -> tuple[Float64, Float64]:
        weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return weight.astype(np.float64), bias.astype(np.float64)

    step = hidden_max / 127
    return DigitsInt8(
        integer_layer(*layer("hidden"), 1 / PIXEL_MAX, step, OUTPUT_SHIFT),
        integer_layer(*layer("output"), step, 2.0**-16, 0),
        enlarged(tensors["samples"].astype(np.uint8)),
        tensors["labels"].astype(np.uint8),
    )


def load_digits(folder: Path = CHECKPOINTS / "digits") -> DigitsInt8:
    """Read the folder and return the integer form."""
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    return quantised(load_file(folder / WEIGHTS_FILE), config["hidden_max"])
