# SPDX-License-Identifier: Apache-2.0
"""Random config.json of a small decoder, as transformers writes it for its architecture.

Sizes are odd ones that fill no tile. What else an architecture knows (windows, rotations and what
they are scaled by, biases, multipliers, which norms there are) is drawn from its own fields, in
the spellings of transformers 4 and 5; a new architecture has sizes alone until it is named here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from weights.architecture import FULL, SLIDING
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS
from weights.synthetic import config_of, shape_of

Item = TypeVar("Item")
Config = dict[str, Any]
HIDDEN = (24, 80)
OWN_HEADS: tuple[str, ...] = (
    *("gemma", "gemma2", "gemma3_text", "granite", "llama", "mistral", "olmo2", "phi"),
    *("qwen2", "qwen3", "smollm3", "starcoder2"),
)
"""Architectures whose heads have a size of their own."""
GROUPED = (*OWN_HEADS, "falcon", "phi3", "stablelm")
"""Architectures that may have fewer K/V heads."""
WHOLE_ROWS = ("olmo2",)
"""Architectures with norms of all heads of a row, which programs have for heads of 16 lanes."""
LEARNED = ("gpt2", "gpt_neo", "opt")
"""Architectures with learned positions."""


class ConfigDraw:
    """A random generator that answers questions about a config."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random

    def of(self, *choices: Item) -> Item:
        """Return one of several."""
        return choices[int(self.random.integers(len(choices)))]

    def size(self, first: int, last: int) -> int:
        """Return an integer, both ends included."""
        return int(self.random.integers(first, last + 1))

    def number(self, first: float, last: float) -> float:
        """Return a number between two, short as configs have them."""
        return round(float(self.random.uniform(first, last)), 3)

    def some(self, kind: str, other: str, count: int) -> list[str]:
        """Return so many of two kinds in any order."""
        return [self.of(kind, other) for _ in range(count)]


