# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a model appear while a program runs, and how to get them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spec.isa.operands import WORD


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor, or the piece of it that one instruction writes.

    Attributes:
        name: "norm1", "q", "scores_h0", ...; the pieces of a tensor share it.
        layer: block number.
        instr: word index of the producing instruction.
        address: byte address in SRAM of the piece's first element.
        shape: (rows, columns), or (rows,) for one element per row.
        dtype: numpy name of the element type.
        pitch: bytes from row to row.
        row, column: place of the piece's first element in the whole tensor.
        dynamic: the columns are keys from key `column` on, and a run at one position writes those
            that it looks at; `shape` names the most. See `at_position`.

    """

    name: str
    layer: int
    instr: int
    address: int
    shape: tuple[int, ...]
    dtype: str
    pitch: int
    row: int = 0
    column: int = 0
    dynamic: bool = False


def at_position(refs: Iterable[TensorRef], pos: int, first_keys: Sequence[int]) -> list[TensorRef]:
    """Return what a decode step at `pos` writes; `first_keys` has the first key of each layer.

    The columns of dynamic tensors become positions; pieces behind `pos` are left out.
    """
    result = []
    for ref in refs:
        if not ref.dynamic:
            result.append(ref)
            continue
        first = first_keys[ref.layer]
        columns = min(ref.shape[1], pos + 1 - first - ref.column)
        if columns > 0:
            shape = (ref.shape[0], columns)
            column = first + ref.column
            result.append(replace(ref, shape=shape, column=column, dynamic=False))
    return result


class Write(Protocol):
    """An entry of a log of SRAM writes: n consecutive words from a word address."""

    @property
    def instr(self) -> int:
        """Word index of the instruction that wrote."""

    @property
    def address(self) -> int:
        """Word address."""

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """(n, 16) or (16,) uint8."""


class MissingTensorError(ValueError):
    """The log does not hold every byte of a tensor."""


def collect(
    refs: Iterable[TensorRef], writes: Iterable[Write], sram_bytes: int
) -> dict[tuple[int, str], npt.NDArray[Any]]:
    """Return the tensors of a run by (layer, name), put together from a log of SRAM writes.

    Raises MissingTensorError if an instruction of the map did not write all of its piece.
    """
    refs = list(refs)
    images = _images({ref.instr for ref in refs}, writes, sram_bytes)
    empty = np.zeros(sram_bytes, np.uint8), np.zeros(sram_bytes, np.bool_)
    result: dict[tuple[int, str], npt.NDArray[Any]] = {}
    for key in dict.fromkeys((ref.layer, ref.name) for ref in refs):
        pieces = [ref for ref in refs if (ref.layer, ref.name) == key]
        rows = max(ref.row + ref.shape[0] for ref in pieces)
        columns = [ref.column + ref.shape[1] for ref in pieces if len(ref.shape) == 2]
        whole = np.zeros((rows, max(columns)) if columns else (rows,), pieces[0].dtype)
        for ref in pieces:
            place: tuple[slice, ...] = (slice(ref.row, ref.row + ref.shape[0]),)
            if columns:
                place += (slice(ref.column, ref.column + ref.shape[1]),)
            whole[place] = _piece(ref, *images.get(ref.instr, empty))
        result[key] = whole
    return result


Image = tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]


def _images(wanted: set[int], writes: Iterable[Write], size: int) -> dict[int, Image]:
    """Return per instruction (SRAM image of what it wrote, which bytes those are)."""
    images: dict[int, Image] = {}
    for write in writes:
        if write.instr not in wanted:
            continue
        if write.instr not in images:
            images[write.instr] = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
        data, valid = images[write.instr]
        raw = np.asarray(write.data, np.uint8).reshape(-1)
        start = write.address * WORD
        data[start : start + raw.size] = raw
        valid[start : start + raw.size] = True
    return images


def _piece(
    ref: TensorRef, data: npt.NDArray[np.uint8], valid: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Return the piece of one reference in its shape."""
    dtype = np.dtype(ref.dtype).newbyteorder("<")
    row_bytes = (ref.shape[1] if len(ref.shape) == 2 else 1) * dtype.itemsize
    rows = ref.address + ref.pitch * np.arange(ref.shape[0])[:, None]
    where = rows + np.arange(row_bytes)[None, :]
    if not valid[where].all():
        row = int(np.argmin(valid[where].all(axis=1)))
        raise MissingTensorError(
            f"layer {ref.layer} {ref.name}: instruction {ref.instr} did not write all of row "
            f"{ref.row + row} at SRAM byte 0x{ref.address + row * ref.pitch:X}"
        )
    return np.ascontiguousarray(data[where]).view(dtype).reshape(ref.shape)
