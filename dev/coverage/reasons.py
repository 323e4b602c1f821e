# SPDX-License-Identifier: Apache-2.0
"""Why a point of the design is not covered: `reasons.toml`, and what it explains.

An entry names a module and a piece of a line's text, or a function of it, so that it survives what
is inserted above. It must explain something: an entry whose text is gone, or whose point is covered
after all, is a problem.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from dev.coverage.points import CoverageError, Point, Points
from spec.paths import ROOT

REASONS = Path(__file__).parent / "reasons.toml"


@dataclass(frozen=True)
class Reason:
    """An entry.

    Attributes:
        module: name of the file below `rtl/`, without its ending.
        reason: why it is not covered, a sentence.
        source: a piece of the line where the points are; else `function` is given.
        function: name of a function, all points of which are meant.
        after: a piece of an earlier line: only the first line with `source` behind it is meant.
        arm: only points of this kind, e.g. `else`.
    """

    module: str
    reason: str
    source: str = ""
    function: str = ""
    after: str = ""
    arm: str = ""

    def __str__(self) -> str:
        return f"{REASONS.name}: {self.module}: {self.function or self.source!r}"


def load(path: Path = REASONS) -> list[Reason]:
    """Read the entries.

    Raises:
        CoverageError: an entry is not one.
    """
    allowed = [field.name for field in fields(Reason)]
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("reason", [])
    except tomllib.TOMLDecodeError as error:
        raise CoverageError(f"{path}: no TOML: {error}") from None
    for entry in entries:
        texts = isinstance(entry, dict) and all(isinstance(text, str) for text in entry.values())
        if (
            not texts
            or not set(entry) <= set(allowed)
            or not entry.get("module")
            or not entry.get("reason")
            or bool(entry.get("source")) == bool(entry.get("function"))
        ):
            raise CoverageError(
                f"{path}: given {entry}, needed are texts: module, reason, and one of source and "
                f"function; allowed: {', '.join(allowed)}"
            )
    return [Reason(**entry) for entry in entries]


def lines_of(reason: Reason, source: Sequence[str]) -> set[int]:
    """Return the lines, from 1, of a module's source that an entry is about."""
    if reason.function:
        name = re.compile(rf"^\s*function\b.*\b{re.escape(reason.function)}\b\s*[(;]")
        first = [number for number, text in enumerate(source, 1) if name.search(text)]
        ends = [number for number, text in enumerate(source, 1) if "endfunction" in text]
        return {
            line
            for begin in first
            for line in range(begin, min((end for end in ends if end >= begin), default=begin) + 1)
        }
    found = [number for number, text in enumerate(source, 1) if reason.source in text]
    if not reason.after:
        return set(found)
    starts = [number for number, text in enumerate(source, 1) if reason.after in text]
    behind = (min((line for line in found if line > start), default=0) for start in starts)
    return {line for line in behind if line}


def explain(
    points: Points, reasons: Iterable[Reason], sources: Mapping[str, Sequence[str]]
) -> tuple[dict[Point, str], list[str]]:
    """Return the reason of each point that has one, and what is wrong with the entries.

    Args:
        points: what was executed.
        reasons: the entries.
        sources: the lines of each file of `points`, by its path from the project's folder.
    """
    homes = {Path(file).stem: file for file in sources}
    by_file: dict[str, list[tuple[Point, bool]]] = {}
    for point, hit in zip(points.table.points, points.hit.tolist(), strict=True):
        by_file.setdefault(point.file, []).append((point, hit))
    explained: dict[Point, str] = {}
    problems: list[str] = []
    for reason in reasons:
        file = homes.get(reason.module)
        if file is None:
            # Another run has models with this module; one that nobody has is told.
            if not any((ROOT / "rtl").rglob(f"{reason.module}.sv")):
                problems.append(f"{reason}: no module of rtl/ has this name; remove the entry")
            continue
        lines = lines_of(reason, sources[file])
        meant = [
            (point, hit)
            for point, hit in by_file[file]
            if point.line in lines and reason.arm in ("", point.arm)
        ]
        covered = [point for point, hit in meant if hit]
        if not meant:
            problems.append(f"{reason}: no point of {file} is there; correct or remove the entry")
        elif covered:
            place = f"{file}:{covered[0].line} ({covered[0].arm})"
            problems.append(f"{reason}: {place} is covered; narrow or remove the entry")
        explained.update({point: reason.reason for point, hit in meant if not hit})
    return explained, problems