def random_config(family: str, random: np.random.Generator) -> Config:
    """Return config.json of a decoder: 1 to 3 layers, 24 to 80 channels, 24 to 64 positions.

    It has no cap of scores, for which generation has no program.
    """
    draw = ConfigDraw(random)
    heads = draw.size(1, 6)
    least, most = HIDDEN
    kv_heads = draw.of(*(one for one in range(1, heads + 1) if heads % one == 0))
    # Rotations take pairs of lanes, and transformers multiples of the heads.
    step = 1 if family in (*OWN_HEADS, *LEARNED) else 2
    wide = step * draw.size(-(-least // (step * heads)), most // (step * heads))
    head_dim = 2 * draw.size(3, 18) if family in OWN_HEADS else wide
    if family in WHOLE_ROWS:
        head_dim = draw.of(16, 32)
    shape = shape_of(
        family,
        hidden=heads * wide,
        layers=draw.size(1, 3),
        heads=heads,
        kv_heads=kv_heads if family in GROUPED else heads,
        head_dim=head_dim,
        ffn=draw.size(17, 130),
        vocab=draw.size(40, 300),
        context=draw.size(24, 64),
        tied=draw.of(True, False),
        activation=draw.of(*ACTIVATIONS),
    )
    own = OPTIONS.get(family)
    return config_of(shape) | (own(draw, shape) if own else {})


def _scaling(draw: ConfigDraw, pairs: int, context: int) -> Config:
    """Return a kind of scaling with its options, of so many pairs of lanes."""
    original = draw.size(8, context)
    kinds = ("default", "linear", "llama3", "yarn", "longrope", "dynamic")
    kind = draw.of(*kinds[: len(kinds) - (pairs == 1)])  # transformers divides by the other pairs
    if kind == "default":
        return {"rope_type": kind}
    found: Config = {"rope_type": kind, "factor": draw.number(1.1, 8)}
    if kind == "llama3":
        found |= {"low_freq_factor": 1.0, "high_freq_factor": draw.number(1.5, 4)}
    if kind == "yarn":
        found |= draw.of({}, {"beta_fast": 2.0, "beta_slow": 0.5}, {"truncate": False})
        found |= draw.of({}, {"attention_factor": 1.2}, {"mscale": 0.7, "mscale_all_dim": 1.3})
    if kind == "longrope":
        short, long = ([draw.number(1, 4) for _ in range(pairs)] for _ in range(2))
        found |= {"short_factor": short, "long_factor": long}
        found |= draw.of({}, {"attention_factor": 1.3})
    if kind in ("llama3", "yarn", "longrope"):
        found["original_max_position_embeddings"] = original
    return found


def _theta(draw: ConfigDraw) -> float:
    return draw.of(50.0, 10000.0, 1e6)


def _rotation(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    """Return a rotation of whole heads, as transformers 5 or 4 writes it."""
    scaling = _scaling(draw, shape.head_dim // 2, shape.context)
    if draw.of(True, False):
        return {"rope_parameters": {"rope_theta": _theta(draw), **scaling}}
    older = None if scaling["rope_type"] == "default" else scaling
    return {"rope_parameters": None, "rope_theta": _theta(draw), "rope_scaling": older}


def _share(draw: ConfigDraw, shape: CheckpointShape) -> tuple[float, int]:
    """Return how much of a head is turned, and its pairs."""
    pairs = draw.size(1, shape.head_dim // 2)
    return min((2 * pairs + 0.5) / shape.head_dim, 1.0), pairs


def _partly(
    draw: ConfigDraw,
    shape: CheckpointShape,
    theta: str = "rope_theta",
    part: str = "partial_rotary_factor",
) -> Config:
    """Return a rotation of a part of each head; names are those of fields of transformers 4."""
    share, pairs = _share(draw, shape)
    scaling, base = _scaling(draw, pairs, shape.context), _theta(draw)
    if draw.of(True, False):
        given = {"rope_theta": base, "partial_rotary_factor": share}
        return {"rope_parameters": given | scaling}
    older = None if scaling["rope_type"] == "default" else scaling
    return {"rope_parameters": None, theta: base, part: share, "rope_scaling": older}


def _biases(draw: ConfigDraw, *fields: str) -> Config:
    """Return each of some flags, drawn."""
    return {field: draw.of(True, False) for field in fields}


def _window(draw: ConfigDraw, shape: CheckpointShape) -> int:
    return draw.size(1, shape.context + 4)


def _windows(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    """Return windows by layer as Qwen says them."""
    if draw.of(True, False):
        return {"use_sliding_window": False, "sliding_window": 7, "layer_types": None}
    given: Config = {"use_sliding_window": True, "sliding_window": _window(draw, shape)}
    if draw.of(True, False):
        given |= {"max_window_layers": draw.size(0, shape.layers), "layer_types": None}
        return given
    return given | {"layer_types": draw.some(FULL, SLIDING, shape.layers)}


def _falcon(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    new = 1 < shape.kv_heads < shape.heads or draw.of(True, False)
    given: Config = {
        "new_decoder_architecture": new,
        "multi_query": shape.kv_heads == 1,
        "parallel_attn": True if new else draw.of(True, False),
        "num_ln_in_parallel_attn": draw.of(None, 1, 2) if new else None,
    }
    return given | _biases(draw, "bias") | _rotation(draw, shape)


def _gemma2(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    return {
        "query_pre_attn_scalar": draw.size(4, 64),
        "attn_logit_softcapping": None,
        "final_logit_softcapping": draw.of(None, 20.0, 50.0),
        "sliding_window": _window(draw, shape),
        "layer_types": draw.of(None, draw.some(FULL, SLIDING, shape.layers)),
        **_biases(draw, "attention_bias"),
    }


def _gemma3(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    scaling = {FULL: _scaling(draw, shape.head_dim // 2, shape.context), SLIDING: {}}
    turned: Config = {
        "rope_parameters": {
            kind: {"rope_theta": _theta(draw), "rope_type": "default", **one}
            for kind, one in scaling.items()
        }
    }
    if draw.of(True, False):
        turned = {"rope_parameters": None, "rope_theta": _theta(draw), "rope_local_base_freq": 70.0}
        turned["rope_scaling"] = draw.of(None, {"rope_type": "linear", "factor": 3.0})
    pattern = {"layer_types": None, "sliding_window_pattern": draw.size(1, 3)}
    drawn = {"layer_types": draw.some(FULL, SLIDING, shape.layers)}
    return _gemma2(draw, shape) | turned | draw.of(pattern, drawn)


def _gpt_neo(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    kinds = draw.some("global", "local", shape.layers)
    return {"window_size": _window(draw, shape), "attention_types": [[kinds, 1]]}


def _gpt_neox(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    turned = _partly(draw, shape, "rotary_emb_base", "rotary_pct")
    return _biases(draw, "attention_bias", "use_parallel_residual") | turned


def _granite(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    return {
        "embedding_multiplier": draw.number(1, 12),
        "attention_multiplier": draw.number(0.05, 0.4),
        "residual_multiplier": draw.number(0.2, 1),
        "logits_scaling": draw.number(1, 10),
        **_biases(draw, "attention_bias", "mlp_bias"),
        **_rotation(draw, shape),
    }


def _mistral(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    return {"sliding_window": draw.of(None, _window(draw, shape))} | _rotation(draw, shape)


def _phi3(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    """Return a part of each head, and what is short or long beside an original context."""
    share, pairs = _share(draw, shape)
    given: Config = {"sliding_window": draw.of(None, _window(draw, shape))}
    rope: Config = {"rope_theta": _theta(draw), "partial_rotary_factor": share}
    if draw.of(True, False):
        factors = ([draw.number(1, 4) for _ in range(pairs)] for _ in range(2))
        rope |= dict(zip(("short_factor", "long_factor"), factors, strict=True))
        rope |= {"rope_type": "longrope"}
        given["original_max_position_embeddings"] = draw.size(8, 2 * shape.context)
    return given | {"rope_parameters": {"rope_type": "default"} | rope}


def _smollm3(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    every: Config = {"no_rope_layers": None, "no_rope_layer_interval": draw.size(2, 3)}
    drawn: Config = {"no_rope_layers": [draw.size(0, 1) for _ in range(shape.layers)]}
    windows: Config = {"use_sliding_window": False, "sliding_window": None, "layer_types": None}
    if draw.of(True, False):
        kinds = draw.of(None, draw.some(FULL, SLIDING, shape.layers))
        windows = {"use_sliding_window": True, "sliding_window": _window(draw, shape)}
        windows["layer_types"] = kinds
    biases = _biases(draw, "attention_bias", "mlp_bias")
    return _rotation(draw, shape) | draw.of(every, drawn) | windows | biases


def _starcoder2(draw: ConfigDraw, shape: CheckpointShape) -> Config:
    window: Config = {"sliding_window": draw.of(None, _window(draw, shape))}
    return window | _biases(draw, "use_bias") | _rotation(draw, shape)


def _with(*fields: str) -> Callable[[ConfigDraw, CheckpointShape], Config]:
    """Return the options of an architecture that has rotations and these flags."""
    return lambda draw, shape: _biases(draw, *fields) | _rotation(draw, shape)


OPTIONS: dict[str, Callable[[ConfigDraw, CheckpointShape], Config]] = {
    "falcon": _falcon,
    "gemma": _with("attention_bias"),
    "gemma2": lambda draw, shape: _gemma2(draw, shape) | _rotation(draw, shape),
    "gemma3_text": _gemma3,
    "gpt_neo": _gpt_neo,
    "gpt_neox": _gpt_neox,
    "granite": _granite,
    "llama": _with("attention_bias", "mlp_bias"),
    "mistral": _mistral,
    "olmo2": _with("attention_bias"),
    "opt": lambda draw, shape: _biases(draw, "enable_bias"),
    "phi": _partly,
    "phi3": _phi3,
    "qwen2": lambda draw, shape: _windows(draw, shape) | _rotation(draw, shape),
    "qwen3": lambda draw, shape: (
        _windows(draw, shape) | _rotation(draw, shape) | _biases(draw, "attention_bias")
    ),
    "smollm3": _smollm3,
    "stablelm": lambda draw, shape: (
        _partly(draw, shape) | _biases(draw, "use_qkv_bias", "use_parallel_residual")
    ),
    "starcoder2": _starcoder2,
}
"""What an architecture has beyond sizes; GPT-2 has nothing."""
