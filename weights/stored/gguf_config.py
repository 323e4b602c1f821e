# SPDX-License-Identifier: Apache-2.0
"""The metadata of a GGUF file as what config.json would say.

The parser of the architecture then reads both and refuses both, only by the names of metadata.
What is no option of the architecture is refused by its key. The scaling of rotations is spread
over keys and tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weights.architecture import Architecture, Config
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointError, in_line
from weights.rope_config import ORIGINAL, ROPE_THETA
from weights.stored.gguf_header import GgufHeader

ARCHITECTURE = "general.architecture"
TOKENS = "tokenizer.ggml.tokens"
EMBEDDING, HEAD = "token_embd.weight", "output.weight"
FREQUENCIES = "rope_freqs.weight"
"""What the frequencies of rotary pairs are divided by, (lanes / 2,)."""
LONG = {"rope_factors_long.weight": "long_factor", "rope_factors_short.weight": "short_factor"}
"""The same for long and for short contexts, with the options of "longrope" that they are."""
TABLES = (FREQUENCIES, *LONG)
"""Tensors that the configuration is read from."""
LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""With which factors of frequencies are made from one factor; a file has only the factors."""
SCALING = {
    "factor": "factor",
    "original_context_length": ORIGINAL,
    "attn_factor": "attention_factor",
    "yarn_attn_factor": "attention_factor",
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
}
"""Fields of rope_scaling by the end of the key."""
HEAD_SIZES = ("attention.key_length", "attention.value_length")
"""Keys that may only repeat the size of a head."""
LANES = "rope.dimension_count"
IGNORED = ("tensor_data_layout", "rope.scaling.finetuned")
"""Keys that change nothing, unless an architecture says otherwise."""
FIXED: dict[str, tuple[object, ...]] = {
    "attention.causal": (True,),
    "rope.scaling.yarn_ext_factor": (1,),
    "rope.scaling.yarn_log_multiplier": (0,),
}
"""Keys that may have one of these values alone."""
EXPERTS = "expert_"
"""What all keys of mixtures of experts begin with; 0 is none."""


def architecture_of(header: GgufHeader, source: str) -> Architecture:
    """Return the architecture that a file names.

    Raises:
        CheckpointError: none of those that are read; names them.
    """
    given = header.metadata.get(ARCHITECTURE)
    known: dict[str, list[tuple[str, Architecture]]] = {}
    for one in ARCHITECTURES.values():
        if one.gguf is not None:
            known.setdefault(one.gguf.name or one.family, []).append((one.gguf.marked, one))
    if not isinstance(given, str) or given not in known:
        raise CheckpointError(f"{source}: {ARCHITECTURE}: given {given!r}, allowed {sorted(known)}")
    found = dict(known[given])
    marks = [one for one in found if one and f"{given}.{one}" in header.metadata]
    return found[marks[0] if marks else ""]


def config_of(
    header: GgufHeader,
    architecture: Architecture,
    source: str,
    table: Callable[[str], list[float]],
) -> Config:
    """Return what config.json would say.

    Args:
        header: of the file.
        architecture: its own.
        source: what messages call it.
        table: returns the numbers of a tensor.

    Raises:
        CheckpointError: a key is missing, unknown, or contradicts others.
    """
    return _ConfigReader(header, architecture, source, table).config()


