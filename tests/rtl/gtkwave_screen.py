# SPDX-License-Identifier: Apache-2.0
"""Opens save files in GTKWave on a screen of its own, and looks at the picture.

A picture is compared with another one of the same GTKWave, so that fonts and themes do not matter.
Where its rows are is measured in a picture of a waveform in which every row has two lines.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import ImageGrab
from vcd import VCDWriter
from vcd.gtkw import GTKWSave

Picture = npt.NDArray[np.uint8]
"""(height, width, 3): red, green, blue."""
SIZE = (1600, 1000)
_PATIENCE_S = 60.0
_GRID = 8
"""Columns of a line of the grid, and more."""
_FRAME = 4
"""Columns between names and waves, into which waves reach."""


@dataclass(frozen=True)
class ViewerRow:
    """A line of the viewer: the begin or end of a group, or a signal whose values may be known.

    Attributes:
        text: what stands there.
        width: of the signal in bits, 0 for a group.
        ends: whether it is the end of a group.
        values: what is known of the signal, time in nanoseconds and value from then on.
        since: time from which on that is known; before a reset registers are random.
        decimal: whether values are shown so.
        filter: file with words for values, if words are shown.
    """

    text: str
    width: int = 0
    ends: bool = False
    values: tuple[tuple[int, int], ...] = ()
    since: int = 0
    decimal: bool = False
    filter: Path | None = None


@dataclass(frozen=True)
class Geometry:
    """Where things are in a picture.

    Attributes:
        left: first column of the waves; names are left of it.
        right: behind their last column.
        top: first line of the waves, where times and markers stand.
        bands: first line, and that behind the last one, of each row that is seen.
        start: time at the first column, in nanoseconds.
        scale: columns per nanosecond.
    """

    left: int
    right: int
    top: int
    bands: tuple[tuple[int, int], ...]
    start: int
    scale: float

    @classmethod
    def of(cls, picture: Picture, header: Sequence[str]) -> Geometry:
        """Measure a picture in which each row is a signal of several bits that never changes."""
        lines, columns = _waves(picture) or (slice(0), slice(0))
        half = slice((columns.start + columns.stop) // 2, columns.stop)
        drawn_lines = np.flatnonzero(_drawn(picture[lines, half]).mean(axis=1) > 0.9) + lines.start
        bands = zip(drawn_lines[::2].tolist(), drawn_lines[1::2].tolist(), strict=False)
        (start,) = (int(line.split()[1]) for line in header if line.startswith("[timestart]"))
        (zoom,) = (float(line[1:].split()[0]) for line in header if line.startswith("*"))
        rows = tuple((top - 1, low + 2) for top, low in bands)
        return cls(columns.start, columns.stop, lines.start, rows, start, 200 * 2**zoom)

    def times(self, picture: Picture) -> Picture:
        """Return the times and markers above the waves."""
        return picture[self.top : self.bands[0][0], self.left : self.right]

    def name(self, picture: Picture, row: int) -> Picture:
        """Return the name of a row."""
        first, last = self.bands[row]
        return picture[first:last, : self.left - _FRAME]

    def wave(self, picture: Picture, row: int, since: int = 0) -> Picture:
        """Return the wave of a row from a time on."""
        first, last = self.bands[row]
        column = self.left + max(0, int((since - self.start) * self.scale))
        return picture[first:last, column : self.right]


def _drawn(picture: Picture) -> npt.NDArray[np.bool_]:
    """Return which pixels are of a wave or its text, green or white, not of grid or marker."""
    red, green, blue = (picture[..., colour] for colour in range(3))
    found: npt.NDArray[np.bool_] = (green > 90) & (green >= red) & (green >= blue)
    return found


def differences(
    picture: Picture, reference: Picture, rows: Sequence[ViewerRow], geometry: Geometry
) -> list[str]:
    """Return what is wrong in a picture, row by row from the top.

    The names must be those of the reference, waves where their values are known too; every signal
    must have a wave, and nothing else may have one.
    """
    found = []
    for index, row in enumerate(rows[: len(geometry.bands)]):
        here, there = (geometry.name(one, index) for one in (picture, reference))
        if not np.array_equal(here, there):
            found.append(f"row {index}: the name is not {row.text!r}")
        share = _drawn(geometry.wave(picture, index)).any(axis=0).mean()
        here, there = (geometry.wave(one, index, row.since) for one in (picture, reference))
        if row.width and share < 0.5:
            found.append(f"row {index}: {row.text} has no wave")
        elif not row.width and share > 0:
            found.append(f"row {index}: there is a wave beside {row.text!r}")
        elif row.values and not np.array_equal(here, there):
            found.append(f"row {index}: the wave of {row.text} shows other values")
    return found


@contextmanager
def screen() -> Iterator[str]:
    """Start an X server without a monitor; yield its name. Where no window is, it is white."""
    read, write = os.pipe()
    width, height = SIZE
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{width}x{height}x24"]
    server = subprocess.Popen(
        [*command, "-wr", "-nolisten", "tcp"], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    try:
        with os.fdopen(read) as file:
            yield f":{file.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def _waves(picture: Picture) -> tuple[slice, slice] | None:
    """Return the lines and columns of the black area of the waves, None if there is none."""
    black = (picture == 0).all(axis=2)
    columns = np.flatnonzero(black.sum(axis=0) > SIZE[1] // 4)
    lines = np.flatnonzero(black.sum(axis=1) > SIZE[0] // 4)
    if not columns.size or not lines.size:
        return None
    # Fonts may draw the brackets of names in plain black, one below the other: narrow columns.
    columns = max(np.split(columns, np.flatnonzero(np.diff(columns) > _GRID) + 1), key=len)
    return slice(lines[0], lines[-1] + 1), slice(columns[0], columns[-1] + 1)


def shot(display: str, save_file: Path, home: Path) -> Picture:
    """Return the picture of a save file in GTKWave, when it does not change any more.

    Raises:
        AssertionError: no waves are seen after a minute.
    """
    environment = {**os.environ, "DISPLAY": display, "HOME": str(home), "NO_AT_BRIDGE": "1"}
    viewer = subprocess.Popen(
        ["gtkwave", "--rcvar", "splash_disable on", str(save_file)],
        env={**environment, "GDK_BACKEND": "x11"},
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + _PATIENCE_S
        before = np.zeros((0,), np.uint8)
        while time.monotonic() < end:
            time.sleep(1.0)
            picture = np.asarray(ImageGrab.grab(xdisplay=display).convert("RGB"))
            if np.array_equal(picture, before) and _waves(picture) is not None:
                return picture
            before = picture
    finally:
        viewer.kill()
        viewer.wait()
    raise AssertionError(f"GTKWave shows no waves of {save_file.name} within {_PATIENCE_S:.0f} s")


def header_of(save_file: Path) -> list[str]:
    """Return the lines of a save file before its signals, but for the name of the waveform."""
    lines = save_file.read_text(encoding="utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("@"))
    return [line for line in lines[:first] if not line.startswith("[dumpfile]")]


def write_waveform(
    folder: Path, rows: Sequence[ViewerRow], end: int, header: Sequence[str]
) -> Path:
    """Write a small waveform by hand, and a save file that shows these rows; return the latter.

    Args:
        folder: where to write.
        rows: what is to be seen.
        end: time of the last change, in nanoseconds.
        header: lines of the save file: size, place, zoom.
    """
    folder.mkdir()
    vcd, gtkw = folder / "reference.vcd", folder / "reference.gtkw"
    with vcd.open("w", encoding="utf-8") as file, VCDWriter(file, timescale="1 ns") as writer:
        variables = {
            index: writer.register_var(f"r{index}", "v", "wire", row.width, 0)
            for index, row in enumerate(rows)
            if row.width
        }
        last = writer.register_var("last", "last", "wire", 1, 0)
        known = [(at, i, value) for i, row in enumerate(rows) for at, value in row.values]
        for at, index, value in sorted(known):
            if at <= end:
                writer.change(variables[index], at, value)
        writer.change(last, end, 1)
    with gtkw.open("w", encoding="utf-8") as file:
        save = GTKWSave(file)
        save.dumpfile(str(vcd))
        print(*header, sep="\n", file=file)
        for index, row in enumerate(rows):
            if row.width:
                bits = f"[{row.width - 1}:0]" if row.width > 1 else ""
                form = "bin" if row.width == 1 else "dec" if row.decimal else "hex"
                words = str(row.filter) if row.filter else None
                name, shown = f"r{index}.v{bits}", f"{row.text}{bits}"
                save.trace(name, shown, datafmt=form, translate_filter_file=words)
            elif row.ends:
                save.end_group(row.text)
            else:
                save.begin_group(row.text)
    return gtkw


def measured(display: str, folder: Path, header: Sequence[str]) -> Geometry:
    """Return where things are in pictures with this header."""
    rows = [ViewerRow("s", 8, values=((0, 0x5A),))] * 60
    return Geometry.of(shot(display, write_waveform(folder, rows, 10_000, header), folder), header)
