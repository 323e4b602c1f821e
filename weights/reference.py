# SPDX-License-Identifier: Apache-2.0
"""The float32 forward pass of GPT-2 in numpy: for calibration, and to measure the integer one.

Formulas: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), as
implemented by transformers' GPT2LMHeadModel, against which tests/oracles checks this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.importer import ACTIVATIONS, Checkpoint

Floats = npt.NDArray[np.floating[Any]]
Observer = Callable[[str, Floats], None]
"""Called with the name and the values of an intermediate tensor, (..., channels) float32."""


def activation(name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Apply the GELU called `name` in a config, elementwise, in the dtype of `x`.

    "gelu" is x * Phi(x) with the exact error function; "gelu_new" and "gelu_pytorch_tanh" are its
    tanh form (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016).
    """
    if name == "gelu":
        flat = [math.erf(v) for v in (x.astype(np.float64) / math.sqrt(2.0)).ravel()]
        phi: npt.NDArray[Any] = np.array(flat, np.float64).reshape(x.shape)
        exact: npt.NDArray[Any] = (0.5 * x * (1.0 + phi)).astype(x.dtype)
        return exact
    if name in ACTIVATIONS:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
        smooth: npt.NDArray[Any] = (0.5 * x * (1.0 + np.tanh(inner))).astype(x.dtype)
        return smooth
    raise ValueError(f"activation: given {name!r}, allowed {list(ACTIVATIONS)}")


def normalise(x: Floats, epsilon: float) -> Floats:
    """Return (x - mean) / sqrt(variance + epsilon) over the last axis, before gain and bias."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    result: Floats = (centred / np.sqrt(variance + epsilon)).astype(np.float32)
    return result


def softmax(scores: Floats) -> Floats:
    """Return the softmax over the last axis; -inf entries get 0."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Floats = (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)
    return result


def _ignore(name: str, values: Floats) -> None:
    """Observe nothing."""


def forward(
    checkpoint: Checkpoint, tokens: npt.NDArray[np.integer[Any]], observe: Observer = _ignore
) -> Floats:
    """Return the logits of rows of tokens that start at position 0.

    Args:
        checkpoint: the model.
        tokens: (B, T) integer ids, T at most the context.
        observe: is called with "residual" (the stream after the embedding and after each add),
            "addend" (what is added), "h.{l}.ln_1", "h.{l}.ln_2" and "ln_f" (normalised, before
            gain and bias), "h.{l}.q", ".k", ".v", ".scores" (natural, masked entries left out,
            (n,)), ".ctx", ".fc", ".gelu", and "logits".

    Returns:
        (B, T, V) float32.

    Raises:
        ValueError: wrong type or rank, too many positions, or an id outside the vocabulary.
    """
    shape, tensors = checkpoint.shape, checkpoint.tensors
    check_tokens("forward", checkpoint, tokens)
    rows, length = tokens.shape
    x: Floats = tensors["wte.weight"][tokens] + tensors["wpe.weight"][:length]
    observe("residual", x)
    visible = np.tri(length, dtype=bool)
    for layer in range(shape.layers):
        name = f"h.{layer}"
        n = normalise(x, shape.epsilon)
        observe(f"{name}.ln_1", n)
        h = n * tensors[f"{name}.ln_1.weight"] + tensors[f"{name}.ln_1.bias"]
        qkv = h @ tensors[f"{name}.attn.c_attn.weight"] + tensors[f"{name}.attn.c_attn.bias"]
        q, k, v = np.split(qkv, 3, axis=-1)
        for key, values in (("q", q), ("k", k), ("v", v)):
            observe(f"{name}.{key}", values)
        split = (rows, length, shape.heads, shape.head_dim)
        by_head = [part.reshape(split).transpose(0, 2, 1, 3) for part in (q, k, v)]
        scores = by_head[0] @ by_head[1].transpose(0, 1, 3, 2) / math.sqrt(shape.head_dim)
        observe(f"{name}.scores", scores[..., visible])
        weights = softmax(np.where(visible, scores, np.float32(-np.inf)))
        mixed = (weights @ by_head[2]).transpose(0, 2, 1, 3)
        context = mixed.reshape(rows, length, shape.hidden)
        observe(f"{name}.ctx", context)
        y = context @ tensors[f"{name}.attn.c_proj.weight"] + tensors[f"{name}.attn.c_proj.bias"]
        observe("addend", y)
        x = x + y
        observe("residual", x)
        n = normalise(x, shape.epsilon)
        observe(f"{name}.ln_2", n)
        h = n * tensors[f"{name}.ln_2.weight"] + tensors[f"{name}.ln_2.bias"]
        inner = h @ tensors[f"{name}.mlp.c_fc.weight"] + tensors[f"{name}.mlp.c_fc.bias"]
        observe(f"{name}.fc", inner)
        active = activation(shape.activation, inner)
        observe(f"{name}.gelu", active)
        z = active @ tensors[f"{name}.mlp.c_proj.weight"] + tensors[f"{name}.mlp.c_proj.bias"]
        observe("addend", z)
        x = x + z
        observe("residual", x)
    n = normalise(x, shape.epsilon)
    observe("ln_f", n)
    h = n * tensors["ln_f.weight"] + tensors["ln_f.bias"]
    logits: Floats = (h @ tensors["lm_head.weight"].T).astype(np.float32)
    observe("logits", logits)
    return logits


def check_tokens(where: str, checkpoint: Checkpoint, tokens: object) -> None:
    """Raise ValueError, naming `where`, unless `tokens` are rows of ids that the model takes."""
    shape = checkpoint.shape
    if not isinstance(tokens, np.ndarray) or tokens.dtype.kind not in "iu":
        given = tokens.dtype if isinstance(tokens, np.ndarray) else type(tokens).__name__
        raise ValueError(f"{where}: tokens: given {given}, allowed an array of integers")
    if tokens.ndim != 2 or tokens.size == 0:
        raise ValueError(f"{where}: tokens: given shape {tokens.shape}, allowed (B, T), not empty")
    if tokens.shape[1] > shape.context:
        raise ValueError(
            f"{where}: tokens: given {tokens.shape[1]} positions, allowed 1..{shape.context}"
        )
    if int(tokens.min()) < 0 or int(tokens.max()) >= shape.vocab:
        raise ValueError(
            f"{where}: tokens: given ids {int(tokens.min())}..{int(tokens.max())}, "
            f"allowed 0..{shape.vocab - 1}"
        )


def bits_per_byte(logits: npt.NDArray[Any], tokens: npt.NDArray[np.integer[Any]]) -> float:
    """Return the mean next-token cross entropy in bits; per byte if a token is a byte.

    Args:
        logits: (B, T, V), real or already dequantised.
        tokens: (B, T) ids; position t predicts tokens[:, t + 1].
    """
    ahead = logits[:, :-1].astype(np.float64)
    ahead = ahead - ahead.max(axis=-1, keepdims=True)
    total = np.log(np.exp(ahead).sum(axis=-1))
    chosen = np.take_along_axis(ahead, tokens[:, 1:, None].astype(np.int64), axis=-1)[..., 0]
    return float((total - chosen).mean() / math.log(2.0))
