# SPDX-License-Identifier: Apache-2.0
"""Random checkpoints of any architecture and shape, for tests of everything that reads a model.

The initialisation is wider than the one for training, so that gains, biases, scores and all
activations vary as in a trained network and no tensor of the integer model is degenerate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from spec.isa.weight_formats import GROUPED, SPARSE
from weights.architecture import Config
from weights.architectures import ARCHITECTURES
from weights.calibrate import calibrate
from weights.checkpoint import Checkpoint, CheckpointShape, Float32, Tensors, expected_tensors
from weights.fixed_point import multiplier, multipliers
from weights.formats.element import elements
from weights.formats.linear import NarrowLinear, kept, side_rows
from weights.formats.recipe import Encoding, WeightRecipe
from weights.importer import parse_config
from weights.limits import WEIGHT_MAX
from weights.model import Block, Linear, Norm, QuantizedModel
from weights.quantize import activation_table, quantize
from weights.rope_config import rotated
from weights.stored.folder import CONFIG, WEIGHTS

GAIN_SPREAD = 0.3
BIAS_SPREAD = 0.1
QUERY_SPREAD = 1.5
"""Query and key weights are this much wider than the rest, so that attention is not flat."""
INT8_SPREAD, BRANCH_SPREAD, LOGIT_SPREAD = 30.0, 1200.0, 6000.0
"""Standard deviations in `random_gpt2`: int8 activations, what a block adds twice, logits."""
SCORE_SPREAD = 120.0
"""Of scores, in units of 2^-6 of a binary logarithm."""


def shape_of(
    family: str,
    *,
    hidden: int = 64,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    ffn: int = 96,
    vocab: int = 80,
    context: int = 24,
    window: int = 0,
    **others: object,
) -> CheckpointShape:
    """Return a shape of a family: these dimensions, and all else as in its default config.

    `kv_heads` None is as many as heads, `head_dim` None is hidden / heads, `window` 0 is none;
    `others` are further fields of `CheckpointShape`.
    """
    _, usual = parse_config({"model_type": family}, "shape_of")
    lanes = hidden // heads if head_dim is None else head_dim
    windows = tuple(size and context // 2 for size in usual.windows[:layers])
    others = {"windows": windows if len(set(windows)) > 1 else ()} | others
    shape = replace(
        usual,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=heads if kv_heads is None else kv_heads,
        head_dim=lanes,
        ffn=ffn,
        vocab=vocab,
        context=context,
        window=window,
        **others,  # type: ignore[arg-type]
    )
    rotations = [
        replace(one, lanes=one.lanes * lanes // usual.head_dim // 2 * 2) for one in usual.rotations
    ]
    return rotated(shape, rotations, usual.tables[:layers]) if rotations else shape


def random_checkpoint(shape: CheckpointShape, seed: int) -> Checkpoint:
    """Return a float model with weights of variance 1 / inputs; equal seeds give equal models."""
    rng = np.random.default_rng(seed)
    tensors: dict[str, Float32] = {}
    for name, size in expected_tensors(shape).items():
        values = rng.standard_normal(size)
        *_, part, kind = f".{name}".split(".")
        if "norm" in part and kind == "weight":
            values = 1.0 + GAIN_SPREAD * values
            if not part.startswith("norm"):
                values = np.abs(values) * (QUERY_SPREAD if part[0] in "qk" else 1.0)
        elif kind == "bias":
            values *= BIAS_SPREAD
        elif kind == "weight":
            values *= (QUERY_SPREAD if part in ("q", "k") else 1.0) / np.sqrt(size[0])
        tensors[name] = values.astype(np.float32)
    for one in ARCHITECTURES[shape.family].layout(shape):
        if one.copies:
            tensors |= dict.fromkeys(one.copies, tensors[one.parts[0]])
    return Checkpoint(shape, tensors, f"random model, seed {seed}")


def random_tokens(shape: CheckpointShape, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return (rows, context) ids, uniform."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, shape.vocab, (rows, shape.context), np.int64)


def random_model(
    shape: CheckpointShape, seed: int, sink: int | None = None, weights: WeightRecipe | None = None
) -> QuantizedModel:
    """Return the integer model of `random_checkpoint`, calibrated on random tokens.

    With `sink` this token always stands at position 0, as if it were loud there. `weights` are the
    formats of the weights, None for int8.
    """
    checkpoint = random_checkpoint(shape, seed)
    tokens = random_tokens(shape, 8, seed + 1)[:, int(sink is not None) :]
    return quantize(checkpoint, calibrate(checkpoint, tokens, sink=sink), weights)


def random_gpt2(shape: CheckpointShape, seed: int) -> QuantizedModel:
    """Return a GPT-2 whose integers are drawn directly: seconds where `random_model` takes minutes.

    The requantisation follows from what each layer's input varies by, so that every stage is well
    scaled. Only the logits have a real unit.
    """
    rng = np.random.default_rng(seed)
    hidden, unit = shape.hidden, 0.03
    table = activation_table(shape.activation, unit, unit)
    dots = np.sqrt(shape.head_dim) * INT8_SPREAD**2
    score_mult, score_shift = multiplier("scores", SCORE_SPREAD / dots)
    blocks = tuple(
        Block(
            norm1=_random_norm(rng, hidden),
            qkv=_random_linear(rng, (hidden, 3 * hidden), INT8_SPREAD, INT8_SPREAD),
            score_mult=score_mult,
            score_shift=score_shift,
            proj=_random_linear(rng, (hidden, hidden), INT8_SPREAD / 2, BRANCH_SPREAD),
            norm2=_random_norm(rng, hidden),
            up=_random_linear(rng, (hidden, shape.ffn), INT8_SPREAD, INT8_SPREAD),
            table=table,
            down=_random_linear(rng, (shape.ffn, hidden), INT8_SPREAD / 2, BRANCH_SPREAD),
        )
        for _ in range(shape.layers)
    )
    return QuantizedModel(
        shape=shape.plain(),
        wte=rng.integers(-8000, 8001, (shape.vocab, hidden), np.int16),
        wpe=rng.integers(-3000, 3001, (shape.context, hidden), np.int16),
        rope=None,
        blocks=blocks,
        final_norm=_random_norm(rng, hidden),
        head=_random_linear(rng, (hidden, shape.vocab), INT8_SPREAD, LOGIT_SPREAD),
        scales={"logits": 1e-3},
    )


def _random_norm(rng: np.random.Generator, size: int) -> Norm:
    """Return a norm whose output varies by about INT8_SPREAD."""
    gain = INT8_SPREAD * 2.0 ** (19 - 10) * rng.uniform(0.5, 1.5, size)
    bias = rng.integers(-3, 4, size).astype(np.int8)
    return Norm(size**2, gain.astype(np.uint16), np.full(size, 23, np.uint8), bias)


def _random_linear(
    rng: np.random.Generator, size: tuple[int, int], varies: float, spread: float
) -> Linear:
    """Return a layer whose output varies by about `spread` if its int8 input does by `varies`."""
    weight = rng.integers(-WEIGHT_MAX, WEIGHT_MAX + 1, size, np.int8)
    sums = np.sqrt(size[0] / 3) * WEIGHT_MAX * varies
    bias = np.rint(rng.normal(0, 0.2 * sums, size[1])).astype(np.int32)
    factors = spread / sums * rng.uniform(0.7, 1.3, size[1])
    return Linear(weight, bias, *multipliers("random", factors))


def config_of(shape: CheckpointShape) -> dict[str, object]:
    """Return the content of config.json for a shape."""
    architecture = ARCHITECTURES[shape.family]
    kind = {"model_type": shape.family, "architectures": [architecture.classes[0]]}
    return kind | architecture.write(shape)


def stored_tensors(checkpoint: Checkpoint, config: Mapping[str, object] | None = None) -> Tensors:
    """Return the tensors of a file, by name without prefix (a tied head is left out).

    `config` is the content of config.json; None: that of `config_of`.
    """
    shape = checkpoint.shape
    architecture = ARCHITECTURES[shape.family]
    given = Config(dict(config or config_of(shape)), checkpoint.source)
    tensors = architecture.multiplied(given, shape, checkpoint.tensors, back=True)
    return {one.name: one.written(tensors) for one in architecture.layout(shape)}


def write_checkpoint(
    checkpoint: Checkpoint,
    folder: Path,
    *,
    prefix: str | None = None,
    config: Mapping[str, object] | None = None,
) -> None:
    """Write config.json and model.safetensors as Hugging Face does.

    Args:
        checkpoint: the model.
        folder: is made.
        prefix: of all names but the head's; None: the architecture's.
        config: the content of config.json, which says the checkpoint's shape; None: `config_of`.
    """
    from safetensors.numpy import save_file

    architecture = ARCHITECTURES[checkpoint.shape.family]
    if prefix is not None:
        architecture = replace(architecture, prefix=prefix)
    config = config or config_of(checkpoint.shape)
    stored = stored_tensors(checkpoint, config)
    named = {architecture.full_name(name): tensor for name, tensor in stored.items()}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    save_file(named, folder / WEIGHTS, metadata={"format": "pt"})


def random_narrow(
    random: np.random.Generator, encoding: Encoding, inputs: int, outputs: int, head_dim: int = 0
) -> NarrowLinear:
    """Return (K, N) random codes that are numbers, with random side bytes or positions.

    `head_dim` as of `NarrowLinear`.
    """
    fmt, group = encoding.format, encoding.group
    if fmt is None:
        raise ValueError("random_narrow: given int8, allowed a narrow format")
    numbers = np.flatnonzero(elements(fmt).number).astype(np.uint8)
    codes = random.choice(numbers, (inputs, outputs))
    spans = side_rows(fmt, group, inputs, head_dim)
    low, high = (1, 256) if fmt in GROUPED else (0, 10)
    side = random.integers(low, high, (spans, outputs)).astype(np.uint8)
    if fmt in SPARSE:
        pairs = np.array([p0 + 4 * p1 for p1 in range(4) for p0 in range(p1)], np.uint8)
        side = random.choice(pairs, (spans, outputs))
        codes = np.where(kept(side, inputs, head_dim), codes, 0).astype(np.uint8)
    return NarrowLinear(
        fmt,
        group,
        codes,
        side,
        random.integers(-(1 << 12), 1 << 12, outputs).astype(np.int32),
        random.integers(1 << 14, 1 << 15, outputs).astype(np.uint16),
        np.full(outputs, 26, np.uint8),
        head_dim,
    )
