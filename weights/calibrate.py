# SPDX-License-Identifier: Apache-2.0
"""Measure the ranges of a float model's activations on text.

    python -m weights.calibrate weights/checkpoints/gpt2-tiny

The quantiser needs static scales. They are measured once on calibration text and kept beside the
checkpoint in activation_scales.json, because the text (weights.corpus) differs between Python
versions and the integer model must not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weights.checkpoint import Advance, Checkpoint, CheckpointError, digest, silent
from weights.corpus import read_corpus, windows
from weights.equalize import act_readers, balance, balancing, equalize
from weights.heap import keep_freed_memory
from weights.importer import load_checkpoint
from weights.reference import Floats, check_tokens, watch
from weights.rotated_stream import rotatable, rotated
from weights.shape import Shape
from weights.sink import is_sink, with_sink
from weights.tokenizer import TOKENIZERS, Tokenizer, TokenizerError, has_tokenizer, load_tokenizer
from weights.whole_file import unfinished

T = TypeVar("T")
Reals = npt.NDArray[np.float64]

INT8_MAX = 127
SCALES_FILE = "activation_scales.json"
FORMAT = 2
PERCENTILE = 99.99
TOKENS = 192 * 128
"""The length of the calibration text."""
PIECE = 2048
"""Bytes of text that go through a tokenizer at once."""
LONGEST = 512
"""Positions of a row of the calibration text at most; more make attention the larger part."""
BATCH = 8
SCORES = 1 << 24
"""Rows of tokens in one forward pass of the measurement; fewer if it has more scores than this."""
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
LARGEST = float(np.finfo(np.float32).max)
"""Between these lie the magnitudes of activations that are not zero."""
CLIPPED = ("q", "k", "q_rope", "k_rope", "v", "ctx", "gate", "silu", "up", "act")
"""Tensors of a layer that are clipped at the percentile. Those that a norm reads are not."""
INNER = ("v", "ctx", "gate", "silu", "up", "act")
"""Of these, those that hold the largest magnitude that was seen where the model has a sink: large
values that remain behind it carry what the model knows, a percent of its bits and more."""
OF_VALUES = 0.8
"""What of the range of its values a channel behind a sink is divided by, as a power of it."""
FOR_HEAD = 0.25
"""The share of the head's rows in the int8 units of a final norm behind a sink."""


class ScalesError(ValueError):
    """An activation scale file is missing, damaged or belongs to another checkpoint."""


@dataclass(frozen=True, slots=True)
class ActivationScales:
    """Ranges of the activations of one equalised checkpoint, in real units.

    Attributes:
        digest: SHA-256 of the checkpoint they were measured on.
        ranges: clipping limit by tensor name: "residual" and "logits", and with a sink
            "h.{l}.residual", are the largest magnitude seen, "h.{l}.q", ".k", ".v", ".ctx", ".up",
            ".act" and, with a gate, ".gate", ".silu" the 99.99 percentile of it. Rotated and not, a
            query or key has one range. With norms of
            q and k this is that of "h.{l}.q_norm" and ".k_norm", and ".q" and ".k" are the largest
            magnitude, as with norms behind parts ".o" and ".down". Without norms before parts
            "h.{l}.norm1" and ".norm2" are the percentile of the stream there.
        channels: "h.{l}.norm1", "h.{l}.norm2" and "norm": H numbers, the largest magnitude of
            every channel of the normalised row before gain and bias, where there is a norm. With a
            sink that of "norm" is divided between norm and head, "h.{l}.inner" are F powers of two
            that the outputs of `up` are to be divided by, and "h.{l}.values" factors of values.
        provenance: how they were made.
        equalized: whether the checkpoint is to be equalised; not where the weights were trained on
            the grid of a narrow format.
        sink: token whose keys and values at position 0 are constants (weights.sink), None for a
            model without massive activations there.
        rotated: whether the stream is to be rotated (weights.rotated_stream).
    """

    digest: str
    ranges: dict[str, float]
    channels: dict[str, tuple[float, ...]]
    provenance: dict[str, str]
    equalized: bool = True
    sink: int | None = None
    rotated: bool = False

    def __post_init__(self) -> None:
        """Check every number: 0, or a magnitude that a float32 network can have."""
        for name, value in self.ranges.items():
            _check_magnitude(f"ranges[{name!r}]", value)
        for name, values in self.channels.items():
            for index, value in enumerate(values):
                _check_magnitude(f"channels[{name!r}][{index}]", value)


