# SPDX-License-Identifier: Apache-2.0
"""Random small decoders of every architecture, that went through a folder into integers.

A configuration is drawn, and weights are written under the architecture's own names, in its own
layout; all of it is read again, calibrated and quantised as a published model is, but on random
tokens. Some have a loud first position, which becomes a sink, some narrow weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from golden import session
from tb.models.decoder_configs import random_config
from weights.calibrate import calibrate
from weights.checkpoint import Checkpoint, CheckpointShape
from weights.covariance import measure
from weights.formats.recipe import parse_recipe
from weights.importer import load_checkpoint, parse_config
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.reference import forward
from weights.sink import is_sink
from weights.synthetic import random_checkpoint, random_tokens, write_checkpoint

FIRST = 0
"""The token that is loud at the first position; other texts do without it."""
LOUD = 300.0
"""What a channel of that token has, times what others have."""
TOKENS = 12
"""What a model writes at most."""
NARROW = (
    *("int4g32", "nf4g32", "int4g32,head=nf4g64", "mxfp6e2,head=mxfp6e2", "ternary,qkv=int8"),
    *("int4,down=int2", "qkv=mxfp6e2,up=nf4g32,down=mxfp4", "mxint8,head=mxfp8e4"),
)
"""Recipes, one of which every third model has, but for `o`; groups suit arrays of all sizes."""
OUTPUTS = ("int4g32", "mxfp4", "nf4g32", "int4", "mxfp6e2", "int8")
"""Formats of `o`."""
ALIKE = 0.5
"""Correlation of the logits of integers and floats: nearly all have 0.9, weights of 2 bits less."""


@dataclass(frozen=True, slots=True)
class RandomDecoder:
    """A decoder that was read from a folder, and what it writes.

    Attributes:
        model: in integers.
        prompt: ids, behind the sink if there is one.
        tokens: the greedy ones that follow by golden.
    """

    model: QuantizedModel
    prompt: list[int]
    tokens: list[int]


def random_decoder(family: str, seed: int, folder: Path) -> RandomDecoder:
    """Return a decoder of an architecture, from a folder that is made; equal seeds, equal ones.

    Raises:
        AssertionError: what is read is not what was written, a loud first position is no sink, or
            the integers compute something else.
    """
    random = np.random.default_rng(seed)
    config = random_config(family, random)
    _, shape = parse_config(config, family)
    loud, recipe = not random.integers(4), "int8"
    if not random.integers(3):
        recipe = f"{random.choice(NARROW)},o={random.choice(OUTPUTS)}"
    written = _weights(shape, seed, loud)
    write_checkpoint(written, folder, config=config)
    checkpoint = load_checkpoint(folder)
    _check_read(checkpoint, written)
    model = _integers(checkpoint, seed, recipe, loud)
    most = shape.context - model.first
    prompt = random.integers(FIRST + 1, shape.vocab, int(random.integers(1, most - 8))).tolist()
    tokens = session.generate(model, prompt, min(TOKENS, most - len(prompt) + 1))
    _check_alike(checkpoint, model, prompt + tokens[:-1])
    return RandomDecoder(model, prompt, tokens)


def _weights(shape: CheckpointShape, seed: int, loud: bool) -> Checkpoint:
    """Return a model that does not only repeat itself.

    A tied head asks for the token that was read last, if the gains in front of it have one sign.
    Where the model is `loud`, one channel of FIRST is, which logits do not show.
    """
    checkpoint = random_checkpoint(shape, seed)
    tensors = {name: value.copy() for name, value in checkpoint.tensors.items()}
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], np.float32), shape.hidden)
    tensors["norm.weight"] *= signs
    if loud:
        channel = shape.hidden // 2
        tensors["embed"][FIRST, channel] = LOUD * np.abs(tensors["embed"]).mean()
        for name in {"norm.weight", "norm.bias"} & tensors.keys():
            tensors[name][channel] = 0.0
    return replace(checkpoint, tensors=tensors)


def _integers(checkpoint: Checkpoint, seed: int, recipe: str, loud: bool) -> QuantizedModel:
    """Return the integer model, calibrated on texts of random tokens without FIRST."""
    others = replace(checkpoint.shape, vocab=checkpoint.shape.vocab - 1)
    text = FIRST + 1 + random_tokens(others, 8, seed)[:, int(loud) :]
    if loud:
        assert is_sink(checkpoint, np.append(FIRST, text[0])), "a loud first position is no sink"
    scales, weights = (
        calibrate(checkpoint, text, sink=FIRST if loud else None),
        parse_recipe(recipe),
    )
    moments = measure(checkpoint, scales, text) if weights.narrow else None
    return quantize(checkpoint, scales, weights, moments)


def _check_read(read: Checkpoint, written: Checkpoint) -> None:
    """Raise AssertionError unless a model was read as it was written, but for rounded factors."""
    assert read.shape == written.shape, f"{read.shape} is not {written.shape}"
    for name, value in written.tensors.items():
        assert np.allclose(read.tensors[name], value, rtol=1e-5, atol=1e-6), f"{name} differs"


def _check_alike(checkpoint: Checkpoint, model: QuantizedModel, ids: list[int]) -> None:
    """Raise AssertionError unless logits of integers and floats go together.

    A sink without norms has values as loud as its stream, which no unit of the others holds.
    """
    if model.first and not checkpoint.shape.pre_norms:
        return
    floats = forward(checkpoint, np.array([[FIRST] * model.first + ids]))[0, model.first :]
    integers = session.GoldenSession(model).prefill(ids)
    alike = np.corrcoef(floats.ravel(), integers.ravel())[0, 1]
    assert alike > ALIKE, f"integers are like floats by {alike:.2f}, allowed from {ALIKE} on"
