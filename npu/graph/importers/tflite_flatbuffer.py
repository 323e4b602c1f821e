# SPDX-License-Identifier: Apache-2.0
"""A reader of flatbuffers that checks every offset before it follows it."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from npu.graph.form import Array, GraphError


class FileBytes:
    """The bytes of a file, read with bounds."""

    def __init__(self, data: bytes, file: str) -> None:
        """Take the bytes; `file` is what messages call them."""
        self.data = data
        self.file = file

    def number(self, form: str, position: int) -> int:
        """Return an integer in a form of `struct`. Raises GraphError outside of the file."""
        size = struct.calcsize("<" + form)
        self.within(position, size, "a number")
        return int(struct.unpack_from("<" + form, self.data, position)[0])

    def within(self, position: int, size: int, what: str) -> None:
        """Raise GraphError unless so many bytes lie in the file."""
        if position < 0 or size < 0 or position + size > len(self.data):
            raise GraphError(
                f"{self.file}: {what} of {size} bytes at offset {position}, "
                f"allowed 0..{len(self.data)}: the file is cut or damaged"
            )

    def root(self) -> FileTable:
        """Return the table that the file begins with."""
        return FileTable(self, self.number("I", 0), "the model")


class FileTable:
    """A table: fields by number, each absent or somewhere in the file."""

    def __init__(self, buffer: FileBytes, position: int, what: str) -> None:
        """Check where the table and its list of fields lie."""
        self.buffer, self.position, self.what = buffer, position, what
        buffer.within(position, 4, what)
        self._fields = position - buffer.number("i", position)
        self._length = buffer.number("H", self._fields)
        self._size = buffer.number("H", self._fields + 2)
        if self._length < 4 or self._length % 2:
            raise GraphError(f"{buffer.file}: {what}: list of fields of {self._length} bytes")
        buffer.within(self._fields, self._length, f"{what}: list of fields")
        buffer.within(position, self._size, what)

    def _field(self, index: int, size: int) -> int:
        """Return where a field lies, 0 if it is absent."""
        entry = 4 + 2 * index
        if entry + 2 > self._length:
            return 0
        offset = self.buffer.number("H", self._fields + entry)
        if offset and offset + size > self._size:
            raise GraphError(
                f"{self.buffer.file}: {self.what}: field {index} at {offset}, "
                f"allowed up to {self._size - size}: the file is damaged"
            )
        return self.position + offset if offset else 0

    def has(self, index: int) -> bool:
        """Say whether a field is present."""
        return self._field(index, 1) != 0

    def number(self, index: int, form: str, default: int = 0) -> int:
        """Return a field that is an integer."""
        place = self._field(index, struct.calcsize("<" + form))
        return self.buffer.number(form, place) if place else default

    def real(self, index: int, default: float = 0.0) -> float:
        """Return a field that is a float32."""
        place = self._field(index, 4)
        if not place:
            return default
        self.buffer.within(place, 4, f"{self.what}: field {index}")
        return float(struct.unpack_from("<f", self.buffer.data, place)[0])

    def table(self, index: int, what: str) -> FileTable | None:
        """Return a field that is a table."""
        place = self._field(index, 4)
        if not place:
            return None
        return FileTable(self.buffer, place + self.buffer.number("I", place), what)

    def _vector(self, index: int, size: int) -> tuple[int, int]:
        """Return place and number of the elements of a field that is a vector."""
        place = self._field(index, 4)
        if not place:
            return 0, 0
        start = place + self.buffer.number("I", place)
        count = self.buffer.number("I", start)
        self.buffer.within(start + 4, count * size, f"{self.what}: vector {index}")
        return start + 4, count

    def vector(self, index: int, dtype: npt.DTypeLike) -> Array:
        """Return a field that is a vector of numbers, empty if it is absent."""
        kind = np.dtype(dtype).newbyteorder("<")
        place, count = self._vector(index, kind.itemsize)
        return np.frombuffer(self.buffer.data, kind, count, place).astype(dtype)

    def bytes(self, index: int) -> memoryview:
        """Return a field that is a vector of bytes, without a copy."""
        place, count = self._vector(index, 1)
        return memoryview(self.buffer.data)[place : place + count]

    def text(self, index: int) -> str:
        """Return a field that is a string, "" if it is absent."""
        return bytes(self.bytes(index)).decode(errors="replace")

    def tables(self, index: int, what: str) -> list[FileTable]:
        """Return a field that is a vector of tables."""
        place, count = self._vector(index, 4)
        return [
            FileTable(
                self.buffer,
                place + 4 * one + self.buffer.number("I", place + 4 * one),
                f"{what} {one}",
            )
            for one in range(count)
        ]


class Options(FileTable):
    """The options of an operator, which remember what was asked of them."""

    def __init__(self, table: FileTable) -> None:
        """Read the same table."""
        super().__init__(table.buffer, table.position, table.what)
        self._asked: set[int] = set()

    def _field(self, index: int, size: int) -> int:
        self._asked.add(index)
        return super()._field(index, size)

    def unread(self) -> list[int]:
        """Return the fields that nobody asked for and that are not 0."""
        rest = set(range((self._length - 4) // 2)) - self._asked
        places = {index: super(Options, self)._field(index, 1) for index in sorted(rest)}
        return [
            index for index, place in places.items() if place and self.buffer.number("B", place)
        ]
