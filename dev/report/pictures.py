# SPDX-License-Identifier: Apache-2.0
"""Pictures of the benchmarks as data URIs, so that the page is one file."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from pathlib import Path

from dev.report.benches import COMMAND
from dev.report.source import Source, one_line, shown

MOST_BYTES = 600_000
"""Of one picture: the page holds four and is to stay below 5 MB."""
BEGIN, END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
"""Of a PNG file: what comes after BEGIN is the length and the name of a header, then its size."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that the page holds.

    Attributes:
        name: its file, without the ending.
        uri: data.
        width, height: pixels.
        trace: file with the same as events for Perfetto, beside the page; "" for none.
    """

    name: str
    uri: str
    width: int
    height: int
    trace: str = ""

    @property
    def subject(self) -> str:
        """What it is of."""
        return self.name.removeprefix("timeline-")


def read_picture(path: Path) -> Source[Picture]:
    """Read a PNG file."""
    file = shown(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Source(file, COMMAND)
    except OSError as error:
        return Source(file, COMMAND, problem=error.strerror or one_line(error))
    if not (data.startswith(BEGIN) and data.endswith(END)):
        return Source(file, COMMAND, problem="no whole PNG picture")
    if len(data) > MOST_BYTES:
        text = f"given {len(data):,} bytes, allowed {MOST_BYTES:,} in the page"
        return Source(file, COMMAND, problem=text)
    width, height = struct.unpack_from(">II", data, len(BEGIN) + 8)
    uri = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    trace = path.with_suffix(".json")
    name = trace.name if trace.exists() else ""
    return Source(file, COMMAND, Picture(path.stem, uri, width, height, name))


def timelines(folder: Path) -> tuple[Source[Picture], ...]:
    """Read the timelines of a folder of reports, by name."""
    return tuple(read_picture(path) for path in sorted(folder.glob("timeline-*.png")))
