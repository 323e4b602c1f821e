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
    Tensors,
    check_tensors,
    expected_tensors,
    shortened,
)
from weights.shipped import shipped
from weights.stored.folder import CONFIG, INDEX, WEIGHTS, FolderModel, architecture_of, read_json
from weights.stored.form import StoredModel
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
    tensors = canonical(model, shape, read_tensors(model), partial(expected_tensors, shape))
    if shape.positions:
        tensors["positions"] = tensors["positions"][: short.context]
    folder, file = (place, None) if place.is_dir() and short == shape else (None, place)
    return Checkpoint(short, tensors, str(source), folder, file)


def load_shape(
    source: str | Path, *, revision: str | None = None, context: int | None = None
) -> CheckpointShape:
    """Read the dimensions of a checkpoint, of all its files config.json or a header alone.

    Arguments and errors as of `load_checkpoint`.
    """
    model, _ = _opened(source, revision, (CONFIG,))
    return shortened(str(source), model.architecture.shape(model.config), context)


def load_config(source: str | Path) -> dict[str, Any]:
    """Read config.json of a model of any architecture, or what a GGUF file says instead.

    Arguments and errors as of `load_checkpoint`.
    """
    place = place_of(source, None, (CONFIG,))
    if place.is_dir():
        return read_json(place / CONFIG, str(source))
    return GgufModel(place, str(source)).config.content


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
    found = Config(config, source)
    architecture = architecture_of(found)
    return architecture, architecture.shape(found)


def canonical(
    model: StoredModel,
    shape: CheckpointShape,
    tensors: Tensors,
    wanted: Callable[[], dict[str, tuple[int, ...]]],
) -> Tensors:
    """Return tensors by the names of a layout under the names of a Checkpoint.

    Args:
        model: what is stored.
        shape: its dimensions.
        tensors: by the names of the layout.
        wanted: returns name and shape of every tensor of a Checkpoint.

    Raises:
        CheckpointError: a tensor is missing, misshapen or not finite.
    """
    source, architecture = model.config.source, model.architecture
    if shape.layers > len(tensors):  # before a table of that many layers is made
        raise CheckpointError(
            f"{source}: {model.config.place(architecture.layers_field)}: given {shape.layers}, "
            f"allowed at most the number of tensors, {len(tensors)}"
        )
    layout = model.layout(shape)
    if shape.tied and shape.vocab:
        _drop_tied_head(architecture, tensors, layout, source)
    expected = wanted()
    sizes = {one.name: one.size(expected) for one in layout}
    check_tensors(source, shape.family, sizes, tensors)
    found: Tensors = {}
    for one in layout:
        found |= one.read(tensors.pop(one.name), expected)
    return architecture.multiplied(model.config, shape, found)


def _drop_tied_head(
    architecture: Architecture, tensors: Tensors, layout: list[Stored], source: str
) -> None:
    """Drop a stored head that is the token table, or stands for it; another one contradicts it."""
    table = next(one.name for one in layout if one.parts == ("embed",))
    head = tensors.pop(architecture.head, None)
    if head is None:
        return
    tensors.setdefault(table, head)
    if head.shape != tensors[table].shape or head.tobytes() != tensors[table].tobytes():
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


def read_tensors(model: StoredModel) -> Tensors:
    """Read all tensors as float32, by the names of the layout.

    Raises:
        CheckpointError: a file is damaged, a tensor is there twice or of another type.
    """
    source = model.config.source
    tensors: Tensors = {}
    for one in model.tensors():
        key = model.key(one.name)
        if key is None:
            continue
        if one.dtype not in model.dtypes:
            raise CheckpointError(
                f"{source}: tensor {one.name!r}: given dtype {one.dtype}, "
                f"allowed {', '.join(model.dtypes)}"
            )
        if key in tensors:
            raise CheckpointError(f"{source}: tensor {one.name!r}: given twice, allowed once")
        with np.errstate(over="ignore"):  # what is too large becomes infinite, refused as such
            tensors[key] = np.ascontiguousarray(one.load().astype(np.float32))
    return tensors
