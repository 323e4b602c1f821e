# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints whose matrices are packed as GPTQ, AWQ and compressed-tensors do.

Words are packed code by code, as the methods' own packages do it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from weights.architectures import ARCHITECTURES
from weights.checkpoint import Checkpoint
from weights.stored.folder import CONFIG, WEIGHTS
from weights.synthetic import config_of, stored_tensors

Array = npt.NDArray[Any]
GROUP = 16


def words_of(codes: Array, bits: int, order: tuple[int, ...] | None = None) -> Array:
    """Return rows of codes (R, C) as words (R, C * bits / 32), the first code lowest."""
    each = 32 // bits
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % each))).astype(np.uint32)
    words = np.zeros((len(codes), padded.shape[1] // each), np.uint32)
    for column in range(words.shape[1]):
        for place in range(each):
            code = padded[:, each * column + (order[place] if order else place)]
            words[:, column] |= code << np.uint32(bits * place)
    return words.view(np.int32)


class PackedMatrix:
    """Random codes (N, K), zero points and scales (N, G), and who has which."""

    def __init__(self, shape: tuple[int, ...], bits: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.bits, self.shape = bits, shape
        groups = shape[1] // GROUP
        self.codes = random.integers(0, 1 << bits, shape)
        self.zeros = random.integers(0, 1 << bits, (shape[0], groups))
        self.scales = (random.uniform(0.5, 1.5, (shape[0], groups)) / (8 << bits)).astype("<f2")
        self.owner = np.arange(shape[1]) // GROUP

    def real(self) -> Array:
        """Return the matrix."""
        whole = self.codes - self.zeros[:, self.owner]
        return (whole * self.scales.astype(np.float64)[:, self.owner]).astype(np.float32)


def gptq(one: PackedMatrix, version: str = "gptq") -> dict[str, Array]:
    """Return the parts of a matrix as GPTQ stores it."""
    zeros = (one.zeros - (version == "gptq")) % (1 << one.bits)
    return {
        "qweight": words_of(one.codes, one.bits).T,
        "qzeros": words_of(zeros.T, one.bits),
        "scales": one.scales.T,
        "g_idx": one.owner.astype(np.int32),
    }


def awq(one: PackedMatrix) -> dict[str, Array]:
    """Return the parts of a matrix as AWQ stores it."""
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    return {
        "qweight": words_of(one.codes.T, 4, order),
        "qzeros": words_of(one.zeros.T, 4, order),
        "scales": one.scales.T,
    }


def compressed(one: PackedMatrix) -> dict[str, Array]:
    """Return the parts of a matrix as compressed-tensors stores it."""
    return {
        "weight_packed": words_of(one.codes, one.bits),
        "weight_scale": one.scales,
        "weight_shape": np.array(one.shape),
        "weight_zero_point": words_of(one.zeros.T, one.bits).T,
    }


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
COMPRESSED_WEIGHTS = {
    "num_bits": 4,
    "type": "int",
    "symmetric": False,
    "strategy": "group",
    "group_size": GROUP,
}
COMPRESSED = {
    "quant_method": "compressed-tensors",
    "format": "pack-quantized",
    "quantization_status": "compressed",
    "kv_cache_scheme": None,
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "weights": COMPRESSED_WEIGHTS,
            "input_activations": None,
            "output_activations": None,
            "targets": ["Linear"],
        }
    },
}


def write_packed(
    checkpoint: Checkpoint,
    folder: Path,
    config: dict[str, Any],
    pack: Callable[[PackedMatrix], dict[str, Array]],
    change: Callable[[PackedMatrix], None] = lambda _: None,
) -> dict[str, Array]:
    """Write a folder whose matrices of layers are packed random ones; return those by name.

    Args:
        checkpoint: gives the shape and all other tensors.
        folder: is made.
        config: quantization_config.
        pack: returns the parts of a matrix.
        change: is called with each before it is packed.
    """
    prefix = ARCHITECTURES[checkpoint.shape.family].prefix
    bits = config.get("bits", 4)
    stored: dict[str, Array] = {}
    wanted: dict[str, Array] = {}
    for seed, (name, tensor) in enumerate(stored_tensors(checkpoint).items()):
        if not name.endswith("proj.weight"):
            stored[name if name == "lm_head.weight" else prefix + name] = tensor
            continue
        one = PackedMatrix(tensor.shape, bits, seed)
        change(one)
        wanted[name] = one.real()
        stem = prefix + name.removesuffix(".weight")
        stored |= {f"{stem}.{part}": np.ascontiguousarray(x) for part, x in pack(one).items()}
    folder.mkdir(parents=True, exist_ok=True)
    whole = config_of(checkpoint.shape) | {"quantization_config": config}
    (folder / CONFIG).write_text(json.dumps(whole), encoding="utf-8")
    save_file(stored, folder / WEIGHTS)
    return wanted
