# SPDX-License-Identifier: Apache-2.0
"""Read a Hugging Face checkpoint of a known architecture into float32 numpy arrays, without torch.

A checkpoint is a local folder, the name of one that ships, or a hub id: config.json and either
model.safetensors or the shards that model.safetensors.index.json names, or the same of PyTorch's
pickles (pytorch_model.bin). Or it is a GGUF file, or a folder with one and without config.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointShape,
    Float32,
    Group,
    GroupedTensors,
    check_numbers,
    check_sizes,
    digest,
    expected_tensors,
    group_of,
    rewritten,
    shortened,
    tensors_of,
)
from weights.shipped import shipped
from weights.stored.folder import (
    CONFIG,
    INDEX,
    WEIGHTS,
    FolderModel,
    architecture_of,
    read_json,
    text_part,
)
from weights.stored.form import StoredModel, StoredTensor
from weights.stored.gguf_file import GgufModel
from weights.stored.gguf_header import gguf_within, is_gguf
from weights.tokenizer import END_FILES, TOKENIZER_FILES

COVARIANCE_FILE = "input_covariance.safetensors"
"""What weights.covariance keeps beside a checkpoint."""
HUB_FILES = (
    *("*.safetensors", INDEX, "activation_scales.json"),
    *TOKENIZER_FILES,
    *END_FILES,  # config.json among them
)
"""What is fetched from the hub."""
PICKLE_FILES = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
"""What is fetched of a model without safetensors."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def load_checkpoint(
    source: str | Path, *, revision: str | None = None, context: int | None = None
) -> Checkpoint:
    """Read a checkpoint from a local folder, of those that ship, or from the hub.

    Args:
        source: a folder; if there is none of that name, the name of one that ships
            ("gpt2-tiny"), or else a hub id such as "openai-community/gpt2". Without a network a hub
            id is looked up in the local cache of huggingface_hub.
        revision: branch, tag or commit on the hub; None is the default branch.
        context: positions, None for those of the model.

    Raises:
        CheckpointError: not found, of an unknown architecture, has fewer positions, or a tensor
            is missing, misshapen
            or not finite. The message names the file or tensor, what was given, what is allowed.
    """
    model, place = _opened(source, revision, HUB_FILES)
    shape = model.architecture.shape(model.config)
    short = shortened(str(source), shape, context)
    tensors = canonical(model, shape, stored_tensors(model), partial(expected_tensors, shape))
    folder, file = (place, None) if place.is_dir() and short == shape else (None, place)
    found = Checkpoint(shape, tensors, str(source), folder, file)
    if short != shape:
        found = _shortened(found, short)
    digest(found)  # which reads all that is to be refused
    return found


def _shortened(checkpoint: Checkpoint, shape: CheckpointShape) -> Checkpoint:
    """Return a checkpoint with fewer positions, also of those that are learned."""

    def make(group: str) -> Group:
        found = tensors_of(checkpoint.tensors, group)
        if "positions" in found:
            found["positions"] = found["positions"][: shape.context]
        return found

    return rewritten(checkpoint, make, shape)


def load_shape(
    source: str | Path, *, revision: str | None = None, context: int | None = None
) -> CheckpointShape:
    """Read the dimensions of a checkpoint, of all its files config.json or a header alone.

    Arguments and errors as of `load_checkpoint`.
    """
    model, _ = _opened(source, revision, (CONFIG,))
    return shortened(str(source), model.architecture.shape(model.config), context)


def left_out(source: str | Path) -> dict[str, int]:
    """Return how many tensors of a folder are of parts that are not used, by the parts.

    Errors as of `load_checkpoint`.
    """
    model, _ = _opened(source, None, HUB_FILES)
    return model.left_out() if isinstance(model, FolderModel) else {}


def load_config(source: str | Path) -> Config:
    """Read config.json of a model of any architecture, or what a GGUF file says instead.

    Arguments and errors as of `load_checkpoint`.
    """
    place = place_of(source, None, (CONFIG,))
    if place.is_dir():
        return Config(read_json(place / CONFIG, str(source)), str(source))
    return GgufModel(place, str(source)).config


def _opened(
    source: str | Path, revision: str | None, files: Sequence[str]
) -> tuple[StoredModel, Path]:
    """Return what is stored, and in which folder or file; of the hub these files are fetched."""
    place, name = place_of(source, revision, files), str(source)
    return FolderModel(place, name) if place.is_dir() else GgufModel(place, name), place


def place_of(source: str | Path, revision: str | None, files: Sequence[str]) -> Path:
    """Return the folder or the GGUF file of a model; of the hub these files are fetched.

    Raises:
        CheckpointError: it is neither, and not on the hub.
    """
    place, name = Path(source), str(source)
    if place.is_dir():
        return gguf_within(place) or place
    if is_gguf(place):
        return place
    if place.is_file():
        raise CheckpointError(
            f"load_checkpoint: given {name!r}, which is a file; allowed is the folder with "
            f"{CONFIG} and {WEIGHTS} in it, a GGUF file, or a hub id"
        )
    return shipped().get(name) or _fetched(name, revision, files)


