# SPDX-License-Identifier: Apache-2.0
"""Encoders of random weights, and their folders as Hugging Face and sentence-transformers do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from npu.graph.form import Array
from npu.graph.importers.checkpoint import TOKENS
from npu.graph.importers.encoder_checkpoint import MASK
from npu.graph.importers.signal_checkpoint import MELS, PIXELS
from weights.architecture import Config
from weights.checkpoint import Tensors
from weights.encoder import EncoderCheckpoint, EncoderShape, Pooling, encoder_tensors
from weights.encoders import ENCODERS
from weights.sentence_files import MODULES
from weights.signal_encoder import SignalCheckpoint, SignalShape, signal_tensors
from weights.stored.folder import CONFIG, WEIGHTS

SIZES: dict[str, Any] = {
    "hidden": 64,
    "layers": 2,
    "heads": 4,
    "kv_heads": 4,
    "head_dim": 16,
    "ffn": 96,
    "vocab": 80,
    "context": 64,
}
TEXTS = tuple(name for name, one in ENCODERS.items() if one.reads == "text")
SIGNALS = tuple(name for name in ENCODERS if name not in TEXTS)
PICTURE: dict[str, Any] = {
    **{"hidden": 48, "layers": 2, "heads": 3, "kv_heads": 3, "head_dim": 16, "ffn": 96},
    **{"signal": (3, 48, 48), "patch": 8, "labels": 10},
}
SOUND: dict[str, Any] = {
    **{"hidden": 64, "layers": 2, "heads": 4, "kv_heads": 4, "head_dim": 16, "ffn": 96},
    **{"signal": (20, 60), "context": 30},
}
MEAN = Pooling("mean", unit=True, longest=64)


def random_encoder(
    family: str = "bert", seed: int = 1, pooling: Pooling | None = MEAN, **sizes: int
) -> EncoderCheckpoint:
    """Return an encoder whose activations vary as in a trained one."""
    usual = ENCODERS[family].shape(Config({}, family))
    assert isinstance(usual, EncoderShape)
    shape = replace(usual, **(SIZES | sizes))
    tensors = drawn(encoder_tensors(shape), seed)
    return EncoderCheckpoint(shape, tensors, f"random {family}, seed {seed}", pooling=pooling)


def random_signal(family: str, seed: int = 1, **sizes: Any) -> SignalCheckpoint:  # noqa: ANN401
    """Return an encoder of pictures with a head, or of sound, as `random_encoder` does.

    Args:
        family: model_type.
        seed: of the tensors.
        sizes: attributes of its shape.
    """
    name = {"vit": "ViT", "deit": "DeiT"}.get(family, "")
    config = {"architectures": [f"{name}ForImageClassification"]} if name else {}
    usual = ENCODERS[family].shape(Config(config, family))
    assert isinstance(usual, SignalShape)
    own = SOUND if not name else PICTURE | {"context": usual.tokens + 36}
    shape = replace(usual, **(own | sizes))
    return SignalCheckpoint(shape, drawn(signal_tensors(shape), seed), f"random {family}")


def signals(checkpoint: SignalCheckpoint, count: int, seed: int = 5) -> dict[str, Array]:
    """Return random inputs, (N, 1, *signal)."""
    shape = checkpoint.shape
    values = np.random.default_rng(seed).standard_normal((count, 1, *shape.signal))
    return {PIXELS if shape.patch else MELS: values.astype(np.float32)}


def drawn(sizes: Mapping[str, tuple[int, ...]], seed: int) -> Tensors:
    """Return tensors with which activations vary as in a trained model."""
    random = np.random.default_rng(seed)
    tensors = {}
    for name, size in sizes.items():
        values = random.standard_normal(size)
        if "norm" in name:
            values = 0.2 * values + float(name.endswith("weight"))
        elif len(size) == 1:
            values *= 0.1
        elif len(size) > 2:
            values /= np.sqrt(np.prod(size[1:]))
        elif name.endswith(".weight"):
            values *= (1.5 if name[-8] in "qk" else 1.0) / np.sqrt(size[0])
        tensors[name] = values.astype(np.float32)
    return tensors


def write_encoder(checkpoint: EncoderCheckpoint | SignalCheckpoint, folder: Path) -> None:
    """Write config.json, model.safetensors and, with a pooling, the modules."""
    shape = checkpoint.shape
    pooling = checkpoint.pooling if isinstance(checkpoint, EncoderCheckpoint) else None
    architecture = ENCODERS[shape.family]
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": shape.family, **architecture.write(shape)}
    (folder / CONFIG).write_text(json.dumps(config))
    tensors = {one.name: one.written(checkpoint.tensors) for one in architecture.stored(shape)}
    save_file(tensors, folder / WEIGHTS)
    if pooling is None:
        return
    kinds = ["Transformer", "Pooling", *(["Normalize"] if pooling.unit else [])]
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": path}
        for kind, path in zip(kinds, paths, strict=False)
    ]
    (folder / MODULES).write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {
        "pooling_mode_cls_token": pooling.pool == "first",
        "pooling_mode_mean_tokens": pooling.pool == "mean",
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))


def sentences(checkpoint: EncoderCheckpoint, rows: int, lengths: Sequence[int]) -> dict[str, Array]:
    """Return random sentences of so many tokens, (N, 1, rows), with random tokens behind them."""
    random = np.random.default_rng(5)
    tokens = random.integers(0, checkpoint.shape.vocab, (len(lengths), 1, rows))
    mask = np.arange(rows) < np.array(lengths)[:, None, None]
    return {TOKENS: tokens.astype(np.int32), MASK: mask.astype(np.int32)}
