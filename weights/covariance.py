# SPDX-License-Identifier: Apache-2.0
"""Measure the second moments of the inputs of a model's linear layers on text.

    python -m weights.covariance weights/checkpoints/gpt2-tiny

Error-compensated rounding (weights.formats.rounding) needs to know which inputs move together. The
inputs are those of the equalised float network, rounded to the int8 units that the integer network
has them in, so the sums are integers and equal in any order. They are kept beside the checkpoint in
input_covariance.safetensors, because the text (weights.corpus) differs between Python versions and
the codes must not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from weights.calibrate import (
    ActivationScales,
    ScalesError,
    cache_path,
    calibration_tokens,
    model_of,
    norm_units,
    own_place,
    range_of,
    scales_for,
)
from weights.checkpoint import Checkpoint, CheckpointError
from weights.importer import COVARIANCE_FILE, load_checkpoint
from weights.reference import Floats, check_tokens, watch
from weights.sink import with_sink

FORMAT = "1"
INT8_MAX = 127
BATCH = 8
"""Rows of tokens in one forward pass."""

Moments = npt.NDArray[np.int64]


class CovarianceError(ScalesError):
    """Second moments are missing, damaged, of another checkpoint, or of too little text."""


@dataclass(frozen=True, slots=True, eq=False)
class InputMoments:
    """Sums of products of the int8 inputs of linear layers, over the positions of a text.

    Attributes:
        owner: `owner_of` the checkpoint and scales they were measured with.
        moments: (K, K) int64, symmetric, by tensor: "h.{l}.norm1" (input of q, k, v; the stream
            where nothing normalises it), "h.{l}.ctx"
            (o), "h.{l}.norm2" (up and gate), "h.{l}.act" (down), "norm" (head).
        provenance: how they were made.
    """

    owner: str
    moments: dict[str, Moments]
    provenance: dict[str, str]


def owner_of(scales: ActivationScales) -> str:
    """Return a SHA-256 of what decides the moments besides the text: checkpoint and int8 units."""
    content = [scales.digest, scales.ranges, scales.channels, scales.equalized]
    content += [] if scales.sink is None else [scales.sink]
    content += [True] if scales.rotated else []
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sizes(checkpoint: Checkpoint) -> dict[str, int]:
    """Return K of every input whose moments a model needs."""
    shape = checkpoint.shape
    found = {}
    for layer in range(shape.layers):
        found[f"h.{layer}.norm1"] = shape.hidden
        found[f"h.{layer}.ctx"] = shape.q_columns
        found[f"h.{layer}.norm2"] = shape.hidden
        found[f"h.{layer}.act"] = shape.ffn
    return found | {"norm": shape.hidden}


def measure(
    checkpoint: Checkpoint,
    scales: ActivationScales,
    tokens: npt.NDArray[np.integer[Any]],
    provenance: dict[str, str] | None = None,
) -> InputMoments:
    """Measure the moments on rows of tokens (R, T), every row from position 0.

    Raises:
        CovarianceError: there are fewer positions than the widest layer has inputs.
        ValueError: the tokens are none of the model's.
    """
    tokens = with_sink(tokens, scales.sink)
    check_tokens("measure", checkpoint, tokens)
    widths = sizes(checkpoint)
    widest = max(widths, key=lambda name: widths[name])
    if tokens.size < widths[widest]:
        raise CovarianceError(
            f"{checkpoint.source}: calibration text too short for the covariance: given "
            f"{tokens.size} tokens, allowed at least {widths[widest]}, the inputs of {widest}"
        )
    units: dict[str, float | npt.NDArray[np.float64]] = {}
    for name in widths:
        if name == "norm" or (name.endswith(("norm1", "norm2")) and checkpoint.shape.pre_norms):
            units[name] = norm_units(name, scales, checkpoint.shape.hidden)
        else:
            key = f"{name[: -len('ctx')]}v" if name.endswith("ctx") else name
            units[name] = range_of(scales, key) / INT8_MAX
    moments = {name: np.zeros((size, size), np.int64) for name, size in widths.items()}

    def observe(name: str, values: Floats) -> None:
        if name in moments:
            rows = np.rint(values.reshape(-1, values.shape[-1]) / units[name])
            rows = np.clip(rows, -INT8_MAX - 1, INT8_MAX).astype(np.float64)
            moments[name] += (rows.T @ rows).astype(np.int64)  # integers below 2^53: exact

    model = model_of(checkpoint, scales)
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    for _ in watch(model, batches, observe, int(scales.sink is not None)):
        pass
    return InputMoments(owner_of(scales), moments, dict(provenance or {}))


def save_moments(found: InputMoments, path: Path) -> None:
    """Write the upper triangles as int32 (int64 where a sum needs it): whole, or not at all."""
    tensors = {}
    for name, moments in found.moments.items():
        upper = moments[np.triu_indices(len(moments))]
        narrow = int(np.abs(upper).max()) < 1 << 31
        tensors[name] = upper.astype(np.int32) if narrow else upper
    metadata = {"format": FORMAT, "owner": found.owner, **found.provenance}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(_ordered(save(tensors, metadata)))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _ordered(data: bytes) -> bytes:
    """Return a safetensors file with its metadata in order; safetensors shuffles them."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return data[:8] + text.ljust(end - 8) + data[end:]