def parse_config(config: dict[str, Any], source: str) -> tuple[Architecture, CheckpointShape]:
    """Return the architecture and the dimensions that config.json gives.

    Raises:
        CheckpointError: another architecture, or an option that the pipeline does not have.
    """
    found = text_part(config, source)
    architecture = architecture_of(found)
    return architecture, architecture.shape(found)


def canonical(
    model: StoredModel,
    shape: CheckpointShape,
    stored: dict[str, StoredTensor],
    wanted: Callable[[], dict[str, tuple[int, ...]]],
) -> GroupedTensors:
    """Return stored tensors, which are read when asked for, under the names of a Checkpoint.

    Args:
        model: what is stored.
        shape: its dimensions.
        stored: by the names of the layout.
        wanted: returns name and shape of every tensor of a Checkpoint.

    Raises:
        CheckpointError: a tensor is missing or misshapen; not finite, when it is read.
    """
    source, architecture = model.config.source, model.architecture
    if shape.layers > len(stored):  # before a table of that many layers is made
        raise CheckpointError(
            f"{source}: {model.config.place(architecture.layers_field)}: given {shape.layers}, "
            f"allowed at most the number of tensors, {len(stored)}"
        )
    layout = model.layout(shape)
    if shape.tied and shape.vocab:
        _drop_tied_head(architecture, stored, layout, source)
    expected = wanted()
    sizes = {one.name: one.size(expected) for one in layout}
    check_sizes(source, shape.family, sizes, {name: one.shape for name, one in stored.items()})
    groups: dict[str, list[Stored]] = {}
    for one in layout:
        groups.setdefault(group_of(one.parts[0]), []).append(one)

    def make(group: str) -> Group:
        found: Group = {}
        for one in groups.get(group, ()):  # a tied head is of none
            found |= one.read(_numbers(source, one.name, stored[one.name]), expected)
        return architecture.multiplied(model.config, shape, found)

    return GroupedTensors(expected, make)


def _drop_tied_head(
    architecture: Architecture, stored: dict[str, StoredTensor], layout: list[Stored], source: str
) -> None:
    """Drop a stored head that is the token table, or stands for it; another one contradicts it."""
    table = next(one.name for one in layout if one.parts == ("embed",))
    head = stored.pop(architecture.head, None)
    if head is None or stored.setdefault(table, head) is head:
        return
    first, second = (_float32(one).view(np.uint32) for one in (head, stored[table]))
    if not np.array_equal(first, second):
        raise CheckpointError(
            f"{source}: tensor {architecture.head!r}: given another one than {table!r}, allowed an "
            "equal one or none, since config.json ties them (tie_word_embeddings)"
        )


def _fetched(source: str, revision: str | None, files: Sequence[str]) -> Path:
    """Return the folder of a hub snapshot; pickles are fetched where there is nothing better."""
    folder = _fetch(source, revision, files)
    if files == HUB_FILES and not any(folder.glob("*.safetensors")):
        return _fetch(source, revision, (*files, *PICKLE_FILES))
    return folder


def _fetch(source: str, revision: str | None, files: Sequence[str]) -> Path:
    """Return the folder of a hub snapshot, from the network or else from the local cache."""
    allowed = (
        "allowed is a folder with config.json and model.safetensors, the name of a shipped model "
        f"({', '.join(shipped())}), or a hub id"
    )
    if not _HUB_ID.fullmatch(source):
        raise CheckpointError(f"load_checkpoint: given {source!r}, which is no folder; {allowed}")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import (
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
        )
    except ImportError as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is no folder, and huggingface_hub is not "
            f"installed; {allowed} with huggingface_hub installed"
        ) from error
    try:
        found = snapshot_download(source, revision=revision, allow_patterns=list(files))
    except LocalEntryNotFoundError as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is neither a folder nor in the local cache "
            f"of huggingface_hub, and the hub cannot be reached; {allowed}"
        ) from error
    except (HfHubHTTPError, HFValidationError) as error:
        raise CheckpointError(
            f"load_checkpoint: given {source!r}, which is no folder, and the hub refused it: "
            f"{error}; {allowed}"
        ) from error
    return Path(found)


def stored_tensors(model: StoredModel) -> dict[str, StoredTensor]:
    """Return all tensors, none of them read yet, by the names of the layout.

    Raises:
        CheckpointError: a file is damaged, a tensor is there twice or of another type.
    """
    source = model.config.source
    found: dict[str, StoredTensor] = {}
    for one in model.tensors():
        key = model.key(one.name)
        if key is None:
            continue
        if one.dtype not in model.dtypes:
            raise CheckpointError(
                f"{source}: tensor {one.name!r}: given dtype {one.dtype}, "
                f"allowed {', '.join(model.dtypes)}"
            )
        if key in found:
            raise CheckpointError(f"{source}: tensor {one.name!r}: given twice, allowed once")
        found[key] = one
    return found


def _float32(one: StoredTensor) -> Float32:
    """Read a tensor."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite, refused as such
        return np.ascontiguousarray(one.load().astype(np.float32, copy=False))


def _numbers(source: str, name: str, one: StoredTensor) -> Float32:
    """Read a tensor. Raises CheckpointError if it is not finite."""
    found = _float32(one)
    check_numbers(source, name, found)
    return found