def _check_magnitude(place: str, value: object) -> None:
    """Raise ScalesError unless `value` is a number that a magnitude can have."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScalesError(f"{place}: given {value!r}, allowed a number")
    if value != 0 and not SMALLEST <= value <= LARGEST:
        raise ScalesError(f"{place}: given {value!r}, allowed 0 or {SMALLEST:.3g} to {LARGEST:.3g}")


def range_of(scales: ActivationScales, name: str) -> float:
    """Return a measured range.

    Raises:
        ScalesError: it is missing, or zero, in which case the tensor carries nothing.
    """
    found = scales.ranges.get(name, 0.0)
    if not found > 0.0:
        raise ScalesError(f"quantize: range of {name!r}: given {found}, allowed > 0")
    return found


def norm_units(name: str, scales: ActivationScales, hidden: int) -> Reals:
    """Return t (H,), the real value of one int8 unit of every channel of a normalised row.

    Raises:
        ScalesError: the channel ranges are missing, of another number than H, or all zero.
    """
    seen = np.array(scales.channels.get(name, ()), np.float64)
    if seen.size != hidden:
        raise ScalesError(f"quantize: channels of {name!r}: given {seen.size}, allowed {hidden}")
    if not seen.max() > 0.0:
        raise ScalesError(f"quantize: channels of {name!r}: given none above 0, allowed > 0")
    # A channel that calibration saw nearly silent still gets a thousandth of the loudest one's.
    units: Reals = np.maximum(seen, seen.max() * 1e-3) / INT8_MAX
    return units


class _Largest:
    """The magnitudes of a tensor that decide a percentile: the largest ones, over many batches."""

    def __init__(self, total: int) -> None:
        # numpy's linear percentile lies between two order statistics; keep down to the lower one.
        self.rank = (1.0 - PERCENTILE / 100.0) * (total - 1)
        self.keep = math.floor(self.rank) + 2
        self.values: Floats = np.empty(0, np.float32)

    def add(self, values: Floats) -> None:
        """Take in another batch."""
        seen = np.abs(values).ravel()
        if self.values.size == self.keep:  # most of a batch changes nothing
            seen = seen[seen > self.values.min()]
        pool = np.concatenate([self.values, seen])
        if pool.size > self.keep:  # a copy: a view would hold the whole batch
            pool = np.partition(pool, pool.size - self.keep)[-self.keep :].copy()
        self.values = pool

    def percentile(self) -> float:
        """Return the percentile of everything that was added."""
        ordered = np.sort(self.values)[::-1].astype(np.float64)
        low = math.floor(self.rank)
        part = self.rank - low
        return float(ordered[low] * (1.0 - part) + ordered[min(low + 1, ordered.size - 1)] * part)


def calibrate(
    checkpoint: Checkpoint,
    tokens: npt.NDArray[np.integer[Any]],
    provenance: dict[str, str] | None = None,
    *,
    equalized: bool = True,
    sink: int | None = None,
    advance: Advance = silent,
) -> ActivationScales:
    """Measure the activations of the equalised checkpoint on rows of tokens.

    Args:
        checkpoint: as imported, not yet equalised.
        tokens: (R, T) ids; every row starts at position 0.
        provenance: anything to be recorded with the scales.
        equalized: False for a checkpoint that is to stay as it is.
        sink: the token that stands in front of every row and is not measured, None for none.
        advance: is told of every layer.

    Raises:
        ScalesError: an activation overflows float32.
        ValueError: wrong type or rank, no or too many positions, or an id outside the vocabulary.
    """
    tokens = with_sink(tokens, sink)
    check_tokens("calibrate", checkpoint, tokens)
    turned = sink is not None and rotatable(checkpoint.shape)
    model = _rewritten(checkpoint, equalized, turned)
    whole, clipped = _measured(checkpoint.shape, sink)
    rows, length = tokens.shape
    batch = max(1, min(BATCH, SCORES // (checkpoint.shape.heads * length**2)))
    largest: dict[str, _Largest] = {}
    limits: dict[str, float] = {"residual": 0.0, "logits": 0.0}
    channels: dict[str, Floats] = {}
    stream: dict[str, float] = {}
    readers: list[Reals] = []
    keep_freed_memory()

    def observe(name: str, values: Floats) -> None:
        found = abs(float(max(values.max(), -values.min())))
        if not math.isfinite(found):
            raise ScalesError(
                f"calibrate: {checkpoint.source}: {name} is not finite on the calibration text, "
                "allowed weights whose activations are finite in float32"
            )
        key = name.rsplit(".", 1)[-1]
        if key in ("residual", "addend", "logits"):
            target = "logits" if key == "logits" else "residual"
            limits[target] = max(limits[target], found)
            if target == "residual":  # that of the embedding counts in layer 0
                layer = f"{name.rpartition('.')[0] or 'h.0'}.residual"
                stream[layer] = max(stream.get(layer, 0.0), found)
        elif key in whole:
            limits[name] = max(limits.get(name, 0.0), found)
        elif key in clipped:
            per_row = values.size // values.shape[0]
            largest.setdefault(name, _Largest(rows * per_row)).add(values)
        elif key.startswith("norm") or key in INNER:
            seen = np.abs(values).max(axis=(0, 1))
            channels[name] = np.maximum(channels[name], seen) if name in channels else seen

    with np.errstate(over="ignore", invalid="ignore"):  # refused by `observe`
        batches = [tokens[start : start + batch] for start in range(0, rows, batch)]
        for layer in watch(model, batches, observe, int(sink is not None)):
            if sink is not None and model.shape.gated:
                readers.append(act_readers(model.tensors, layer))
            advance("layers measured", layer + 1, model.shape.layers)
    ranges = dict(limits)
    if sink is not None:
        ranges |= stream
        _settle(model, ranges, channels, readers)
    for name, found in largest.items():
        plain = name.replace("_rope", "_norm" if checkpoint.shape.head_norms else "")
        ranges[plain] = max(ranges.get(plain, 0.0), found.percentile())
    return ActivationScales(
        digest=digest(checkpoint),
        ranges=ranges,
        channels={name: tuple(float(v) for v in values) for name, values in channels.items()},
        provenance=dict(provenance or {}),
        equalized=equalized,
        sink=sink,
        rotated=turned,
    )


def _measured(shape: Shape, sink: int | None) -> tuple[set[str], set[str]]:
    """Return the tensors of a layer whose largest magnitude counts, and those that are clipped."""
    heads = {"q", "k"} if shape.head_norms else set()
    whole = heads | ({"o", "down"} if shape.part_norms else set())
    clipped = {*CLIPPED, *(f"{name}_norm" for name in heads)}
    clipped |= set() if shape.pre_norms else {"norm1", "norm2"}
    return whole, clipped - set(() if sink is None else INNER)


def _settle(
    model: Checkpoint,
    ranges: dict[str, float],
    channels: dict[str, Floats],
    readers: list[Reals],
) -> None:
    """Settle what a model with a sink has by its channels: ranges of INNER, units of the norm.

    `readers` are, of every layer with a gate, the ranges of the rows of down.
    """
    for layer in range(model.shape.layers):
        seen = {key: channels.pop(f"h.{layer}.{key}", None) for key in INNER}
        loud = seen["v"]
        assert loud is not None
        usual = np.exp(np.log(loud[loud > 0]).mean()) if (loud > 0).any() else 1.0
        values = np.where(loud > 0, loud / usual, 1.0) ** OF_VALUES
        channels[f"h.{layer}.values"] = values = values.astype(np.float32)
        seen |= {"v": loud / values, "ctx": None}
        if model.shape.gated:
            assert seen["up"] is not None and seen["act"] is not None
            inner = balancing(seen["act"].astype(np.float64), readers[layer])
            # A channel that is nearly always shut must not widen the range of all of `up`.
            least = np.exp2(np.ceil(np.log2(np.maximum(seen["up"] / seen["up"].max(), SMALLEST))))
            channels[f"h.{layer}.inner"] = inner = np.maximum(inner, least).astype(np.float32)
            seen |= {"up": seen["up"] / inner, "act": seen["act"] / inner}
        ranges |= {f"h.{layer}.{k}": float(v.max()) for k, v in seen.items() if v is not None}
    loudest = channels["norm"].astype(np.float64)
    loud = np.abs(model.head).max(axis=1)
    weight = np.abs(model.norm("norm")[0]) * loud
    usable = (loudest > 0) & (weight > 0)
    ratio = np.where(usable, loudest * np.where(usable, weight, 1.0), 1.0) ** FOR_HEAD
    units = np.where(usable, loudest / ratio, 0.0)
    if usable.any():
        channels["norm"] = (units * ratio[usable].max()).astype(np.float32)


def model_of(checkpoint: Checkpoint, scales: ActivationScales) -> Checkpoint:
    """Return the float model, equal to the checkpoint, whose activations the scales describe."""
    model = _rewritten(checkpoint, scales.equalized, scales.rotated)
    return model if scales.sink is None else balance(model, scales.channels)


def _rewritten(checkpoint: Checkpoint, equalized: bool, turned: bool) -> Checkpoint:
    """Return an equal model: equalised, its stream rotated, where it is said."""
    model = equalize(checkpoint) if equalized else checkpoint
    return rotated(model) if turned else model


def calibration_tokens(checkpoint: Checkpoint) -> npt.NDArray[np.int64]:
    """Return (R, T) ids of the documentation that is not held out, T the context, at most LONGEST.

    A vocabulary of 256 is read as bytes; any other needs the tokenizer of the checkpoint.

    Raises:
        ScalesError: there is no tokenizer, or it has tokens that the checkpoint has not.
    """
    text = read_corpus().development
    context = min(checkpoint.shape.context, LONGEST)
    if checkpoint.shape.vocab == 256:
        return windows(text, context, TOKENS // context)
    place = checkpoint.place
    if place is None or not has_tokenizer(place):
        raise ScalesError(
            f"{checkpoint.source}: given a vocabulary of {checkpoint.shape.vocab} and no "
            "tokenizer.json, allowed a vocabulary of 256 (bytes), a tokenizer "
            f"({', '.join(TOKENIZERS)}), or {SCALES_FILE} beside the checkpoint"
        )
    path = place / "tokenizer.json" if (place / "tokenizer.json").is_file() else place
    try:
        tokenizer = load_tokenizer(place, checkpoint.shape.vocab)
        pieces = windows(text, PIECE, TOKENS * 4 // PIECE)
        flat = np.concatenate([_ids(tokenizer, piece) for piece in pieces])
    except TokenizerError as error:
        raise ScalesError(f"{path}: cannot be used as a tokenizer: {error}") from error
    if not flat.size:
        raise ScalesError(f"{path}: given no tokens for the calibration text, allowed 1 and more")
    highest = int(flat.max())
    if highest >= checkpoint.shape.vocab:
        raise ScalesError(
            f"{path}: given token id {highest}, allowed 0 to {checkpoint.shape.vocab - 1}, the "
            "vocabulary of the checkpoint"
        )
    length = min(context, flat.size)
    rows = min(flat.size, max(TOKENS, length)) // length
    return flat[: rows * length].reshape(rows, length)


def _ids(tokenizer: Tokenizer, piece: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the ids of a piece of text, (bytes,)."""
    text = bytes(piece.astype(np.uint8)).decode("utf-8", "replace")
    return np.array(tokenizer.ids(text), np.int64)


