# SPDX-License-Identifier: Apache-2.0
"""What a model loses as integers, kept on disk for who measures the same again.

It is kept under a digest of all that decides it: the float and the integer model, the text, and the
code of both networks; so a kept one is what would be measured, or it is not found. A file that is
damaged is as good as none. What takes less than LEAST is not worth a file.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from weights.calibrate import cache_path
from weights.checkpoint import Checkpoint, digest
from weights.loss import Integers, Loss, TextRow, measure_loss
from weights.model import QuantizedModel
from weights.whole_file import unfinished

LEAST = 2.0
"""Seconds."""


class _Hash(Protocol):
    def update(self, data: bytes | memoryview, /) -> None:
        """Add to what has been seen."""


def kept_loss(
    checkpoint: Checkpoint,
    model: QuantizedModel,
    rows: Sequence[TextRow],
    integers: Integers,
    advance: Callable[[int], object] = lambda _: None,
) -> Loss:
    """Return the kept loss, or else measure and keep it, where the disk lets it.

    Args:
        checkpoint: the float model.
        model: made of it.
        rows: of text, at least one.
        integers: the integer network.
        advance: called with the number of rows that were done.
    """
    folder = cache_path(checkpoint).with_suffix("")
    path = folder / f"loss-{_key(checkpoint, model, rows, integers)}.json"
    with suppress(OSError, ValueError, TypeError):
        return Loss(**json.loads(path.read_text(encoding="utf-8")))
    started = time.monotonic()
    loss = measure_loss(checkpoint, model, rows, integers, advance)
    if time.monotonic() - started >= LEAST:
        with suppress(OSError, ValueError):  # a full disk is no error here; NaN is not kept
            folder.mkdir(parents=True, exist_ok=True)
            with unfinished(path) as place:
                place.write_text(json.dumps(asdict(loss), allow_nan=False), encoding="utf-8")
    return loss


def _key(
    checkpoint: Checkpoint, model: QuantizedModel, rows: Sequence[TextRow], integers: Integers
) -> str:
    """Return a digest of all that decides a loss."""
    state = hashlib.sha256(f"{digest(checkpoint)} {integers.__qualname__}".encode())
    for name in ("weights", integers.__module__.partition(".")[0]):
        for folder in sys.modules[name].__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                state.update(file.read_bytes())
    _add(state, model)
    _add(state, rows)
    return state.hexdigest()


def _add(state: _Hash, value: object) -> None:
    """Add a value with all that is in it."""
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).data)
    elif is_dataclass(value):
        for field in fields(value):
            state.update(field.name.encode())
            _add(state, getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key in sorted(value):
            state.update(f"{key}".encode())
            _add(state, value[key])
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        state.update(f"{len(value)}".encode())
        for one in value:
            _add(state, one)
    else:
        state.update(repr(value).encode())
