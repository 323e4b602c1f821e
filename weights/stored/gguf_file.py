# SPDX-License-Identifier: Apache-2.0
"""A decoder in a GGUF file, as llama.cpp uses them: configuration and tensors of an architecture.

Metadata becomes what config.json would say, so that the parser of the architecture reads both and
refuses both, only by the names of metadata. The package gguf knows the names and types of tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weights.architecture import Architecture, Config, Stored
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointError, CheckpointShape, Float32
from weights.stored.form import StoredTensor
from weights.stored.gguf_header import GgufHeader, TensorPlace, read_header

TYPES = (
    *("F64", "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
)
"""Types of tensors that are read, as GGUF calls them; all become float32."""
ARCHITECTURE = "general.architecture"
TOKENS = "tokenizer.ggml.tokens"
EMBEDDING, HEAD = "token_embd.weight", "output.weight"
FREQUENCIES = "rope_freqs.weight"
"""What the frequencies of rotary pairs are divided by, (D / 2,)."""
LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""With which factors of frequencies are made from one factor; a file has only the factors."""
SCALING = {
    "factor": "factor",
    "original_context_length": "original_max_position_embeddings",
}
"""Fields of rope_scaling by the end of the key."""
HEAD_SIZES = ("attention.value_length", "rope.dimension_count")
"""Keys that may only repeat the size of a head."""
NOTES = ("tensor_data_layout", "rope.scaling.finetuned")
"""Keys that change nothing."""
_MATRIX = re.compile(r"h\.\d+\.(q|k|v|o|gate|up|down)\.weight")
_ROTATED = re.compile(r"blk\.\d+\.attn_([qk])\.(weight|bias)")


