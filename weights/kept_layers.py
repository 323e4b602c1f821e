# SPDX-License-Identifier: Apache-2.0
"""Layers whose weights were rounded once, kept on disk for those who ask for the same again.

Error-compensated rounding takes minutes for a model of which the rest takes seconds. A layer is
kept under a digest of all that decides it: real weights, scales, format, moments of its inputs, and
the code that rounds; so a kept one is the same to the bit, or it is not found. A file that is
damaged is as good as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from spec.isa import WEIGHT_FORMATS
from weights.formats.linear import NarrowLinear
from weights.formats.recipe import Encoding
from weights.limits import ModelError
from weights.model import AnyLinear, Linear
from weights.whole_file import unfinished

CODE = ("quantize.py", "kept_layers.py", "fixed_point.py", "limits.py", "model.py", "formats/*.py")
"""Files of this package that decide what a layer is rounded to, and how it is kept."""
CHECKSUM = "sha256"
"""Of everything behind it, the first bytes of a file."""

Codes = npt.NDArray[np.uint8]
Parts = dict[str, npt.NDArray[np.generic]]


class KeptLayers:
    """Rounded layers of a checkpoint, in a folder."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, which is made when the first layer is kept."""
        self._folder = folder

    def layer(
        self,
        encoding: Encoding,
        given: Iterable[npt.NDArray[np.generic]],
        make: Callable[[], AnyLinear],
    ) -> AnyLinear:
        """Return the kept layer, or else make and keep it, where the disk lets it.

        Args:
            encoding: of the weights.
            given: what else decides them.
            make: rounds the weights.
        """
        path = self._folder / _key(encoding, given)
        with suppress(OSError, SafetensorError, KeyError, ValueError, ModelError):
            return _read(path.read_bytes(), encoding)
        made = make()
        data = save(_parts(made))
        with suppress(OSError):  # a disk that is full, or not to be written, is no error here
            self._folder.mkdir(parents=True, exist_ok=True)
            with unfinished(path) as place:
                place.write_bytes(hashlib.new(CHECKSUM, data).digest() + data)
        return made


@cache
def _code() -> bytes:
    """Return a digest of the code that rounds."""
    package = Path(__file__).parent
    state = hashlib.sha256()
    for pattern in CODE:
        for path in sorted(package.glob(pattern)):
            state.update(path.read_bytes())
    return state.digest()


def _key(encoding: Encoding, given: Iterable[npt.NDArray[np.generic]]) -> str:
    """Return a digest of all that decides a layer."""
    info = None if encoding.format is None else WEIGHT_FORMATS[encoding.format]
    state = hashlib.sha256(_code() + f"{encoding} {info}".encode())
    for one in given:
        state.update(f"{one.dtype}{one.shape}".encode())
        state.update(np.ascontiguousarray(one).data)
    return state.hexdigest()


def _parts(layer: AnyLinear) -> Parts:
    """Return what a layer is made of, a row of codes as bits one after the other."""
    found: Parts = {"bias": layer.bias, "mult": layer.mult, "shift": layer.shift}
    if isinstance(layer, Linear):
        return found | {"weight": layer.weight}
    bits = WEIGHT_FORMATS[layer.format].bits
    rows = np.unpackbits(layer.codes[..., None], axis=-1)[..., -bits:].reshape(layer.inputs, -1)
    codes, head_dim = np.packbits(rows, axis=-1), np.array(layer.head_dim)
    return found | {"codes": codes, "side": layer.side, "head_dim": head_dim}


def _read(data: bytes, encoding: Encoding) -> AnyLinear:
    """Return the layer that a file holds. Raises one of many errors if it is damaged."""
    size = hashlib.new(CHECKSUM).digest_size
    if hashlib.new(CHECKSUM, data[size:]).digest() != data[:size]:
        raise ValueError("damaged")
    parts = load(data[size:])
    bias, mult, shift = (parts[name] for name in ("bias", "mult", "shift"))
    if encoding.format is None:
        return Linear(parts["weight"], bias, mult, shift)
    bits = WEIGHT_FORMATS[encoding.format].bits
    rows = np.unpackbits(parts["codes"], axis=-1, count=bias.size * bits)
    codes = np.zeros((len(rows), bias.size, 8), np.uint8)
    codes[..., -bits:] = rows.reshape(len(rows), bias.size, bits)
    codes = np.packbits(codes, axis=-1)[..., 0]
    side, head_dim = parts["side"], int(parts["head_dim"])
    return NarrowLinear(encoding.format, encoding.group, codes, side, bias, mult, shift, head_dim)
