# SPDX-License-Identifier: Apache-2.0
"""Read a Hugging Face checkpoint of a known architecture into float32 numpy arrays, without torch.

A checkpoint is a local folder, the name of one that ships, or a hub id. It consists of config.json
and either model.safetensors or the shards that model.safetensors.index.json names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (tells numpy of bfloat16, for which safetensors asks it by name)
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from weights.architecture import Architecture, Config, Stored
from weights.architectures import ARCHITECTURES
from weights.checkpoint import (
    Checkpoint,
    CheckpointError,
    CheckpointShape,
    Tensors,
    check_tensors,
    expected_tensors,
)
from weights.shipped import shipped
from weights.tokenizer import END_FILES, TOKENIZER_FILES

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
COVARIANCE_FILE = "input_covariance.safetensors"
"""What weights.covariance keeps beside a checkpoint."""
HUB_FILES = (
    *("*.safetensors", INDEX, "activation_scales.json"),
    *TOKENIZER_FILES,
    *END_FILES,  # config.json among them
)
"""What is fetched from the hub."""
DTYPES = ("F64", "F32", "F16", "BF16")
"""Types of stored tensors, as safetensors calls them; all become float32."""
WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""Words that PyTorch's wrappers of modules (compiled, parallel, recomputed) put into names."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def load_checkpoint(source: str | Path, *, revision: str | None = None) -> Checkpoint:
    """Read a checkpoint from a local folder, of those that ship, or from the hub.

    Args:
        source: a folder; if there is none of that name, the name of one that ships
            ("gpt2-tiny"), or else a hub id such as "openai-community/gpt2". Without a network a hub
            id is looked up in the local cache of huggingface_hub.
        revision: branch, tag or commit on the hub; None is the default branch.

    Raises:
        CheckpointError: not found, of an unknown architecture, or a tensor is missing, misshapen
            or not finite. The message names the file or tensor, what was given, what is allowed.
    """
    folder, name = _folder(source, revision, HUB_FILES), str(source)
    architecture, shape = parse_config(_read_json(folder / CONFIG, name), name)
    tensors = _read_tensors(folder, name, architecture)
    return Checkpoint(shape, _canonical(architecture, shape, tensors, name), name, folder)


def load_shape(source: str | Path, *, revision: str | None = None) -> CheckpointShape:
    """Read the dimensions of a checkpoint, of all its files config.json alone.

    Arguments and errors as of `load_checkpoint`.
    """
    folder, name = _folder(source, revision, (CONFIG,)), str(source)
    return parse_config(_read_json(folder / CONFIG, name), name)[1]


def _folder(source: str | Path, revision: str | None, files: Sequence[str]) -> Path:
    """Return the folder of a checkpoint, with these of its files if it comes from the hub."""
    folder = Path(source)
    if folder.is_file():
        raise CheckpointError(
            f"load_checkpoint: given {str(source)!r}, which is a file; allowed is the folder with "
            f"{CONFIG} and {WEIGHTS} in it, or a hub id"
        )
    if folder.is_dir():
        return folder
    return shipped().get(str(source)) or _fetch(str(source), revision, files)


def parse_config(config: dict[str, Any], source: str) -> tuple[Architecture, CheckpointShape]:
    """Return the architecture and the dimensions that config.json gives.

    Raises:
        CheckpointError: another architecture, or an option that the pipeline does not have.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in ARCHITECTURES:
        raise CheckpointError(
            f"{source}: config.json model_type: given {family!r}, allowed {list(ARCHITECTURES)}"
        )
    return ARCHITECTURES[family], ARCHITECTURES[family].shape(Config(config, source))


def _canonical(
    architecture: Architecture, shape: CheckpointShape, tensors: Tensors, source: str
) -> Tensors:
    """Return the tensors of a file, by name without prefix, under the names of a Checkpoint."""
    if shape.layers > len(tensors):  # before a table of that many layers is made
        raise CheckpointError(
            f"{source}: config.json {architecture.layers_field}: given {shape.layers}, "
            f"allowed at most the number of tensors, {len(tensors)}"
        )
    layout = architecture.layout(shape)
    sizes = architecture.sizes(shape)
    if shape.tied:
        _drop_tied_head(architecture, tensors, layout, source)
    check_tensors(source, shape.family, sizes, tensors)
    expected = expected_tensors(shape)
    found: Tensors = {}
    for one in layout:
        whole = tensors[one.name].T if one.transposed else tensors[one.name]
        ends = np.cumsum([expected[part][-1] for part in one.parts])[:-1]
        found.update(zip(one.parts, np.split(whole, ends, axis=-1), strict=True))
    return found


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


def _read_json(path: Path, source: str) -> dict[str, Any]:
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


def _read_tensors(folder: Path, source: str, architecture: Architecture) -> Tensors:
    """Read all shards as float32, by name without prefix."""
    files = [WEIGHTS]
    if not (folder / WEIGHTS).is_file():
        if not (folder / INDEX).is_file():
            raise CheckpointError(
                f"{source}: no weights in {folder}; allowed is {WEIGHTS}, or {INDEX} with shards"
            )
        weight_map = _read_json(folder / INDEX, source).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise CheckpointError(f"{source}: {INDEX}: given no weight_map, allowed name to file")
        files = sorted({_shard_name(name, file, source) for name, file in weight_map.items()})
    tensors: Tensors = {}
    for file in files:
        path = folder / file
        if not path.is_file():
            raise CheckpointError(f"{source}: shard {file} is missing in {folder}")
        try:
            with safe_open(path, framework="np") as shard:
                for name in shard.keys():  # noqa: SIM118 (a safetensors handle is no mapping)
                    short = ".".join(word for word in name.split(".") if word not in WRAPPERS)
                    short = short.removeprefix(architecture.prefix)
                    if architecture.buffers.fullmatch(short):
                        continue
                    dtype = shard.get_slice(name).get_dtype()
                    _take(tensors, short, name, dtype, partial(shard.get_tensor, name), source)
        except (SafetensorError, TypeError, OSError) as error:
            raise CheckpointError(f"{source}: {file} cannot be read: {error}") from error
    return tensors


def _shard_name(name: str, file: object, source: str) -> str:
    """Return the file of a tensor as the index has it: the plain name of a safetensors file."""
    if not isinstance(file, str) or Path(file).name != file or Path(file).suffix != ".safetensors":
        raise CheckpointError(
            f"{source}: {INDEX}: tensor {name!r}: given file {file!r}, "
            "allowed the name of a .safetensors file in the folder"
        )
    return file


def _take(
    tensors: Tensors,
    short: str,
    name: str,
    dtype: str,
    load: Callable[[], npt.NDArray[Any]],
    source: str,
) -> None:
    """Add one stored tensor as float32."""
    if dtype not in DTYPES:
        raise CheckpointError(
            f"{source}: tensor {name!r}: given dtype {dtype}, allowed {', '.join(DTYPES)}"
        )
    if short in tensors:
        raise CheckpointError(f"{source}: tensor {name!r}: given twice, allowed once")
    with np.errstate(over="ignore"):  # what is too large becomes infinite and is refused as such
        tensors[short] = np.ascontiguousarray(load().astype(np.float32))
