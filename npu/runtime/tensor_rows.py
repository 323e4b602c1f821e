# SPDX-License-Identifier: Apache-2.0
"""Tensors between the host's arrays and the rows in which the chip holds them."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, TensorType
from spec.isa.operands import up


def row_bytes(kind: TensorType) -> int:
    """Return the bytes from row to row: whole words; a row is what the last axis holds."""
    return up(_columns(kind) * kind.element.dtype.itemsize)


def tensor_bytes(kind: TensorType) -> int:
    """Return the bytes of all rows."""
    return kind.size // _columns(kind) * row_bytes(kind)


def _columns(kind: TensorType) -> int:
    return kind.shape[-1] if kind.shape else 1


def to_rows(values: Array, kind: TensorType) -> bytes:
    """Return an array as it lies in memory: rows padded with zeros to whole words.

    Args:
        values: of the type's shape and elements.
        kind: of the tensor.
    """
    rows = np.ascontiguousarray(values).reshape(-1, _columns(kind))
    image = np.zeros((rows.shape[0], row_bytes(kind) // kind.element.dtype.itemsize), kind.element)
    image[:, : rows.shape[1]] = rows
    return image.tobytes()


def from_rows(data: bytes, kind: TensorType) -> Array:
    """Return the array that lies in memory as `to_rows` makes it."""
    rows = np.frombuffer(data, kind.element.dtype)
    rows = rows.reshape(-1, row_bytes(kind) // kind.element.dtype.itemsize)
    return np.ascontiguousarray(rows[:, : _columns(kind)]).reshape(kind.shape)
