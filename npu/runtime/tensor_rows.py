# SPDX-License-Identifier: Apache-2.0
"""Tensors between the host's arrays and the rows in which the chip holds them."""

from __future__ import annotations

import numpy as np

from npu.compiler.network.layout import View
from npu.graph.form import Array


def to_rows(values: Array, view: View) -> bytes:
    """Return an array as it lies in memory: rows padded with zeros to whole words.

    Args:
        values: of the view's shape and element type.
        view: natural rows.
    """
    rows = np.ascontiguousarray(values).reshape(-1, view.columns)
    image = np.zeros((rows.shape[0], view.row_bytes // view.size), view.element.dtype)
    image[:, : view.columns] = rows
    return image.tobytes()


def from_rows(data: bytes, view: View) -> Array:
    """Return the array that lies in memory as `to_rows` makes it."""
    rows = np.frombuffer(data, view.element.dtype).reshape(-1, view.row_bytes // view.size)
    return np.ascontiguousarray(rows[:, : view.columns]).reshape(view.shape)