class _ConfigReader:
    """Makes a configuration of metadata, of which it takes away what it has read."""

    def __init__(
        self,
        header: GgufHeader,
        architecture: Architecture,
        source: str,
        table: Callable[[str], list[float]],
    ) -> None:
        assert architecture.gguf is not None
        self.header, self.architecture, self.source = header, architecture, source
        self.table, self.form = table, architecture.gguf
        self.name = self.form.name or architecture.family
        prefix = f"{self.name}."
        self.values = {
            key.removeprefix(prefix): value
            for key, value in header.metadata.items()
            if key.startswith(prefix)
        }

    def config(self) -> Config:
        form, tensors = self.form, self.header.tensors
        self.check_fixed()
        places = {field: f"metadata {self.name}.{key}" for key, field in form.fields.items()}
        content = {
            field: self.values.pop(key) for key, field in form.fields.items() if key in self.values
        }
        for key in form.required:
            if form.fields[key] not in content:
                raise CheckpointError(f"{self.source}: metadata {self.name}.{key} is missing")
        content |= {field: tensor in tensors for field, tensor in form.present}
        content |= {field: tensor not in tensors for field, tensor in form.absent}
        content["model_type"] = self.architecture.family
        content["tie_word_embeddings"] = HEAD not in tensors
        if content.get("sliding_window") == 0:  # none
            content["sliding_window"] = None
        if form.rotary:
            heads = content["num_attention_heads"]
            content.setdefault("num_key_value_heads", heads)
            content.setdefault("head_dim", None)
            content.setdefault("rope_theta", ROPE_THETA)  # whatever transformers' default is
        if EMBEDDING in tensors:
            content.setdefault("vocab_size", tensors[EMBEDDING].shape[0])
        content |= form.completed(content)
        found = Config(content, self.source, places, "metadata")
        self.check_tokens(found)
        if form.rotary:
            self.add_rotary(found)
        self.check_rest()
        return found

    def refusal(self, key: str, given: object, allowed: str) -> CheckpointError:
        return CheckpointError(
            f"{self.source}: metadata {self.name}.{in_line(key)}: given {given!r:.60}, allowed "
            f"{allowed}"
        )

    def check_fixed(self) -> None:
        """Take away what may have some values only; refuse others."""
        for key in [one for one in self.values if one.startswith(EXPERTS)]:
            if (given := self.values.pop(key)) not in (0, False):
                raise self.refusal(key, given, "0: mixtures of experts are not read")
        for key, allowed in (FIXED | dict(self.form.fixed)).items():
            if key in self.values and (given := self.values.pop(key)) not in allowed:
                raise self.refusal(key, given, " or ".join(map(repr, allowed)))

    def check_tokens(self, config: Config) -> None:
        tokens = self.header.metadata.get(TOKENS)
        vocab = config.content.get("vocab_size")
        if isinstance(tokens, list) and isinstance(vocab, int) and len(tokens) > vocab:
            raise CheckpointError(
                f"{self.source}: metadata {TOKENS}: given {len(tokens)} tokens, allowed up to "
                f"{vocab}, the vocabulary of the model"
            )

    def check_rest(self) -> None:
        """Refuse what nothing has read."""
        for key in sorted(self.values.keys() - {*IGNORED, *self.form.ignored}):
            raise self.refusal(
                key,
                self.values[key],
                f"are no options of a {self.name} but {', '.join(self.form.fields)}",
            )

    def add_rotary(self, config: Config) -> None:
        """Check the sizes of heads, and add how much of them is rotated, and how."""
        scaling = self.share(config)
        kind = self.values.pop("rope.scaling.type", "none")
        self.place(config, "rope_type", "rope.scaling.type")
        tables = LONG.keys() & self.header.tensors.keys()
        if kind == "none" and tables:
            kind = "longrope"
        if kind != "none":
            scaling["rope_type"] = kind
        for key, field in SCALING.items():
            if (given := self.values.pop(f"rope.scaling.{key}", None)) is None:
                continue
            self.place(config, field, f"rope.scaling.{key}")
            if field == ORIGINAL:
                config.places[field] = config.places[f"rope_scaling.{field}"]
                config.content[field] = given
            if kind != "none" or (field != ORIGINAL and given != 1):
                scaling[field] = given
        for name in tables:
            scaling[LONG[name]] = self.table(name)
            config.places[f"rope_scaling.{LONG[name]}"] = f"tensor {name}"
        if scaling:
            config.content["rope_scaling"] = scaling
        if FREQUENCIES in self.header.tensors:
            config.content["rope_scaling"] = scaling | self.llama3(config)
            config.places["rope_scaling.rope_type"] = f"tensor {FREQUENCIES}"

    def place(self, config: Config, field: str, key: str) -> None:
        config.places[f"rope_scaling.{field}"] = f"metadata {self.name}.{key}"

    def share(self, config: Config) -> dict[str, Any]:
        """Return how much of a head is rotated where that may be less than all."""
        head = _head_dim(config.content)
        for key in HEAD_SIZES:
            size = self.values.pop(key, head)
            if head is not None and size != head:
                raise self.refusal(key, size, f"{head}, the size of a head")
        lanes = self.values.pop(LANES, None)
        if lanes is None or head is None:
            return {}
        if not self.form.partial:
            if lanes != head:
                raise self.refusal(LANES, lanes, f"{head}, the size of a head")
            return {}
        if type(lanes) is not int or not 0 <= lanes <= head or lanes % 2:
            raise self.refusal(LANES, lanes, f"an even number up to {head}, the size of a head")
        self.place(config, "partial_rotary_factor", LANES)
        # A little more, since lanes are counted by cutting off what is behind the point.
        return {"partial_rotary_factor": min((lanes + 0.5) / head, 1.0)}

    def llama3(self, config: Config) -> dict[str, Any]:
        """Return the scaling of frequencies that LLaMA 3 has, from the factors of a file."""
        plain = self.architecture.shape(config).rotation(0)
        given = np.array(self.table(FREQUENCIES))
        pairs = np.arange(plain.lanes // 2) * 2 / max(plain.lanes, 1)
        turns = LLAMA3["original_max_position_embeddings"] / (2 * np.pi * plain.theta**pairs)
        low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
        share = np.clip((turns - low) / (high - low), 0, 1)
        factor = float(given.max())
        if given.shape != pairs.shape or not np.allclose(
            given, 1 / ((1 - share) / factor + share), rtol=1e-4
        ):
            raise CheckpointError(
                f"{self.source}: tensor {FREQUENCIES!r}: given {given.size} factors up to "
                f"{factor:g}, allowed {pairs.size} as LLaMA 3 has them ({LLAMA3})"
            )
        return {"rope_type": "llama3", "factor": factor, **LLAMA3}


def _head_dim(content: dict[str, Any]) -> int | None:
    """Return the size of a head, None where the sizes that it comes of are refused as such."""
    given = content.get("head_dim")
    hidden, heads = content.get("hidden_size"), content.get("num_attention_heads")
    if given is None and type(hidden) is int and type(heads) is int and heads > 0:
        given = hidden // heads
    return given if type(given) is int and given > 0 else None
