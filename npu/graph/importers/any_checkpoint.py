# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of a checkpoint, of a decoder or of an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npu.graph.form import Array, Graph, GraphError
from npu.graph.importers import signal_checkpoint
from npu.graph.importers.checkpoint import decoder_graph, text_samples
from npu.graph.importers.encoder_checkpoint import (
    encoder_graph,
    sentence_samples,
    wide_operations,
)
from weights.checkpoint import Checkpoint, CheckpointError
from weights.encoder import EncoderCheckpoint
from weights.encoder_importer import is_encoder, load_any_encoder
from weights.importer import load_checkpoint
from weights.signal_encoder import SignalCheckpoint


def read(
    source: str | Path | Checkpoint, *, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Read a checkpoint.

    Args:
        source: its folder, or the checkpoint.
        shapes: as `decoder_graph` or `encoder_graph` takes them.

    Raises:
        GraphError: the checkpoint is damaged or of an architecture that is not known; the shape is
            no text that the model takes.
    """
    checkpoint = checkpoint_of(source)
    if isinstance(checkpoint, SignalCheckpoint):
        return signal_checkpoint.signal_graph(checkpoint, shapes)
    if isinstance(checkpoint, EncoderCheckpoint):
        return encoder_graph(checkpoint, shapes)
    return decoder_graph(checkpoint, shapes)


def checkpoint_of(source: str | Path | Checkpoint) -> Checkpoint:
    """Return the checkpoint of a folder, of one that ships, or of the hub. Raises GraphError."""
    if isinstance(source, Checkpoint):
        return source
    try:
        return load_any_encoder(source) if is_encoder(source) else load_checkpoint(source)
    except CheckpointError as error:
        raise GraphError(str(error)) from error


def usual_samples(source: str | Path | Checkpoint, graph: Graph) -> dict[str, Array] | None:
    """Return texts for calibration, None for a signal. Raises GraphError without a tokenizer."""
    checkpoint = checkpoint_of(source)
    if isinstance(checkpoint, SignalCheckpoint):
        return None
    if isinstance(checkpoint, EncoderCheckpoint):
        return sentence_samples(checkpoint, graph)
    return text_samples(checkpoint, graph)


def usual_wide(source: str | Path | Checkpoint) -> tuple[str, ...]:
    """Return what has 16 bits: the activations of an encoder, and its rows. Raises GraphError."""
    checkpoint = checkpoint_of(source)
    if isinstance(checkpoint, SignalCheckpoint):
        return signal_checkpoint.wide_operations(checkpoint)
    return wide_operations(checkpoint) if isinstance(checkpoint, EncoderCheckpoint) else ()
