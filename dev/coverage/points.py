# SPDX-License-Identifier: Apache-2.0
"""What a run executed of the hand-written RTL: points with counts, read, kept small, merged.

A model that is built with `coverage` leaves `coverage.dat` in the run's folder: one record for each
point of each instance. A point is a run of statements that execute together ("line") or one way of
a decision ("branch"). Here the instances of a module and its parameterisations are one, and only
files below `rtl/` count. The points of a model are the same in all its runs: a `Table` is kept
once, and each run is an array of counts that belongs to it.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

FILE = "coverage.dat"
"""Name of the simulator's file in the folder of a run."""
DESIGN = "rtl/"
"""Where the files are that count, from the project's folder."""
_HEAD = b"# SystemC::Coverage-3\n"
_RECORD = re.compile(rb"^C '([^']*)' (\d+)$", re.MULTILINE)
_DIGEST_BYTES = 8

Kind = Literal["line", "branch"]
Counts = npt.NDArray[np.int64]


class CoverageError(ValueError):
    """A file or a kept run that is not what it should be; the text is one line."""


@dataclass(frozen=True, order=True)
class Point:
    """A place of the design that is executed or not.

    Attributes:
        file: the source, from the project's folder, e.g. `rtl/vec/npu_vec.sv`.
        line: line of the source, from 1.
        column: column, from 1.
        kind: "line" for statements that execute together, "branch" for a way of a decision.
        module: name of the module or package, without its parameters.
        arm: what it is in the source, in Verilator's words: block, if, else, elsif, case,
            cond_then, cond_else.
    """

    file: str
    line: int
    column: int
    kind: Kind
    module: str
    arm: str


