# SPDX-License-Identifier: Apache-2.0
"""Read an encoder of a known architecture: a folder of transformers or of sentence-transformers.

What the latter has beside config.json is read by `weights.sentence_files`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from weights.checkpoint import CheckpointError
from weights.encoder import EncoderCheckpoint, EncoderShape, encoder_tensors
from weights.encoders import ENCODERS
from weights.importer import HUB_FILES, canonical, place_of, stored_tensors
from weights.sentence_files import SENTENCE_FILES, pooling_of, text_form
from weights.signal_encoder import SignalCheckpoint, SignalShape, signal_tensors
from weights.stored.folder import CONFIG, FolderModel, read_json

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
        CheckpointError: as `weights.importer.load_checkpoint`; or a file of sentence-transformers
            has what is not computed; or it is an encoder of something else.
    """
    model = _folder_of(source)
    shape = model.architecture.shape(model.config)
    if not isinstance(shape, EncoderShape):
        raise CheckpointError(
            f"{source}: given {shape.family}, {model.architecture.uses}; allowed an encoder of text"
        )
    pooling = pooling_of(model.folder, str(source), shape)
    text = text_form(model.folder, str(source))
    tensors = canonical(model, shape, stored_tensors(model), partial(encoder_tensors, shape))
    return EncoderCheckpoint(
        shape, dict(tensors), str(source), model.folder, pooling=pooling, text=text
    )


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
