# SPDX-License-Identifier: Apache-2.0
"""Read an encoder of a known architecture: a folder of transformers or of sentence-transformers.

The latter has modules.json beside config.json: what becomes of the rows of a sentence.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from weights.architecture import Config
from weights.checkpoint import CheckpointError
from weights.encoder import EncoderCheckpoint, EncoderShape, Pool, Pooling, encoder_tensors
from weights.encoders import ENCODERS
from weights.importer import HUB_FILES, canonical, place_of, stored_tensors
from weights.signal_encoder import SignalCheckpoint, SignalShape, signal_tensors
from weights.stored.folder import CONFIG, FolderModel, read_json

MODULES, SENTENCES = "modules.json", "sentence_bert_config.json"
SENTENCE_FILES = (MODULES, SENTENCES, "*_Pooling/config.json")
"""What sentence-transformers leaves beside a model."""
POOLS: dict[str, Pool] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
}
POOLER = "pooler."
"""How the names of its tensors begin."""
OLD = {".gamma": ".weight", ".beta": ".bias"}
"""Endings of the tensors of norms as TensorFlow has them."""


class _Folder(FolderModel):
    """A folder of an encoder."""

    def __init__(self, folder: Path, source: str) -> None:
        super().__init__(folder, source, ENCODERS)

    def key(self, name: str) -> str | None:
        found = super().key(name)
        for old, new in OLD.items():
            if found is not None and found.endswith(old):
                found = found.removesuffix(old) + new
        return found


def is_encoder(source: str | Path) -> bool:
    """Say whether a model is an encoder that is known here.

    Raises:
        CheckpointError: there is no such model.
    """
    folder = place_of(source, None, (CONFIG,))
    if not folder.is_dir():
        return False
    return read_json(folder / CONFIG, str(source)).get("model_type") in tuple(ENCODERS)


def load_encoder(source: str | Path) -> EncoderCheckpoint:
    """Read an encoder of text from a local folder or from the hub.

    Raises:
        CheckpointError: as `weights.importer.load_checkpoint`; or modules.json has what is not
            computed; or it is an encoder of something else.
    """
    model = _folder_of(source)
    shape = model.architecture.shape(model.config)
    if not isinstance(shape, EncoderShape):
        raise CheckpointError(
            f"{source}: given {shape.family}, {model.architecture.uses}; allowed an encoder of text"
        )
    pooling = _pooling(model.folder, str(source), shape)
    tensors = canonical(model, shape, stored_tensors(model), partial(encoder_tensors, shape))
    return EncoderCheckpoint(shape, dict(tensors), str(source), model.folder, pooling=pooling)


def load_any_encoder(source: str | Path) -> EncoderCheckpoint | SignalCheckpoint:
    """Read an encoder of text, pictures or sound; errors as of `load_encoder`."""
    model = _folder_of(source)
    shape = model.architecture.shape(model.config)
    return _signal(model, shape) if isinstance(shape, SignalShape) else load_encoder(source)


def left_out(source: str | Path) -> dict[str, int]:
    """Return how many tensors of a folder no encoder has, by the parts that they are of."""
    return _folder_of(source).left_out()


def _folder_of(source: str | Path) -> _Folder:
    return _Folder(place_of(source, None, (*HUB_FILES, *SENTENCE_FILES)), str(source))


def _signal(model: _Folder, shape: SignalShape) -> SignalCheckpoint:
    """Read an encoder of a signal; a pooler is there or not, which config.json does not say."""
    stored = stored_tensors(model)
    if not any(name.startswith(POOLER) for name in stored):
        shape = replace(shape, pooled=0)
    tensors = canonical(model, shape, stored, partial(signal_tensors, shape))
    return SignalCheckpoint(shape, dict(tensors), model.source, model.folder)


def _pooling(folder: Path, source: str, shape: EncoderShape) -> Pooling | None:
    """Return what modules.json says, None without one."""
    if not (folder / MODULES).is_file():
        return None
    modules = dict(_modules(folder, source))
    if "Transformer" not in modules or modules["Transformer"] or "Pooling" not in modules:
        raise CheckpointError(
            f"{source}: {MODULES}: given {', '.join(modules) or 'no modules'}, allowed Transformer "
            "at the path '', Pooling and Normalize"
        )
    pool = _pool(folder / modules["Pooling"], source)
    return Pooling(pool, "Normalize" in modules, _longest(folder, source, shape))


def _modules(folder: Path, source: str) -> list[tuple[str, str]]:
    """Return kind and path of each module."""
    try:
        given = json.loads((folder / MODULES).read_text(encoding="utf-8-sig"))
        found = [(str(one["type"]).rpartition(".")[2], str(one["path"])) for one in given]
    except (ValueError, OSError, TypeError, KeyError, RecursionError):
        raise CheckpointError(
            f"{source}: {MODULES}: given what is no list of modules, allowed maps with type and "
            "path"
        ) from None
    for kind, path in found:
        if kind not in ("Transformer", "Pooling", "Normalize") or ".." in Path(path).parts:
            raise CheckpointError(
                f"{source}: {MODULES}: given {kind} at {path!r}, allowed Transformer, Pooling and "
                "Normalize inside the folder"
            )
    return found


def _pool(folder: Path, source: str) -> Pool:
    """Return how rows become one."""
    place = f"{folder.name}/config.json"
    given = read_json(folder / "config.json", source)
    modes = [key for key, value in given.items() if key.startswith("pooling_mode_") and value]
    named: Any = given.get("pooling_mode")
    if named is not None:
        modes.append(f"pooling_mode_{named}_token{'' if named == 'cls' else 's'}")
    if len(modes) != 1 or modes[0] not in POOLS:
        raise CheckpointError(
            f"{source}: {place}: given {', '.join(modes) or 'no mode'}, allowed one of "
            f"{', '.join(POOLS)}"
        )
    return POOLS[modes[0]]


def _longest(folder: Path, source: str, shape: EncoderShape) -> int:
    """Return the tokens that a sentence may have."""
    if not (folder / SENTENCES).is_file():
        return shape.context
    places = {"max_seq_length": f"{SENTENCES} max_seq_length"}
    config = Config(read_json(folder / SENTENCES, source), source, places)
    return min(config.optional_size("max_seq_length", None) or shape.context, shape.context)