def load_moments(path: Path, checkpoint: Checkpoint) -> InputMoments:
    """Read the file that `save_moments` wrote.

    Raises:
        CovarianceError: it cannot be read, or has not the inputs of this checkpoint.
    """
    try:
        with safe_open(path, "numpy") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise CovarianceError(f"{path}: cannot be read as input covariance: {error}") from error
    if metadata.pop("format", None) != FORMAT:
        raise CovarianceError(f"{path}: given another format, allowed {FORMAT}; {_again()}")
    moments = {}
    for name, size in sizes(checkpoint).items():
        upper = tensors.get(name)
        if upper is None or upper.shape != (size * (size + 1) // 2,) or upper.dtype.kind != "i":
            raise CovarianceError(
                f"{path}: {name}: given {'nothing' if upper is None else upper.shape}, allowed "
                f"({size * (size + 1) // 2},) integers; {_again()}"
            )
        whole = np.zeros((size, size), np.int64)
        whole[np.triu_indices(size)] = upper
        moments[name] = whole + np.triu(whole, 1).T
    return InputMoments(metadata.pop("owner", ""), moments, metadata)


def _again() -> str:
    return "run python -m weights.covariance"


def moments_for(checkpoint: Checkpoint, scales: ActivationScales) -> InputMoments:
    """Return the moments kept beside the checkpoint or in the cache, or else measure and keep.

    Raises:
        CovarianceError: a kept file is damaged or of another checkpoint, or the text is too short.
        ScalesError: there is no text.
    """
    beside = None if checkpoint.folder is None else checkpoint.folder / COVARIANCE_FILE
    cached = cache_path(checkpoint).with_suffix(".safetensors")
    for path in (beside, cached):
        if path is not None and path.is_file():
            found = load_moments(path, checkpoint)
            if found.owner != owner_of(scales):
                raise CovarianceError(
                    f"{path}: given moments of other activation scales, allowed those of "
                    f"{checkpoint.source}; {_again()}"
                )
            return found
    place = own_place(checkpoint, COVARIANCE_FILE, cached)
    found = measure_on_text(checkpoint, scales)
    place.parent.mkdir(parents=True, exist_ok=True)
    save_moments(found, place)
    return found


def measure_on_text(checkpoint: Checkpoint, scales: ActivationScales) -> InputMoments:
    """Measure the moments on this Python's documentation and record that."""
    tokens = calibration_tokens(checkpoint)[:, int(scales.sink is not None) :]
    provenance = {
        "text": f"training part of the documentation of CPython {platform.python_version()}",
        "tokens": f"{tokens.shape[0]} rows of {tokens.shape[1]}",
        "command": "python -m weights.covariance",
    }
    return measure(checkpoint, scales, tokens, provenance)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure a checkpoint and write the file beside it."""
    parser = argparse.ArgumentParser(description="Measure the inputs' second moments.")
    parser.add_argument("checkpoint", help="a folder, a GGUF file or a hub id")
    given = parser.parse_args(argv)
    try:
        checkpoint = load_checkpoint(given.checkpoint)
        cached = cache_path(checkpoint).with_suffix(".safetensors")
        output = own_place(checkpoint, COVARIANCE_FILE, cached)
        output.parent.mkdir(parents=True, exist_ok=True)
        save_moments(measure_on_text(checkpoint, scales_for(checkpoint)), output)
    except (CheckpointError, ScalesError, OSError) as error:
        print(f"covariance: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
