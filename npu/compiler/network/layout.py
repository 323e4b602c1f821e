# SPDX-License-Identifier: Apache-2.0
"""Where the elements of tensors lie: storages, and views into them.

A tensor lies as rows: its last axis contiguous, padded to whole words, all other axes at strides.
Moves that only change strides make a view of the same storage instead of instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from npu.graph.form import Element, Operation
from spec.isa.operands import WORD, up

SIZES = {Element.I8: 1, Element.U8: 1, Element.I16: 2, Element.I32: 4}
"""Bytes of the elements that the chip holds."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows at one pitch: bytes from the beginning of a storage, and of a row."""

    offset: int
    count: int
    columns: int
    pitch: int


@dataclass(frozen=True, slots=True)
class StorageView:
    """A tensor in a storage.

    Attributes:
        storage: name of the storage.
        offset: bytes from its beginning to the first element.
        shape: of the tensor, at least one axis.
        strides: bytes from index to index of each axis; the last axis is contiguous.
        element: the type.
    """

    storage: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return SIZES[self.element]

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape[-1]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, padded to whole words."""
        return up(self.columns * self.size)

    @property
    def end(self) -> int:
        """First byte behind the last row, padded to whole words."""
        steps = zip(self.shape[:-1], self.strides[:-1], strict=True)
        return self.offset + sum((n - 1) * step for n, step in steps) + self.row_bytes

    def rows(self, axes: int = 0) -> Rows | None:
        """Return the view as rows behind index 0 of the first `axes` axes; None if it has no pitch.

        The pitch of a single row is its own length.
        """
        count, pitch = 1, 0
        shape, strides = self.shape[axes:-1], self.strides[axes:-1]
        for n, step in reversed(list(zip(shape, strides, strict=True))):
            if n == 1:
                continue
            if count == 1:
                pitch = step
            elif step != pitch * count:
                return None
            count *= n
        pitch = pitch or self.row_bytes
        aligned = pitch % WORD == 0 and self.offset % WORD == 0 and pitch > 0
        return Rows(self.offset, count, self.columns, pitch) if aligned else None

    def at(self, *indices: int) -> StorageView:
        """Return the view of the elements at indices of the first axes."""
        moved = sum(i * step for i, step in zip(indices, self.strides, strict=False))
        cut = len(indices)
        return replace(
            self,
            offset=self.offset + moved,
            shape=self.shape[cut:],
            strides=self.strides[cut:],
        )


def natural(storage: str, shape: tuple[int, ...], element: Element) -> StorageView:
    """Return the view of a tensor that has a storage of its own, row behind row."""
    shape = shape or (1,)
    size = SIZES[element]
    strides = [size]
    step = up(shape[-1] * size)
    for n in reversed(shape[1:-1]):
        strides.append(step)
        step *= n
    if len(shape) > 1:
        strides.append(step)
    return StorageView(storage, 0, shape, tuple(reversed(strides)), element)


def moved(view: StorageView, op: Operation, shape: tuple[int, ...]) -> StorageView | None:
    """Return the result of a move as a view of its input; None if only instructions can make it."""
    match op.kind:
        case "identity":
            return replace(view, shape=shape or (1,))
        case "reshape":
            return reshaped(view, shape or (1,))
        case "transpose":
            order = tuple(op["order"])
            if order[-1] != len(order) - 1:
                return _transposed_units(view, order)
            return replace(
                view,
                shape=tuple(view.shape[i] for i in order),
                strides=tuple(view.strides[i] for i in order),
            )
        case "slice":
            return _sliced(view, op, shape)
    return None


def unmoved(view: StorageView, op: Operation, shape: tuple[int, ...]) -> StorageView | None:
    """Return the input of a move as a view of its result, so that the move is in its producer.

    Args:
        view: of the result.
        op: the move.
        shape: of its input.
    """
    match op.kind:
        case "identity":
            return replace(view, shape=shape or (1,))
        case "reshape":
            return reshaped(view, shape or (1,))
        case "transpose":
            order = tuple(op["order"])
            if order[-1] != len(order) - 1:
                return None
            back = [order.index(i) for i in range(len(order))]
            return replace(
                view,
                shape=tuple(view.shape[i] for i in back),
                strides=tuple(view.strides[i] for i in back),
            )
    return None


def _transposed_units(view: StorageView, order: tuple[int, ...]) -> StorageView | None:
    """Return a transposition that moves the last axis, if the only axis it passes has one index."""
    if view.shape[-1] != 1 and any(
        view.shape[i] != 1 for i in order[order.index(len(order) - 1) + 1 :]
    ):
        return None
    if view.shape[-1] == 1:
        return None
    kept = [i for i in order if view.shape[i] != 1]
    if kept != sorted(kept):
        return None
    return reshaped(view, tuple(view.shape[i] for i in order))


def reshaped(view: StorageView, shape: tuple[int, ...]) -> StorageView | None:
    """Return the view in another shape; None if a pitch would have to change."""
    if shape[-1] == view.columns:
        strides = _resplit(view.shape[:-1], view.strides[:-1], shape[:-1])
        if strides is not None:
            return replace(view, shape=shape, strides=(*strides, view.size))
    if shape[-1] * view.size % WORD == 0:
        # Rows of whole words may be cut into shorter ones, or joined where they touch.
        strides = _resplit(view.shape, view.strides, shape)
        if strides is not None and strides[-1] == view.size:
            return replace(view, shape=shape, strides=strides)
    flat = view.rows()
    dense = flat is not None and (flat.count == 1 or flat.pitch == view.columns * view.size)
    if not dense or (shape[-1] * view.size % WORD and int(np.prod(shape[:-1])) != 1):
        return None
    fresh = natural(view.storage, shape, view.element)
    return replace(fresh, offset=view.offset)


def _resplit(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the strides of axes that are split and joined to `wanted`; None if impossible."""
    old = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    at = len(old) - 1
    left, step = old[at] if old else (1, 0)
    for n in reversed(wanted):
        if n == 1:
            result.append(step)
            continue
        while left < n or left % n:
            if at == 0 or old[at - 1][1] != step * left:
                return None
            at -= 1
            left *= old[at][0]
        result.append(step)
        left //= n
        step *= n
        if left == 1:
            at -= 1
            if at >= 0:
                left, step = old[at]
    return tuple(reversed(result))


def _sliced(view: StorageView, op: Operation, shape: tuple[int, ...]) -> StorageView | None:
    starts, steps = op["starts"], op["steps"]
    if any(step < 0 for step in steps) or steps[-1] != 1 or starts[-1] * view.size % WORD:
        return None
    moved_by = sum(s * stride for s, stride in zip(starts, view.strides, strict=True))
    strides = tuple(stride * step for stride, step in zip(view.strides, steps, strict=True))
    return replace(view, offset=view.offset + moved_by, shape=shape, strides=strides)


def parts_of(
    view: StorageView, shapes: Iterable[tuple[int, ...]], axis: int
) -> list[StorageView] | None:
    """Return where the inputs of a concatenation lie in its result; None if one is off a word."""
    result, at = [], 0
    for shape in shapes:
        offset = view.offset + at * view.strides[axis]
        if offset % WORD:
            return None
        result.append(replace(view, offset=offset, shape=shape))
        at += shape[axis]
    return result


@dataclass(frozen=True)
class Layout:
    """The views of all tensors of some operations, and the bytes of the storages.

    Attributes:
        views: by tensor.
        bytes: by storage.
        free: operations that views have made unnecessary.
    """

    views: Mapping[str, StorageView]
    bytes: Mapping[str, int]
    free: frozenset[str]