class GgufModel:
    """A file and what it says.

    Attributes:
        architecture: its own.
        config: what config.json would say.
        dtypes: of stored tensors that are read.
    """

    dtypes: tuple[str, ...] = TYPES

    def __init__(self, path: Path, source: str) -> None:
        """Read the header.

        Raises:
            CheckpointError: it is damaged, of another architecture, or has unknown options.
        """
        self.path, self.source = path, source
        self.header = read_header(path, source)
        self.architecture = self._architecture()
        self.config = self._config()

    def _architecture(self) -> Architecture:
        given = self.header.metadata.get(ARCHITECTURE)
        known = {one.family: one for one in ARCHITECTURES.values() if one.gguf is not None}
        if not isinstance(given, str) or given not in known:
            raise CheckpointError(
                f"{self.source}: {ARCHITECTURE}: given {given!r}, allowed {list(known)}"
            )
        return known[given]

    def _config(self) -> Config:
        form, family = self.architecture.gguf, self.architecture.family
        assert form is not None
        tensors = self.header.tensors
        keys = {field: f"{family}.{key}" for key, field in form.fields.items()}
        values = _options(self.header, family)
        content = {
            field: values.pop(key) for key, field in form.fields.items() if key in values
        } | {field: tensor in tensors for field, tensor in form.present}
        for key in form.required:
            if form.fields[key] not in content:
                raise CheckpointError(f"{self.source}: metadata {family}.{key} is missing")
        content |= {"model_type": family, "tie_word_embeddings": HEAD not in tensors}
        if form.rotary:
            heads = content["num_attention_heads"]
            content["num_key_value_heads"] = content.get("num_key_value_heads", heads)
            content["head_dim"] = content.get("head_dim")
        if EMBEDDING in tensors:
            content.setdefault("vocab_size", tensors[EMBEDDING].shape[0])
        config = Config(content, self.source, keys)
        self._check_tokens(config)
        if form.rotary:
            self._add_rotary(config, values)
        for key in sorted(values.keys() - set(NOTES)):
            raise CheckpointError(
                f"{self.source}: metadata {family}.{key}: given {values[key]!r:.60}, allowed are "
                f"no options of a {family} but {', '.join(form.fields)}"
            )
        return config

    def _check_tokens(self, config: Config) -> None:
        tokens = self.header.metadata.get(TOKENS)
        vocab = config.content.get("vocab_size")
        if isinstance(tokens, list) and isinstance(vocab, int) and len(tokens) > vocab:
            raise CheckpointError(
                f"{self.source}: metadata {TOKENS}: given {len(tokens)} tokens, allowed up to "
                f"{vocab}, the vocabulary of the model"
            )

    def _add_rotary(self, config: Config, values: dict[str, Any]) -> None:
        """Check the sizes of heads, and add the scaling of frequencies."""
        shape = self.architecture.shape(config)
        for key in HEAD_SIZES:
            size = values.pop(key, shape.head_dim)
            if size != shape.head_dim:
                raise CheckpointError(
                    f"{self.source}: metadata {shape.family}.{key}: given {size!r}, allowed "
                    f"{shape.head_dim}, the size of a head"
                )
        kind = values.pop("rope.scaling.type", "none")
        scaling: dict[str, Any] = {} if kind == "none" else {"rope_type": kind}
        config.places["rope_scaling.rope_type"] = f"{shape.family}.rope.scaling.type"
        for key, field in SCALING.items():
            if f"rope.scaling.{key}" in values:
                scaling[field] = values.pop(f"rope.scaling.{key}")
                config.places[f"rope_scaling.{field}"] = f"{shape.family}.rope.scaling.{key}"
        if FREQUENCIES in self.header.tensors:
            scaling = self._llama3(shape)
            config.places["rope_scaling.rope_type"] = f"tensor {FREQUENCIES}"
        if scaling:
            config.content["rope_scaling"] = scaling

    def _llama3(self, shape: CheckpointShape) -> dict[str, Any]:
        """Return the scaling of frequencies that LLaMA 3 has, from the factors of a file."""
        given = self._load(FREQUENCIES, self.header.tensors[FREQUENCIES]).astype(np.float64)
        pairs = np.arange(shape.head_dim // 2) * 2 / shape.head_dim
        turns = LLAMA3["original_max_position_embeddings"] / (2 * np.pi * shape.rope_theta**pairs)
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

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor by its name in the file; all matrices of layers are (out, in)."""
        library = _library(self.source)
        family = self.architecture.family
        linear = self.architecture.linear
        number = {name: number for number, name in library.MODEL_ARCH_NAMES.items()}[family]
        names = library.get_tensor_name_map(number, shape.layers)

        def renamed(one: Stored) -> Stored:
            known = self.architecture.full_name(one.name)
            name = names.get_name(known, try_suffixes=(".weight", ".bias"))
            assert name is not None, one.name
            matrix = _MATRIX.fullmatch(one.parts[0]) is not None
            return replace(one, name=name, transposed=one.transposed or (matrix and not linear))

        return [renamed(one) for one in self.architecture.layout(shape)]

    def key(self, name: str) -> str | None:
        """Return a name as it is, None for the factors of frequencies."""
        return None if name == FREQUENCIES else name

    def tensors(self) -> Iterator[StoredTensor]:
        """Yield the tensors of the file.

        Raises:
            CheckpointError: one has an unknown type or does not lie within the file.
        """
        for name, place in self.header.tensors.items():
            kind = self._type(name, place)[0]
            yield StoredTensor(name, place.shape, kind, partial(self._load, name, place))

    def _type(self, name: str, place: TensorPlace) -> tuple[str, int]:
        """Return the type and the bytes of a tensor."""
        library = _library(self.source)
        kind = {int(one): one for one in library.GGMLQuantizationType}.get(place.type)
        if kind is None or kind.name not in TYPES:
            given = place.type if kind is None else kind.name
            raise CheckpointError(
                f"{self.source}: tensor {name!r}: given type {given}, allowed {', '.join(TYPES)}"
            )
        block, size = library.GGML_QUANT_SIZES[kind]
        count = int(np.prod(place.shape, dtype=object))
        if place.shape[-1] % block:
            raise CheckpointError(
                f"{self.source}: tensor {name!r}: given rows of {place.shape[-1]} as {kind.name}, "
                f"allowed a multiple of {block}"
            )
        end = place.start + count // block * size
        if end > self.header.size:
            raise CheckpointError(
                f"{self.source}: tensor {name!r}: given bytes {place.start} to {end}, allowed "
                f"within the {self.header.size} bytes of the file"
            )
        return kind.name, count // block * size

    def _load(self, name: str, place: TensorPlace) -> Float32:
        """Return the numbers of a tensor; rotary pairs of q and k as Hugging Face has them."""
        library = _library(self.source)
        kind, size = self._type(name, place)
        raw = np.memmap(self.path, np.uint8, "r", place.start, (size,))
        rows = raw.reshape(*place.shape[:-1], -1)
        with np.errstate(over="ignore", invalid="ignore"):  # refused as not finite
            found: Float32 = (
                rows.view(np.float64).astype(np.float32)
                if kind == "F64"
                else library.dequantize(rows, library.GGMLQuantizationType[kind])
            )
        assert self.architecture.gguf is not None
        match = _ROTATED.fullmatch(name)
        if match is None or not self.architecture.gguf.permuted:
            return found
        return _unpermuted(found, self._heads(match[1]))

    def _heads(self, part: str) -> int:
        field = "num_attention_heads" if part == "q" else "num_key_value_heads"
        return int(self.config.content[field])


def _options(header: GgufHeader, family: str) -> dict[str, Any]:
    """Return the metadata of an architecture without its name in front."""
    prefix = f"{family}."
    return {
        key.removeprefix(prefix): value
        for key, value in header.metadata.items()
        if key.startswith(prefix)
    }


def _unpermuted(rows: Float32, heads: int) -> Float32:
    """Return rows of q or k whose rotary pairs lie half a head apart instead of side by side."""
    if rows.shape[0] % (2 * heads):
        return rows  # of a wrong shape, which is refused as such
    pairs = rows.reshape(heads, rows.shape[0] // heads // 2, 2, *rows.shape[1:])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def _library(source: str) -> Any:  # noqa: ANN401
    """Return the package gguf, which only those need who read such a file."""
    try:
        import gguf
    except ImportError as error:
        raise CheckpointError(
            f"{source}: reading GGUF needs a package: {error}: pip install -e .[checkpoints]"
        ) from error
    return gguf
