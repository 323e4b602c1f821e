# SPDX-License-Identifier: Apache-2.0
"""The byte-level transformer of the firmware: its folder, and the form that the programs hold."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from weights.firmware.models import ByteLm, ByteLmShape

CHECKPOINTS = Path(__file__).parent / "checkpoints"
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"


def load_bytelm(folder: Path = CHECKPOINTS / "bytelm") -> ByteLm:
    """Read a model's folder.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the tensors are not those of the shape.
    """
    shape = ByteLmShape(**json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8")))
    return ByteLm(shape, load_file(folder / WEIGHTS_FILE))


def config_text(shape: ByteLmShape) -> str:
    """Return the text of the configuration file."""
    return json.dumps(asdict(shape), indent=1) + "\n"


def without_gains(model: ByteLm) -> ByteLm:
    """Return the same function with all norm gains 1, for the programs.

    The gain of a norm is multiplied into the columns of the layers that read it, with one rounding
    to float32.
    """
    t = {name: array.astype(np.float64) for name, array in model.tensors.items()}
    readers = {"norm": ["head"]}
    for layer in range(model.shape.layers):
        readers[f"{layer}.norm1"] = [f"{layer}.{name}.weight" for name in "qkv"]
        readers[f"{layer}.norm2"] = [f"{layer}.up.weight"]
    for norm, names in readers.items():
        for name in names:
            t[name] = t[name] * t[norm]
        t[norm] = np.ones_like(t[norm])
    return replace(model, tensors={name: array.astype(np.float32) for name, array in t.items()})


def program_form(model: ByteLm) -> ByteLm:
    """Return the model that the FP32 program computes: without gains, and q divided.

    The division of the scores by sqrt(head_dim), a power of two, is part of q.
    """
    plain = without_gains(model)
    root = np.float32(model.shape.head_dim**0.5)
    divided = {
        f"{layer}.q.{part}": plain.tensors[f"{layer}.q.{part}"] / root
        for layer in range(model.shape.layers)
        for part in ("weight", "bias")
    }
    return replace(plain, tensors=plain.tensors | divided)
