# SPDX-License-Identifier: Apache-2.0
"""A model in a folder as Hugging Face has it: config.json, and files of safetensors or PyTorch.

Matrices that are packed (quantization_config) are read as float32.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (tells numpy of bfloat16, for which safetensors asks it by name)
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from weights.architecture import Architecture, Config, Stored
from weights.architectures import ARCHITECTURES
from weights.checkpoint import CheckpointError, CheckpointShape, in_line
from weights.encoders import ENCODERS
from weights.stored import torch_pickle
from weights.stored.form import StoredTensor
from weights.stored.packed_int import FIELD, Packing, packing_of, unpacked

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
PICKLE_SUFFIX = ".bin"
DTYPES = ("F64", "F32", "F16", "BF16")
"""Types of stored tensors, as safetensors calls them; all become float32."""
TEXT = "text_config"
OUTSIDE = ("architectures", FIELD, "tie_word_embeddings")
"""Fields of a model of several parts that stand outside of them."""
WRAPPERS = (
    *("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"),
    "language_model",
)
"""Words that wrappers of modules (compiled, parallel, recomputed, with pictures) put into names."""


class FolderModel:
    """A folder and what it says.

    Attributes:
        architecture: as model_type of config.json names it.
        config: the content of config.json.
        dtypes: of stored tensors that are read.
    """

    dtypes: tuple[str, ...] = DTYPES

    def __init__(
        self, folder: Path, source: str, known: Mapping[str, Architecture] = ARCHITECTURES
    ) -> None:
        """Read config.json.

        Args:
            folder: where it lies.
            source: what messages call it.
            known: the architectures that it may have.

        Raises:
            CheckpointError: it is missing, damaged, or of another architecture.
        """
        self.folder, self.source = folder, source
        self.config = text_part(read_json(folder / CONFIG, source), source, known)
        self.architecture = architecture_of(self.config, known)
        self.packing: Packing | None = None
        if self.config.content.get(FIELD) is not None and self.architecture.linear:
            self.packing = packing_of(self.config)
            del self.config.content[FIELD]  # what it says is undone here

    def layout(self, shape: CheckpointShape) -> list[Stored]:
        """Return every tensor by its name without prefix."""
        return self.architecture.layout(shape)

    def key(self, name: str) -> str | None:
        """Return a name without wrappers and prefix, None of a buffer."""
        short = ".".join(word for word in name.split(".") if word not in WRAPPERS)
        short = short.removeprefix(self.architecture.prefix)
        short = self.architecture.renamed.get(short, short)
        return None if self.architecture.buffers.fullmatch(short) else short

    def left_out(self) -> dict[str, int]:
        """Return how many tensors belong to no part of the model, by the parts that they are of.

        Raises:
            CheckpointError: as of `tensors`.
        """
        names = [(one.name, self.key(one.name)) for one in self.tensors()]
        used = {key.partition(".")[0] for _, key in names if key is not None}
        prefix = self.architecture.prefix
        parts = [name.removeprefix(prefix).partition(".")[0] for name, key in names if key is None]
        return Counter(part for part in parts if part not in used)

    def tensors(self) -> Iterator[StoredTensor]:
        """Yield the tensors of all files, packed matrices as one.

        Raises:
            CheckpointError: a file is missing or damaged, or is a pickle and PyTorch is not there.
        """
        found = self._stored()
        if self.packing is None:
            return found
        sizes = self.architecture.sizes(self.architecture.shape(self.config))
        return unpacked(found, self.packing, self.source, lambda name: self.key(name) in sizes)

    def _stored(self) -> Iterator[StoredTensor]:
        for file in self._files():
            path = self.folder / file
            if not path.is_file():
                raise CheckpointError(
                    f"{self.source}: shard {in_line(file)} is missing in {self.folder}"
                )
            if path.suffix == PICKLE_SUFFIX:
                yield from torch_pickle.tensors_of(path, self.source)
                continue
            try:
                yield from _of_file(path, self.source)
            except (SafetensorError, TypeError, OSError) as error:
                raise CheckpointError(f"{self.source}: {file} cannot be read: {error}") from error

    def _files(self) -> list[str]:
        for file, index in ((WEIGHTS, INDEX), (PICKLE, PICKLE_INDEX)):
            if (self.folder / file).is_file():
                return [file]
            if (self.folder / index).is_file():
                return self._shards(index)
        raise CheckpointError(
            f"{self.source}: no weights in {self.folder}; allowed is {WEIGHTS}, or {INDEX} "
            f"with shards, {PICKLE}, or {PICKLE_INDEX} with shards"
        )

    def _shards(self, index: str) -> list[str]:
        """Return the files that an index names."""
        weight_map = read_json(self.folder / index, self.source).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise CheckpointError(
                f"{self.source}: {index}: given no weight_map, allowed name to file"
            )
        return sorted(
            {_shard_name(name, file, index, self.source) for name, file in weight_map.items()}
        )


def text_part(
    content: dict[str, Any], source: str, known: Mapping[str, Architecture] = ARCHITECTURES
) -> Config:
    """Return what config.json says, of a model of several parts that of the one for text.

    Raises:
        CheckpointError: a model that has one does not say it.
    """
    wholes = {one.whole: one for one in known.values() if one.whole}
    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in wholes:
        return Config(content, source)
    part = content.get(TEXT)
    if not isinstance(part, dict):
        raise Config(content, source).refusal(TEXT, f"a map, the part for text of a {kind}")
    places = {field: f"config.json {TEXT}.{field}" for field in part}
    outside = {field: content[field] for field in OUTSIDE if field in content}
    return Config(part | outside | {"model_type": wholes[kind].family}, source, places)


def architecture_of(
    config: Config, known: Mapping[str, Architecture] = ARCHITECTURES
) -> Architecture:
    """Return the architecture that config.json names. Raises CheckpointError for another one."""
    family = config.content.get("model_type")
    if not isinstance(family, str) or family not in known:
        encoder = f"; {ENCODERS[str(family)].uses}" if family in tuple(ENCODERS) else ""
        wholes = [one.whole for one in known.values() if one.whole]
        raise config.refusal("model_type", str([*known, *wholes]) + encoder)
    return known[family]


def _of_file(path: Path, source: str) -> Iterator[StoredTensor]:
    shard: Any
    with safe_open(path, framework="np") as shard:
        for name in shard.keys():  # noqa: SIM118 (a safetensors handle is no mapping)
            piece = shard.get_slice(name)
            load = partial(_read, path, name, source)
            yield StoredTensor(name, tuple(piece.get_shape()), piece.get_dtype(), load)


def _read(path: Path, name: str, source: str) -> npt.NDArray[Any]:
    """Return the numbers of a tensor; a file that stays open keeps what was read in memory."""
    shard: Any
    try:
        with safe_open(path, framework="np") as shard:
            found: npt.NDArray[Any] = shard.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{source}: {path.name} cannot be read: {error}") from error
    return found


def read_json(path: Path, source: str) -> dict[str, Any]:
    """Return the map of a file. Raises CheckpointError, which names the source, without one."""
    if not path.is_file():
        raise CheckpointError(f"{source}: {path.name} is missing in {path.parent}")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source}: {path.name} is not JSON: {error}") from error
    except OSError as error:
        raise CheckpointError(f"{source}: {path.name} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{source}: {path.name}: given {type(content).__name__}, allowed map")
    return content


def _shard_name(name: str, file: object, index: str, source: str) -> str:
    """Return the file of a tensor as the index has it: a plain name with the ending of its kind."""
    suffix = Path(WEIGHTS).suffix if index == INDEX else PICKLE_SUFFIX
    if not isinstance(file, str) or Path(file).name != file or Path(file).suffix != suffix:
        raise CheckpointError(
            f"{source}: {index}: tensor {name!r}: given file {file!r}, "
            f"allowed the name of a {suffix} file in the folder"
        )
    return file