def save_scales(scales: ActivationScales, path: Path) -> None:
    """Write a scale file: whole, or not at all."""
    content = {
        "format": FORMAT,
        "checkpoint_sha256": scales.digest,
        "percentile": PERCENTILE,
        "provenance": scales.provenance,
        "ranges": scales.ranges,
        "channels": {name: list(values) for name, values in scales.channels.items()},
        **({} if scales.equalized else {"equalized": False}),
        **({} if scales.sink is None else {"sink": scales.sink}),
        **({"rotated": True} if scales.rotated else {}),
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    with unfinished(path) as place:
        place.write_text(text, encoding="utf-8")


def load_scales(path: Path) -> ActivationScales:
    """Read a scale file.

    Raises:
        ScalesError: it is missing, not of this format, or holds what `ActivationScales` refuses.
    """
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")))
    except ScalesError as error:
        raise ScalesError(f"{path}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ScalesError(f"{path}: cannot be read as activation scales: {error!r}") from error


def _parsed(content: object) -> ActivationScales:
    """Return the scales that the JSON of a scale file holds."""
    top = _entry("the file", content, dict)
    version = top.get("format")
    if version != FORMAT:
        raise ScalesError(
            f"format: given {version!r}, allowed {FORMAT}; run python -m weights.calibrate"
        )
    channels = _entry("channels", top.get("channels"), dict)
    return ActivationScales(
        digest=_entry("checkpoint_sha256", top.get("checkpoint_sha256"), str),
        ranges=_entry("ranges", top.get("ranges"), dict),
        channels={
            name: tuple(_entry(f"channels[{name!r}]", values, list))
            for name, values in channels.items()
        },
        provenance=_entry("provenance", top.get("provenance"), dict),
        equalized=_entry("equalized", top.get("equalized", True), bool),
        sink=None if top.get("sink") is None else _entry("sink", top["sink"], int),
        rotated=_entry("rotated", top.get("rotated", False), bool),
    )


def _entry(place: str, value: object, kind: type[T]) -> T:
    """Return an entry of a scale file, which must be of a type."""
    if not isinstance(value, kind):
        raise ScalesError(f"{place}: given {type(value).__name__}, allowed {kind.__name__}")
    return value


def cache_path(checkpoint: Checkpoint) -> Path:
    """Return where the scales of a checkpoint without a folder that can be written are kept.

    XDG_CACHE_HOME (default ~/.cache) / tessera / DIGEST.json.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "tessera" / f"{digest(checkpoint)}.json"


def scales_for(checkpoint: Checkpoint, advance: Advance = silent) -> ActivationScales:
    """Return the scales kept beside the checkpoint or in the cache, or else calibrate and keep.

    `advance` is told of every layer that is measured.

    Raises:
        ScalesError: the file beside the checkpoint or in the cache is damaged or belongs to
            another one, or no text can be made.
    """
    beside = None if checkpoint.folder is None else checkpoint.folder / SCALES_FILE
    cached = cache_path(checkpoint)
    for path in (beside, cached):
        if path is not None and path.is_file():
            scales = load_scales(path)
            check_owner(checkpoint, scales, str(path))
            return scales
    place = own_place(checkpoint, SCALES_FILE, cached)
    _check_place(place)
    scales = calibrate_on_text(checkpoint, advance)
    save_scales(scales, place)
    return scales


def own_place(checkpoint: Checkpoint, name: str, cached: Path) -> Path:
    """Return where a file is kept: in the folder that was read if it can be written, or `cached`.

    So a GGUF file, which has no folder of its own, has everything in the cache.
    """
    folder = checkpoint.folder
    return folder / name if folder is not None and os.access(folder, os.W_OK) else cached


def _check_place(path: Path) -> None:
    """Make the folder of a scale file, before the measurement; ScalesError if it cannot be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScalesError(f"{path.parent}: cannot be made: {error.strerror}") from error
    if path.exists() or not os.access(path.parent, os.W_OK):
        raise ScalesError(f"{path}: cannot be written, allowed is a file in a folder that can be")


def check_owner(checkpoint: Checkpoint, scales: ActivationScales, where: str) -> None:
    """Raise ScalesError unless the scales were measured on this checkpoint."""
    own = digest(checkpoint)
    if scales.digest != own:
        raise ScalesError(
            f"{where}: given scales of checkpoint {scales.digest[:12]}, allowed those of "
            f"{checkpoint.source} ({own[:12]}); run python -m weights.calibrate"
        )


def calibrate_on_text(checkpoint: Checkpoint, advance: Advance = silent) -> ActivationScales:
    """Measure the scales on this Python's documentation and record that."""
    tokens = calibration_tokens(checkpoint)
    provenance = {
        "text": f"training part of the documentation of CPython {platform.python_version()}",
        "tokens": f"{tokens.shape[0]} rows of {tokens.shape[1]}",
        "command": "python -m weights.calibrate",
    }
    sink = first_token(checkpoint) if is_sink(checkpoint, tokens[0]) else None
    rows = tokens[:, int(sink is not None) :]
    return calibrate(checkpoint, rows, provenance, sink=sink, advance=advance)


def first_token(checkpoint: Checkpoint) -> int:
    """Return the token that texts begin with, by the tokenizer; 0 where nothing says it."""
    place = checkpoint.place
    if place is None or not has_tokenizer(place):
        return 0
    return load_tokenizer(place, checkpoint.shape.vocab).begin or 0


def main(argv: Sequence[str] | None = None) -> int:
    """Calibrate a checkpoint and write the scale file beside it, or where asked."""
    parser = argparse.ArgumentParser(description="Measure the activation scales of a checkpoint.")
    parser.add_argument("checkpoint", help="a folder, a GGUF file or a hub id")
    parser.add_argument("--output", type=Path, help=f"default: {SCALES_FILE} beside the checkpoint")
    given = parser.parse_args(argv)
    try:
        checkpoint = load_checkpoint(given.checkpoint)
        usual = own_place(checkpoint, SCALES_FILE, cache_path(checkpoint))
        output = given.output or usual
        if given.output is None:
            output.parent.mkdir(parents=True, exist_ok=True)
        if not output.parent.is_dir():
            raise ScalesError(f"--output: given {output}, allowed a file in a folder that exists")
        save_scales(calibrate_on_text(checkpoint), output)
    except (CheckpointError, ScalesError, OSError) as error:
        print(f"calibrate: {error}", file=sys.stderr)
        return 2
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
