# SPDX-License-Identifier: Apache-2.0
"""A decoder in a GGUF file, as llama.cpp uses them: configuration and tensors of an architecture.

What the metadata says is in weights.stored.gguf_config. The package gguf knows the names and types
of tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from weights.architecture import Stored
from weights.checkpoint import CheckpointError, CheckpointShape, Float32
from weights.stored.form import StoredTensor
from weights.stored.gguf_config import TABLES, architecture_of, config_of
from weights.stored.gguf_header import TensorPlace, read_header

TYPES = (
    *("F64", "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"),
    *("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"),
)
"""Types of tensors that are read, as GGUF calls them; all become float32."""
_MATRIX = re.compile(r"h\.\d+\.(q|k|v|o|gate|up|down)\.weight")
_ROTATED = re.compile(r"blk\.\d+\.attn_([qk])\.(weight|bias)")
_SPLIT = re.compile(r"(blk\.\d+\.attn_)[qkv](\.weight|\.bias)")


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
        self.architecture = architecture_of(self.header, source)
        self.config = config_of(self.header, self.architecture, source, self._table)

    def _table(self, name: str) -> list[float]:
        """Return the numbers of a small tensor, as the shortest decimals that they are."""
        found = self._load(name, self.header.tensors[name])
        return [float(str(one)) for one in found.ravel()]

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor by its name in the file; all matrices of layers are (out, in)."""
        library = _library(self.source)
        form = self.architecture.gguf
        assert form is not None
        given = replace(self.architecture, stored=form.stored or self.architecture.stored)
        numbers = {name: number for number, name in library.MODEL_ARCH_NAMES.items()}
        names = library.get_tensor_name_map(numbers[form.name or given.family], shape.layers)
        head = given.head.removesuffix("weight")

        def renamed(one: Stored) -> Stored:
            known = given.full_name(one.name)
            name = names.get_name(known, try_suffixes=(".weight", ".bias"))
            if name is None:  # not every architecture of the package has a head of its own
                assert known.startswith(head), known
                name = f"output.{known.removeprefix(head)}"
            matrix = _MATRIX.fullmatch(one.parts[0]) is not None
            turned = one.transposed or (matrix and not given.linear)
            return replace(one, name=name, transposed=turned)

        return self._joined([renamed(one) for one in given.layout(shape)], shape)

    def _joined(self, layout: list[Stored], shape: CheckpointShape) -> list[Stored]:
        """Return a layout with q, k and v as one tensor where the file has them so."""
        found: list[Stored] = []
        joined: dict[str, list[Stored]] = {}
        for one in layout:
            whole = _SPLIT.sub(r"\1qkv\2", one.name)
            if whole != one.name and whole in self.header.tensors:
                joined.setdefault(whole, []).append(one)
            else:
                found.append(one)
        ends = np.cumsum([0, shape.q_columns, shape.kv_columns, shape.kv_columns])
        straight = [np.arange(*pair) for pair in pairwise(ends)]
        for name, parts in joined.items():
            orders = [
                start if one.order is None else one.order + start[0]
                for one, start in zip(parts, straight, strict=True)
            ]
            names = tuple(part for one in parts for part in one.parts)
            found.append(replace(parts[0], name=name, parts=names, order=np.concatenate(orders)))
        return found

    def key(self, name: str) -> str | None:
        """Return a name as it is, None for factors of frequencies."""
        return None if name in TABLES else name

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
