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
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

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
from weights.whole_file import unfinished

FORMAT = "1"
INT8_MAX = 127
BATCH = 8
"""Rows of tokens in one forward pass."""
HEADER_ALIGN = 8
"""The length of the header of a safetensors file is a multiple of these bytes."""
KINDS = ("I32", "I64")
"""What that format calls the types of the sums."""

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
    moments: Mapping[str, Moments]
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
    """Measure the moments on rows of tokens (R, T), every row from position 0, and hold all.

    Raises:
        CovarianceError: there are fewer positions than the widest layer has inputs.
        ValueError: the tokens are none of the model's.
    """
    moments = dict(measured(checkpoint, scales, tokens))
    return InputMoments(owner_of(scales), moments, dict(provenance or {}))


def measured(
    checkpoint: Checkpoint, scales: ActivationScales, tokens: npt.NDArray[np.integer[Any]]
) -> Iterator[tuple[str, Moments]]:
    """Yield names and moments of the inputs of each layer when it is finished, then the head's.

    Arguments and errors as of `measure`.
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
    sums: dict[str, npt.NDArray[np.float64]] = {}

    def observe(name: str, values: Floats) -> None:
        if name in units:
            rows = np.rint(values.reshape(-1, values.shape[-1]) / units[name])
            rows = np.clip(rows, -INT8_MAX - 1, INT8_MAX).astype(np.float64)
            products = rows.T @ rows  # as their sums integers below 2^53: exact
            if name in sums:
                sums[name] += products
            else:
                sums[name] = products

    def finished() -> Iterator[tuple[str, Moments]]:
        for name in list(sums):
            yield name, sums.pop(name).astype(np.int64)

    model = model_of(checkpoint, scales)
    batches = [tokens[start : start + BATCH] for start in range(0, len(tokens), BATCH)]
    for _ in watch(model, batches, observe, int(scales.sink is not None)):
        yield from finished()
    yield from finished()


def write_moments(
    path: Path,
    widths: dict[str, int],
    most: int,
    metadata: dict[str, str],
    moments: Iterable[tuple[str, Moments]],
) -> None:
    """Write the upper triangles of moments that come one after the other, whole or not at all.

    They are a safetensors file, int32, or int64 where a sum needs it.

    Args:
        path: of the file.
        widths: the size of each.
        most: what no sum is above.
        metadata: owner and provenance.
        moments: names and matrices, in any order.
    """
    kind, dtype = ("I32", np.dtype("<i4")) if most < 1 << 31 else ("I64", np.dtype("<i8"))
    header: dict[str, Any] = {"__metadata__": dict(sorted({"format": FORMAT, **metadata}.items()))}
    end = 0
    for name in sorted(widths):
        start, size = end, widths[name] * (widths[name] + 1) // 2
        end = start + size * dtype.itemsize
        header[name] = {"dtype": kind, "shape": [size], "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text = text.ljust(-(-len(text) // HEADER_ALIGN) * HEADER_ALIGN)
    with unfinished(path) as place, place.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, matrix in moments:
            file.seek(8 + len(text) + header[name]["data_offsets"][0])
            for number, row in enumerate(matrix):
                file.write(row[number:].astype(dtype).data)


class _Kept(Mapping[str, Moments]):
    """Moments of a file, read when they are asked for: those of all layers take gigabytes."""

    def __init__(self, path: Path, widths: dict[str, int]) -> None:
        self._path, self._widths = path, widths

    def __getitem__(self, name: str) -> Moments:
        """Return the moments of an input."""
        size = self._widths[name]
        with _opened(self._path) as file:  # anew: what is mapped would stay in memory
            upper = file.get_tensor(name)
        whole, start = np.empty((size, size), np.int64), 0
        for row in range(size):
            end = start + size - row
            whole[row, row:] = whole[row:, row] = upper[start:end]
            start = end
        return whole

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._widths)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._widths)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file of moments. Raises CovarianceError if it cannot be read."""
    try:
        with safe_open(path, "numpy") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise CovarianceError(f"{path}: cannot be read as input covariance: {error}") from error


def load_moments(path: Path, checkpoint: Checkpoint) -> InputMoments:
    """Return what is in a file that `write_moments` wrote; moments are read when asked for.

    Raises:
        CovarianceError: it cannot be read, or has not the inputs of this checkpoint.
    """
    widths = sizes(checkpoint)
    with _opened(path) as file:
        metadata = dict(file.metadata() or {})
        if metadata.pop("format", None) != FORMAT:
            raise CovarianceError(f"{path}: given another format, allowed {FORMAT}; {_again()}")
        names = set(file.keys())
        for name, size in widths.items():
            given = file.get_slice(name) if name in names else None
            allowed = size * (size + 1) // 2
            if given is None or given.get_shape() != [allowed] or given.get_dtype() not in KINDS:
                shape = "nothing" if given is None else tuple(given.get_shape())
                raise CovarianceError(
                    f"{path}: {name}: given {shape}, allowed ({allowed},) integers; {_again()}"
                )
    return InputMoments(metadata.pop("owner", ""), _Kept(path, widths), metadata)


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
    measure_on_text(checkpoint, scales, place)
    return load_moments(place, checkpoint)


def measure_on_text(checkpoint: Checkpoint, scales: ActivationScales, path: Path) -> None:
    """Measure the moments on this Python's documentation, and write each layer's behind it."""
    tokens = calibration_tokens(checkpoint)[:, int(scales.sink is not None) :]
    metadata = {
        "owner": owner_of(scales),
        "text": f"training part of the documentation of CPython {platform.python_version()}",
        "tokens": f"{tokens.shape[0]} rows of {tokens.shape[1]}",
        "command": "python -m weights.covariance",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    most = tokens.size * (INT8_MAX + 1) ** 2
    write_moments(path, sizes(checkpoint), most, metadata, measured(checkpoint, scales, tokens))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure a checkpoint and write the file beside it."""
    parser = argparse.ArgumentParser(description="Measure the inputs' second moments.")
    parser.add_argument("checkpoint", help="a folder, a GGUF file or a hub id")
    given = parser.parse_args(argv)
    try:
        checkpoint = load_checkpoint(given.checkpoint)
        cached = cache_path(checkpoint).with_suffix(".safetensors")
        output = own_place(checkpoint, COVARIANCE_FILE, cached)
        measure_on_text(checkpoint, scales_for(checkpoint), output)
    except (CheckpointError, ScalesError, OSError) as error:
        print(f"covariance: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