@dataclass(frozen=True)
class Table:
    """All points of a model, or of several.

    Attributes:
        points: in the order of the source, each once.
        spans: for each point the lines of the statements that it counts, ascending.
    """

    points: tuple[Point, ...]
    spans: tuple[tuple[int, ...], ...]

    @cached_property
    def _text(self) -> bytes:
        rows = [
            [point.file, point.line, point.column, point.kind, point.module, point.arm, span]
            for point, span in zip(self.points, self.spans, strict=True)
        ]
        return json.dumps(rows, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> str:
        """Hexadecimal name: equal for equal tables."""
        return hashlib.sha256(self._text).digest()[:_DIGEST_BYTES].hex()

    def encode(self) -> bytes:
        """Return the table in a compact form."""
        return zlib.compress(self._text, 9)

    @classmethod
    def decode(cls, kept: bytes) -> Table:
        """Return the table that `encode` made small.

        Raises:
            CoverageError: it is something else.
        """
        try:
            rows = json.loads(zlib.decompress(kept))
            points = tuple(Point(*row[:6]) for row in rows)
            return cls(points, tuple(tuple(row[6]) for row in rows))
        except (zlib.error, ValueError, TypeError, IndexError) as error:
            raise CoverageError(f"a kept table of points cannot be read: {error}") from None


@dataclass(frozen=True, eq=False)
class Points:
    """What one run executed, or several together.

    Attributes:
        table: the points.
        counts: how often each was executed, `(len(table.points),)` int64.
    """

    table: Table
    counts: Counts = field(repr=False)

    @property
    def hit(self) -> npt.NDArray[np.bool_]:
        """Which points were executed, `(len(table.points),)` bool."""
        return self.counts > 0

    def encode(self) -> bytes:
        """Return the counts in a compact form, 1 to 3 KB for the chip; the table is kept apart."""
        # The bytes of like weight together: the high ones are zero.
        planes = np.ascontiguousarray(self.counts.astype("<i8").view(np.uint8).reshape(-1, 8).T)
        return bytes.fromhex(self.table.digest) + zlib.compress(planes.tobytes(), 9)

    @staticmethod
    def digest_of(kept: bytes) -> str:
        """Return the digest of the table that a kept run belongs to."""
        return kept[:_DIGEST_BYTES].hex()

    @classmethod
    def decode(cls, kept: bytes, table: Table) -> Points:
        """Return the run that `encode` made small.

        Raises:
            CoverageError: it belongs to another table, or is something else.
        """
        if cls.digest_of(kept) != table.digest:
            raise CoverageError(
                f"a kept run has points of table {cls.digest_of(kept)}, given table {table.digest}"
            )
        try:
            planes = np.frombuffer(zlib.decompress(kept[_DIGEST_BYTES:]), np.uint8)
            rows = np.ascontiguousarray(planes.reshape(8, len(table.points)).T)
        except (zlib.error, ValueError) as error:
            raise CoverageError(f"a kept run cannot be read: {error}") from None
        return cls(table, rows.view("<i8").reshape(-1).astype(np.int64))


@dataclass(frozen=True)
class _Layout:
    """The records of a model's files: their table, and each one's point or -1."""

    table: Table
    places: npt.NDArray[np.intp]


_LAYOUTS: dict[bytes, _Layout] = {}
"""By the digest of all keys: each run of a model has the same ones."""


def parse(path: Path) -> Points:
    """Read the file that a simulation left.

    Raises:
        CoverageError: it is not there, or was not written to its end.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CoverageError(
            f"{path}: no such file; a run leaves one if its model is built with coverage=True"
        ) from None
    records = _RECORD.findall(data)
    whole = data.startswith(_HEAD) and data.endswith(b"\n")
    if not whole or data.count(b"\n") != 1 + len(records):
        raise CoverageError(f"{path}: not a whole file of Verilator's coverage; run the test again")
    keys = [key for key, _ in records]
    name = hashlib.sha256(b"\n".join(keys)).digest()
    layout = _LAYOUTS.get(name)
    if layout is None:
        layout = _LAYOUTS[name] = _layout(path, keys)
    counts = np.zeros(len(layout.table.points), np.int64)
    inside = layout.places >= 0
    values = np.array([int(count) for _, count in records], np.int64)
    np.add.at(counts, layout.places[inside], values[inside])
    return Points(layout.table, counts)


def _layout(path: Path, keys: Iterable[bytes]) -> _Layout:
    found: list[Point | None] = []
    spans: dict[Point, set[int]] = {}
    for key in keys:
        words = dict(word.split("\2", 1) for word in key.decode().split("\1")[1:])
        try:
            point, lines = _point(words)
        except (KeyError, ValueError):
            raise CoverageError(f"{path}: no point of the design: {words}") from None
        found.append(point)
        if point is not None:
            spans.setdefault(point, set()).update(lines)
    table = _table(spans)
    index = {point: place for place, point in enumerate(table.points)}
    places = [-1 if point is None else index[point] for point in found]
    return _Layout(table, np.array(places, np.intp))


def _table(spans: dict[Point, set[int]]) -> Table:
    points = tuple(sorted(spans))
    return Table(points, tuple(tuple(sorted(spans[point])) for point in points))


def _point(words: dict[str, str]) -> tuple[Point | None, set[int]]:
    """Return the point of a record and the lines of its statements; None outside the design."""
    page, _, module = words["page"].partition("/")
    kinds: dict[str, Kind] = {"v_line": "line", "v_branch": "branch"}
    if page not in kinds or not words["f"].startswith(DESIGN):
        return None, set()
    line = int(words["l"])
    point = Point(
        words["f"], line, int(words["n"]), kinds[page], module.partition("__")[0], words["o"]
    )
    return point, _span(words["S"]) if "S" in words else {line}


def _span(text: str) -> set[int]:
    """Return the lines of a list such as `1004-1008,1013`."""
    lines: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        lines.update(range(int(first), int(last or first) + 1))
    return lines


def merge(runs: Iterable[Points]) -> Points:
    """Return what several runs executed together, also runs of different models.

    The runs must be of the same sources, for a point is known by its line.
    """
    sums: dict[str, tuple[Table, Counts]] = {}
    for run in runs:
        if run.table.digest in sums:
            sums[run.table.digest][1][:] += run.counts
        else:
            sums[run.table.digest] = (run.table, run.counts.copy())
    if len(sums) == 1:
        ((table, counts),) = sums.values()
        return Points(table, counts)
    spans: dict[Point, set[int]] = {}
    for table, _ in sums.values():
        for point, span in zip(table.points, table.spans, strict=True):
            spans.setdefault(point, set()).update(span)
    whole = _table(spans)
    index = {point: place for place, point in enumerate(whole.points)}
    counts = np.zeros(len(whole.points), np.int64)
    for table, part in sums.values():
        counts[[index[point] for point in table.points]] += part
    return Points(whole, counts)
